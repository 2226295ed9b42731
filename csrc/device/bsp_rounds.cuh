// Bulk-synchronous rounds: workers run the items of one round, meet at a barrier of the grid, and go on with what these have
// pushed. In a discrete launch a kernel is one round, and the host is the barrier.
#pragma once
#include "device/host_report.cuh"

namespace atos {

// [all threads] A barrier of all blocks; the last one to come runs `last` before anybody goes on. Free of deadlock because a
// launch with barriers has no more blocks than are resident at once.
template <class Last> ATOS_DEVICE void grid_barrier(Counters *counters, Last last) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const uint64_t phase = load(&counters->phase);
    fence();
    const uint64_t ticket = fetch_add(&counters->arrived, uint64_t(1));
    if (ticket + 1 == (phase + 1) * gridDim.x) { // a remainder of 64 bits would be a call, around which registers are kept
      fence();
      last();
      fence();
      store(&counters->phase, phase + 1);
    } else {
      while (load(&counters->phase) == phase) {}
    }
    fence();
  }
  __syncthreads();
}

template <class Group, unsigned bytes> struct BspRounds : HostReport<Group, bytes> {
  using Below = HostReport<Group, bytes>;
  using Below::Below;
  using Below::header;
  using Below::launch;
  using Below::queue;

  // [one lane] Claims tickets of the current round for each of `lanes`; returns how many.
  ATOS_DEVICE uint64_t claim_of_round(uint64_t lanes) {
    return header->consumer.claim_of_round(launch, this->claims_of_kernel(), this->first_of_kernel(), header->round_end, lanes);
  }

  // [all threads] When nothing is left of a round: kLeave, kIdle, or kRound after the next one has opened.
  ATOS_DEVICE Action next_round() {
    Counters *counters = queue().counters;
    bool idle = has_idle() && !header->idle_called;
    if (launch.persistent) {
      const uint64_t end = header->round_end;
      // The last block decides for all. Were each to look at `stop` itself, a slow one could see what a fast one has set in
      // the next round already, and leave it waiting.
      grid_barrier(counters, [&] {
        store(&counters->head, end); // claims ran past the end of the round
        const uint64_t tail = tickets_of(load(&counters->tail));
        const bool stopped = queue().stopped();
        if (has_buckets()) store(&counters->far.opened, stopped || tail != end ? 0 : this->open_next_bucket());
        store(&counters->round_end, stopped ? kNever : tail);
        fetch_add(&counters->rounds, uint64_t(1));
      });
      const uint64_t next = load(&counters->round_end);
      if (next == kNever) return Action::kLeave;
      if (next != end || (has_buckets() && load(&counters->far.opened))) {
        if (Group::rank() == 0) {
          header->round_end = next;
          header->idle_called = 0;
        }
        Group::sync();
        return Action::kRound;
      }
    } else {
      idle = idle && launch.idle_round;
    }
    if (!idle) return Action::kLeave;
    Group::sync(); // all have read the header
    if (Group::rank() == 0) {
      header->idle_called = 1;
      header->step = Action::kIdle;
    }
    Group::sync();
    return Action::kIdle;
  }
};

} // namespace atos
