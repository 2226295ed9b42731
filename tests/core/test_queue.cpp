// The queue protocol of csrc/protocol/queue_ref.cuh: tickets, slots, spilling, the end, and all of it under contention.
#include "protocol/queue_ref.cuh"
#include "protocol/kernel_params.h"

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

constexpr uint64_t kMax = ~uint64_t(0);

template <unsigned bytes> Item<bytes> make_item(uint64_t value);
template <> Item<4> make_item<4>(uint64_t value) { return {uint32_t(value)}; }
template <> Item<8> make_item<8>(uint64_t value) { return {{value}}; }
template <> Item<16> make_item<16>(uint64_t value) { return {{value, ~value}}; }
template <> Item<32> make_item<32>(uint64_t value) { return {{value, ~value, value * 3, ~(value * 5)}}; }

uint64_t value_of(const Item<4> &item) { return item.word; }
uint64_t value_of(const Item<8> &item) { return item.word[0]; }
uint64_t value_of(const Item<16> &item) {
  CHECK(item.word[1] == ~item.word[0], "an item of 16 bytes was torn: %" PRIx64 " %" PRIx64, item.word[0], item.word[1]);
  return item.word[0];
}

uint64_t value_of(const Item<32> &item) {
  const Item<32> whole = make_item<32>(item.word[0]);
  for (unsigned i = 1; i < 4; ++i) CHECK(item.word[i] == whole.word[i], "word %u of %" PRIx64 " is torn", i, item.word[0]);
  return item.word[0];
}

// A queue with memory of its own, as csrc/host/queue_storage.cpp makes it.
template <unsigned bytes> struct OwnQueue {
  std::unique_ptr<Counters> counters{new Counters{}};
  std::vector<Slot<bytes>> slots;
  std::vector<SpilledItem<bytes>> spill;
  QueueRef<bytes> ref;

  explicit OwnQueue(uint64_t size, uint64_t spill_size = 64)
      : slots(size), spill(spill_size),
        ref(addresses(counters.get(), slots, nullptr, spill)) {}

  void push(uint64_t value) {
    const Item<bytes> item = make_item<bytes>(value);
    ref.publish(ref.ring(0, 0), ref.reserve(1), &item, 1, 0, 1);
  }

  // The item of a ticket, if it is there.
  bool take(uint64_t ticket, uint64_t *value) {
    const Place place = ref.ring(0, 0).at(ticket);
    Slot<bytes> &slot = slots[place.index];
    typename Slot<bytes>::Seen seen{};
    if (!slot.is_ready(place.sequence, seen)) return false;
    *value = value_of(slot.get(seen));
    slot.release(place.sequence);
    return true;
  }

  // The items in full slots, in no order.
  std::vector<uint64_t> left() const {
    std::vector<uint64_t> found;
    for (const Slot<bytes> &slot : slots) {
      typename Slot<bytes>::Seen seen{};
      uint64_t sequence;
      if constexpr (bytes == 4) sequence = slot.word >> 32;
      else sequence = slot.sequence;
      if (sequence % 2 == 1 && slot.is_ready(sequence - 1, seen)) found.push_back(value_of(slot.get(seen)));
    }
    return found;
  }
};

} // namespace

TEST(a_borrowed_item_that_the_header_does_not_hold_has_a_place_behind_it) {
  for (const uint32_t bytes : {4u, 8u, 16u, 32u})
    for (const bool thread : {false, true})
      for (const bool nested : {false, true}) {
        const SharedLayout at = shared_layout(thread, nested, bytes, 2, 8, 8, 0, false, false, false, 0);
        const uint32_t behind = bytes == 32 && nested && !thread ? 32 : 0;
        CHECK(at.reduce == kHeaderBytes + behind, "items of %u bytes: what follows the header begins at %u", bytes, at.reduce);
      }
}

