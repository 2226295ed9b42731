// The CPU backend's launches, with tasks written in C++ as native programs: every schedule, small rings, idle, barriers.
#include <chrono>
#include <thread>
#include <sys/resource.h>
#include <unistd.h>

#include "tree.h"

namespace {

template <class T> void every_schedule_runs_every_task_once() {
  const Tree tree(sizeof(T), 5000, 4);
  Launcher<T> launcher(6000);
  for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
    const std::string which = name(persistent, barrier, fetch, blocks);
    Work work(tree);
    launcher.push(0);
    atos_stats stats;
    CHECK(launcher.launch(work, schedule(persistent, barrier, fetch, blocks), &stats) == ATOS_OK, "%s: %s", which.c_str(), atos_message());
    for (uint64_t v = 0; v < tree.nodes; ++v) CHECK(work.seen[v] == 1, "%s: task %" PRIu64 " ran %u times", which.c_str(), v, work.seen[v].load());
    CHECK(stats.tasks_run == tree.nodes && stats.tasks_pushed == tree.nodes - 1, "%s: %" PRIu64 " run, %" PRIu64 " pushed",
          which.c_str(), stats.tasks_run, stats.tasks_pushed);
    CHECK(stats.blocks == blocks && stats.workers == blocks && stats.pending == 0 && stats.lost == 0, "%s", which.c_str());
    CHECK(launcher.pending() == 0, "%s: something is left", which.c_str());
    if (barrier) {
      CHECK(work.early == 0, "%s: %" PRIu64 " tasks ran before the level above was over", which.c_str(), work.early.load());
      CHECK(stats.rounds == tree.of_level.size(), "%s: %" PRIu64 " rounds for %zu levels", which.c_str(), stats.rounds, tree.of_level.size());
    }
  });
}

} // namespace

TEST(every_schedule_with_items_of_4_bytes) { every_schedule_runs_every_task_once<uint32_t>(); }
TEST(every_schedule_with_items_of_8_bytes) { every_schedule_runs_every_task_once<uint64_t>(); }
TEST(every_schedule_with_items_of_16_bytes) { every_schedule_runs_every_task_once<Pair>(); }

TEST(an_empty_queue_ends_at_once) {
  const Tree tree(1, 10, 2);
  Launcher<uint32_t> launcher(4);
  for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
    Work work(tree);
    atos_stats stats;
    CHECK(launcher.launch(work, schedule(persistent, barrier, fetch, blocks), &stats) == ATOS_OK, "%s", atos_message());
    CHECK(stats.tasks_run == 0 && stats.tasks_pushed == 0, "%" PRIu64 " tasks ran", stats.tasks_run);
  });
}

TEST(small_rings_wrap_around_over_many_launches) {
  const Tree tree(2, 40, 1); // a chain: one task is pending at a time
  Launcher<uint32_t> launcher(1);
  for (int round = 0; round < 20; ++round)
    for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
      Work work(tree);
      launcher.push(0);
      atos_stats stats;
      CHECK(launcher.launch(work, schedule(persistent, barrier, fetch, blocks), &stats) == ATOS_OK, "%s", atos_message());
      for (uint64_t v = 0; v < tree.nodes; ++v) CHECK(work.seen[v] == 1, "task %" PRIu64 " ran %u times", v, work.seen[v].load());
    });
}

