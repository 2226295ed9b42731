// The discrete schedule: the host launches a kernel over the tickets between the end of the kernel before and the tail. With a
// barrier, kernels follow each other in the caller's stream; without, they go to several streams, so that one begins while
// others still run.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include <algorithm>
#include <iterator>

#include "cuda/kernel_monitor.h"
#include "cuda/launch.h"
#include "cuda/running_kernels.h"

namespace atos::cuda {
namespace {

void run_kernels(CudaDevice &device, Run &run) {
  device.refuse_if_stuck();
  ScopedContext current(device.context);
  const Driver &d = driver();
  const atos_launch &launch = run.launch;
  LaunchResources &resources = resources_of_thread(device);
  const CUstream caller_stream = static_cast<CUstream>(launch.stream);
  const bool one_stream = launch.barrier || launch.buckets; // a bucket is opened when no other kernel runs
  const uint32_t streams = one_stream ? 1 : launch.streams ? launch.streams : kStreams;
  if (!one_stream) make_streams(resources, streams);
  const auto stream_of = [&](uint32_t s) { return one_stream ? caller_stream : resources.streams[s]; };
  upload(device, run, caller_stream);
  if (!one_stream)
    for (uint32_t s = 0; s < streams; ++s) order(device, caller_stream, resources.streams[s]);

  run.kernel.sequence = 0;
  std::fill(std::begin(run.ranges), std::end(run.ranges), Run::Range{});
  uint64_t begin = run.counters->head, tail = run.first_end;
  uint64_t rounds = 0, sequence = 0; // kernels are numbered from 1
  for (uint32_t s = 0; s < streams; ++s) {
    resources.records[s] = CompletionRecord{};
    run.pending_kernels.emplace_back(&resources.records[s], 0); // the latest of each stream
  }
  bool stop = false, idle_called = false;
  for (unsigned polls = 0;; ++polls) {
    uint32_t running = 0, vacant = 0;
    for (uint32_t s = 0; s < streams; ++s) {
      if (!has_completed(run.pending_kernels[s])) {
        ++running;
        continue;
      }
      vacant = s;
      tail = std::max(tail, resources.records[s].tail);
      stop |= resources.records[s].stop != kRun;
    }
    const uint64_t opened = running == 0 ? resources.records[0].opened : 0; // chunks of far items, for the next kernel
    // A ring that is empty from the start has one round of nothing: the function after it may push, and its end opens a bucket.
    const bool empty_round = sequence == 0 && tail == begin && (launch.each_round || run.counters->far.unopened());
    const bool quiescent = running == 0 && tail == begin && opened == 0 && !empty_round;
    if (running == 0 && (stop || (quiescent && (!launch.idle || idle_called)))) break;
    if (polls >= kPollsBetweenChecks) {
      polls = 0;
      for (uint32_t s = 0; s < streams; ++s) stop |= poll_launch(device, run, stream_of(s));
      continue;
    }
    if (stop || running == streams || (tail == begin && !quiescent && !opened && !empty_round)) continue;
    const uint32_t per_block = workers_per_block(launch);
    const uint64_t useful = (std::max({tail - begin, opened, uint64_t(1)}) + per_block - 1) / per_block;
    run.blocks = !quiescent && useful < launch.blocks ? uint32_t(useful) : launch.blocks; // an idle round has all of them
    run.kernel.workers = run.blocks * per_block;
    run.kernel.idle_round = idle_called = quiescent;
    run.kernel.round = run.counters->rounds + rounds - (quiescent && rounds); // idle is called in the round that has ended
    rounds += !(launch.barrier && quiescent);
    run.kernel.round_begin = begin;
    run.kernel.round_end = begin = tail;
    run.ranges[vacant] = {run.kernel.round_begin, tail};
    run.kernel.stream = vacant;
    run.kernel.record = &resources.records[vacant];
    run.kernel.sequence = ++sequence;
    start_kernel(device, run, stream_of(vacant));
    run.pending_kernels[vacant].second = sequence;
    polls += kPollsBetweenChecks / 64; // a launch takes the time of many polls
  }
  if (!one_stream)
    for (uint32_t s = 0; s < streams; ++s) check(d.cuStreamSynchronize(resources.streams[s]), "running the kernel");
  if (!sequence) check(d.cuEventRecord(resources.start, resources.control), "reading the clock"); // the stream may be busy
  check(d.cuEventRecord(resources.stop, resources.control), "reading the clock");
  if (sequence) download(device, run);
  run.monitor.workers_stopped(run.counters->stop);
  if (stop && run.monitor.stopped()) run.counters->stop |= kStopAsked; // perhaps no kernel ran to see it
  note_claims(run);
  run.counters->rounds += rounds;
  run.stale = true;
}

} // namespace

void run_discrete(CudaDevice &device, Run &run) {
  RunningKernels({&run}).look_after([&] { run_kernels(device, run); });
}

} // namespace atos::cuda

#endif