TEST(at_is_exact_division) {
  const uint64_t sizes[] = {1, 2, 3, 5, 6, 7, 10, 63, 64, 65, 641, 1000003, (1ull << 31) - 1, 1ull << 32, (1ull << 32) + 1,
                            (1ull << 40) - 1, 1ull << 40, (1ull << 63) - 1, 1ull << 63, (1ull << 63) + 1, kMax - 1, kMax};
  Random random(1);
  for (const uint64_t size : sizes) {
    const Ring queue{nullptr, 0, size, kMax / size};
    const auto check = [&](uint64_t ticket) {
      const Place place = queue.at(ticket);
      CHECK(place.index == ticket % size && place.sequence == 2 * (ticket / size),
            "ticket %" PRIu64 " of a ring of %" PRIu64 ": index %" PRIu64 ", sequence %" PRIu64, ticket, size, place.index, place.sequence);
    };
    for (uint64_t near = 0; near < 4; ++near) {
      check(near);
      check(kMax - near);
      check(size - 1 + near);
      check(kMax / size * size - 1 + near); // about the last generation, which may wrap to 0
    }
    for (int i = 0; i < 20000; ++i) {
      const uint64_t ticket = random() >> random.below(64);
      check(ticket);
      check(ticket / size * size);     // the first of a generation
      check(ticket / size * size - 1); // the last of one
    }
  }
}

TEST(at_is_exact_for_random_sizes) {
  Random random(2);
  for (int i = 0; i < 300000; ++i) {
    const uint64_t size = std::max<uint64_t>(random() >> random.below(64), 1), ticket = random() >> random.below(64);
    const Place place = Ring{nullptr, 0, size, kMax / size}.at(ticket);
    CHECK(place.index == ticket % size && place.sequence == 2 * (ticket / size), "ticket %" PRIu64 " of a ring of %" PRIu64, ticket, size);
  }
}

template <unsigned bytes> void slot_sequence(uint64_t first_generation) {
  Slot<bytes> slot{};
  typename Slot<bytes>::Seen seen{};
  // As if the laps before had been run.
  if (first_generation) slot.release(2 * first_generation - 2);
  Random random(first_generation + bytes);
  for (uint64_t generation = first_generation; generation < first_generation + 100; ++generation) {
    const uint64_t sequence = 2 * generation, value = generation % 3 == 0 ? 0 : generation % 3 == 1 ? kMax : random();
    CHECK(slot.is_free(sequence) && !slot.is_ready(sequence, seen), "an empty slot in generation %" PRIu64, generation);
    CHECK(!slot.is_free(sequence + 2) && !slot.is_ready(sequence + 2, seen), "an empty slot in generation %" PRIu64 ", as the next generation sees it", generation);
    const Item<bytes> item = make_item<bytes>(value);
    slot.put(item);
    CHECK(slot.is_free(sequence) && !slot.is_ready(sequence, seen), "a slot that is being filled in generation %" PRIu64, generation);
    slot.commit(item, sequence);
    CHECK(!slot.is_free(sequence) && !slot.is_free(sequence + 2), "a full slot is vacant to nobody, generation %" PRIu64, generation);
    CHECK(slot.is_ready(sequence, seen) && !slot.is_ready(sequence + 2, seen), "a full slot in generation %" PRIu64, generation);
    CHECK(slot.is_ready(sequence, seen) && value_of(slot.get(seen)) == value_of(item), "the item of generation %" PRIu64, generation);
    slot.release(sequence);
  }
}

TEST(slot_sequence_of_4_bytes) { slot_sequence<4>(0); }
TEST(slot_sequence_of_8_bytes) { slot_sequence<8>(0); }
TEST(slot_sequence_of_16_bytes) { slot_sequence<16>(0); }
TEST(slot_sequence_of_32_bytes) { slot_sequence<32>(0); }
TEST(slot_sequence_of_4_bytes_beyond_32_bits) {
  slot_sequence<4>((1ull << 31) - 50);
  slot_sequence<4>((1ull << 32) - 50);
  slot_sequence<4>((1ull << 40) + 7);
}
TEST(slot_sequence_of_8_bytes_beyond_32_bits) { slot_sequence<8>((1ull << 32) - 50); }

