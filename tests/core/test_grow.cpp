// Queues that grow while they are used: tickets know their ring, whoever waits for one finds it, and nobody waits for ever.
#include "protocol/queue_ref.cuh"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "addresses.h"
#include "check.h"

using namespace atos;
using check::Random;

namespace {

constexpr unsigned kGrowths = 5;

// A queue that may grow, with memory for all its rings, and a host that allows them.
struct Growing {
  std::unique_ptr<Counters> counters{new Counters{}};
  std::vector<Slot<8>> slots, more;
  std::vector<SpilledItem<8>> spill;
  QueueRef<8> ref;
  std::atomic<int> asked{0};

  explicit Growing(uint64_t size, unsigned growths = kGrowths)
      : slots(size), more((size << (growths + 1)) - 2 * size), spill(1 << 16),
        ref(addresses(counters.get(), slots, more.data(), spill, growths)) {}

  Ring ring_of(uint64_t tail) const { return ref.ring(growths_of(tail), ref.first_ticket_of(growths_of(tail))); }

  void push(const std::vector<uint64_t> &values) {
    std::vector<Item<8>> items;
    for (const uint64_t value : values) items.push_back({{value}});
    const uint64_t tail = ref.reserve_with_space(items.size(), [&] { ++asked; });
    ref.publish(ring_of(tail), tickets_of(tail), items.data(), items.size(), 0, 1);
  }

  bool take(const Ring &ring, uint64_t ticket, uint64_t *value) const {
    const Place place = ring.at(ticket);
    Slot<8> &slot = ring.slot<8>(place.index);
    if (!slot.is_free(place.sequence + 1)) return false;
    *value = slot.get({}).word[0];
    slot.release(place.sequence);
    return true;
  }

  // What the host does when it is asked; with `last`, it has no memory beyond so many growths.
  void answer(unsigned last) {
    const uint64_t growths_granted = load(&counters->growths_granted);
    if (load(&counters->growths_requested) > growths_granted && !(growths_granted & kNoMore))
      store(&counters->growths_granted, growths_granted < last ? growths_granted + 1 : growths_granted | kNoMore);
  }
};

} // namespace

TEST(rings_follow_each_other_in_memory) {
  Growing queue(3, 4);
  uint64_t end = 0;
  for (unsigned k = 1; k <= 4; ++k) {
    const Ring ring = queue.ref.ring(k, 1000 * k);
    CHECK(ring.slots == queue.more.data() + end, "ring %u does not begin where the one before ends", k);
    CHECK(ring.size == uint64_t(3) << k, "ring %u has %" PRIu64 " slots", k, ring.size);
    for (uint64_t i = 0; i < 5 * ring.size; ++i) {
      const Place place = ring.at(1000 * k + i);
      CHECK(place.index == i % ring.size && place.sequence == 2 * (i / ring.size), "ticket %" PRIu64 " of ring %u", i, k);
      CHECK(ring.first_generation(1000 * k + i) == (i < ring.size), "ticket %" PRIu64 " of ring %u", i, k);
    }
    end += ring.size;
  }
  CHECK(end == queue.more.size(), "the rings take %" PRIu64 " slots of %zu", end, queue.more.size());
}

TEST(a_crowded_queue_grows_when_it_may) {
  Growing queue(8);
  const Ring first = queue.ref.ring(0, 0);
  CHECK(queue.ref.headroom_of(first) == 4 && queue.ref.headroom_of(first) + kUnseen < 0, "4 slots are half of the ring");
  CHECK(Growing(8, 0).ref.headroom_of(first) + kUnseen > INT32_MAX, "who cannot grow does not ask");
  queue.push({0, 1, 2, 3});
  CHECK(queue.asked == 0 && queue.counters->tail == 4, "half is not too much");
  queue.push({4, 5});
  CHECK(queue.asked == 1 && queue.counters->growths_requested == 1, "more than that is, and there is still room");
  CHECK(tickets_of(queue.counters->tail) == 6 && growths_of(queue.counters->tail) == 0, "in the first ring");
  queue.counters->growths_granted = 1;
  queue.push({6});
  CHECK(growths_of(queue.counters->tail) == 1 && queue.ref.first_ticket_of(1) == 6, "the next ring begins at ticket 6");
  uint64_t value;
  for (uint64_t ticket = 0; ticket < 6; ++ticket)
    CHECK(queue.take(queue.ref.ring(0, 0), ticket, &value) && value == ticket, "ticket %" PRIu64, ticket);
  CHECK(!queue.take(queue.ref.ring(0, 0), 6, &value), "ticket 6 is not in the old ring");
  CHECK(queue.take(queue.ref.ring(1, 6), 6, &value) && value == 6, "but in the new one");
}

