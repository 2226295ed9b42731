// The queue protocol, written once for the GPU and the CPU.
//
// A ring of slots and a few 64-bit counters that only grow. A push reserves tickets by adding to the tail and stores each item
// into the slot of its ticket. A pop claims tickets by adding to the head, which may run ahead of the tail, and waits for *its
// own* slots, so that idle workers poll different addresses. The sequence number of a slot tells whether its item is there
// (slot.cuh).
//
// A push that has its tickets never waits. An item whose slot is still occupied goes to the spill area and asks for a stop; the
// host then recovers the pending items and goes on, or reports that the queue is full. A queue may grow while workers run
// (growth.cuh).
//
// Termination detection: `finished` counts tasks that ran, each after its pushes were counted: in the tail, or in `untracked`
// if they went to no slot. Whoever reads `finished` first, then the tail and `untracked`, and finds equal counts, twice, has
// proof that nothing is left (docs/design.md).
#pragma once
#include "protocol/growth.cuh"
#include "protocol/queue_addresses.h"

namespace atos {

// An item of the spill area with its ticket, whose slot was occupied; or a far item without a block (far_layout.cuh).
template <unsigned bytes> struct SpilledItem {
  Item<bytes> item;
  uint64_t ticket;
};
constexpr uint64_t spilled_bytes(uint64_t item_bytes) { return (item_bytes + 7) / 8 * 8 + 8; }

// A view of the queue, copied freely; the host's queues own the memory.
template <unsigned bytes> struct QueueRef : GrowingRings<bytes> {
  using GrowingRings<bytes>::counters;
  static constexpr unsigned kBytes = bytes;

  SpilledItem<bytes> *spill;
  uint64_t spill_size;

  QueueRef() = default;
  explicit ATOS_FUNCTION QueueRef(const QueueAddresses &at)
      : GrowingRings<bytes>{
            at.counters, static_cast<Slot<bytes> *>(at.slots), static_cast<Slot<bytes> *>(at.more), at.size, at.reciprocal,
            at.growths},
        spill(static_cast<SpilledItem<bytes> *>(at.spill)), spill_size(at.spill_size) {}

  // Stores an item under its ticket, which belongs to `ring`. Earlier writes must be ordered by a fence of this thread, or of
  // another thread behind a barrier of the worker.
  ATOS_FUNCTION void publish(const Ring &ring, uint64_t ticket, const Item<bytes> &item) const {
    const Place place = ring.at(ticket);
    Slot<bytes> &slot = ring.template slot<bytes>(place.index);
    // In the first generation every slot is free; later the item of the generation before may still be there.
    const bool used = !ring.first_generation(ticket);
    if (used && !slot.is_free(place.sequence)) return spill_one(item, ticket);
    if (!Slot<bytes>::packed) {
      if (used) fence(); // whoever emptied the slot has read its item
      slot.put(item);
      fence();
    }
    slot.commit(item, place.sequence);
  }

  // Publishes the caller's part (rank, rank + stride, ...) of n items, under the tickets from `first` on.
  ATOS_FUNCTION void publish(const Ring &ring, uint64_t first, const Item<bytes> *items, uint64_t n, uint64_t rank,
                             uint64_t stride) const {
    if (!Slot<bytes>::packed) { // all items of the first generation need only one fence
      ATOS_ROLLED
      for (uint64_t i = rank; i < n && ring.first_generation(first + i); i += stride)
        ring.template slot<bytes>(first + i - ring.start).put(items[i]);
      fence();
    }
    ATOS_ROLLED
    for (uint64_t i = rank; i < n; i += stride) {
      if (Slot<bytes>::packed || !ring.first_generation(first + i)) publish(ring, first + i, items[i]);
      else ring.template slot<bytes>(first + i - ring.start).commit(items[i], 0);
    }
  }

  // Claims n tickets to take items with; these tickets may lie beyond the tail.
  ATOS_FUNCTION uint64_t claim(uint64_t n) const { return fetch_add(&counters->head, n); }

  // Claims at most n tickets that lie below the tail, maybe none: for workers that must not wait.
  ATOS_FUNCTION uint64_t claim_below_tail(uint64_t n, uint64_t *first) const {
    uint64_t head = load(&counters->head);
    for (;;) {
      const uint64_t tail = tickets_of(load(&counters->tail));
      if (head >= tail) return 0;
      const uint64_t take = tail - head < n ? tail - head : n;
      if (compare_exchange(&counters->head, head, head + take)) {
        *first = head;
        return take;
      }
    }
  }

  // Counts n tasks as finished.
  ATOS_FUNCTION void finish(uint64_t n) const {
    fence();
    fetch_add(&counters->finished, n);
  }

  // Whether no task is unfinished; *tail: the tail at that time, *counted: if so, the number of all counted tasks.
  ATOS_FUNCTION bool ended(uint64_t *tail, uint64_t *counted = nullptr) const {
    const uint64_t finished = load(&counters->finished);
    if (counted) *counted = finished;
    fence();
    *tail = load(&counters->tail);
    if (finished != tickets_of(*tail) + load(&counters->untracked)) return false;
    // If slots have one word, a push has no fence between the reservation of its ticket and the commit of its item. So a worker
    // may count a task as finished before the reservation is visible here; equal counts are confirmed by reads that cannot be
    // stale.
    *tail = fetch_add(&counters->tail, 0);
    return finished == tickets_of(*tail) + fetch_add(&counters->untracked, 0);
  }

  // Counts `ran` tasks for the trace; the worker that finds a sample due takes the sample. The launch has claimed `begin` plus
  // *claims tickets.
  ATOS_FUNCTION void trace(uint64_t ran, uint64_t now, const uint64_t *claims, uint64_t begin, atos_sample *samples,
                           uint64_t most, uint64_t interval) const {
    const uint64_t before = fetch_add(&counters->ran_so_far, ran);
    uint64_t due = load(&counters->next_sample);
    if (now < due || !compare_exchange(&counters->next_sample, due, now + interval)) return;
    const uint64_t at = fetch_add(&counters->sampled, 1);
    if (at < most) samples[at] = {now, before + ran, tickets_of(load(&counters->tail)), begin + load(claims)};
  }

  // Stores an item whose slot is occupied in the spill area, as far as there is space, and asks for a stop.
  ATOS_FUNCTION void spill_one(const Item<bytes> &item, uint64_t ticket) const {
    const uint64_t at = fetch_add(&counters->spilled, uint64_t(1));
    if (at < spill_size) store_plain(&spill[at], SpilledItem<bytes>{item, ticket});
    set_bits(&counters->stop, kStopFull);
  }

  // At a stop: tells the host that a worker leaves with claimed tickets, from `first` on, whose items it has not taken.
  ATOS_FUNCTION void leave_tickets(uint64_t first) const { lower_to(&counters->first_left, first); }

  // Reports a check that failed in a task. The first failure is kept, and the launch ends in order; the host reads this failure
  // when all workers have left.
  ATOS_FUNCTION void fail(const atos_failure &failure) const {
    if (fetch_add(&counters->failures, uint64_t(1)) == 0) store_plain(&counters->failure, failure);
    set_bits(&counters->stop, kStopTask);
  }

  // Ends the launch from inside a task: unfinished tasks stay in the queue.
  ATOS_FUNCTION void stop() const { set_bits(&counters->stop, kStopCalled); }

  // Quiescence: a worker that saw nothing unfinished at some number of counted tasks, and then called idle without a push,
  // registers `lanes` workers as quiescent at this number. The upper 44 bits of `quiescent` are the number, the lower 20 count
  // workers. A worker with an older number is late, and will call idle again: it must not undo other workers' registrations.
  // all_quiescent: whether all workers are registered at `counted`.
  static constexpr uint64_t kQuiescentBits = 20;
  static ATOS_FUNCTION uint64_t none_quiescent(uint64_t counted) { return counted << kQuiescentBits; }
  ATOS_FUNCTION void register_quiescent(uint64_t counted, uint64_t lanes) const {
    uint64_t seen = load(&counters->quiescent);
    for (;;) {
      const int64_t newer = int64_t((counted << kQuiescentBits) - (seen >> kQuiescentBits << kQuiescentBits));
      if (newer < 0) return;
      if (compare_exchange(&counters->quiescent, seen, newer ? (counted << kQuiescentBits) + lanes : seen + lanes)) return;
    }
  }
  ATOS_FUNCTION bool all_quiescent(uint64_t counted, uint64_t workers) const {
    return load(&counters->quiescent) == (counted << kQuiescentBits) + workers &&
           tickets_of(load(&counters->tail)) + load(&counters->untracked) == counted;
  }
};

} // namespace atos