// Pushes and takes in batches of random sizes through rings so small that they wrap all the time.
template <unsigned bytes> void generations() {
  Random random(bytes);
  for (const uint64_t size : {1, 2, 3, 7, 64}) {
    OwnQueue<bytes> ring(size);
    uint64_t next_in = 0, next_out = 0;
    while (next_in < 200 * size) {
      const uint64_t n = random.below(size - (next_in - next_out) + 1);
      std::vector<Item<bytes>> items;
      for (uint64_t i = 0; i < n; ++i) items.push_back(make_item<bytes>(next_in + i));
      const uint64_t first = ring.ref.reserve(n), lanes = 1 + random.below(5);
      CHECK(first == next_in, "tickets begin at %" PRIu64 " instead of %" PRIu64, first, next_in);
      for (uint64_t lane = 0; lane < lanes; ++lane) ring.ref.publish(ring.ref.ring(0, 0), first, items.data(), n, lane, lanes);
      next_in += n;
      const uint64_t m = random.below(next_in - next_out + 1);
      CHECK(ring.ref.claim(m) == next_out, "claimed tickets do not begin at %" PRIu64, next_out);
      for (uint64_t i = 0; i < m; ++i, ++next_out) {
        uint64_t value = kMax;
        CHECK(ring.take(next_out, &value), "the item of ticket %" PRIu64 " is not there", next_out);
        CHECK(value == next_out, "ticket %" PRIu64 " has item %" PRIu64, next_out, value);
        CHECK(!ring.take(next_out, &value), "the item of ticket %" PRIu64 " was there twice", next_out);
      }
    }
    CHECK(ring.left().size() == next_in - next_out, "%zu items are left", ring.left().size());
    CHECK(!ring.ref.stopped() && ring.counters->spilled == 0, "a ring of %" PRIu64 " with room spilled", size);
  }
}

TEST(generations_of_4_bytes) { generations<4>(); }
TEST(generations_of_8_bytes) { generations<8>(); }
TEST(generations_of_16_bytes) { generations<16>(); }
TEST(generations_of_32_bytes) { generations<32>(); }

TEST(a_ticket_ahead_of_the_tail_waits) {
  OwnQueue<8> ring(4);
  uint64_t value;
  CHECK(ring.ref.claim(3) == 0 && !ring.take(0, &value), "a claimed ticket is empty at first");
  ring.push(5);
  CHECK(ring.take(0, &value) && value == 5, "and has its item then");
  CHECK(!ring.take(1, &value), "the next one still waits");
  CHECK(!ring.take(4, &value) && !ring.take(5, &value), "tickets of the next generation wait as well");
}

template <unsigned bytes> void spills() {
  OwnQueue<bytes> ring(2, 3);
  ring.push(10);
  ring.push(11);
  CHECK(!ring.ref.stopped(), "a full ring is no reason to stop");
  ring.push(12); // its slot holds 10
  CHECK(ring.ref.stopped() && ring.counters->stop == kStopFull, "an item without room asks for a stop");
  CHECK(ring.counters->spilled == 1 && value_of(ring.spill[0].item) == 12, "the item is in the spill area");
  uint64_t value;
  CHECK(ring.take(0, &value) && value == 10 && ring.take(1, &value) && value == 11, "what was there stays as it was");
  CHECK(!ring.take(2, &value), "the spilled ticket has no item in the ring");
  ring.push(13); // ticket 3, whose slot is free again
  CHECK(ring.counters->spilled == 1 && ring.take(3, &value) && value == 13, "a free slot takes its item after a spill");
  ring.push(14); // ticket 4 has the slot of ticket 2, which was never filled: its generation is missing
  CHECK(ring.counters->spilled == 2 && value_of(ring.spill[1].item) == 14, "after a spilled generation, the next one spills as well");
  CHECK(ring.counters->tail == 5, "spilled items count in the tail: %" PRIu64, ring.counters->tail);
}

TEST(spills_of_4_bytes) { spills<4>(); }
TEST(spills_of_8_bytes) { spills<8>(); }
TEST(spills_of_16_bytes) { spills<16>(); }
TEST(spills_of_32_bytes) { spills<32>(); }

TEST(a_full_spill_area_is_not_written_beyond) {
  OwnQueue<8> ring(1, 4);
  ring.spill.back().item = make_item<8>(77);
  ring.ref.spill_size = 3;
  for (uint64_t i = 0; i < 9; ++i) ring.push(i);
  CHECK(ring.counters->spilled == 8, "all that had no room is counted: %" PRIu64, ring.counters->spilled);
  for (uint64_t i = 0; i < 3; ++i) CHECK(value_of(ring.spill[i].item) == i + 1, "spilled item %" PRIu64, i);
  CHECK(value_of(ring.spill[3].item) == 77, "the memory behind the spill area was written");
}