TEST(a_queue_that_may_not_grow_is_filled) {
  Growing queue(4);
  queue.counters->growths_granted = kNoMore;
  for (uint64_t i = 0; i < 5; ++i) queue.push({i});
  CHECK(queue.asked == 0 && growths_of(queue.counters->tail) == 0, "nothing to ask for");
  CHECK(queue.counters->spilled == 1 && queue.ref.stopped(), "the fifth item does not fit");
  Growing stopped(4);
  stopped.counters->stop = kStopAsked;
  stopped.push({1, 2, 3});
  CHECK(stopped.asked == 0 && stopped.counters->tail == 3, "nobody waits after a stop");
}

// Producers push much more than the first ring holds; the host takes its time, and sometimes has no more memory.
TEST(growth_under_contention) {
  constexpr int kProducers = 3, kConsumers = 3;
  constexpr uint64_t kEach = 1500;
  Random seeds(7);
  int grown = 0, full = 0, round = 0;
  // At least 60 queues, and on a busy machine more, until some have grown and some have filled.
  for (; round < 60 || (round < 1000 && (grown < 4 || full < 4)); ++round) {
    const unsigned last = unsigned(seeds.below(kGrowths + 1));
    Growing queue(round % 2 ? 1 + seeds.below(40) : 500 + seeds.below(500)); // takers may be a generation behind, or not
    std::vector<std::vector<uint64_t>> seen(kConsumers);
    std::atomic<int> producing{kProducers}, running{kProducers + kConsumers};
    std::vector<std::thread> threads;
    for (int p = 0; p < kProducers; ++p)
      threads.emplace_back([&, p, seed = seeds()] {
        Random random(seed);
        for (uint64_t sent = 0; sent < kEach;) {
          std::vector<uint64_t> values;
          for (uint64_t n = 1 + random.below(5); n && sent < kEach; --n) values.push_back(uint64_t(p) << 20 | sent++);
          queue.push(values);
        }
        --producing;
        --running;
      });
    for (int c = 0; c < kConsumers; ++c)
      threads.emplace_back([&, c] {
        Ring ring = queue.ref.ring(0, 0);
        uint64_t value;
        for (unsigned k = 0;;) {
          for (const uint64_t ticket = queue.ref.claim(1); !queue.take(ring, ticket, &value);) {
            const bool over = producing == 0 || queue.ref.stopped();
            const uint64_t tail = load(&queue.counters->tail);
            if (growths_of(tail) > k && ticket >= queue.ref.first_ticket_of(k + 1)) ring = queue.ref.ring(k + 1, queue.ref.first_ticket_of(k + 1)), ++k;
            else if (over && (queue.ref.stopped() || ticket >= tickets_of(tail))) return void(--running);
            std::this_thread::yield();
          }
          seen[c].push_back(value);
        }
      });
    for (; running; std::this_thread::yield()) queue.answer(last);
    for (std::thread &thread : threads) thread.join();
    std::map<uint64_t, int> times;
    for (const auto &values : seen)
      for (const uint64_t value : values) ++times[value];
    for (const auto *ring : {&queue.slots, &queue.more})
      for (const Slot<8> &slot : *ring) times[slot.get({}).word[0]] += slot.sequence % 2;
    for (uint64_t i = 0; i < queue.counters->spilled; ++i) ++times[queue.spill[i].item.word[0]];
    for (int p = 0; p < kProducers; ++p)
      for (uint64_t i = 0; i < kEach; ++i)
        CHECK(times[uint64_t(p) << 20 | i] == 1, "round %d: item %" PRIu64 " of producer %d is there %d times", round, i, p,
              times[uint64_t(p) << 20 | i]);
    CHECK(growths_of(queue.counters->tail) <= last, "more growths than were allowed");
    grown += growths_of(queue.counters->tail) > 0;
    full += queue.ref.stopped();
  }
  CHECK(grown > 3 && full > 3, "%d of %d queues grew, %d were full: the test should see both", grown, round, full);
}
