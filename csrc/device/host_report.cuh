// Reports to the host: that the kernel has begun, samples for the trace while workers run, and the completion record when the
// last block leaves.
#pragma once
#include "device/termination.cuh"

namespace atos {

// [all threads of the grid] Tells the host that the kernel has begun. Before that, other kernels may hold the GPU, so that this
// kernel does not see a stop.
ATOS_DEVICE void report_begin(const Launch &launch) {
  if (blockIdx.x == 0 && threadIdx.x == 0) static_cast<volatile CompletionRecord *>(launch.record)->begun = launch.sequence;
}

template <class Group, unsigned bytes> struct HostReport : Termination<Group, bytes> {
  using Below = Termination<Group, bytes>;
  using Below::Below;
  using Below::header;
  using Below::launch;
  using Below::queue;

  // [one lane] Counts `ran` tasks for the trace, by a lane that is not needed elsewhere.
  ATOS_DEVICE void trace(uint32_t ran) const {
    if (!launch.samples) return;
    queue().trace(ran, global_nanoseconds(), this->claims_of_kernel(), this->first_of_kernel(),
                  static_cast<atos_sample *>(launch.samples), launch.max_samples, launch.sample_interval);
  }

  // The words of atos_sharing, none without counters.
  static ATOS_DEVICE unsigned num_counts() { return has_counters ? sizeof(atos_sharing) / 8 : 0; }
  static ATOS_DEVICE uint64_t &word(atos_sharing *sharing, unsigned k) { return (&sharing->local_items)[k]; }
  static ATOS_DEVICE volatile uint64_t &word(volatile atos_sharing *sharing, unsigned k) { return (&sharing->local_items)[k]; }

  // [all threads] At the end. The last block of a kernel writes the completion record, and leaves the counters as the next
  // launch expects them, so that no counters have to be copied.
  ATOS_DEVICE void leave() {
    Counters *counters = queue().counters;
    if (Group::rank() == 0) {
      if (header->ran) fetch_add(&counters->ran, header->ran);
      if (header->pushed) fetch_add(&counters->pushed, header->pushed);
      header->end.report(queue());
      if (header->consumer.claimed && (has_peers || queue().stopped())) queue().leave_tickets(header->consumer.first);
      if (has_peers) peers_of(launch).spread_stop(queue());
    }
    if (Group::rank() < num_kinds) fetch_add(&counters->ran_by[Group::rank()], uint64_t(this->ran_by[Group::rank()]));
    __syncthreads();
    if (threadIdx.x != 0) return;
    fence();
    if (fetch_add(&counters->gone[launch.stream], 1) != gridDim.x - 1) return;
    fence();
    store(&counters->gone[launch.stream], 0);
    volatile CompletionRecord *record = launch.record;
    record->claims = load(&counters->claims[launch.stream]);
    store(&counters->claims[launch.stream], 0);
    const uint64_t tail = load(&counters->tail), stop = load(&counters->stop);
    record->tail = tail;
    record->stop = stop;
    record->ran = load(&counters->ran);
    record->pushed = load(&counters->pushed);
    record->rounds = load(&counters->rounds);
    record->sampled = load(&counters->sampled);
    if (has_buckets && !launch.persistent) // the next kernel runs these chunks
      record->opened = stop == kRun && tail == launch.round_end ? this->open_next_bucket() : 0;
    for (unsigned k = 0; k < num_kinds; ++k) record->ran_by[k] = load(&counters->ran_by[k]);
    for (unsigned k = 0; k < num_counts(); ++k) word(&record->sharing, k) = load(&word(&counters->sharing, k));
    if (launch.persistent && stop == kRun && !has_peers) { // other GPUs may still read the counters
      store(&counters->head, tail); // claims that ran ahead are void; if the queue grew, the host makes all counters anew
      store(&counters->finished, tail);
      for (uint64_t *zero : {&counters->untracked, &counters->phase, &counters->ran, &counters->pushed, &counters->rounds})
        store(zero, 0);
      if (has_each_round) store(&counters->mode, 0);
      for (unsigned k = 0; k < num_kinds; ++k) store(&counters->ran_by[k], 0);
      for (unsigned k = 0; k < num_counts(); ++k) store(&word(&counters->sharing, k), 0);
      store(&counters->quiescent, QueueRef<bytes>::none_quiescent(tail));
    }
    __threadfence_system();
    record->sequence = launch.sequence;
  }
};

} // namespace atos
