// The steps that both schedules are made of: copying the counters to the device and back, starting a kernel, and the clock.
#pragma once
#include "cuda/launch_resources.h"

namespace atos::cuda {

// Copies the host's counters to the device, in the order of the stream.
void upload(CudaDevice &device, Run &run, CUstream stream);
// Copies the counters back when the kernels have completed. The stream of the kernels may be behind another launch by then.
void download(CudaDevice &device, Run &run);

// Lets the stream `later` wait for what is in the stream `earlier` now. The host waits for neither: it has to look after
// timeouts.
void order(CudaDevice &device, CUstream earlier, CUstream later);

// The kernel begins after earlier work of the stream, and when all allocated memory is cleared.
void start_kernel(CudaDevice &device, Run &run, CUstream stream);

void start_clock(CudaDevice &device, CUstream stream);
double stop_clock(CudaDevice &device); // milliseconds

inline uint32_t workers_per_block(const atos_launch &launch) {
  return launch.worker == ATOS_THREAD ? launch.threads : launch.worker == ATOS_WARP ? launch.threads / 32 : 1;
}

// Maps memory for one more growth of the queue, or a part of this memory: then the request stays, and the next call goes on, so
// that the host looks for a stop meanwhile. Further growths that fit into the same blocks are granted too. The workers wait.
void grant_growth(CudaDevice &device, Run &run, CompletionRecord &record);

// The schedules, in persistent.cpp and discrete.cpp. `Backend` describes the schedules.
void run_persistent(CudaDevice &device, Run &run);
void run_discrete(CudaDevice &device, Run &run);

} // namespace atos::cuda
