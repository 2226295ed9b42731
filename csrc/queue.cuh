// The queue protocol, written once for the GPU and the CPU.
//
// A ring of slots and a few 64-bit counters that only grow. A push reserves tickets by adding to `published` and stores each
// item into the slot of its ticket; a pop claims tickets by adding to `head`, which may run ahead of `published`, and waits
// for *its own* slots, so that idle workers poll different addresses. The turn of a slot says what it holds: 2 x lap when it
// is empty and waits for the ticket of that lap, 2 x lap + 1 when it is full. So any value of an item's type may be an item.
//
// Nobody who has tickets for a push waits. An item whose slot is still occupied goes to the spill area and asks for a stop; the
// host then sorts out what is pending (`settle`) and goes on, or reports that the queue is full.
//
// A ring that becomes too full while workers run is followed by one of twice the size, for the tickets from then on. One
// addition to `published` gives a pusher both: tickets, and the ring that they are for. Before it has them, and only where a
// larger ring may come, it may wait a little (see `reserve_with_room`).
//
// The end: `finished` counts tasks that ran, each after its own pushes were counted in `published`, or in `direct` if they went to
// no slot. Whoever reads `finished` first, then the others, and finds as many, twice, has proof that nothing is left
// (docs/design.md).
#pragma once
#include "interface.h"
#include "protocol/tuning.h"
#include "ring.cuh"