// Rings that are too small: the launch ends, says what is pending, and after a resize goes on where it was.
template <class T> void full_queues_lose_nothing() {
  int filled = 0;
  for (uint64_t seed = 0; seed < 2; ++seed) {
    const Tree tree(100 + seed, 400, 5);
    for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
      const std::string which = name(persistent, barrier, fetch, blocks);
      Work work(tree);
      uint64_t capacity = 1 + seed * 20, ran = 0;
      Launcher<T> launcher(capacity);
      launcher.push(0);
      for (;;) {
        atos_stats stats;
        const atos_status status = launcher.launch(work, schedule(persistent, barrier, fetch, blocks), &stats);
        ran += stats.tasks_run;
        if (status == ATOS_OK) break;
        CHECK(status == ATOS_QUEUE_FULL, "%s: status %d, %s", which.c_str(), int(status), atos_message());
        ++filled;
        uint64_t seen = 0, pushed = 1;
        for (uint64_t v = 0; v < tree.nodes; ++v)
          if (work.seen[v]) ++seen, pushed += tree.first[v + 1] - tree.first[v];
        CHECK(seen == ran, "%s: %" PRIu64 " tasks seen, %" PRIu64 " said to have run", which.c_str(), seen, ran);
        CHECK(stats.lost == 0 && stats.pending == pushed - seen && launcher.pending() == stats.pending,
              "%s: %" PRIu64 " pushed, %" PRIu64 " run, %" PRIu64 " pending, %" PRIu64 " lost", which.c_str(), pushed, seen, stats.pending, stats.lost);
        CHECK(stats.pending > capacity, "%s: %" PRIu64 " pending do fit in %" PRIu64, which.c_str(), stats.pending, capacity);
        std::vector<T> items(stats.pending);
        atos_queue_state state;
        CHECK(atos_queue_read(launcher.queue, items.data(), items.size(), &state) == ATOS_OK, "%s", atos_message());
        CHECK(state.pending == stats.pending && state.tasks_run == ran, "%s: the state differs from the stats", which.c_str());
        for (const T &item : items) CHECK(work.seen[decode(item)] == 0, "%s: a task that ran is pending", which.c_str());
        // Refused until there is room.
        CHECK(launcher.launch(work, schedule(persistent, barrier, fetch, blocks), &stats) == ATOS_QUEUE_FULL, "a full queue was launched");
        capacity = std::max(items.size(), 2 * capacity);
        CHECK(atos_queue_resize(launcher.queue, capacity) == ATOS_OK, "%s", atos_message());
      }
      for (uint64_t v = 0; v < tree.nodes; ++v) CHECK(work.seen[v] == 1, "%s: task %" PRIu64 " ran %u times", which.c_str(), v, work.seen[v].load());
      CHECK(!barrier || work.early == 0, "%s: %" PRIu64 " tasks ran before the level above was over", which.c_str(), work.early.load());
    });
  }
  CHECK(filled > 30, "only %d launches filled their queue", filled);
}

TEST(full_queues_lose_nothing_of_4_bytes) { full_queues_lose_nothing<uint32_t>(); }
TEST(full_queues_lose_nothing_of_16_bytes) { full_queues_lose_nothing<Pair>(); }

TEST(idle_runs_a_whole_quiescent_round_and_its_pushes_run) {
  const Tree tree(3, 300, 3);
  Launcher<uint32_t> launcher(8000);
  for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
    const std::string which = name(persistent, barrier, fetch, blocks);
    for (const int64_t pushes : {0, 1, 17}) {
      Work work(tree);
      work.idle_pushes = pushes;
      if (pushes != 1) launcher.push(0);
      const uint32_t times = uint32_t(pushes + (pushes != 1));
      atos_stats stats;
      CHECK(launcher.launch(work, schedule(persistent, barrier, fetch, blocks, true), &stats) == ATOS_OK, "%s: %s", which.c_str(), atos_message());
      for (uint64_t v = 0; v < tree.nodes; ++v)
        CHECK(work.seen[v] == times, "%s: task %" PRIu64 " ran %u times instead of %u", which.c_str(), v, work.seen[v].load(), times);
      CHECK(work.idle_calls >= pushes + int64_t(blocks), "%s: idle was called %" PRId64 " times", which.c_str(), work.idle_calls.load());
      CHECK(stats.tasks_pushed == times * tree.nodes - (pushes != 1), "%s: %" PRIu64 " pushed", which.c_str(), stats.tasks_pushed);
    }
  });
}

TEST(idle_with_a_queue_that_fills) {
  const Tree tree(4, 200, 4);
  for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
    Launcher<uint32_t> launcher(3);
    Work work(tree);
    work.idle_pushes = 5;
    uint64_t capacity = 3, ran = 0;
    for (;;) {
      atos_stats stats;
      const atos_status status = launcher.launch(work, schedule(persistent, barrier, fetch, blocks, true), &stats);
      ran += stats.tasks_run;
      if (status == ATOS_OK) break;
      CHECK(status == ATOS_QUEUE_FULL && stats.lost == 0, "status %d: %s", int(status), atos_message());
      CHECK(atos_queue_resize(launcher.queue, capacity = std::max(2 * capacity, stats.pending)) == ATOS_OK, "%s", atos_message());
    }
    CHECK(ran == 5 * tree.nodes, "%s: %" PRIu64 " tasks ran", name(persistent, barrier, fetch, blocks).c_str(), ran);
  });
}

