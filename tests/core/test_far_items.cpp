// Far items (csrc/protocol/far_items.cuh): lists, blocks, the window, and launches of queues with buckets.
#include "protocol/far_items.cuh"

#include <atomic>
#include <memory>
#include <thread>

#include "tree.h"

using namespace atos;

namespace {

template <unsigned bytes> Item<bytes> item_of(uint64_t value) {
  Item<bytes> item{};
  if constexpr (bytes == 4) item.word = uint32_t(value);
  else
    for (unsigned i = 0; i < bytes / 8; ++i) item.word[i] = value + i;
  return item;
}
template <unsigned bytes> uint64_t value_of(const Item<bytes> &item) {
  if constexpr (bytes == 4) {
    return item.word;
  } else {
    for (unsigned i = 1; i < bytes / 8; ++i) CHECK(item.word[i] == item.word[0] + i, "an item was torn");
    return item.word[0];
  }
}

// Far items without a queue beside them.
template <unsigned bytes> struct World {
  Counters counters{};
  std::vector<SpilledItem<bytes>> spill{1 << 12};
  std::unique_ptr<uint64_t[]> memory;
  FarItems<bytes> far;

  World(uint32_t buckets, uint32_t blocks, uint32_t directory) {
    const FarLayout at = far_layout(buckets, blocks, directory, bytes);
    memory = std::make_unique<uint64_t[]>(at.bytes / 8 + 4);
    const uint64_t start = (reinterpret_cast<uint64_t>(memory.get()) + 31) / 32 * 32;
    QueueAddresses its{};
    its.counters = &counters, its.spill = spill.data(), its.spill_size = spill.size(), its.size = its.reciprocal = 1;
    its.far = reinterpret_cast<void *>(start), its.buckets = buckets, its.blocks = blocks, its.directory = directory;
    far = FarItems<bytes>(its);
    for (uint32_t block = 0; block < blocks; ++block) {
      far.free_blocks()[block / 64] |= uint64_t(1) << block % 64;
      far.unread()[block] = kBlockItems;
    }
    std::memset(static_cast<void *>(far.items()), 255, blocks * kBlockItems * sizeof(FarItem<bytes>));
    counters.far.window = Window{0, 1}.pack();
    counters.far.least = kEmpty;
  }

  void push(uint64_t value, float level) {
    const Window window = far.window();
    far.count(1);
    const unsigned list = far.list_of(level, window);
    const uint64_t ticket = far.reserve(list, 1);
    far.begin_block(list, ticket);
    far.put(list, ticket, item_of<bytes>(value), level);
  }
  // All items of the chunks that are open, in order; those of other buckets are pushed again if `moves`.
  std::vector<uint64_t> take_open(bool moves = true) {
    std::vector<uint64_t> all;
    for (FarChunk chunk; far.claim_chunk(&chunk);) {
      CHECK(chunk.from < chunk.to && chunk.from / kBlockItems == (chunk.to - 1) / kBlockItems,
            "a chunk of two blocks, or empty");
      FarItem<bytes> *const entries = far.entries(chunk);
      for (uint64_t ticket = chunk.from; ticket < chunk.to; ++ticket) {
        Item<bytes> item{};
        float level = 0;
        CHECK(far.take(&entries[ticket - chunk.from], &item, &level), "an item is not there");
        if (moves && !far.window().is_near(level)) push(value_of<bytes>(item), level);
        else all.push_back(value_of<bytes>(item));
      }
      far.finish_chunk(chunk);
    }
    return all;
  }
  // Opens until items come of it, at most `tries` times.
  std::vector<uint64_t> next(uint64_t most = ~uint64_t(0), unsigned tries = 9) {
    for (; tries && far.open(most, 1, 256); --tries)
      if (const std::vector<uint64_t> got = take_open(); !got.empty()) return got;
    return {};
  }
  uint64_t free_blocks() const {
    uint64_t n = 0;
    for (uint32_t i = 0; i < (far.blocks + 63) / 64; ++i) n += uint64_t(__builtin_popcountll(far.free_blocks()[i]));
    return n;
  }
};
using Values = std::vector<uint64_t>;

template <unsigned bytes> void items_go_through_blocks() {
  World<bytes> world(2, 5, 8);
  for (uint64_t times = 0, value = 0; times < 20; ++times) { // the directory begins anew after 8 blocks
    const uint64_t n = times % 2 ? 3 * kBlockItems : kBlockItems / 2 + 7, first = value;
    for (uint64_t i = 0; i < n; ++i) world.push(value++, 1);
    const Values got = world.next();
    CHECK(got.size() == n, "%zu items of %" PRIu64, got.size(), n);
    for (uint64_t i = 0; i < n; ++i) CHECK(got[i] == first + i, "item %" PRIu64 " is %" PRIu64, first + i, got[i]);
    CHECK(!world.far.can_open() && world.far.open(9, 1, 256) == 0, "there is more");
    world.counters.far.window = Window{0, 1}.pack();
    CHECK(world.free_blocks() >= 4 && world.counters.stop == kRun, "%" PRIu64 " free blocks", world.free_blocks());
  }
}

} // namespace

