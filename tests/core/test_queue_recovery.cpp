// Recovery of a queue in the memory that it has (csrc/host/recovery.cpp), after simulated workers have left at any moment: in
// place, and aside where it is told that tickets were not claimed in their order. All items are there; those of an interrupted
// round come first, in their order, and are known; in place all are in the order of their tickets.
#include <algorithm>
#include <map>

#include "check.h"
#include "host/queue_storage.h"
#include "host/run.h"
#include "protocol/consumer.cuh"
#include "protocol/producer.cuh"

using namespace atos;
using check::Random;

namespace {

struct Hand { // one worker
  Consumer consumer;
  Producer producer;
};

template <unsigned bytes> struct Simulation {
  Random random;
  const bool barrier;
  QueueStorage storage;
  std::map<uint64_t, uint64_t> pending; // items by ticket
  uint64_t next_value = 1, taken = 0, round_end = 0;

  Simulation(uint64_t seed, uint64_t capacity) : random(seed), barrier(seed % 2), storage(ATOS_CPU, capacity, bytes) {
    storage.max_size = capacity << random.below(4);
  }

  static Item<bytes> item_of(uint64_t value) {
    Item<bytes> item{};
    std::memcpy(&item, &value, std::min(bytes, 8u));
    return item;
  }
  std::vector<uint64_t> values() {
    const std::vector<unsigned char> items = storage.peek();
    std::vector<uint64_t> all(items.size() / bytes);
    for (size_t k = 0; k < all.size(); ++k) std::memcpy(&all[k], &items[k * bytes], std::min(bytes, 8u));
    return all;
  }

  void push(const QueueRef<bytes> &queue, Hand &hand, uint64_t n) {
    hand.producer.reserve(queue, n);
    for (uint64_t i = 0; i < n; ++i) {
      pending[hand.producer.base + i] = next_value;
      queue.publish(hand.producer.ring, hand.producer.base + i, item_of(next_value++));
    }
  }

  void claim(const QueueRef<bytes> &queue, std::vector<Hand> &hands, Hand &hand) {
    const uint64_t n = 1 + random.below(4);
    if (!barrier) {
      hand.consumer.claim(queue, n);
    } else if (hand.consumer.claim_part(&queue.counters->head, 0, round_end, n) == 0) {
      if (std::any_of(hands.begin(), hands.end(), [](const Hand &other) { return other.consumer.claimed != 0; })) return;
      lower_to(&queue.counters->head, round_end);
      round_end = tickets_of(queue.counters->tail);
    }
  }

  void take(const QueueRef<bytes> &queue, Hand &hand) {
    Consumer &its = hand.consumer;
    its.look_for_ring(queue, load(&queue.counters->tail));
    while (its.is_past_ring(its.first)) {
      its.next_ring(queue);
      its.look_for_ring(queue, load(&queue.counters->tail));
    }
    for (uint64_t most = 1 + random.below(4); its.claimed && most && !its.is_past_ring(its.first); --most, ++its.first, --its.claimed) {
      const Place place = its.ring.at(its.first);
      Slot<bytes> &slot = its.ring.template slot<bytes>(place.index);
      typename Slot<bytes>::Seen seen{};
      if (!slot.is_ready(place.sequence, seen)) return;
      slot.release(place.sequence);
      pending.erase(its.first);
      ++taken;
    }
  }

  // One run of workers, and the recovery; whether that may have been in place.
  bool run() {
    atos_launch launch{};
    launch.persistent = 1;
    launch.barrier = barrier;
    Run run(launch, nullptr, bytes, &storage.counters);
    run.kernel.workers = 1 + uint32_t(random.below(4));
    run.kernel.fetch = 4;
    storage.provide(run);
    Counters &counters = *run.kernel.counters;
    counters = storage.counters;
    round_end = barrier && storage.level ? counters.head + storage.level : tickets_of(counters.tail);
    taken = 0;
    const QueueRef<bytes> queue(run.kernel);
    std::vector<Hand> hands(run.kernel.workers);
    for (Hand &hand : hands) hand.consumer.begin(queue), hand.producer.begin(queue);
    for (uint64_t steps = random.below(80); steps; --steps) {
      Hand &hand = hands[random.below(hands.size())];
      const uint64_t what = random.below(8);
      if (what < 2 && !hand.consumer.claimed && !queue.stopped()) claim(queue, hands, hand);
      else if (what < 5) take(queue, hand);
      else if (what < 7) push(queue, hand, 1 + random.below(3));
      else if (growths_of(counters.tail) < run.kernel.growths) queue.grow(growths_of(counters.tail), run.kernel.growths, [] {});
    }
    for (const Hand &hand : hands)
      if (hand.consumer.claimed) queue.leave_tickets(hand.consumer.first);
    if (barrier) lower_to(&counters.head, round_end);
    counters.round_end = round_end | kLastRound;
    counters.finished += taken;
    set_bits(&counters.stop, kStopAsked);
    storage.counters = counters;
    storage.note_run();
    run.claimed_in_order = random.below(3) != 0;
    storage.recover_pending(run);
    return run.claimed_in_order;
  }

  // Compares the pending items, and their tickets after the recovery, with those before it.
  void check_items(bool in_order, uint64_t *same_order) {
    const std::vector<uint64_t> now = values();
    std::vector<uint64_t> expected;
    for (const auto &[ticket, value] : pending) expected.push_back(value);
    const uint64_t of_round = barrier ? uint64_t(std::distance(pending.begin(), pending.lower_bound(round_end))) : 0;
    CHECK(storage.level == of_round, "%" PRIu64 " items are left of a round, and %" PRIu64 " are said to be", of_round, storage.level);
    CHECK(now.size() == expected.size() && std::equal(now.begin(), now.begin() + int64_t(of_round), expected.begin()),
          "%zu items in place of %zu, of which %" PRIu64 " of a round are first", now.size(), expected.size(), of_round);
    *same_order += in_order && now == expected;
    std::vector<uint64_t> sorted = now;
    std::sort(sorted.begin(), sorted.end()), std::sort(expected.begin(), expected.end());
    CHECK(sorted == expected, "%zu items, but others than there should be", now.size());
    if (storage.over_capacity() && !storage.ensure_capacity(storage.num_pending())) {
      storage.move_to(now.size());
      storage.max_size = std::max<uint64_t>(storage.max_size, now.size());
    }
    CHECK(storage.overflow.empty() && storage.level == of_round && values() == now, "%zu items, and other ones after they got room", now.size());
    pending.clear();
    for (size_t k = 0; k < now.size(); ++k) pending[storage.counters.head + k] = now[k];
  }
};

template <unsigned bytes> void left_at_any_moment() {
  uint64_t runs = 0, in_place = 0, same_order = 0, levels = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Simulation<bytes> its(seed, 1 + seed % 13);
    for (int stops = 0; stops < 6; ++stops) {
      const bool in_order = its.run();
      in_place += in_order;
      ++runs;
      its.check_items(in_order, &same_order);
      levels += its.storage.level != 0;
    }
  }
  CHECK(in_place < runs && same_order > in_place * 9 / 10 && levels > 1000, "of %" PRIu64 " recoveries %" PRIu64 " may have been in place, %" PRIu64 " kept the order, %" PRIu64 " had a level",
        runs, in_place, same_order, levels);
}

