// Copies counters, starts kernels and times them.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/launch.h"

#include <algorithm>
#include <chrono>

#include "cuda/program.h"

namespace atos::cuda {

void upload(CudaDevice &device, Run &run, CUstream stream) {
  const ScopedTimer timed(run.copied);
  LaunchResources &resources = resources_of_thread(device);
  device.wait_for_clearing(stream); // of the counters too: behind a long kernel a clearing would come after this copy
  *resources.counters = *run.counters;
  check(driver().cuMemcpyHtoDAsync(address(run.kernel.counters), resources.counters, sizeof(Counters), stream), "launching");
}

void download(CudaDevice &device, Run &run) {
  const ScopedTimer timed(run.copied);
  const LaunchResources &resources = resources_of_thread(device);
  check(driver().cuMemcpyDtoHAsync(resources.counters, address(run.kernel.counters), sizeof(Counters), resources.control),
        "running the kernel");
  check(driver().cuStreamSynchronize(resources.control), "running the kernel");
  *run.counters = *resources.counters;
}

void order(CudaDevice &device, CUstream earlier, CUstream later) {
  const ScopedContext current(device.context);
  const CUevent event = resources_of_thread(device).stop;
  check(driver().cuEventRecord(event, earlier), "launching");
  check(driver().cuStreamWaitEvent(later, event, 0), "launching");
}

// Ticks of the GPU's clock until the workers' time limit, at least one; 0 without a limit, or if the limit is weeks away.
static uint32_t ticks_left(const StopMonitor &monitor) {
  if (monitor.time_limit() == StopMonitor::Clock::time_point::max()) return 0;
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(monitor.time_limit() - StopMonitor::Clock::now());
  const int64_t ticks = left.count() >> kTickShift;
  return ticks >= kMostTicks ? 0 : uint32_t(std::max<int64_t>(ticks, 0) + 1);
}

void start_kernel(CudaDevice &device, Run &run, CUstream stream) {
  device.wait_for_clearing(stream);
  run.kernel.time_limit = ticks_left(run.monitor);
  Arguments arguments;
  __builtin_memcpy(arguments.word, run.launch.arguments, run.launch.argument_words * 8);
  void *parameters[] = {&run.kernel, &arguments};
  const uint32_t shared = shared_bytes(run.launch, run.item_bytes, run.kernel.buffer, run.kernel.peer_count);
  const CUfunction function = static_cast<CudaProgram *>(run.program)->function;
  const uint32_t threads = run.launch.threads;
  // Workers that wait for all others need all of them on the GPU at once. Enough room is no guarantee: half of these blocks and
  // half of another launch's could hold the GPU, and wait for ever. If several devices are one GPU, each has a share of the
  // GPU.
  const bool cooperative = run.launch.persistent && (run.launch.barrier || run.launch.idle) && run.sharing == 1;
  const Driver &d = driver();
  check(cooperative ? d.cuLaunchCooperativeKernel(function, run.blocks, 1, 1, threads, 1, 1, shared, stream, parameters)
                    : d.cuLaunchKernel(function, run.blocks, 1, 1, threads, 1, 1, shared, stream, parameters, nullptr),
        "launching");
}

void start_clock(CudaDevice &device, CUstream stream) {
  device.refuse_if_stuck();
  ScopedContext current(device.context);
  check(driver().cuEventRecord(resources_of_thread(device).start, stream), "launching");
}

double stop_clock(CudaDevice &device) {
  ScopedContext current(device.context);
  const LaunchResources &resources = resources_of_thread(device);
  float milliseconds = 0;
  for (CUevent event : {resources.start, resources.stop}) check(driver().cuEventSynchronize(event), "reading the clock");
  check(driver().cuEventElapsedTime(&milliseconds, resources.start, resources.stop), "reading the clock");
  return milliseconds;
}

} // namespace atos::cuda

#endif