TEST(items_go_through_blocks_of_4_bytes) { items_go_through_blocks<4>(); }
TEST(items_go_through_blocks_of_8_bytes) { items_go_through_blocks<8>(); }
TEST(items_go_through_blocks_of_16_bytes) { items_go_through_blocks<16>(); }

TEST(buckets_open_in_order) {
  World<4> world(4, 16, 16);
  for (const unsigned level : {3, 1, 900, 2, 70, 71, 1, 2000}) world.push(level, float(level));
  for (const Values &wanted :
       {Values{1, 1}, Values{2}, Values{3}, Values{70}, Values{71}, Values{900}, Values{2000}, Values{}}) {
    const Values got = world.next();
    CHECK(got == wanted, "%zu items, the first is %" PRIu64 " and should be %" PRIu64, got.size(), got.empty() ? 0 : got[0],
          wanted.empty() ? 0 : wanted[0]);
  }
  CHECK(load(&world.counters.untracked) == load(&world.counters.far.stored), "not all items were counted");
}

TEST(a_lower_item_moves_the_window_down) {
  World<4> world(4, 16, 16);
  world.push(7, 50);
  CHECK(world.next() == Values{7} && world.far.window().current == 50, "the window is at %g", world.far.window().current);
  world.push(8, 52);
  world.push(9, -3.5f);
  CHECK(world.far.window().current == -4, "the window is at %g", world.far.window().current);
  CHECK(world.next() == Values{9}, "the lowest item does not come first");
  CHECK(world.next() == Values{8}, "the other one is lost");
}

TEST(levels_that_are_no_numbers_come_last) {
  World<4> world(4, 16, 16);
  world.push(1, level_of(NAN, 1));
  world.push(2, level_of(INFINITY, 1));
  world.push(3, level_of(1e300, 1e300));
  world.push(4, 5);
  world.push(5, 3e38f);
  CHECK(world.next() == Values{4}, "the finite level does not come first");
  CHECK(world.next() == Values{5}, "nor the large one second");
  CHECK((world.next() == Values{1, 2, 3}), "the others do not come");
  world.push(6, -INFINITY);
  CHECK(world.next() == Values{6}, "the lowest level does not come");
}