// Whoever finds a sample due takes it; more than there is room for are counted and not kept.
TEST(samples_are_taken_when_they_are_due) {
  OwnQueue<4> ring(8);
  ring.push(1);
  ring.push(2);
  ring.ref.claim(1);
  atos_sample samples[3] = {};
  samples[2].ran = 77;
  const auto trace = [&](uint64_t ran, uint64_t now) { ring.ref.trace(ran, now, &ring.counters->head, 10, samples, 2, 100); };
  trace(3, 50);
  CHECK(ring.counters->sampled == 1 && samples[0].nanoseconds == 50 && samples[0].ran == 3, "the first one is due at once");
  CHECK(samples[0].tail == 2 && samples[0].claimed == 11, "%" PRIu64 " at the tail, %" PRIu64 " claimed", samples[0].tail,
        samples[0].claimed);
  trace(4, 149);
  CHECK(ring.counters->sampled == 1 && ring.counters->ran_so_far == 7, "nothing is due before the interval is over");
  trace(5, 150);
  CHECK(ring.counters->sampled == 2 && samples[1].nanoseconds == 150 && samples[1].ran == 12, "%" PRIu64 " tasks ran", samples[1].ran);
  trace(6, 1000);
  CHECK(ring.counters->sampled == 3 && samples[2].ran == 77, "a sample was written behind the last");
}

TEST(claim_below_tail_stays_below_the_tail) {
  OwnQueue<4> ring(8);
  uint64_t first = 99;
  CHECK(ring.ref.claim_below_tail(5, &first) == 0 && first == 99 && ring.counters->head == 0, "nothing to claim");
  for (int i = 0; i < 5; ++i) ring.push(i);
  CHECK(ring.ref.claim_below_tail(3, &first) == 3 && first == 0, "as many as asked for");
  CHECK(ring.ref.claim_below_tail(3, &first) == 2 && first == 3, "as many as there are");
  CHECK(ring.ref.claim_below_tail(3, &first) == 0 && ring.counters->head == 5, "none beyond");
  ring.counters->head = 9; // as after claims that ran ahead
  CHECK(ring.ref.claim_below_tail(1, &first) == 0 && ring.counters->head == 9, "a head that ran ahead claims nothing");
}

TEST(ended_compares_finished_and_tail) {
  OwnQueue<4> ring(8);
  uint64_t tail = 99;
  CHECK(ring.ref.ended(&tail) && tail == 0, "an unused queue has ended");
  ring.push(1);
  ring.push(2);
  CHECK(!ring.ref.ended(&tail) && tail == 2, "two tasks are unfinished");
  ring.ref.finish(1);
  CHECK(!ring.ref.ended(&tail), "one task is unfinished");
  ring.push(3);
  ring.ref.finish(1);
  CHECK(!ring.ref.ended(&tail) && tail == 3, "the task pushed meanwhile is unfinished");
  ring.ref.finish(1);
  CHECK(ring.ref.ended(&tail) && tail == 3, "all are finished");
  ring.counters->untracked = 1;
  CHECK(!ring.ref.ended(&tail), "a task without a ticket is unfinished");
  ring.ref.finish(1);
  CHECK(ring.ref.ended(&tail) && tail == 3, "and finished");
}

TEST(all_quiescent_needs_every_worker_at_the_same_tail) {
  OwnQueue<4> ring(8);
  ring.counters->quiescent = QueueRef<4>::none_quiescent(0); // as a launch begins
  CHECK(!ring.ref.all_quiescent(0, 2), "no worker is quiescent at first");
  ring.ref.register_quiescent(0, 1);
  CHECK(!ring.ref.all_quiescent(0, 2), "one of two");
  ring.ref.register_quiescent(0, 1);
  CHECK(ring.ref.all_quiescent(0, 2), "both");
  ring.push(1);
  CHECK(!ring.ref.all_quiescent(0, 2), "a push ends quiescence");
  ring.ref.register_quiescent(1, 1);
  CHECK(!ring.ref.all_quiescent(1, 2), "workers that were quiescent before it do not count");
  ring.ref.register_quiescent(1, 1);
  CHECK(ring.ref.all_quiescent(1, 2) && !ring.ref.all_quiescent(1, 3) && !ring.ref.all_quiescent(0, 2), "both, at 1");
}

TEST(a_late_registration_undoes_nothing) {
  OwnQueue<4> ring(8);
  ring.counters->quiescent = QueueRef<4>::none_quiescent(0);
  ring.push(1);
  ring.ref.register_quiescent(1, 1);
  ring.ref.register_quiescent(0, 1); // by a worker that looked before the push
  ring.ref.register_quiescent(1, 1);
  CHECK(ring.ref.all_quiescent(1, 2), "workers that are quiescent at 1 were forgotten");
}