namespace atos {

// Values of Counters::stop. A host asks in the upper half of the word, so that it does not undo what a worker wrote.
constexpr uint64_t kRun = 0, kStopFull = 1, kStopTask = 3, kStopAsked = uint64_t(2) << 32;

// `published` counts tickets in its lower bits, and in its upper ones how often the queue grew since the workers came.
constexpr unsigned kTicketBits = 59, kMostGrowths = 31;
constexpr uint64_t kGrowth = uint64_t(1) << kTicketBits;
ATOS_FUNCTION uint64_t tickets_of(uint64_t published) { return published & (kGrowth - 1); }
ATOS_FUNCTION unsigned growths_of(uint64_t published) { return unsigned(published >> kTicketBits); }

// Values of Counters::starts below those that say a ticket, and a bit of Counters::allowed.
constexpr uint64_t kNotGrown = 0, kGrowing = 1, kGrown = 2;
constexpr uint64_t kNoMore = uint64_t(1) << 63;

// In place of tickets claimed beyond what was published: those of a worker that has not looked; and more room than that takes.
constexpr int64_t kUnseen = -(int64_t(1) << 60), kPlenty = int64_t(1) << 61;

struct Counters {
  alignas(128) uint64_t head;      // tickets claimed by workers
  alignas(128) uint64_t published; // tickets given to pushed items
  alignas(128) uint64_t finished;  // tasks that ran
  uint64_t stop;                   // why workers shall leave before the end
  uint64_t direct;                 // tasks counted without a ticket: kept by their worker, then shared
  uint64_t open;                   // bits of the shares that have unclaimed chunks
  alignas(128) uint64_t spilled;   // items that found their slot occupied
  alignas(128) uint64_t quiet;     // idle round: see `register_quiet`
  alignas(128) uint64_t arrived;   // grid barrier: blocks that came
  alignas(128) uint64_t phase;     // grid barrier: times it opened
  uint64_t round_end;              // grid barrier: tickets below this run in the current round
  alignas(128) uint64_t claims[4]; // discrete kernels: tickets claimed of the range of each stream's kernel
  uint64_t gone[4];                // blocks that left the kernel of each stream
  alignas(128) uint64_t allowed;   // growths for which there is memory; with kNoMore, if there will be none for more
  uint64_t wanted;                 // growths that the host was asked for
  uint64_t starts[kMostGrowths + 1]; // after each growth: the first ticket, plus kGrown
  alignas(128) uint64_t ran;       // statistics, added once by each worker
  uint64_t pushed;
  uint64_t rounds;
  alignas(128) uint64_t ran_so_far; // trace: tasks run, added after each batch
  uint64_t next_sample;             // trace: when the next sample is due
  uint64_t sampled;
  uint64_t failures;                // that tasks with checks have reported
  atos_failure failure;             // the first of them
};

// A view of the queue, copied freely; the host's queues own the memory.
template <unsigned bytes> struct QueueRef {
  Counters *counters;
  Slot<bytes> *slots, *more; // of the first ring, and of those that follow it, one after the other
  Item<bytes> *spill;
  uint64_t size;       // slots in the first ring
  uint64_t reciprocal; // (2^64 - 1) / size
  uint64_t spill_size;
  unsigned growths;    // that there may be, while workers run

  // The ring after k growths, whose first ticket is `start`.
  ATOS_FUNCTION Ring ring(unsigned k, uint64_t start) const {
    ring_used(k);
    return {k ? more + ((size << k) - 2 * size) : slots, start, size << k, reciprocal >> k};
  }

  // The first ticket of that ring. Who knows of a growth may come a moment before its start is known.
  ATOS_FUNCTION uint64_t start_of(unsigned k) const {
    if (k == 0) return 0;
    for (Spin spin;; spin.again()) {
      const uint64_t start = load(&counters->starts[k]);
      if (start >= kGrown) return start - kGrown;
    }
  }

  // Tickets for n pushes, as `published` was before. From here on they count as unfinished.
  ATOS_FUNCTION uint64_t reserve(uint64_t n) const { return add(&counters->published, n); }

  // For how many pushes that is fine, beside those that are awaited (`hungry`, tickets claimed beyond what was published, as one
  // has seen last): half of the ring stays empty. For more there is `reserve_with_room`.
  ATOS_FUNCTION int64_t spare(const Ring &ring) const { return growths ? int64_t(ring.size / 2) : kPlenty; }

  // Tickets where the ring could become too full: waits while it is and a larger one may come, but not for long. The host may
  // itself have to wait, for a thread that frees memory and so waits for this kernel. Calls `ask` when it is to provide for one
  // more growth.
  template <class Ask> ATOS_FUNCTION uint64_t reserve_with_room(uint64_t n, Ask ask) const {
    Spin spin;
    for (unsigned tries = 0; tries < kMostTries; ++tries, spin.again()) {
      uint64_t published = load(&counters->published);
      const unsigned k = growths_of(published);
      const uint64_t allowed = load(&counters->allowed);
      const bool no_more = k >= growths || (allowed & kNoMore && (allowed & ~kNoMore) <= k);
      if (no_more || stopped()) return reserve(n);
      const int64_t need = int64_t(tickets_of(published) + n - load(&counters->head)), room = int64_t(size << k);
      if (need <= room / 2) return reserve(n);
      grow(k, allowed & ~kNoMore, ask);
      // Only if nothing was published meanwhile: all that are let in together must fit.
      if (need <= room - room / 8 && exchange_if(&counters->published, published, published + n)) return published;
    }
    uint64_t allowed = load(&counters->allowed);
    exchange_if(&counters->allowed, allowed, allowed | kNoMore); // nobody else shall wait, until the host answers after all
    return reserve(n);
  }

  // One growth more than k, if there is memory for it; otherwise that is asked for.
  template <class Ask> ATOS_FUNCTION void grow(unsigned k, uint64_t allowed, Ask ask) const {
    uint64_t before = kNotGrown;
    if (k >= allowed) {
      uint64_t wanted = load(&counters->wanted); // less than k, if more was allowed than was asked for
      if (wanted <= k && exchange_if(&counters->wanted, wanted, k + 1)) ask();
    } else if (exchange_if(&counters->starts[k + 1], before, kGrowing)) {
      fence(); // the memory was there before it was allowed
      store(&counters->starts[k + 1], tickets_of(add(&counters->published, kGrowth)) + kGrown);
    }
  }

  // Stores an item under its ticket, which is of `ring`. Everything written before must be ordered by a fence of this thread,
  // or of one behind a barrier of the worker.
  ATOS_FUNCTION void publish(const Ring &ring, uint64_t ticket, const Item<bytes> &item) const {
    const Place place = ring.at(ticket);
    Slot<bytes> &slot = ring.template slot<bytes>(place.index);
    // On the first lap every slot is empty; later the item of the lap before may still be there.
    const bool used = !ring.first_lap(ticket);
    if (used && !slot.has(place.turn)) return spill_one(item);
    if (!Slot<bytes>::packed) {
      if (used) fence(); // whoever emptied the slot has read it
      slot.put(item);
      fence();
    }
    slot.fill(item, place.turn);
  }

  // The same for the caller's share (rank, rank + stride, ...) of n items, under the tickets from `first` on.
  ATOS_FUNCTION void publish(const Ring &ring, uint64_t first, const Item<bytes> *items, uint64_t n, uint64_t rank,
                             uint64_t stride) const {
    if (!Slot<bytes>::packed) { // those of the first lap need only one fence
ATOS_ROLLED
      for (uint64_t i = rank; i < n && ring.first_lap(first + i); i += stride)
        ring.template slot<bytes>(first + i - ring.start).put(items[i]);
      fence();
    }
ATOS_ROLLED
    for (uint64_t i = rank; i < n; i += stride) {
      if (Slot<bytes>::packed || !ring.first_lap(first + i)) publish(ring, first + i, items[i]);
      else ring.template slot<bytes>(first + i - ring.start).fill(items[i], 0);
    }
  }

  // Tickets to take items with; they may lie beyond what is published.
  ATOS_FUNCTION uint64_t claim(uint64_t n) const { return add(&counters->head, n); }

  // At most n tickets that lie below `published`, which may be none: for workers that must not wait.
  ATOS_FUNCTION uint64_t claim_published(uint64_t n, uint64_t *first) const {
    uint64_t head = load(&counters->head);
    for (;;) {
      const uint64_t published = tickets_of(load(&counters->published));
      if (head >= published) return 0;
      const uint64_t take = published - head < n ? published - head : n;
      if (exchange_if(&counters->head, head, head + take)) {
        *first = head;
        return take;
      }
    }
  }

  ATOS_FUNCTION void finish(uint64_t n) const {
    fence();
    add(&counters->finished, n);
  }

  // True when no task is unfinished; *published as it was then, or is otherwise.
  ATOS_FUNCTION bool ended(uint64_t *published) const {
    const uint64_t finished = load(&counters->finished);
    fence();
    *published = load(&counters->published);
    if (finished != tickets_of(*published) + load(&counters->direct)) return false;
    // A task may be counted as finished by a worker that took it from its slot and has yet to see its reservation: no fence
    // is between that and `fill`, where the slots have one word. So equal counts are confirmed by reads that cannot be stale.
    *published = add(&counters->published, 0);
    return finished == tickets_of(*published) + add(&counters->direct, 0);
  }

  ATOS_FUNCTION bool stopped() const { return load(&counters->stop) != kRun; }

  // Counts `ran` tasks for the trace; whoever finds a sample due takes it. The tickets claimed are `begin` and those of `claims`.
  ATOS_FUNCTION void trace(uint64_t ran, uint64_t now, const uint64_t *claims, uint64_t begin, atos_sample *samples, uint64_t most,
                           uint64_t interval) const {
    const uint64_t before = add(&counters->ran_so_far, ran);
    uint64_t due = load(&counters->next_sample);
    if (now < due || !exchange_if(&counters->next_sample, due, now + interval)) return;
    const uint64_t at = add(&counters->sampled, 1);
    if (at < most) samples[at] = {now, before + ran, tickets_of(load(&counters->published)), begin + load(claims)};
  }

  ATOS_FUNCTION void spill_one(const Item<bytes> &item) const {
    const uint64_t at = add(&counters->spilled, uint64_t(1));
    if (at < spill_size) store_plain(&spill[at], item);
    store(&counters->stop, kStopFull);
  }

  // A check failed in a task. The first failure is kept, and the launch ends in order; the host reads it when all have left.
  ATOS_FUNCTION void fail(const atos_failure &failure) const {
    if (add(&counters->failures, uint64_t(1)) == 0) store_plain(&counters->failure, failure);
    store(&counters->stop, kStopTask);
  }

  // An idle worker that saw nothing unfinished at `published`, then ran idle without a push, says so, for `lanes` workers;
  // all_quiet: whether all have said so for the same `published`. The upper 44 bits tell which, the lower 20 count. Who comes
  // with an older number than is there is late, and will call idle again: it must not undo what the others said.
  static constexpr uint64_t kQuietBits = 20;
  static ATOS_FUNCTION uint64_t nobody_quiet(uint64_t published) { return published << kQuietBits; }
  ATOS_FUNCTION void register_quiet(uint64_t published, uint64_t lanes) const {
    uint64_t seen = load(&counters->quiet);
    for (;;) {
      const int64_t newer = int64_t((published << kQuietBits) - (seen >> kQuietBits << kQuietBits));
      if (newer < 0) return;
      if (exchange_if(&counters->quiet, seen, newer ? (published << kQuietBits) + lanes : seen + lanes)) return;
    }
  }
  ATOS_FUNCTION bool all_quiet(uint64_t published, uint64_t workers) const {
    return load(&counters->quiet) == (published << kQuietBits) + workers && tickets_of(load(&counters->published)) == published;
  }
};

} // namespace atos