// A list is opened when all chunks of the one before are finished, not when they are claimed.
TEST(one_list_is_open_at_a_time) {
  World<4> world(4, 16, 16);
  for (uint64_t i = 0; i < 3; ++i) world.push(i, 1);
  world.push(3, 2);
  CHECK(world.far.can_open() && world.far.open(2, 2, 1) == 2, "two items are two chunks");
  FarChunk first{}, second{}, none{};
  CHECK(world.far.claim_chunk(&first) && world.far.claim_chunk(&second) && !world.far.claim_chunk(&none),
        "there are two chunks");
  CHECK(!world.far.can_open() && world.far.open(9, 2, 1) == 0, "another list was opened");
  Item<4> item{};
  float level = 0;
  for (const FarChunk &chunk : {second, first}) {
    CHECK(world.far.open(9, 2, 1) == 0, "another list was opened");
    CHECK(world.far.take(world.far.entries(chunk), &item, &level) && item.word == chunk.from && level == 1, "item %u",
          item.word);
    world.far.finish_chunk(chunk);
  }
  CHECK(world.next() == Values{2} && world.next() == Values{3}, "the rest is lost");
}

// Without blocks items are spilled and the workers stop; what has a block is still there.
TEST(blocks_run_out) {
  World<8> world(2, 2, 2);
  const uint64_t n = 3 * kBlockItems - 5;
  for (uint64_t i = 0; i < n; ++i) world.push(i, 1);
  CHECK(world.counters.stop == kStopFull && world.counters.spilled == kBlockItems - 5, "%" PRIu64 " spilled",
        world.counters.spilled);
  for (uint64_t i = 0; i < world.counters.spilled; ++i)
    CHECK(value_of<8>(world.spill[i].item) == 2 * kBlockItems + i, "spilled item %" PRIu64 " is %" PRIu64, i,
          value_of<8>(world.spill[i].item));
  CHECK(world.far.open(~uint64_t(0), 1, 256), "nothing opens");
  Item<8> item{};
  float level = 0;
  CHECK(world.far.take(world.far.entries({2 * kBlockItems - 1, 2 * kBlockItems, 1, 0}), &item, &level) &&
            !world.far.entries({2 * kBlockItems, 2 * kBlockItems + 1, 1, 0}),
        "an item without a block");
}

// A block that is not read keeps its place in the directory, when others that came later are free again.
TEST(a_block_keeps_its_place) {
  World<4> world(2, 4, 4);
  for (uint64_t i = 0; i < 4 * kBlockItems; ++i) world.push(i, 1);
  CHECK(world.far.open(~uint64_t(0), 1, kBlockItems) == 4, "four blocks are four chunks");
  FarChunk first{}, chunk{};
  CHECK(world.far.claim_chunk(&first), "there is no chunk");
  Item<4> item{};
  float level = 0;
  while (world.far.claim_chunk(&chunk)) {
    for (uint64_t k = 0; k < chunk.to - chunk.from; ++k)
      CHECK(world.far.take(world.far.entries(chunk) + k, &item, &level), "no item");
    world.far.finish_chunk(chunk);
  }
  CHECK(world.free_blocks() == 3, "%" PRIu64 " free blocks", world.free_blocks());
  for (uint64_t i = 0; i < kBlockItems; ++i) world.push(1000000 + i, 1); // would take the place of the first block
  for (uint64_t ticket = first.from; ticket < first.to; ++ticket)
    CHECK(world.far.take(world.far.entries(first) + (ticket - first.from), &item, &level) && item.word == ticket,
          "item %" PRIu64 " is %u", ticket, item.word);
  world.far.finish_chunk(first);
  CHECK(world.counters.stop == kStopFull && world.counters.spilled == kBlockItems, "%" PRIu64 " spilled",
        world.counters.spilled);
}

// A width that adapts: each list is opened once for its items to be pushed again, whatever these are.
TEST(a_change_of_the_width_ends) {
  World<4> world(4, 64, 64);
  world.counters.far.adapts = 1;
  for (uint64_t i = 0; i < 20000; ++i) world.push(i, 1.0f + float(i % 7) * 40);
  std::vector<int> times(20000);
  uint64_t opened = 0, taken = 0;
  bool widened = false;
  while (world.far.open(~uint64_t(0), 20000, 256)) { // many beyond the window: the width doubles
    CHECK(++opened < 200, "%" PRIu64 " lists were opened", opened);
    widened = widened || world.far.window().inverse_width < 1;
    for (const uint64_t value : world.take_open()) ++times[value], ++taken;
  }
  for (const int n : times) CHECK(n == 1, "an item was taken %d times", n);
  CHECK(taken == 20000 && widened, "the width stays as it is");
}

