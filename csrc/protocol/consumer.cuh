// The taking side of a worker: the tickets that it has claimed, and the ring of these tickets.
//
// On the GPU a Consumer lies in shared memory, and one lane calls the functions that are not const.
#pragma once
#include "protocol/kernel_params.h"
#include "protocol/queue_ref.cuh"

namespace atos {

// An equal part of n items for each worker, or 1 if there are more workers.
ATOS_FUNCTION uint32_t equal_share(const Launch &launch, int64_t n) {
  if (n <= int64_t(launch.workers)) return 1;
  // In 32 bits, since a 64-bit division is slow; 2^31 items are plenty for every worker.
  return uint32_t(n < 0x7fffffff ? n : 0x7fffffff) / launch.workers;
}

// A fair part of the items in [head, end) for one worker, so that other workers get theirs; at least one.
ATOS_FUNCTION uint64_t fair_batch_size(const Launch &launch, uint64_t head, uint64_t end) {
  const uint32_t part = equal_share(launch, int64_t(end - head));
  return part < launch.fetch ? part : launch.fetch;
}

// In a small round each worker claims its share once, without a look at how many tickets are left: all shares together are the
// round, and another step would take longer than the items. In a large round, and where the items of a batch run one after the
// other, workers claim as they go, so that nobody waits for the slowest.
constexpr uint32_t kNoShare = 0, kShareClaimed = ~0u;

// The share of a round of n items, or kNoShare in a large one.
ATOS_FUNCTION uint32_t share_of_round(const Launch &launch, uint64_t n, bool side_by_side) {
  const uint32_t share = equal_share(launch, int64_t(n + launch.workers - 1)); // rounded up
  return share <= (side_by_side ? kSmallShare : 1) && share <= launch.fetch ? share : kNoShare;
}

struct Consumer {
  Ring ring;                       // ring of the first claimed ticket
  uint64_t first = 0, claimed = 0; // tickets [first, first + claimed) are claimed, and their items not yet taken
  uint64_t next_start = kNever;    // first ticket of the following ring, if that ring is known to be there
  uint32_t growths = 0;            // growths before `ring`

  template <unsigned bytes> ATOS_FUNCTION void begin(const QueueRef<bytes> &queue) { ring = queue.ring(0, 0); }

  // Claims n tickets, which may lie beyond the tail; returns n.
  template <unsigned bytes> ATOS_FUNCTION uint64_t claim(const QueueRef<bytes> &queue, uint64_t n) {
    first = queue.claim(n);
    return claimed = n;
  }

  // Claims at most n tickets below the tail, maybe none; returns how many.
  template <unsigned bytes> ATOS_FUNCTION uint64_t claim_below_tail(const QueueRef<bytes> &queue, uint64_t n) {
    return claimed = queue.claim_below_tail(n, &first);
  }

  // Claims tickets of the round [begin, end), of which no more will come, for each of `lanes`; returns how many, or 0 if none
  // is left. `claims` counts the tickets of the round that have been claimed.
  ATOS_FUNCTION uint64_t claim_of_round(const Launch &launch, uint64_t *claims, uint64_t begin, uint64_t end, uint64_t lanes) {
    const uint64_t next = begin + load(claims);
    if (next >= end) return claimed = 0;
    return claim_part(claims, begin, end, fair_batch_size(launch, next, end) * lanes);
  }

  // Claims `want` tickets of the round, or as many as are left; returns how many.
  ATOS_FUNCTION uint64_t claim_part(uint64_t *claims, uint64_t begin, uint64_t end, uint64_t want) {
    first = begin + fetch_add(claims, want);
    return claimed = first >= end ? 0 : end - first < want ? end - first : want;
  }

  // While the slots of the claimed tickets are not filled: finds out whether another ring follows, and these are its tickets.
  template <unsigned bytes> ATOS_FUNCTION void look_for_ring(const QueueRef<bytes> &queue, uint64_t tail) {
    next_start = growths_of(tail) > growths ? queue.first_ticket_of(growths + 1) : kNever;
  }

  // Whether a ticket belongs to a ring after `ring`, as far as `look_for_ring` has seen.
  ATOS_FUNCTION bool is_past_ring(uint64_t ticket) const { return ticket >= next_start; }

  template <unsigned bytes> ATOS_FUNCTION void next_ring(const QueueRef<bytes> &queue) {
    ring = queue.ring(++growths, next_start);
    next_start = kNever;
  }
};

} // namespace atos
