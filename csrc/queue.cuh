// The queue protocol, written once for the GPU and the CPU.
//
// A ring of slots and a few 64-bit counters that only grow. A push reserves tickets by adding to `published` and stores each
// item into the slot of its ticket; a pop claims tickets by adding to `head`, which may run ahead of `published`, and waits
// for *its own* slots, so that idle workers poll different addresses. The turn of a slot says what it holds: 2 x lap when it
// is empty and waits for the ticket of that lap, 2 x lap + 1 when it is full. So any value of an item's type may be an item.
//
// Nothing in a push waits. An item whose slot is still occupied goes to the spill area and asks for a stop; the host then
// sorts out what is pending (see `pending_in`) and goes on, or reports that the queue is full.
//
// The end: `finished` counts tasks that ran, each after its own pushes were counted in `published`. Whoever reads
// `finished` first, then `published`, and finds them equal has proof that nothing is left (docs/design.md).
#pragma once
#include "atomic.cuh"
#include "interface.h"

namespace atos {

// Values of Counters::stop. A host asks in the upper half of the word, so that it does not undo what a worker wrote.
constexpr uint64_t kRun = 0, kStopFull = 1, kStopTask = 3, kStopAsked = uint64_t(2) << 32;

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
  alignas(128) uint64_t ran;       // statistics, added once by each worker
  uint64_t pushed;
  uint64_t rounds;
  alignas(128) uint64_t ran_so_far; // trace: tasks run, added after each batch
  uint64_t next_sample;             // trace: when the next sample is due
  uint64_t sampled;
  uint64_t failures;                // that tasks with checks have reported
  atos_failure failure;             // the first of them
};

template <unsigned bytes> struct Item;
template <> struct Item<4> { uint32_t word; };
template <> struct Item<8> { uint64_t word[1]; };
template <> struct Item<16> { uint64_t word[2]; };

// A slot: an item and its turn. `put` then `fill` publish, with a fence between them; `full`, a fence, `get`, a fence and
// `retire` take. A 4-byte item travels in one word with its turn, so that `put` and `get` cost nothing.
template <unsigned bytes> struct Slot {
  uint64_t item[bytes / 8];
  uint64_t turn;

  static constexpr bool packed = false;
  struct Seen {}; // what `full` has read, as far as `get` needs it
  ATOS_FUNCTION bool has(uint64_t expected) const { return load(&turn) == expected; }
  ATOS_FUNCTION bool full(uint64_t expected, Seen &) const { return has(expected + 1); }
  ATOS_FUNCTION void put(const Item<bytes> &value) {
    for (unsigned i = 0; i < bytes / 8; ++i) store(&item[i], value.word[i]);
  }
  ATOS_FUNCTION void fill(const Item<bytes> &, uint64_t expected) { store(&turn, expected + 1); }
  ATOS_FUNCTION Item<bytes> get(const Seen &) const {
    Item<bytes> value;
    for (unsigned i = 0; i < bytes / 8; ++i) value.word[i] = load(&item[i]);
    return value;
  }
  ATOS_FUNCTION void retire(uint64_t expected) { store(&turn, expected + 2); }
};

template <> struct Slot<4> {
  uint64_t word; // turn in the upper half: its low 32 bits suffice, since a slot is never more than a lap behind

  static constexpr bool packed = true;
  using Seen = uint64_t;
  static ATOS_FUNCTION uint64_t join(uint32_t value, uint64_t turn) { return turn << 32 | value; }
  ATOS_FUNCTION bool has(uint64_t expected) const {
    return static_cast<uint32_t>(load(&word) >> 32) == static_cast<uint32_t>(expected);
  }
  ATOS_FUNCTION bool full(uint64_t expected, Seen &seen) const {
    seen = load(&word);
    return static_cast<uint32_t>(seen >> 32) == static_cast<uint32_t>(expected + 1);
  }
  ATOS_FUNCTION void put(const Item<4> &) {}
  ATOS_FUNCTION void fill(const Item<4> &value, uint64_t expected) { store(&word, join(value.word, expected + 1)); }
  ATOS_FUNCTION Item<4> get(const Seen &seen) const { return Item<4>{static_cast<uint32_t>(seen)}; }
  ATOS_FUNCTION void retire(uint64_t expected) { store(&word, join(0, expected + 2)); }
};

// Where a ticket's item lives, and the turn of that slot before the item is put there.
struct Place {
  uint64_t index;
  uint64_t turn;
};

