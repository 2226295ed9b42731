// The persistent schedule: one kernel runs until no task is left; meanwhile the host maps memory when the queue is to grow.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include <algorithm>

#include "cuda/kernel_monitor.h"
#include "cuda/launch.h"

namespace atos::cuda {
namespace {

// Maps memory for one more growth of the queue, and for those that fit into the same blocks; the workers wait for it.
void grant_growth(CudaDevice &device, Run &run, Report &report) {
  Session &session = session_of_thread(device);
  uint64_t &allowed = run.counters->allowed;
  __atomic_store_n(&report.wanted, 0, __ATOMIC_RELAXED);
  run.counters->wanted = allowed + 1;
  try {
    run.room->extend(bytes_of_growths(run.ring_bytes, unsigned(allowed) + 1));
    allowed = std::min(run.kernel.growths, growths_within(run.ring_bytes, run.room->there));
  } catch (const Failure &) { // whatever it is: the workers wait for an answer
    allowed |= kNoMore;
  }
  *session.allowed = allowed;
  const CUdeviceptr at = address(&static_cast<Counters *>(run.kernel.counters)->allowed);
  check(driver().cuMemcpyHtoDAsync(at, session.allowed, 8, session.control), "providing memory");
  check(driver().cuStreamSynchronize(session.control), "providing memory");
}

} // namespace

void run_persistent(CudaDevice &device, Run &run) {
  device.refuse_if_stuck();
  Current current(device.context);
  const Driver &d = driver();
  Session &session = session_of_thread(device);
  const CUstream stream = static_cast<CUstream>(run.launch.stream);
  if (run.stale) upload(device, run, stream);
  Report &report = session.reports[0];
  report = Report{};
  run.kernel.round_end = run.first_end;
  run.kernel.stream = 0;
  run.kernel.report = &report;
  run.kernel.sequence = 1;
  start_kernel(run, stream);
  check(d.cuEventRecord(session.stop, stream), "launching");
  run.owed = {{&session.reports[0], 1}};
  for (unsigned polls = 1; !has_completed(run.owed[0]); ++polls) {
    if (__atomic_load_n(&report.wanted, __ATOMIC_ACQUIRE)) grant_growth(device, run, report);
    if (polls % kPollsBetweenChecks == 0) poll_launch(device, run, stream);
  }
  run.counters->wanted |= report.wanted;
  const bool asked = run.watch.stopped();
  if (asked || run.counters->wanted) check(d.cuStreamSynchronize(session.control), "stopping the workers");
  if (report.stop == kRun) {
    run.counters->published = report.published;
    run.counters->ran = report.ran;
    run.counters->pushed = report.pushed;
    run.counters->sampled = report.sampled;
    run.counters->rounds = run.launch.barrier ? report.rounds : run.counters->rounds + 1;
    run.stale = asked; // the word may have come after the end
  } else {
    download(device, run, stream);
    run.counters->rounds += !run.launch.barrier;
  }
}

} // namespace atos::cuda

#endif