// Workers of a queue with buckets, who leave at any moment: far items stay in their lists on the device, while other runs and pushes
// from the host come, until something asks for them.
template <unsigned bytes> struct ListSimulation {
  struct Worker : Hand {
    FarChunk chunk{};
    uint64_t taken = 0;
    bool has_chunk = false;
  };
  static constexpr uint64_t kDrain = 1 << 24; // steps
  Random random;
  QueueStorage storage;
  std::map<uint64_t, float> pending; // levels of items
  std::map<uint64_t, bool> was_near;
  uint64_t next_value = 1, finished = 0, in_place = 0;

  ListSimulation(uint64_t seed, uint64_t capacity) : random(seed), storage(ATOS_CPU, capacity, bytes) {
    storage.max_size = capacity << seed % 3 * 4;
    storage.set_buckets(2u << seed % 3, seed % 2 ? 1 : 0);
  }

  static uint64_t value_of(const Item<bytes> &item) {
    uint64_t value = 0;
    std::memcpy(&value, &item, std::min(bytes, 8u));
    return value;
  }
  float any_level() { return float(random.below(40)) / 2; }

  void push(const FarItems<bytes> &far, Worker &worker, uint64_t value, float level) {
    const Item<bytes> item = Simulation<bytes>::item_of(value);
    pending[value] = level;
    const Window window = far.window();
    if (window.is_near(level)) {
      was_near[value] = true;
      worker.producer.reserve(far.queue, 1);
      far.queue.publish(worker.producer.ring, worker.producer.base, item);
      return;
    }
    far.count(1);
    const unsigned list = far.list_of(level, window);
    const uint64_t ticket = far.reserve(list, 1);
    far.begin_block(list, ticket);
    far.put(list, ticket, item, level);
  }

  void run_near(const QueueRef<bytes> &queue, Worker &worker) {
    Consumer &its = worker.consumer;
    if (!its.claimed) its.claim(queue, 1 + random.below(4));
    its.look_for_ring(queue, load(&queue.counters->tail));
    while (its.is_past_ring(its.first)) its.next_ring(queue), its.look_for_ring(queue, load(&queue.counters->tail));
    const Place place = its.ring.at(its.first);
    Slot<bytes> &slot = its.ring.template slot<bytes>(place.index);
    typename Slot<bytes>::Seen seen{};
    if (!slot.is_ready(place.sequence, seen)) return;
    CHECK(pending.erase(value_of(slot.get(seen))), "an item ran twice");
    slot.release(place.sequence);
    ++its.first, --its.claimed, ++finished;
  }

  void move_far(const FarItems<bytes> &far, Worker &worker) {
    if (!worker.has_chunk) {
      if (!far.claim_chunk(&worker.chunk) && !(far.can_open() && far.open(100, 2, kFarChunk) && far.claim_chunk(&worker.chunk))) return;
      worker.has_chunk = true, worker.taken = 0;
    }
    const uint64_t there = worker.chunk.to - worker.chunk.from;
    FarItem<bytes> *const entries = far.entries(worker.chunk);
    for (uint64_t most = random.below(2) ? there : random.below(20); entries && most && worker.taken < there; --most, ++worker.taken) {
      Item<bytes> item;
      float level;
      if (!far.take(&entries[worker.taken], &item, &level)) break;
      ++finished; // the task that pushes the item
      push(far, worker, value_of(item), level);
    }
    if (worker.taken < there) return;
    far.finish_chunk(worker.chunk);
    worker.has_chunk = false;
  }

  // A run of so many steps, or until nothing is left.
  void run(uint64_t steps) {
    const bool drains = steps == kDrain;
    atos_launch launch{};
    launch.persistent = launch.buckets = 1;
    Run run(launch, nullptr, bytes, &storage.counters);
    run.kernel.workers = 3;
    run.kernel.fetch = 4;
    if (storage.over_capacity() && !storage.ensure_capacity(storage.num_pending())) {
      storage.move_to(pending.size());
      storage.max_size = pending.size();
    }
    storage.provide(run);
    CHECK(storage.num_pending() == pending.size(), "%" PRIu64 " items are provided in place of %zu", storage.num_pending(), pending.size());
    for (const auto &[value, level] : pending) was_near[value] |= Window::unpack(storage.counters.far.window).is_near(level);
    Counters &counters = *run.kernel.counters;
    counters = storage.counters;
    finished = 0;
    const QueueRef<bytes> queue(run.kernel);
    const FarItems<bytes> far(run.kernel);
    std::vector<Worker> workers(3);
    for (Worker &worker : workers) worker.consumer.begin(queue), worker.producer.begin(queue);
    for (; steps && !queue.stopped() && !(drains && pending.empty()); --steps) {
      Worker &worker = workers[random.below(workers.size())];
      const uint64_t what = random.below(drains ? 5 : 8);
      if (what < 3) move_far(far, worker);
      else if (what < 5) run_near(queue, worker);
      else if (random.below(30)) push(far, worker, next_value++, any_level());
      else
        for (int k = 0; k < 1500; ++k) push(far, worker, next_value++, any_level()); // more than a block has
    }
    if (drains) CHECK(steps || queue.stopped(), "%zu items are left, %" PRIu64 " near and %" PRIu64 " far ones are said to be, %" PRIu64 " chunks", pending.size(), tickets_of(counters.tail) - counters.head, counters.far.stored - counters.far.taken_out, counters.far.left);
    if (drains && pending.empty()) { // each block is free, or the last one of a list
      uint64_t there = 0;
      for (uint64_t block = 0; block < run.kernel.blocks; ++block) there += far.free_blocks()[block / 64] >> block % 64 & 1;
      for (unsigned list = 0; list <= run.kernel.buckets; ++list) there += far.lists()[list].tail % kBlockItems != 0;
      CHECK(there == run.kernel.blocks, "%" PRIu64 " of %u blocks are there", there, run.kernel.blocks);
    }
    for (const Worker &worker : workers)
      if (worker.consumer.claimed) queue.leave_tickets(worker.consumer.first);
    counters.finished += finished;
    set_bits(&counters.stop, kStopAsked);
    const bool spilled = counters.spilled != 0;
    storage.counters = counters;
    storage.note_run();
    storage.recover_pending(run);
    in_place += storage.counters.untracked != 0; // else all items are on the host
    if (spilled) // without their levels
      for (const auto &each : pending) was_near[each.first] = true;
    CHECK(storage.num_pending() == pending.size(), "%" PRIu64 " items are pending, and should be %zu", storage.num_pending(), pending.size());
  }

  void push_from_host(uint64_t n) {
    if (!storage.ensure_capacity(storage.num_pending() + n)) return;
    for (; n; --n) {
      const Item<bytes> item = Simulation<bytes>::item_of(next_value);
      const double level = pending[next_value++] = any_level();
      storage.append_prioritized(reinterpret_cast<const unsigned char *>(&item), &level, 1);
    }
  }

  void check_items() {
    const std::vector<unsigned char> items = storage.peek();
    std::vector<double> priorities(items.size() / bytes);
    storage.read_priorities(priorities.data(), priorities.size());
    std::map<uint64_t, bool> seen;
    for (size_t k = 0; k < priorities.size(); ++k) {
      uint64_t value = 0;
      std::memcpy(&value, &items[k * bytes], std::min(bytes, 8u));
      CHECK(pending.count(value) && !seen[value], "item %" PRIu64 " is there twice, or was taken before", value);
      seen[value] = true;
      CHECK(was_near[value] || priorities[k] == double(pending[value]), "item %" PRIu64 " has the priority %g in place of %g", value, priorities[k], double(pending[value]));
      pending[value] = float(priorities[k]);
    }
    CHECK(seen.size() == pending.size(), "%zu items in place of %zu", seen.size(), pending.size());
  }
};