// A view of the queue, copied freely; the host's queues own the memory.
template <unsigned bytes> struct QueueRef {
  Counters *counters;
  Slot<bytes> *slots;
  Item<bytes> *spill;
  uint64_t size;       // slots in the ring
  uint64_t reciprocal; // (2^64 - 1) / size
  uint64_t spill_size;

  // ticket / size and ticket % size. The estimate by the reciprocal is at most one too small, for every 64-bit ticket.
  ATOS_FUNCTION Place at(uint64_t ticket) const {
    uint64_t lap = multiply_high(ticket, reciprocal);
    uint64_t index = ticket - lap * size;
    if (index >= size) {
      index -= size;
      ++lap;
    }
    return {index, 2 * lap};
  }

  // Tickets for n pushes. From here on they count as unfinished.
  ATOS_FUNCTION uint64_t reserve(uint64_t n) const { return add(&counters->published, n); }

  // Stores the caller's share (rank, rank + stride, ...) of n items under the tickets from `first` on. Everything written
  // before must be ordered by a fence of this thread, behind a barrier of the worker.
  ATOS_FUNCTION void publish(uint64_t first, const Item<bytes> *items, uint64_t n, uint64_t rank, uint64_t stride) const {
    if (!Slot<bytes>::packed) {
ATOS_ROLLED
      for (uint64_t i = rank; i < n && first + i < size; i += stride) slots[first + i].put(items[i]);
      fence();
    }
ATOS_ROLLED
    for (uint64_t i = rank; i < n; i += stride) {
      const Place place = at(first + i);
      Slot<bytes> &slot = slots[place.index];
      // On the first lap every slot is empty; later the item of the lap before may still be there.
      if (first + i >= size) {
        if (!slot.has(place.turn)) {
          spill_one(items[i]);
          continue;
        }
        if (!Slot<bytes>::packed) {
          fence(); // whoever emptied the slot has read it
          slot.put(items[i]);
          fence();
        }
      }
      slot.fill(items[i], place.turn);
    }
  }

  // Tickets to take items with; they may lie beyond what is published.
  ATOS_FUNCTION uint64_t claim(uint64_t n) const { return add(&counters->head, n); }

  // At most n tickets that lie below `published`, which may be none: for workers that must not wait.
  ATOS_FUNCTION uint64_t claim_published(uint64_t n, uint64_t *first) const {
    uint64_t head = load(&counters->head);
    for (;;) {
      const uint64_t published = load(&counters->published);
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

  // True, with the number of tasks ever published, when none of them is unfinished.
  ATOS_FUNCTION bool ended(uint64_t *published) const {
    const uint64_t finished = load(&counters->finished);
    fence();
    *published = load(&counters->published);
    if (finished != *published + load(&counters->direct)) return false;
    // A task may be counted as finished by a worker that took it from its slot and has yet to see its reservation: no fence
    // is between that and `fill`, where the slots have one word. So equal counts are confirmed by reads that cannot be stale.
    *published = add(&counters->published, 0);
    return finished == *published + add(&counters->direct, 0);
  }

  ATOS_FUNCTION bool stopped() const { return load(&counters->stop) != kRun; }

  // Counts `ran` tasks for the trace; whoever finds a sample due takes it. The tickets claimed are `begin` and those of `claims`.
  ATOS_FUNCTION void trace(uint64_t ran, uint64_t now, const uint64_t *claims, uint64_t begin, atos_sample *samples, uint64_t most,
                           uint64_t interval) const {
    const uint64_t before = add(&counters->ran_so_far, ran);
    uint64_t due = load(&counters->next_sample);
    if (now < due || !exchange_if(&counters->next_sample, due, now + interval)) return;
    const uint64_t at = add(&counters->sampled, 1);
    if (at < most) samples[at] = {now, before + ran, load(&counters->published), begin + load(claims)};
  }

  ATOS_FUNCTION void spill_one(const Item<bytes> &item) const {
    const uint64_t at = add(&counters->spilled, uint64_t(1));
    if (at < spill_size) spill[at] = item;
    store(&counters->stop, kStopFull);
  }

  // A check failed in a task. The first failure is kept, and the launch ends in order.
  ATOS_FUNCTION void fail(const atos_failure &failure) const {
    if (add(&counters->failures, uint64_t(1)) == 0) counters->failure = failure;
    fence();
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
    return load(&counters->quiet) == (published << kQuietBits) + workers && load(&counters->published) == published;
  }
};

} // namespace atos