TEST(launches_side_by_side_in_several_threads) {
  const Tree tree(5, 3000, 4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&tree, t] {
      for (int round = 0; round < 5; ++round) {
        Launcher<uint64_t> launcher(4000);
        Work work(tree);
        launcher.push(0);
        atos_stats stats;
        CHECK(launcher.launch(work, schedule(t % 2, round % 2, 8, 3), &stats) == ATOS_OK, "%s", atos_message());
        CHECK(stats.tasks_run == tree.nodes, "%" PRIu64 " tasks ran", stats.tasks_run);
      }
    });
  for (std::thread &thread : threads) thread.join();
}

TEST(one_queue_launched_from_several_threads) {
  const Tree tree(6, 2000, 4);
  Launcher<uint32_t> launcher(9000);
  Work work(tree);
  std::atomic<uint64_t> ran{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      launcher.push(0);
      atos_stats stats;
      CHECK(launcher.launch(work, schedule(t % 2, false, 8, 2), &stats) == ATOS_OK, "%s", atos_message());
      ran += stats.tasks_run;
    });
  for (std::thread &thread : threads) thread.join();
  CHECK(ran == 3 * tree.nodes && launcher.pending() == 0, "%" PRIu64 " tasks ran", ran.load());
}

// More items than the spill area holds: what is lost is counted, and what is pending goes on.
static uint32_t burst_size = 3000000;
static void burst(atos_cpu_worker *worker, const void *items, int64_t n, const void *args) {
  auto &ran = *const_cast<std::atomic<uint64_t> *>(*static_cast<std::atomic<uint64_t> *const *>(args));
  for (int64_t k = 0; k < n; ++k) {
    ++ran;
    if (static_cast<const uint32_t *>(items)[k] == 0)
      for (uint32_t v = 1; v <= burst_size; ++v) push<uint32_t>(worker, v);
  }
}

TEST(a_burst_into_a_small_ring_loses_nothing) {
  for (const bool persistent : {true, false}) {
    Program program(burst, nullptr);
    Launcher<uint32_t> launcher(16);
    launcher.push(0);
    std::atomic<uint64_t> ran{0};
    const uint64_t argument = reinterpret_cast<uint64_t>(&ran);
    atos_launch launch = schedule(persistent, false, 4, 2);
    launch.argument_words = 1;
    launch.arguments = &argument;
    atos_stats stats;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_QUEUE_FULL, "%s", atos_message());
    CHECK(stats.lost == 0 && stats.tasks_run + stats.pending == 3000001, "%" PRIu64 " ran, %" PRIu64 " pending, %" PRIu64 " lost",
          stats.tasks_run, stats.pending, stats.lost);
    CHECK(atos_queue_limit(launcher.queue, 4000000) == ATOS_OK, "%s", atos_message());
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
    CHECK(ran == 3000001 && stats.grown == 1, "%" PRIu64 " ran, grown %" PRIu64 " times", ran.load(), stats.grown);
  }
}

// Nodes of a tree, one of which stops the launch and pushes leaves all the same.
static void burst_at_stop(atos_cpu_worker *worker, const void *items, int64_t n, const void *args) {
  auto &seen = **static_cast<std::vector<std::atomic<uint32_t>> *const *>(args);
  for (int64_t k = 0; k < n; ++k) {
    const uint64_t v = static_cast<const uint64_t *>(items)[k];
    ++seen[v];
    if (v < 3000)
      for (uint64_t child = 3 * v + 1; child < 3 * v + 4 && child < 3000; ++child) push<uint64_t>(worker, child);
    if (v != 700) continue;
    worker->stop(worker);
    for (uint64_t leaf = 3000; leaf < 8000; ++leaf) push<uint64_t>(worker, leaf);
  }
}

