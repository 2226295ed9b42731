// Polls a launch from the host while its kernels run. All copies go to the control stream, which no kernel holds up.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/kernel_monitor.h"

#include <algorithm>
#include <utility>

#include "cuda/launch.h"

namespace atos::cuda {

bool can_observe(CudaDevice &device) {
  return driver().cuStreamQuery(resources_of_thread(device).control) != CUDA_ERROR_NOT_READY;
}

bool observe(CudaDevice &device, Run &run, atos_sample *now) {
  const LaunchResources &resources = resources_of_thread(device);
  Counters *const seen = &resources.observed[run.place];
  const Launch &kernel = run.kernel;
  const bool known = std::exchange(run.observing, true);
  if (known) {
    const uint64_t taken = std::min(kernel.round_begin + seen->claims[kernel.stream], kernel.round_end);
    *now = {0, seen->ran_so_far, tickets_of(seen->tail), run.launch.persistent ? seen->head : taken};
  }
  check(driver().cuMemcpyDtoHAsync(seen, address(kernel.counters), sizeof(Counters), resources.control), "observing");
  return known;
}

void check_running(CUstream stream) {
  const CUresult result = driver().cuStreamQuery(stream);
  if (result != CUDA_ERROR_NOT_READY) check(result, "running the kernel");
}

// Sets the upper half of the word `stop` on the device. Called at each poll, since an upload of counters may overwrite the
// word. An upload that waits for earlier work of its stream, perhaps until the host has given up, gets the stop too.
void send_stop(CudaDevice &device, const Run &run) {
  const LaunchResources &resources = resources_of_thread(device);
  set_bits(&resources.counters->stop, *resources.stop_word << 32);
  const CUdeviceptr upper_half = address(&run.kernel.counters->stop) + 4;
  if (driver().cuStreamQuery(resources.control) != CUDA_ERROR_NOT_READY)
    check(driver().cuMemcpyHtoDAsync(upper_half, resources.stop_word, 4, resources.control), "stopping the workers");
}

bool poll_launch(CudaDevice &device, Run &run, CUstream stream) {
  check_running(stream);
  atos_sample now{};
  const bool known = run.launch.progress && run.monitor.callback_due() && can_observe(device) && observe(device, run, &now);
  if (!run.monitor.poll(known ? &now : nullptr)) return false;
  send_stop(device, run);
  return true;
}

void note_claims(Run &run) {
  const Launch &last = run.kernel;
  if (!last.sequence) return; // no kernel was started
  run.counters->head = run.counters->round_end = last.round_end;
  const CompletionRecord *records = last.record - last.stream;
  uint64_t claimed_until = 0;
  for (uint32_t s = 0; s < ATOS_MAX_STREAMS; ++s) {
    const Run::Range &its = run.ranges[s];
    if (its.begin == its.end) continue;
    const uint64_t until = std::min(its.begin + records[s].claims, its.end); // claims may run past the end
    if (until != its.end) run.counters->head = std::min(run.counters->head, until);
    if (until != its.begin) claimed_until = std::max(claimed_until, until);
  }
  run.claimed_in_order = claimed_until <= run.counters->head;
}

bool completed_since(CudaDevice &device, Run &run) {
  if (!std::all_of(run.pending_kernels.begin(), run.pending_kernels.end(), has_completed)) return false;
  run.pending_kernels.clear();
  const ScopedContext current(device.context);
  download(device, run);
  if (!run.launch.persistent) note_claims(run);
  run.counters->stop |= kStopAsked;
  return true;
}

} // namespace atos::cuda

#endif
