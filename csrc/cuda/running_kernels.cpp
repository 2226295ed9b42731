// Marks GPUs as busy with a launch, and stops the kernels of a launch that has failed.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/running_kernels.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "cuda/kernel_monitor.h"

namespace atos::cuda {
namespace {

constexpr std::chrono::milliseconds kPatience{1000}; // with workers that are asked to stop since the launch has failed
constexpr std::chrono::microseconds kBetweenAsking{50};

CudaDevice &gpu_of(const Run &run) { return instance_of_device<CudaDevice>(run.program->device); }

// Whether the GPU has failed, with all of its kernels. The context has to be current.
bool has_failed(CudaDevice &gpu) {
  const CUresult result = driver().cuStreamQuery(resources_of_thread(gpu).control);
  return result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY;
}

} // namespace

const CompletionRecord &ended_record() {
  static const CompletionRecord record{};
  return record;
}

RunningKernels::RunningKernels(std::vector<Run *> launch) : runs(std::move(launch)) {
  opened.reserve(runs.size());
  for (Run *run : runs) { // with room for what `give_up` notes, when there may be no memory
    run->pending_kernels.clear();
    run->pending_kernels.reserve(runs.size() * ATOS_MAX_STREAMS);
  }
  try {
    for (const Run *run : runs) {
      gpu_of(*run).begin_run(run->launch.inbox);
      opened.push_back(&gpu_of(*run));
    }
  } catch (...) {
    close();
    throw;
  }
}

RunningKernels::~RunningKernels() { close(); }

void RunningKernels::close() noexcept {
  for (size_t k = 0; k < opened.size(); ++k) opened[k]->end_run(runs[k]->launch.inbox);
  opened.clear();
}

bool RunningKernels::any_started() const noexcept {
  return std::any_of(runs.begin(), runs.end(), [](const Run *run) {
    const auto &kernels = run->pending_kernels;
    return std::any_of(kernels.begin(), kernels.end(), [](const StuckKernel &kernel) { return kernel.second != 0; });
  });
}

// Throws if kernels are left behind, unless `failure` says so already.
void RunningKernels::give_up(atos_status failure, const char *why) {
  if (!any_started()) return; // the queues are as they were
  if (failure != ATOS_STUCK) stop_rest();
  const atos_status left = leave_behind();
  if (left == ATOS_NOT_BEGUN)
    throw Failure(left, format("%s; its kernel has not begun, since other launches or processes hold GPU %d", why,
                               gpu_of(*runs[0]).index));
  if (left == ATOS_STUCK && failure != ATOS_STUCK)
    throw Failure(left, format("%s; then the workers were asked to stop, and did not for %d ms", why, int(kPatience.count())));
}

// Returns ATOS_STUCK if a kernel runs on, ATOS_NOT_BEGUN if all kernels that are left wait for the GPU, and ATOS_OK if none is
// left.
atos_status RunningKernels::leave_behind() noexcept {
  const bool left_behind = any_started(); // on a GPU that has not failed
  bool any = false, holds = false;
  for (Run *run : runs) {
    auto &kernels = run->pending_kernels;
    kernels.erase(std::remove_if(kernels.begin(), kernels.end(), has_completed), kernels.end());
    for (const StuckKernel &kernel : kernels) {
      if (!has_begun(kernel)) continue;
      gpu_of(*run).add_stuck(kernel);
      holds = true;
    }
    run->left_behind = left_behind;
    any |= !kernels.empty();
  }
  // No queue is recovered before all kernels have ended.
  for (size_t k = 1; k < runs.size(); ++k)
    for (const StuckKernel &kernel : runs[k]->pending_kernels) runs[0]->pending_kernels.push_back(kernel);
  for (size_t k = 1; k < runs.size(); ++k) runs[k]->pending_kernels = runs[0]->pending_kernels;
  for (const Run *run : runs) {
    if (any) abandon_resources(gpu_of(*run));
    else *resources_of_thread(gpu_of(*run)).stop_word = kStopAsked >> 32;
  }
  return holds ? ATOS_STUCK : any ? ATOS_NOT_BEGUN : ATOS_OK;
}

// Asks running kernels to stop, also at a barrier of several GPUs, where other GPUs will not arrive.
void RunningKernels::stop_rest() noexcept {
  const auto deadline = StopMonitor::Clock::now() + kPatience;
  const auto ended = [](const Run *run) { return all_ended(*run); };
  while (!std::all_of(runs.begin(), runs.end(), ended) && StopMonitor::Clock::now() < deadline) {
    for (Run *run : runs) {
      if (all_ended(*run)) continue;
      try {
        CudaDevice &gpu = gpu_of(*run);
        const ScopedContext current(gpu.context);
        if (has_failed(gpu)) {
          std::fill(run->pending_kernels.begin(), run->pending_kernels.end(), StuckKernel{&ended_record(), 0});
          continue;
        }
        if (runs.size() > 1) *resources_of_thread(gpu).stop_word = (kStopAsked | kStopGone) >> 32;
        send_stop(gpu, *run);
      } catch (const Failure &) { // the driver refuses the copy: perhaps not the next time
      }
    }
    std::this_thread::sleep_for(kBetweenAsking);
  }
}

} // namespace atos::cuda

#endif
