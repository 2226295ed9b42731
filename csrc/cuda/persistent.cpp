// The persistent schedule: one kernel runs until no task is left; meanwhile the host maps memory when the queue is to grow.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

#include "cuda/kernel_monitor.h"
#include "cuda/launch.h"
#include "cuda/running_kernels.h"

namespace atos::cuda {
namespace {

constexpr std::chrono::microseconds kSleep{50};
constexpr unsigned kSleepsBetweenChecks = 20;
constexpr uint64_t kMappedAtOnce = 512 << 20; // bytes: a stop waits until these are mapped and cleared

void run_kernel(CudaDevice &device, Run &run) {
  device.refuse_if_stuck();
  ScopedContext current(device.context);
  const Driver &d = driver();
  LaunchResources &resources = resources_of_thread(device);
  const CUstream stream = static_cast<CUstream>(run.launch.stream);
  if (run.stale) upload(device, run, stream);
  CompletionRecord &record = resources.records[0];
  record = CompletionRecord{};
  run.kernel.round_end = run.first_end;
  run.kernel.stream = 0;
  run.kernel.record = &record;
  run.kernel.sequence = 1;
  run.pending_kernels = {{&record, 0}};
  start_kernel(device, run, stream);
  run.pending_kernels[0].second = run.kernel.sequence;
  check(d.cuEventRecord(resources.stop, stream), "launching");
  // Sleeps between polls if items come from the host: workers may wait hours for them, during which no core shall be busy.
  const bool sleeps = run.launch.inbox;
  const unsigned between_checks = sleeps ? kSleepsBetweenChecks : kPollsBetweenChecks;
  for (unsigned polls = 1; !all_ended(run); ++polls) {
    if (sleeps) std::this_thread::sleep_for(kSleep);
    const bool grows = __atomic_load_n(&record.growths_requested, __ATOMIC_ACQUIRE);
    if (grows) grant_growth(device, run, record);
    if (grows || polls % between_checks == 0) poll_launch(device, run, stream);
  }
  run.counters->growths_requested |= record.growths_requested;
  run.monitor.workers_stopped(record.stop);
  const bool asked = run.monitor.stopped();
  if (asked || run.counters->growths_requested) check(d.cuStreamSynchronize(resources.control), "stopping the workers");
  if (record.stop == kRun) {
    run.counters->tail = record.tail;
    run.counters->ran = record.ran;
    run.counters->pushed = record.pushed;
    std::copy(std::begin(record.ran_by), std::end(record.ran_by), run.counters->ran_by);
    run.counters->sharing = record.sharing;
    run.counters->sampled = record.sampled;
    run.counters->rounds = run.launch.barrier ? record.rounds : run.counters->rounds + 1;
    run.stale = asked; // the word `stop` may have come after the end
  } else {
    download(device, run);
    run.counters->rounds += !run.launch.barrier;
  }
}

} // namespace

void grant_growth(CudaDevice &device, Run &run, CompletionRecord &record) {
  LaunchResources &resources = resources_of_thread(device);
  uint64_t &growths_granted = run.counters->growths_granted;
  run.counters->growths_requested = growths_granted + 1;
  try {
    const uint64_t needed = bytes_of_growths(run.ring_bytes, unsigned(growths_granted) + 1);
    run.growable->extend(std::min(needed, run.growable->mapped + kMappedAtOnce));
    if (run.growable->mapped < needed) return; // the request stays
    growths_granted = std::min(run.kernel.growths, growths_within(run.ring_bytes, run.growable->mapped));
  } catch (const std::exception &) { // whatever the failure: the workers wait for an answer
    growths_granted |= kNoMore;
  }
  __atomic_store_n(&record.growths_requested, 0, __ATOMIC_RELAXED);
  *resources.growths_granted = growths_granted;
  const CUdeviceptr at = address(&run.kernel.counters->growths_granted);
  check(driver().cuMemcpyHtoDAsync(at, resources.growths_granted, 8, resources.control), "providing memory");
  check(driver().cuStreamSynchronize(resources.control), "providing memory");
}

void run_persistent(CudaDevice &device, Run &run) {
  RunningKernels({&run}).look_after([&] { run_kernel(device, run); });
}

} // namespace atos::cuda

#endif
