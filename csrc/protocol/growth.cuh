// The rings of a queue: while workers run, a larger ring may follow the last one.
//
// A ring that becomes too full is followed by one of twice the size, for the tickets from then on. One addition to the tail
// gives a pusher both its tickets and their ring. A pusher may wait a little only before this addition, and only where a larger
// ring may come: see `reserve_with_space`.
#pragma once
#include "protocol/counters.h"
#include "protocol/ring.cuh"
#include "protocol/tuning.h"

namespace atos {

// A worker's demand while it is not sampled yet, and its headroom in a queue that does not grow (producer.cuh).
constexpr int64_t kUnseen = -(int64_t(1) << 60), kPlenty = int64_t(1) << 61;

template <unsigned bytes> struct GrowingRings {
  Counters *counters;
  Slot<bytes> *slots, *more; // slots of the first ring, and of all later rings, one after the other
  uint64_t size;             // slots in the first ring
  uint64_t reciprocal;       // (2^64 - 1) / size
  unsigned growths;          // most growths while workers run

  // The ring after k growths, whose first ticket is `start`.
  ATOS_FUNCTION Ring ring(unsigned k, uint64_t start) const {
    ring_used(k);
    return {k ? more + ((size << k) - 2 * size) : slots, start, size << k, reciprocal >> k};
  }

  // The first ticket of the ring after k growths. A growth is visible in the tail a moment before this ticket is known.
  ATOS_FUNCTION uint64_t first_ticket_of(unsigned k) const {
    if (k == 0) return 0;
    for (Spin spin;; spin.again()) {
      const uint64_t start = load(&counters->ring_first_ticket[k]);
      if (start >= kGrown) return start - kGrown;
    }
  }

  ATOS_FUNCTION bool stopped() const { return load(&counters->stop) != kRun; }

  // Reserves n tickets for pushes; returns the tail as it was before. The tickets count as unfinished tasks from then on.
  ATOS_FUNCTION uint64_t reserve(uint64_t n) const { return fetch_add(&counters->tail, n); }

  // The headroom of a ring: so many pushes, beyond the demand (pushes that idle workers wait for, as last sampled), reserve
  // their tickets at once, and half of the ring stays empty. More pushes take `reserve_with_space`.
  ATOS_FUNCTION int64_t headroom_of(const Ring &ring) const { return growths ? int64_t(ring.size / 2) : kPlenty; }

  // Reserves n tickets above the high-water mark of a ring: waits while a larger ring may come, but not for long, since the
  // host may itself have to wait for a thread that frees memory and so waits for this kernel. Calls `ask` to request one more
  // growth.
  template <class Ask> ATOS_FUNCTION uint64_t reserve_with_space(uint64_t n, Ask ask) const {
    Spin spin;
    for (unsigned tries = 0; tries < kMostTries; ++tries, spin.again()) {
      uint64_t tail = load(&counters->tail);
      const unsigned k = growths_of(tail);
      const uint64_t growths_granted = load(&counters->growths_granted);
      const bool no_more = k >= growths || (growths_granted & kNoMore && (growths_granted & ~kNoMore) <= k);
      if (no_more || stopped()) return reserve(n);
      const int64_t need = int64_t(tickets_of(tail) + n - load(&counters->head)), space = int64_t(size << k);
      if (need <= space / 2) return reserve(n);
      grow(k, growths_granted & ~kNoMore, ask);
      // Only if nothing was reserved meanwhile: all pushes that are let in together must fit.
      if (need <= space - space / 8 && compare_exchange(&counters->tail, tail, tail + n)) return tail;
    }
    uint64_t growths_granted = load(&counters->growths_granted);
    // No other worker shall wait, until the host answers after all.
    compare_exchange(&counters->growths_granted, growths_granted, growths_granted | kNoMore);
    return reserve(n);
  }

  // Grows the queue from k growths to one more, if that growth was granted; otherwise requests the growth.
  template <class Ask> ATOS_FUNCTION void grow(unsigned k, uint64_t growths_granted, Ask ask) const {
    uint64_t before = kNotGrown;
    if (k >= growths_granted) {
      uint64_t growths_requested = load(&counters->growths_requested); // less than k, if more were granted than requested
      if (growths_requested <= k && compare_exchange(&counters->growths_requested, growths_requested, k + 1)) ask();
    } else if (compare_exchange(&counters->ring_first_ticket[k + 1], before, kGrowing)) {
      fence(); // the memory was there before it was allowed
      store(&counters->ring_first_ticket[k + 1], tickets_of(fetch_add(&counters->tail, kGrowth)) + kGrown);
    }
  }
};

} // namespace atos