// More items of one level than a bucket should have stay more, however narrow buckets get.
TEST(many_items_of_one_level_come_to_an_end) {
  World<4> world(4, 64, 64);
  world.counters.far.adapts = 1;
  uint64_t taken = 0;
  for (unsigned round = 0; round < 300; ++round) {
    for (uint64_t i = 0; i < 5; ++i) world.push(i, 1);
    world.push(9, 2);
    for (const Values &got : {world.next(1), world.next(1)}) taken += got.size();
    world.counters.far.window = Window{0, world.far.window().inverse_width}.pack();
  }
  for (Values got; !(got = world.next()).empty();) taken += got.size();
  CHECK(taken == 300 * 6 && world.counters.stop == kRun, "%" PRIu64 " items", taken);
  CHECK(std::isfinite(world.far.window().inverse_width), "the width is 0");
}

// All push and take, in few blocks: each item comes once, with what was written before it was pushed.
template <unsigned bytes> void all_push_and_take() {
  constexpr uint64_t kThreads = 4, kItems = 20000;
  World<bytes> world(4, 100, 256); // however long a thread stands still, a directory has place
  std::vector<int> written(kThreads * kItems), taken(kThreads * kItems);
  std::atomic<uint64_t> all_taken{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      check::Random random(t);
      uint64_t next = 0;
      while (all_taken.load(std::memory_order_relaxed) < kThreads * kItems && load(&world.counters.stop) == kRun) {
        for (unsigned i = 0; i < 100 && next < kItems; ++i) {
          const uint64_t value = t * kItems + next++;
          written[value] = 1;
          world.push(value, float(random.below(40)));
        }
        world.far.open(1000, kThreads, 64);
        const Values got = world.take_open();
        for (const uint64_t value : got)
          CHECK(written[value] == 1 && ++taken[value] == 1, "item %" PRIu64 " came twice", value);
        all_taken.fetch_add(got.size(), std::memory_order_relaxed);
        std::this_thread::yield();
      }
    });
  for (std::thread &thread : threads) thread.join();
  for (const int n : taken) CHECK(n == 1, "an item was taken %d times", n);
  CHECK(world.counters.stop == kRun && !world.far.can_open(), "something is left");
}

TEST(all_push_and_take_items_of_4_bytes) { all_push_and_take<4>(); }
TEST(all_push_and_take_items_of_16_bytes) { all_push_and_take<16>(); }

// Launches of a queue with buckets: each child has the priority of its level, and a few that of a level far above it.
template <class T> void with_priority(atos_cpu_worker *worker, uint64_t v, double priority) {
  const T item = encode<T>(v);
  worker->push(worker, &item, priority);
}
template <class T> void run_prioritized(atos_cpu_worker *worker, const void *items, int64_t n, const void *args) {
  Work &work = const_cast<Work &>(work_of(args));
  for (int64_t k = 0; k < n; ++k) {
    const uint64_t v = decode(static_cast<const T *>(items)[k]);
    CHECK(v < work.tree.nodes, "item %" PRIu64 " was never pushed", v);
    ++work.seen[v];
    for (uint32_t turn = 0; turn < work.turns; ++turn) __asm__ volatile("");
    for (uint64_t child = work.tree.first[v]; child < work.tree.first[v + 1]; ++child)
      with_priority<T>(worker, child, child % 5 ? work.tree.level[child] : 3.0 * double(child % 100));
  }
}
// Pushes the root, for a late bucket, as often as it may.
template <class T> void idle_prioritized(atos_cpu_worker *worker, const void *args) {
  if (--const_cast<Work &>(work_of(args)).idle_pushes >= 0) with_priority<T>(worker, 0, 1e9);
}

