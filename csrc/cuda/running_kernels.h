// RunningKernels: owns the kernels of a launch, from before the first one starts until all have ended.
#pragma once
#include <algorithm>
#include <vector>

#include "cuda/launch_resources.h"

namespace atos::cuda {

// In place of the record of a kernel that never began, or whose GPU has failed.
const CompletionRecord &ended_record();

inline bool all_ended(const Run &run) {
  return std::all_of(run.pending_kernels.begin(), run.pending_kernels.end(), has_completed);
}

// While a RunningKernels lives, its GPUs put off releases of memory, which might wait for the kernels.
class RunningKernels {
public:
  explicit RunningKernels(std::vector<Run *> runs);
  ~RunningKernels();
  RunningKernels(const RunningKernels &) = delete;
  RunningKernels &operator=(const RunningKernels &) = delete;

  // Calls `body`, which starts the kernels, keeps `pending_kernels` of each run, and waits for their end. If `body` throws, no
  // kernel runs on unheeded: running kernels are asked to stop and waited for. Kernels that still run then are reported as
  // stuck; kernels that have not begun, since other kernels hold the GPU, end as soon as they begin. The queues of kernels that
  // were started are recovered at their next use.
  template <class Body> void look_after(Body body) {
    try {
      body();
    } catch (const Failure &failure) {
      give_up(failure.status, failure.what());
      throw;
    } catch (const std::exception &error) {
      give_up(ATOS_OK, error.what());
      throw;
    }
  }

private:
  std::vector<Run *> runs;
  std::vector<CudaDevice *> opened; // the GPU of each run, as far as the GPU has been opened

  void close() noexcept;
  void give_up(atos_status failure, const char *why);
  atos_status leave_behind() noexcept;
  bool any_started() const noexcept;
  void stop_rest() noexcept;
};

} // namespace atos::cuda