TEST(rings_stay_after_a_stop_and_others_follow_them) {
  int added = 0;
  for (int turn = 0; turn < 20; ++turn) {
    Program program(burst_at_stop, nullptr);
    Launcher<uint64_t> launcher(8);
    CHECK(atos_queue_limit(launcher.queue, 0) == ATOS_OK, "%s", atos_message());
    launcher.push(0);
    std::vector<std::atomic<uint32_t>> seen(8000);
    auto *const given = &seen;
    const uint64_t argument = reinterpret_cast<uint64_t>(given);
    atos_launch launch = schedule(true, false, 8, 3);
    launch.worker = ATOS_CTA;
    launch.argument_words = launch.threads = 1;
    launch.arguments = &argument;
    atos_stats stats;
    uint64_t capacity, limit;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK && stats.stopped, "%s", atos_message());
    atos_queue_capacity(launcher.queue, &capacity, &limit);
    added += stats.grown > 0 && capacity > 8 && launcher.pending() > capacity;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
    for (uint64_t v = 0; v < seen.size(); ++v) CHECK(seen[v] == 1, "task %" PRIu64 " ran %u times", v, seen[v].load());
  }
  CHECK(added > 5, "in %d of 20 launches a queue that had grown had more items than room", added);
}

static rlim_t address_space() {
  unsigned long long pages = 0;
  FILE *file = std::fopen("/proc/self/statm", "r");
  CHECK(file && std::fscanf(file, "%llu", &pages) == 1, "cannot read the size of this process");
  std::fclose(file);
  return rlim_t(pages) * rlim_t(sysconf(_SC_PAGESIZE));
}

// With so little address space left, the spill area is as small as may be.
TEST(more_than_the_spill_area_holds_is_counted_as_lost) {
  rlimit before, limit;
  CHECK(getrlimit(RLIMIT_AS, &before) == 0, "cannot read the limit");
  limit = before;
  burst_size = 8000000;
  for (const bool persistent : {true, false}) {
    Program program(burst, nullptr);
    limit.rlim_cur = address_space() + (rlim_t(20) << 20);
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "cannot set a limit");
    Launcher<uint32_t> launcher(16);
    CHECK(setrlimit(RLIMIT_AS, &before) == 0, "cannot lift the limit");
    launcher.push(0);
    std::atomic<uint64_t> ran{0};
    const uint64_t argument = reinterpret_cast<uint64_t>(&ran);
    atos_launch launch = schedule(persistent, false, 4, 2);
    launch.argument_words = 1;
    launch.arguments = &argument;
    atos_stats stats;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_QUEUE_FULL, "%s", atos_message());
    CHECK(ran == stats.tasks_run && stats.tasks_pushed == burst_size, "%" PRIu64 " ran, %" PRIu64 " pushed", stats.tasks_run, stats.tasks_pushed);
    CHECK(stats.lost > 0 && stats.tasks_run + stats.pending + stats.lost == burst_size + 1,
          "%" PRIu64 " ran, %" PRIu64 " pending, %" PRIu64 " lost", stats.tasks_run, stats.pending, stats.lost);
    CHECK(launcher.pending() == stats.pending, "%" PRIu64 " are pending", launcher.pending());
    const uint64_t pending = stats.pending;
    CHECK(atos_queue_resize(launcher.queue, pending) == ATOS_OK, "%s", atos_message());
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
    CHECK(stats.tasks_run == pending && stats.lost == 0, "%" PRIu64 " ran of %" PRIu64, stats.tasks_run, pending);
  }
}

// Tasks that write plain memory, which nothing but the queue orders: ThreadSanitizer reports what is read without having been
// handed over. A task reads what its parent wrote, and with a barrier what the whole level above did.
struct Written {
  const Tree &tree;
  const bool barrier;
  std::vector<uint64_t> by_task, first_of_level; // nodes are in the order of their levels
  std::vector<uint64_t> parent;

  Written(const Tree &tree, bool barrier) : tree(tree), barrier(barrier), by_task(tree.nodes), parent(tree.nodes) {
    for (uint64_t v = 0, level = 0; v < tree.nodes; ++v) {
      if (v == 0 || tree.level[v] == level + 1) first_of_level.push_back(v), level = tree.level[v];
      for (uint64_t child = tree.first[v]; child < tree.first[v + 1]; ++child) parent[child] = v;
    }
  }
};

