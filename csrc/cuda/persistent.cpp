// The persistent schedule: one kernel runs until no task is left; meanwhile the host maps memory when the queue is to grow.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

#include "cuda/kernel_monitor.h"
#include "cuda/launch.h"

namespace atos::cuda {
namespace {

constexpr std::chrono::microseconds kSleep{50};
constexpr unsigned kSleepsBetweenChecks = 20;

// Says that a run waits for the host, if it does.
class OpenRun {
public:
  OpenRun(CudaDevice &device, bool open) : device(device), open(open) {
    if (open) device.begin_run();
  }
  ~OpenRun() {
    if (open) device.end_run();
  }
  OpenRun(const OpenRun &) = delete;
  OpenRun &operator=(const OpenRun &) = delete;

private:
  CudaDevice &device;
  const bool open;
};

} // namespace

void grant_growth(CudaDevice &device, Run &run, CompletionRecord &record) {
  LaunchResources &resources = resources_of_thread(device);
  uint64_t &growths_granted = run.counters->growths_granted;
  __atomic_store_n(&record.growths_requested, 0, __ATOMIC_RELAXED);
  run.counters->growths_requested = growths_granted + 1;
  try {
    run.growable->extend(bytes_of_growths(run.ring_bytes, unsigned(growths_granted) + 1));
    growths_granted = std::min(run.kernel.growths, growths_within(run.ring_bytes, run.growable->mapped));
  } catch (const Failure &) { // whatever it is: the workers wait for an answer
    growths_granted |= kNoMore;
  }
  *resources.growths_granted = growths_granted;
  const CUdeviceptr at = address(&static_cast<Counters *>(run.kernel.counters)->growths_granted);
  check(driver().cuMemcpyHtoDAsync(at, resources.growths_granted, 8, resources.control), "providing memory");
  check(driver().cuStreamSynchronize(resources.control), "providing memory");
}

void run_persistent(CudaDevice &device, Run &run) {
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
  const OpenRun open(device, run.launch.mailbox);
  start_kernel(device, run, stream);
  check(d.cuEventRecord(resources.stop, stream), "launching");
  run.pending_kernels = {{&resources.records[0], 1}};
  // Sleeps between polls if items come from the host: workers may wait hours for them, during which no core shall be busy.
  const bool sleeps = run.launch.mailbox;
  const unsigned between_checks = sleeps ? kSleepsBetweenChecks : kPollsBetweenChecks;
  for (unsigned polls = 1; !has_completed(run.pending_kernels[0]); ++polls) {
    if (sleeps) std::this_thread::sleep_for(kSleep);
    if (__atomic_load_n(&record.growths_requested, __ATOMIC_ACQUIRE)) grant_growth(device, run, record);
    if (polls % between_checks == 0) poll_launch(device, run, stream);
  }
  run.counters->growths_requested |= record.growths_requested;
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
    run.stale = asked; // the word may have come after the end
  } else {
    download(device, run, stream);
    run.counters->rounds += !run.launch.barrier;
  }
}

} // namespace atos::cuda

#endif
