// Reports to the host: samples for the trace while workers run, and the completion record when the last block leaves.
#pragma once
#include "device/termination.cuh"

namespace atos {

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

  // [all threads] At the end. The last block of a kernel writes the completion record, and leaves the counters as the next
  // launch expects them, so that neither has to be copied.
  ATOS_DEVICE void leave() {
    Counters *counters = queue().counters;
    if (Group::rank() == 0) {
      if (header->ran) add(&counters->ran, header->ran);
      if (header->pushed) add(&counters->pushed, header->pushed);
      if (header->owed) queue().finish(header->owed);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    fence();
    if (add(&counters->gone[launch.stream], 1) != gridDim.x - 1) return;
    fence();
    store(&counters->gone[launch.stream], 0);
    store(&counters->claims[launch.stream], 0);
    volatile Report *report = launch.report;
    const uint64_t published = load(&counters->published), stop = load(&counters->stop);
    report->published = published;
    report->stop = stop;
    report->ran = load(&counters->ran);
    report->pushed = load(&counters->pushed);
    report->rounds = load(&counters->rounds);
    report->sampled = load(&counters->sampled);
    if (launch.persistent && stop == kRun) {
      store(&counters->head, published); // claims that ran ahead are void; if the queue grew, the host makes all of this anew
      store(&counters->finished, published);
      for (uint64_t *zero : {&counters->direct, &counters->arrived, &counters->phase, &counters->ran, &counters->pushed, &counters->rounds})
        store(zero, 0);
      store(&counters->quiet, QueueRef<bytes>::nobody_quiet(published));
    }
    __threadfence_system();
    report->sequence = launch.sequence;
  }
};

} // namespace atos