static void read_and_write(atos_cpu_worker *worker, const void *items, int64_t n, const void *args) {
  Written &written = **static_cast<Written *const *>(args);
  for (int64_t k = 0; k < n; ++k) {
    const uint64_t v = static_cast<const uint32_t *>(items)[k], level = written.tree.level[v];
    if (level) {
      const uint64_t from = written.barrier ? written.first_of_level[level - 1] : written.parent[v];
      const uint64_t to = written.barrier ? written.first_of_level[level] : from + 1;
      for (uint64_t u = from; u < to; ++u)
        CHECK(written.by_task[u] == u + 1, "task %" PRIu64 " does not see what task %" PRIu64 " wrote", v, u);
    }
    written.by_task[v] = v + 1;
    for (uint64_t child = written.tree.first[v]; child < written.tree.first[v + 1]; ++child) push<uint32_t>(worker, child);
  }
}

TEST(tasks_see_what_was_written_before_them) {
  const Tree tree(8, 1500, 4);
  Program program(read_and_write, nullptr);
  for (const uint64_t capacity : {2000, 50}) { // the smaller one grows
    for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
      Written written(tree, barrier);
      Launcher<uint32_t> launcher(capacity);
      CHECK(atos_queue_limit(launcher.queue, 4000) == ATOS_OK, "%s", atos_message());
      launcher.push(0);
      const Written *argument = &written;
      atos_launch launch = schedule(persistent, barrier, fetch, blocks);
      launch.argument_words = 1;
      launch.arguments = reinterpret_cast<const uint64_t *>(&argument);
      atos_stats stats;
      CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
      for (uint64_t v = 0; v < tree.nodes; ++v) CHECK(written.by_task[v] == v + 1, "the host does not see task %" PRIu64, v);
    });
  }
}

// The largest ring that a queue may have comes beside the workers as the others do: no stop, after which a second round would begin.
static void first_pushes_ten(atos_cpu_worker *worker, const void *items, int64_t n, const void *) {
  for (int64_t k = 0; k < n; ++k)
    if (static_cast<const uint32_t *>(items)[k] == 0)
      for (uint32_t v = 1; v <= 10; ++v) push<uint32_t>(worker, v);
}

TEST(a_queue_grows_to_its_very_limit_beside_its_workers) {
  Program program(first_pushes_ten, nullptr);
  for (const uint64_t limit : {15, 16, 31, 32}) {
    Launcher<uint32_t> launcher(8);
    CHECK(atos_queue_limit(launcher.queue, limit) == ATOS_OK, "%s", atos_message());
    launcher.push(0);
    atos_launch launch = schedule(true, false, 1, 1);
    atos_stats stats;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
    CHECK(stats.tasks_run == 11 && stats.rounds == (limit < 16 ? 2 : 1) && stats.grown == (limit < 32 ? 1 : 2),
          "limit %" PRIu64 ": %" PRIu64 " tasks in %" PRIu64 " rounds, grown %" PRIu64 " times", limit, stats.tasks_run, stats.rounds,
          stats.grown);
    uint64_t capacity = 0, most = 0;
    atos_queue_capacity(launcher.queue, &capacity, &most);
    CHECK(capacity == (limit < 16 ? 15 : limit < 32 ? 16 : 32) && most == limit, "%" PRIu64 " of %" PRIu64, capacity, most);
  }
}

// Tasks that become long after short ones come in shorter batches, since a launch is stopped between two.
struct Batches {
  int64_t most = 0, last = 0;
};

static void long_from_1_on(atos_cpu_worker *, const void *items, int64_t n, const void *args) {
  Batches &batches = **static_cast<Batches *const *>(args);
  const bool long_ones = static_cast<const uint32_t *>(items)[n - 1] == 1;
  if (!long_ones) batches.most = std::max(batches.most, n);
  else if (batches.last != 1) std::this_thread::sleep_for(std::chrono::milliseconds(10)), batches.last = n;
}

TEST(long_tasks_make_batches_shorter) {
  Program program(long_from_1_on, nullptr);
  for (const bool persistent : {true, false}) {
    Batches batches;
    while (batches.most < 16) { // on a busy machine short tasks may take long
      batches = Batches{};
      Launcher<uint32_t> launcher(2000);
      for (int i = 0; i < 400; ++i) launcher.push(0);
      for (int i = 0; i < 400; ++i) launcher.push(1);
      const Batches *argument = &batches;
      atos_launch launch = schedule(persistent, false, 16, 1);
      launch.argument_words = 1;
      launch.arguments = reinterpret_cast<const uint64_t *>(&argument);
      atos_stats stats;
      CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
    }
    CHECK(batches.last == 1, "the last batch that took long had %" PRId64 " tasks", batches.last);
  }
}

