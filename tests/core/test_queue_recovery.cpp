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
    Counters &counters = *static_cast<Counters *>(run.kernel.counters);
    counters = storage.counters;
    round_end = barrier && storage.level ? counters.head + storage.level : tickets_of(counters.tail);
    taken = 0;
    const QueueRef<bytes> queue = queue_of<bytes>(run.kernel);
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
TEST(items_of_4_bytes_are_recovered_at_any_moment) { left_at_any_moment<4>(); }
TEST(items_of_8_bytes_are_recovered_at_any_moment) { left_at_any_moment<8>(); }
TEST(items_of_32_bytes_are_recovered_at_any_moment) { left_at_any_moment<32>(); }
