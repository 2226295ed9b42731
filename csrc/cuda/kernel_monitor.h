// Monitors kernels while they run: driver errors, the stop monitor, samples for the progress callback, and stuck kernels.
#pragma once
#include "cuda/launch_resources.h"

namespace atos::cuda {

// The host polls completion records in pinned memory, which is faster than waiting for a stream. After so many polls the host
// calls poll_launch, since a kernel that failed never completes.
constexpr unsigned kPollsBetweenChecks = 1 << 14;

// Throws if the kernel in a stream failed.
void check_running(CUstream stream);

// Whether the copies of counters that `observe` has begun are there. Nobody waits for these copies.
bool can_observe(CudaDevice &device);

// Fills in *now from the copy of the counters that was begun before, and begins the next copy; whether there was a copy.
bool observe(CudaDevice &device, Run &run, atos_sample *now);

// Asks the workers to stop, as far as the control stream is free.
void send_stop(CudaDevice &device, const Run &run);

// Whether the workers are to stop; if so, tells them by `send_stop`. Throws if a kernel in the stream failed, and ATOS_STUCK if
// the kernels of `run.pending_kernels` were asked to stop and did not.
bool poll_launch(CudaDevice &device, Run &run, CUstream stream);

// After the kernels of a discrete launch: fills in the counters up to where workers have claimed tickets, and where the last
// round ends.
void note_claims(Run &run);

// Whether the kernels of a launch that was stuck have completed; fills in the counters then.
bool completed_since(CudaDevice &device, Run &run);

} // namespace atos::cuda