// As many tasks as slots, so that each slot is used again as soon as it is empty: not before its item has been read.
static void pushes_the_number_below(atos_cpu_worker *worker, const void *items, int64_t n, const void *) {
  for (int64_t k = 0; k < n; ++k)
    if (const uint64_t v = decode(static_cast<const Pair *>(items)[k])) push<Pair>(worker, v - 1);
}

TEST(slots_that_are_used_again_at_once) {
  constexpr uint64_t kEach = 40000;
  Program program(pushes_the_number_below, nullptr);
  for (const uint64_t width : {2, 3, 5}) {
    Launcher<Pair> launcher(width);
    for (uint64_t i = 0; i < width; ++i) launcher.push(kEach);
    const atos_launch launch = schedule(true, false, 1, 2);
    atos_stats stats;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
    CHECK(stats.tasks_run == width * (kEach + 1), "%" PRIu64 " tasks ran", stats.tasks_run);
  }
}

// Two tasks that are in hand at once, each with its worker's scratch.
static std::atomic<int> in_hand{0};
static void writes_scratch(atos_cpu_worker *worker, const void *items, int64_t n, const void *) {
  for (int64_t k = 0; k < n; ++k) {
    const int number = int(static_cast<const uint32_t *>(items)[k]) + 1;
    std::memset(worker->scratch, number, size_t(worker->scratch_bytes));
    for (++in_hand; in_hand < 2;) std::this_thread::yield();
    for (int64_t i = 0; i < int64_t(worker->scratch_bytes); ++i)
      CHECK(static_cast<const unsigned char *>(worker->scratch)[i] == number, "byte %" PRId64 " is another worker's", i);
  }
}

TEST(scratch_is_a_workers_own) {
  Program program(writes_scratch, nullptr);
  for (const bool persistent : {true, false}) {
    Launcher<uint32_t> launcher(4);
    launcher.push(0);
    launcher.push(1);
    in_hand = 0;
    atos_launch launch = schedule(persistent, false, 1, 2);
    launch.scratch = 100;
    atos_stats stats;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
    CHECK(stats.tasks_run == 2, "%" PRIu64 " tasks ran", stats.tasks_run);
  }
}

// The same with two regions that the task sizes, the place of each worker, and all of their number.
static void writes_regions(atos_cpu_worker *worker, const void *items, int64_t n, const void *) {
  for (int64_t k = 0; k < n; ++k) {
    const int number = int(static_cast<const uint32_t *>(items)[k]) + 1;
    CHECK(worker->index >= 0 && worker->index < worker->workers && worker->workers == 2, "worker %" PRId64, worker->index);
    unsigned char *regions[] = {static_cast<unsigned char *>(worker->scratch),
                                static_cast<unsigned char *>(worker->sized_scratch(worker, 7, 16)),
                                static_cast<unsigned char *>(worker->sized_scratch(worker, uint64_t(1) << 61, 48))};
    const size_t sizes[] = {size_t(worker->scratch_bytes), 16, 48};
    CHECK(worker->scratch_bytes == 100, "%" PRId64 " bytes", worker->scratch_bytes);
    CHECK(worker->sized_scratch(worker, 7, 16) == regions[1], "a place has two regions");
    for (int r = 0; r < 3; ++r) {
      CHECK(reinterpret_cast<uintptr_t>(regions[r]) % 16 == 0, "region %d is not aligned", r);
      std::memset(regions[r], number * 3 + r, sizes[r]);
    }
    for (++in_hand; in_hand < 2;) std::this_thread::yield();
    for (int r = 0; r < 3; ++r)
      for (size_t i = 0; i < sizes[r]; ++i) CHECK(regions[r][i] == number * 3 + r, "byte %zu of region %d is another's", i, r);
  }
}