template <unsigned bytes> void left_in_lists_at_any_moment() {
  uint64_t runs = 0, in_place = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    ListSimulation<bytes> its(seed, 3000 + seed % 2 * 9000);
    its.push_from_host(its.random.below(3000));
    for (int stops = 0; stops < 8; ++stops, ++runs) {
      its.run(its.random.below(stops % 2 ? 300 : 30));
      if (its.random.below(2)) its.push_from_host(its.random.below(10) ? its.random.below(300) : 2500);
      if (!its.random.below(4)) its.check_items();
    }
    if (its.random.below(2)) its.check_items();
    for (int turns = 0; !its.pending.empty(); ++turns) {
      CHECK(turns < 100, "%zu items are left", its.pending.size());
      its.run(ListSimulation<bytes>::kDrain);
    }
    in_place += its.in_place;
  }
  CHECK(in_place > runs / 3, "of %" PRIu64 " recoveries %" PRIu64 " may have been in place", runs, in_place);
}

// More items with priorities than are copied at once; no worker takes any.
template <unsigned bytes> void prioritized_items_come_back() {
  constexpr uint64_t kItems = 100000;
  QueueStorage storage(ATOS_CPU, kItems, bytes);
  storage.set_buckets(8, 1);
  std::vector<unsigned char> items(kItems * bytes);
  std::vector<double> priorities(kItems);
  for (uint64_t k = 0; k < kItems; ++k) {
    std::memcpy(&items[k * bytes], &k, std::min(bytes, 8u));
    priorities[k] = double(k * 7919 % 100);
  }
  storage.append_prioritized(items.data(), priorities.data(), kItems);
  const std::vector<unsigned char> before = storage.peek();
  for (int stops = 0; stops < 3; ++stops) {
    atos_launch launch{};
    launch.persistent = launch.buckets = 1;
    Run run(launch, nullptr, bytes, &storage.counters);
    run.kernel.workers = run.kernel.fetch = 1;
    storage.provide(run);
    storage.note_run();
    storage.recover_pending(run);
    CHECK(storage.num_pending() == kItems, "%" PRIu64 " items are pending", storage.num_pending());
  }
  CHECK(storage.peek() == before, "%" PRIu64 " items in another order", kItems);
}

} // namespace

TEST(prioritized_items_of_4_bytes_come_back) { prioritized_items_come_back<4>(); }
TEST(prioritized_items_of_8_bytes_come_back) { prioritized_items_come_back<8>(); }
TEST(prioritized_items_of_32_bytes_come_back) { prioritized_items_come_back<32>(); }
TEST(lists_of_4_bytes_are_recovered_at_any_moment) { left_in_lists_at_any_moment<4>(); }
TEST(lists_of_8_bytes_are_recovered_at_any_moment) { left_in_lists_at_any_moment<8>(); }
TEST(lists_of_32_bytes_are_recovered_at_any_moment) { left_in_lists_at_any_moment<32>(); }
TEST(items_of_4_bytes_are_recovered_at_any_moment) { left_at_any_moment<4>(); }
TEST(items_of_8_bytes_are_recovered_at_any_moment) { left_at_any_moment<8>(); }
TEST(items_of_32_bytes_are_recovered_at_any_moment) { left_at_any_moment<32>(); }