// Stopped again and again, in every schedule, until all is done; in a queue that is full at first, and may grow.
template <class T> void launches_with_buckets() {
  int stopped = 0, grown = 0;
  check::Random random(sizeof(T));
  const Tree tree(11, 3000, 4);
  Program program(run_prioritized<T>, nullptr);
  for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
    if (fetch == 7 || blocks == 2) return; // it takes its time
    const std::string which = name(persistent, barrier, fetch, blocks);
    Work work(tree);
    work.turns = 20000;
    Launcher<T> launcher(20);
    CHECK(atos_queue_limit(launcher.queue, 4000) == ATOS_OK && atos_queue_set_buckets(launcher.queue, 8, fetch > 1) == ATOS_OK,
          "%s", atos_message());
    launcher.push(0);
    uint64_t ran = 0;
    for (bool over = false; !over;) {
      atos_launch launch = schedule(persistent, barrier, fetch, blocks);
      launch.buckets = launch.argument_words = launch.threads = 1;
      launch.timeout = 1e-6 * double(1 + random.below(4000));
      const uint64_t argument = reinterpret_cast<uint64_t>(&work);
      launch.arguments = &argument;
      launch.worker = ATOS_CTA;
      atos_stats stats;
      const atos_status status = atos_queue_launch(launcher.queue, program.handle, &launch, &stats);
      over = status == ATOS_OK;
      CHECK(over || status == ATOS_STOPPED, "%s: status %d, %s", which.c_str(), int(status), atos_message());
      stopped += !over;
      grown += int(stats.grown);
      ran += stats.tasks_run;
      uint64_t seen = 0, pushed = 1;
      for (uint64_t v = 0; v < tree.nodes; ++v)
        if (work.seen[v]) ++seen, pushed += tree.first[v + 1] - tree.first[v];
      CHECK(seen == ran && stats.lost == 0 && launcher.pending() == pushed - seen,
            "%s: %" PRIu64 " pushed, %" PRIu64 " run, %" PRIu64 " pending", which.c_str(), pushed, seen, stats.pending);
    }
    for (uint64_t v = 0; v < tree.nodes; ++v)
      CHECK(work.seen[v] == 1, "%s: task %" PRIu64 " ran %u times", which.c_str(), v, work.seen[v].load());
  });
  CHECK(stopped > 10 && grown > 10, "%d launches were stopped, and queues grew %d times", stopped, grown);
}

TEST(launches_with_buckets_of_4_bytes) { launches_with_buckets<uint32_t>(); }
TEST(launches_with_buckets_of_16_bytes) { launches_with_buckets<Pair>(); }

// Far items that are pushed by idle alone, into a queue that never had any.
TEST(idle_pushes_far_items) {
  const Tree tree(3, 1, 0);
  Program program(run_prioritized<uint32_t>, idle_prioritized<uint32_t>);
  for (const bool persistent : {true, false})
    for (const bool barrier : {true, false}) {
      Work work(tree);
      work.idle_pushes = 3;
      Launcher<uint32_t> launcher(20);
      CHECK(atos_queue_set_buckets(launcher.queue, 2, 1) == ATOS_OK, "%s", atos_message());
      atos_launch launch = schedule(persistent, barrier, 1, 2, true);
      launch.buckets = launch.argument_words = launch.threads = 1;
      launch.worker = ATOS_CTA;
      const uint64_t argument = reinterpret_cast<uint64_t>(&work);
      launch.arguments = &argument;
      atos_stats stats;
      CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
      CHECK(stats.tasks_run == 3 && work.seen[0] == 3 && launcher.pending() == 0, "%s: %" PRIu64 " tasks ran",
            name(persistent, barrier, 1, 2).c_str(), stats.tasks_run);
    }
}