static void all_quiescent_at(uint64_t tail) {
  OwnQueue<4> ring(8);
  ring.counters->tail = tail;
  ring.counters->quiescent = QueueRef<4>::none_quiescent(tail); // as a launch begins
  const uint64_t workers = 132 * 2048;
  for (uint64_t lanes = 0; lanes < workers; lanes += 32) {
    CHECK(!ring.ref.all_quiescent(tail, workers), "%" PRIu64 " of %" PRIu64 " at %" PRIu64, lanes, workers, tail);
    ring.ref.register_quiescent(tail, 32);
  }
  CHECK(ring.ref.all_quiescent(tail, workers), "all at %" PRIu64, tail);
}

TEST(all_quiescent_counts_lanes) {
  for (const uint64_t tail : {0ull, 1ull, 1ull << 32, (1ull << 43) - 2}) all_quiescent_at(tail);
}

TEST(all_quiescent_after_many_tasks) {
  for (const uint64_t tail : {(1ull << 43) + 1, (1ull << 44) - 1, 1ull << 44, (1ull << 58) + 9}) all_quiescent_at(tail);
}

// Producers and consumers on small rings, until all is pushed or an item has to spill. Each item comes out exactly once: by a
// consumer, or left in a slot, or in the spill area.
template <unsigned bytes> void producers_and_consumers(int rounds) {
  constexpr int kProducers = 3, kConsumers = 3;
  constexpr uint64_t kEach = 600, kTotal = kProducers * kEach;
  Random seeds(bytes);
  int stopped_rounds = 0;
  for (int round = 0; round < rounds; ++round) {
    const uint64_t size = 1 + seeds.below(round % 2 ? 8 : 2 * kTotal);
    OwnQueue<bytes> ring(size, kTotal);
    std::vector<std::vector<uint64_t>> seen(kConsumers);
    std::vector<uint64_t> pushed(kProducers);
    std::atomic<uint64_t> taken{0};
    std::atomic<int> producing{kProducers};
    std::vector<std::thread> threads;
    for (int p = 0; p < kProducers; ++p)
      threads.emplace_back([&, p, seed = seeds()] {
        Random random(seed);
        for (uint64_t sent = 0; sent < kEach && !ring.ref.stopped();) {
          const uint64_t n = std::min(1 + random.below(5), kEach - sent);
          Item<bytes> items[5];
          for (uint64_t i = 0; i < n; ++i) items[i] = make_item<bytes>(uint64_t(p) << 20 | (sent + i));
          ring.ref.publish(ring.ref.ring(0, 0), ring.ref.reserve(n), items, n, 0, 1);
          pushed[p] = sent += n;
        }
        --producing;
      });
    for (int c = 0; c < kConsumers; ++c)
      threads.emplace_back([&, c, seed = seeds()] {
        Random random(seed);
        for (;;) { // tickets ahead of the tail, or only below it
          const uint64_t want = 1 + random.below(4);
          uint64_t first = 0, claimed = want;
          if (c == 0) claimed = ring.ref.claim_below_tail(want, &first);
          else first = ring.ref.claim(want);
          for (uint64_t i = 0; i < claimed;) {
            uint64_t value;
            if (ring.take(first + i, &value)) {
              seen[c].push_back(value);
              ++taken;
              ++i;
            } else if (ring.ref.stopped() || (producing == 0 && first + i >= load(&ring.counters->tail))) {
              return;
            } else {
              std::this_thread::yield();
            }
          }
          if (claimed == 0) {
            if (ring.ref.stopped() || producing == 0) return;
            std::this_thread::yield();
          }
        }
      });
    for (std::thread &thread : threads) thread.join();
    std::map<uint64_t, int> times;
    for (const auto &values : seen) {
      for (const uint64_t value : values) ++times[value];
      // Of what one producer pushed, each consumer sees the order.
      std::map<uint64_t, uint64_t> latest;
      for (const uint64_t value : values) {
        const auto before = latest.find(value >> 20);
        CHECK(before == latest.end() || before->second < value, "item %" PRIx64 " came after %" PRIx64, value, before->second);
        latest[value >> 20] = value;
      }
    }
    for (const uint64_t value : ring.left()) ++times[value];
    for (uint64_t i = 0; i < ring.counters->spilled; ++i) ++times[value_of(ring.spill[i].item)];
    uint64_t total = 0;
    for (int p = 0; p < kProducers; ++p) {
      total += pushed[p];
      for (uint64_t i = 0; i < pushed[p]; ++i)
        CHECK(times[uint64_t(p) << 20 | i] == 1, "ring of %" PRIu64 ": item %" PRIu64 " of producer %d was seen %d times", size, i, p,
              times[uint64_t(p) << 20 | i]);
    }
    CHECK(times.size() == total && ring.counters->tail == total, "%zu items of %" PRIu64, times.size(), total);
    CHECK(ring.ref.stopped() == (ring.counters->spilled > 0), "a stop without a spilled item, or the other way round");
    stopped_rounds += ring.ref.stopped();
  }
  CHECK(stopped_rounds > 0 && stopped_rounds < rounds, "%d of %d rounds spilled: the test should see both", stopped_rounds, rounds);
}

