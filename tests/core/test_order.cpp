// Order in memory on the CPU (csrc/protocol/atomic.cuh): who sees a push, the end, a growth or a registration sees what was
// written before it. What is handed over is plain memory, so that ThreadSanitizer reports a race where an operation does not
// carry its order.
#include "protocol/queue_ref.cuh"

#include <functional>
#include <memory>
#include <thread>

#include "addresses.h"
#include "check.h"

using namespace atos;

namespace {

template <unsigned bytes> Item<bytes> item_of(uint64_t value) {
  Item<bytes> item{};
  std::memcpy(&item, &value, bytes < 8 ? bytes : 8);
  return item;
}
template <unsigned bytes> uint64_t value_of(const Item<bytes> &item) {
  uint64_t value = 0;
  std::memcpy(&value, &item, bytes < 8 ? bytes : 8);
  return value;
}

// A queue with memory of its own, which may grow `growths` times.
template <unsigned bytes> struct OwnQueue {
  std::unique_ptr<Counters> counters{new Counters{}};
  std::vector<Slot<bytes>> slots, more;
  std::vector<SpilledItem<bytes>> spill{64};
  QueueRef<bytes> ref;

  explicit OwnQueue(uint64_t size, unsigned growths = 0)
      : slots(size), more(2 * ((size << growths) - size)),
        ref(addresses(counters.get(), slots, more.data(), spill, growths)) {}

  void push(uint64_t value) {
    const Item<bytes> item = item_of<bytes>(value);
    ref.publish(ref.ring(0, 0), ref.reserve(1), &item, 1, 0, 1);
  }

  // Waits for the item of a ticket; calls `read` with it before its slot is free again.
  template <class Read> void take(uint64_t ticket, Read read) {
    const Place place = ref.ring(0, 0).at(ticket);
    Slot<bytes> &slot = slots[place.index];
    typename Slot<bytes>::Seen seen{};
    while (!slot.is_ready(place.sequence, seen)) std::this_thread::yield();
    read(value_of<bytes>(slot.get(seen)));
    slot.release(place.sequence);
  }
};

void in_threads(unsigned count, const std::function<void(unsigned)> &f) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < count; ++t) threads.emplace_back(f, t);
  for (std::thread &thread : threads) thread.join();
}

} // namespace

template <unsigned bytes> void a_push_hands_memory_over() {
  constexpr uint64_t kEach = 500;
  OwnQueue<bytes> queue(2 * kEach);
  std::vector<uint64_t> written(2 * kEach);
  in_threads(4, [&](unsigned thread) {
    for (uint64_t i = 0; i < kEach; ++i) {
      const uint64_t value = thread * kEach + i;
      if (thread < 2) {
        written[value] = value + 1;
        queue.push(value);
      } else {
        queue.take(queue.ref.claim(1), [&](uint64_t got) {
          CHECK(got < written.size() && written[got] == got + 1, "item %" PRIu64 " came without its memory", got);
        });
      }
    }
  });
}

TEST(a_push_hands_memory_over_with_4_bytes) { a_push_hands_memory_over<4>(); }
TEST(a_push_hands_memory_over_with_8_bytes) { a_push_hands_memory_over<8>(); }
TEST(a_push_hands_memory_over_with_16_bytes) { a_push_hands_memory_over<16>(); }
TEST(a_push_hands_memory_over_with_32_bytes) { a_push_hands_memory_over<32>(); }

// The other way round: who finds a slot free again may write what its taker has read.
template <unsigned bytes> void a_free_slot_hands_memory_over() {
  constexpr uint64_t kItems = 500, kSize = 3;
  OwnQueue<bytes> queue(kSize);
  uint64_t beside[kSize] = {};
  in_threads(2, [&](unsigned thread) {
    for (uint64_t ticket = 0; ticket < kItems; ++ticket) {
      const Place place = queue.ref.ring(0, 0).at(ticket);
      if (thread == 0) {
        while (!queue.slots[place.index].is_free(place.sequence)) std::this_thread::yield();
        beside[place.index] = ticket;
        queue.push(ticket);
      } else {
        queue.take(ticket, [&](uint64_t got) {
          CHECK(got == ticket && beside[place.index] == ticket, "ticket %" PRIu64 " has item %" PRIu64, ticket, got);
        });
      }
    }
  });
  CHECK(!queue.ref.stopped(), "a slot was used before it was free");
}