TEST(regions_of_scratch_are_apart) {
  Program program(writes_regions, nullptr);
  for (const bool persistent : {true, false}) {
    Launcher<uint32_t> launcher(4);
    launcher.push(0);
    launcher.push(1);
    in_hand = 0;
    atos_launch launch = schedule(persistent, false, 1, 2);
    launch.scratch = 100;
    launch.sized_scratch = 64;
    atos_stats stats;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
    CHECK(stats.tasks_run == 2, "%" PRIu64 " tasks ran", stats.tasks_run);
  }
}

TEST(each_launch_has_samples_of_its_own) {
  const Tree tree(9, 10, 1);
  Launcher<uint32_t> launcher(20);
  for (const bool persistent : {true, false, true}) {
    Work work(tree);
    launcher.push(0);
    atos_sample samples[16] = {};
    atos_launch launch = schedule(persistent, false, 1, 1);
    launch.samples = samples;
    launch.max_samples = 16;
    launch.sample_interval = 0; // one after each batch
    atos_stats stats;
    CHECK(launcher.launch(work, launch, &stats) == ATOS_OK, "%s", atos_message());
    CHECK(stats.samples == tree.nodes, "%" PRIu64 " samples", stats.samples);
    for (uint64_t i = 0; i < tree.nodes; ++i)
      CHECK(samples[i].ran == i + 1, "sample %" PRIu64 " says that %" PRIu64 " tasks ran", i, samples[i].ran);
  }
}

TEST(launch_refuses_a_fetch_of_0) {
  alarm(2); // such a launch could last for ever
  const Tree tree(7, 10, 2);
  Launcher<uint32_t> launcher(20);
  Work work(tree);
  for (const bool persistent : {true, false}) {
    launcher.push(0);
    atos_stats stats;
    const atos_status status = launcher.launch(work, schedule(persistent, false, 0, 1), &stats);
    CHECK(status == ATOS_INVALID && std::strstr(atos_message(), "fetch"), "status %d: %s", int(status), atos_message());
  }
}

TEST(launch_refuses_too_many_argument_words) {
  Launcher<uint32_t> launcher(20);
  const std::vector<uint64_t> words(ATOS_MAX_ARGUMENT_WORDS + 1);
  atos_launch launch = schedule(true, false, 1, 1);
  launch.argument_words = uint32_t(words.size());
  launch.arguments = words.data();
  atos_stats stats;
  const atos_status status = atos_queue_launch(launcher.queue, launcher.program.handle, &launch, &stats);
  CHECK(status == ATOS_INVALID && std::strstr(atos_message(), "257"), "status %d: %s", int(status), atos_message());
}

// Newest first: each worker keeps what it pushes, and goes on with the newest of it.
TEST(newest_first_runs_every_task_once) {
  const Tree tree(9, 5000, 4);
  for (const uint32_t room : {0u, 1u, 3u, 64u}) // of the buffer, with 0 as large as the core makes it
    for (const uint32_t fetch : {1u, 16u})
      for (const uint32_t blocks : {1u, 3u}) {
        Launcher<uint64_t> launcher(8000);
        Work work(tree);
        launcher.push(0);
        atos_launch launch = schedule(true, false, fetch, blocks);
        launch.newest = 1;
        launch.push_buffer = room ? room + 1 : 0;
        atos_stats stats;
        CHECK(launcher.launch(work, launch, &stats) == ATOS_OK, "room for %u: %s", room, atos_message());
        for (uint64_t v = 0; v < tree.nodes; ++v) CHECK(work.seen[v] == 1, "room for %u: task %" PRIu64 " ran %u times", room, v, work.seen[v].load());
        CHECK(stats.tasks_run == tree.nodes && stats.tasks_pushed == tree.nodes - 1 && launcher.pending() == 0, "%" PRIu64 " run, %" PRIu64 " pushed",
              stats.tasks_run, stats.tasks_pushed);
      }
}

TEST(newest_first_is_refused_in_rounds) {
  const Tree tree(10, 10, 2);
  Launcher<uint32_t> launcher(20);
  Work work(tree);
  for (const auto &[persistent, barrier] : {std::pair{true, true}, {false, false}}) {
    launcher.push(0);
    atos_launch launch = schedule(persistent, barrier, 1, 1);
    launch.newest = 1;
    atos_stats stats;
    const atos_status status = launcher.launch(work, launch, &stats);
    CHECK(status == ATOS_INVALID && std::strstr(atos_message(), "newest first"), "status %d: %s", int(status), atos_message());
  }
}