TEST(producers_and_consumers_of_4_bytes) { producers_and_consumers<4>(60); }
TEST(producers_and_consumers_of_8_bytes) { producers_and_consumers<8>(60); }
TEST(producers_and_consumers_of_16_bytes) { producers_and_consumers<16>(60); }
TEST(producers_and_consumers_of_32_bytes) { producers_and_consumers<32>(60); }

// Workers that push as they take, each until it sees the end: nobody may see it before the last task is done.
template <unsigned bytes> void workers_see_the_end() {
  constexpr int kWorkers = 4;
  for (int round = 0; round < 60; ++round) {
    // A task of depth d pushes two of depth d - 1, so 2^(d + 1) - 1 tasks follow from one.
    const uint64_t depth = round % 12, expected = (2ull << depth) - 1;
    OwnQueue<bytes> ring(2 * expected);
    ring.push(depth);
    std::atomic<uint64_t> ran{0}, seen_at_end[kWorkers];
    std::vector<std::thread> threads;
    for (int w = 0; w < kWorkers; ++w)
      threads.emplace_back([&, w] {
        uint64_t tail, unreported = 0;
        for (;;) {
          const uint64_t ticket = ring.ref.claim(1);
          uint64_t value;
          while (!ring.take(ticket, &value)) {
            if (unreported) ring.ref.finish(unreported);
            unreported = 0;
            if (ring.ref.ended(&tail)) {
              seen_at_end[w] = ran.load();
              return;
            }
            std::this_thread::yield();
          }
          if (value) {
            const Item<bytes> items[2] = {make_item<bytes>(value - 1), make_item<bytes>(value - 1)};
            ring.ref.publish(ring.ref.ring(0, 0), ring.ref.reserve(2), items, 2, 0, 1);
          }
          ++ran;
          ++unreported;
        }
      });
    for (std::thread &thread : threads) thread.join();
    for (int w = 0; w < kWorkers; ++w)
      CHECK(seen_at_end[w] == expected, "worker %d left after %" PRIu64 " of %" PRIu64 " tasks", w, seen_at_end[w].load(), expected);
  }
}

TEST(workers_see_the_end_of_4_bytes) { workers_see_the_end<4>(); }
TEST(workers_see_the_end_of_16_bytes) { workers_see_the_end<16>(); }
TEST(workers_see_the_end_of_32_bytes) { workers_see_the_end<32>(); }

TEST(concurrent_claims_below_the_tail_overlap_nowhere) {
  OwnQueue<4> ring(64);
  constexpr uint64_t kTickets = 20000;
  ring.counters->tail = kTickets;
  std::vector<std::vector<uint64_t>> got(4);
  std::vector<std::thread> threads;
  for (auto &mine : got)
    threads.emplace_back([&] {
      uint64_t first, n;
      while ((n = ring.ref.claim_below_tail(7, &first)))
        for (uint64_t i = 0; i < n; ++i) mine.push_back(first + i);
    });
  for (std::thread &thread : threads) thread.join();
  std::vector<uint64_t> all;
  for (const auto &mine : got) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  CHECK(all.size() == kTickets, "%zu tickets were claimed", all.size());
  for (uint64_t i = 0; i < kTickets; ++i) CHECK(all[i] == i, "ticket %" PRIu64 " instead of %" PRIu64, all[i], i);
}
