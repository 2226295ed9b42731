// The discrete schedule: the host launches a kernel over the tickets between the end of the kernel before and the tail. With a
// barrier, kernels follow each other in the caller's stream; without, they go to several streams, so that one begins while
// others still run.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include <algorithm>

#include "cuda/kernel_monitor.h"
#include "cuda/launch.h"

namespace atos::cuda {

void run_discrete(CudaDevice &device, Run &run) {
  device.refuse_if_stuck();
  Current current(device.context);
  const Driver &d = driver();
  const atos_launch &launch = run.launch;
  Session &session = session_of_thread(device);
  const CUstream caller_stream = static_cast<CUstream>(launch.stream);
  const uint32_t streams = launch.barrier ? 1 : kStreams;
  const auto stream_of = [&](uint32_t s) { return launch.barrier ? caller_stream : session.streams[s]; };
  upload(device, run, caller_stream);
  check(d.cuStreamSynchronize(caller_stream), "launching");

  uint64_t begin = run.counters->head, published = run.first_end;
  uint64_t sequence = 0, latest[kStreams] = {}; // kernels are numbered from 1; the latest of each stream
  for (uint32_t s = 0; s < streams; ++s) session.reports[s] = Report{};
  bool stop = false, idle_called = false;
  run.owed.clear();
  for (unsigned polls = 0;; ++polls) {
    uint32_t running = 0, vacant = 0;
    for (uint32_t s = 0; s < streams; ++s) {
      if (__atomic_load_n(&session.reports[s].sequence, __ATOMIC_ACQUIRE) != latest[s]) {
        ++running;
        continue;
      }
      vacant = s;
      published = std::max(published, session.reports[s].published);
      stop |= session.reports[s].stop != kRun;
    }
    const bool quiet = running == 0 && published == begin;
    if (running == 0 && (stop || (quiet && (!launch.idle || idle_called)))) break;
    if (polls >= kPollsBetweenChecks) {
      polls = 0;
      run.owed.clear();
      for (uint32_t s = 0; s < streams; ++s) run.owed.emplace_back(&session.reports[s], latest[s]);
      for (uint32_t s = 0; s < streams; ++s) stop |= poll_launch(device, run, stream_of(s));
      continue;
    }
    if (stop || running == streams || (published == begin && !quiet)) continue;
    const uint32_t per_block = workers_per_block(launch);
    const uint64_t useful = (published - begin + per_block - 1) / per_block;
    run.blocks = !quiet && useful < launch.blocks ? uint32_t(useful) : launch.blocks; // an idle round has all of them
    run.kernel.workers = run.blocks * per_block;
    run.kernel.idle_round = idle_called = quiet;
    run.kernel.round_begin = begin;
    run.kernel.round_end = begin = published;
    run.kernel.stream = vacant;
    run.kernel.report = &session.reports[vacant];
    run.kernel.sequence = latest[vacant] = ++sequence;
    start_kernel(run, stream_of(vacant));
    polls += kPollsBetweenChecks / 64; // a launch takes the time of many polls
  }
  if (!launch.barrier)
    for (uint32_t s = 0; s < streams; ++s) check(d.cuStreamSynchronize(session.streams[s]), "running the kernel");
  check(d.cuEventRecord(session.stop, caller_stream), "reading the clock");
  if (run.watch.stopped()) check(d.cuStreamSynchronize(session.control), "stopping the workers");
  download(device, run, caller_stream);
  if (stop && run.watch.stopped()) run.counters->stop |= kStopAsked; // perhaps no kernel ran to see it
  run.counters->head = begin;
  run.counters->rounds += sequence;
  run.stale = true;
}

} // namespace atos::cuda

#endif