TEST(a_free_slot_hands_memory_over_with_4_bytes) { a_free_slot_hands_memory_over<4>(); }
TEST(a_free_slot_hands_memory_over_with_8_bytes) { a_free_slot_hands_memory_over<8>(); }
TEST(a_free_slot_hands_memory_over_with_16_bytes) { a_free_slot_hands_memory_over<16>(); }
TEST(a_free_slot_hands_memory_over_with_32_bytes) { a_free_slot_hands_memory_over<32>(); }

// Who sees that nothing is unfinished sees what all tasks have written.
TEST(the_end_hands_memory_over) {
  constexpr uint64_t kWorkers = 3, kEach = 300;
  OwnQueue<4> queue(1);
  queue.ref.reserve(kWorkers * kEach);
  std::vector<uint64_t> written(kWorkers * kEach);
  in_threads(kWorkers, [&](unsigned worker) {
    for (uint64_t i = 0; i < kEach; ++i) {
      written[worker * kEach + i] = i + 1;
      if (i % 3 == 2) queue.ref.finish(3);
    }
    for (uint64_t tail; !queue.ref.ended(&tail);) std::this_thread::yield();
    for (uint64_t i = 0; i < written.size(); ++i) CHECK(written[i] == i % kEach + 1, "task %" PRIu64 " is not seen", i);
  });
}

// A worker that sees all quiescent sees what each of them has written before it registered.
TEST(quiescent_workers_hand_memory_over) {
  constexpr unsigned kWorkers = 3;
  for (uint64_t tail = 0; tail < 100; ++tail) {
    OwnQueue<4> queue(1);
    queue.counters->tail = tail;
    queue.counters->quiescent = QueueRef<4>::none_quiescent(tail ? tail - 1 : 0); // the first one replaces an older number
    uint64_t written[kWorkers] = {};
    in_threads(kWorkers, [&](unsigned worker) {
      written[worker] = worker + 1;
      queue.ref.register_quiescent(tail, 1);
      while (!queue.ref.all_quiescent(tail, kWorkers)) std::this_thread::yield();
      for (unsigned other = 0; other < kWorkers; ++other) CHECK(written[other] == other + 1, "worker %u is not seen", other);
    });
  }
}

// Whoever has a ticket of a new ring, for a push or to take, sees the memory that the host has provided for it.
TEST(a_growth_hands_memory_over) {
  for (uint64_t round = 1; round <= 50; ++round) {
    OwnQueue<8> queue(4, 1);
    Counters &counters = *queue.counters;
    queue.ref.claim(9);
    uint64_t provided = 0;
    const auto in_new_ring = [&](uint64_t tail) {
      if (growths_of(tail) == 0) return false;
      const uint64_t start = queue.ref.first_ticket_of(1);
      CHECK(provided == round && start <= tickets_of(tail), "the new ring begins at ticket %" PRIu64, start);
      return true;
    };
    in_threads(4, [&](unsigned thread) {
      if (thread == 0) { // the host
        while (load(&counters.growths_requested) == 0) std::this_thread::yield();
        provided = round;
        store(&counters.growths_granted, 1);
      } else if (thread == 1) {
        while (!in_new_ring(load(&counters.tail))) std::this_thread::yield();
      } else {
        while (!in_new_ring(thread == 2 ? queue.ref.reserve_with_space(12, [] {}) : queue.ref.reserve(0))) std::this_thread::yield();
      }
    });
  }
}
