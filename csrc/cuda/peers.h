// Launches over several GPUs, of this process or one of each of several processes: a kernel on each GPU; the kernels reach each
// other's memory by plain pointers.
#pragma once
#include "cuda/device.h"
#include "host/run.h"

namespace atos::cuda {

// Lets each of these GPUs reach the memory that this core allocates on the others; throws if two GPUs cannot reach each other.
void connect(const std::vector<CudaDevice *> &gpus);

// The steps of a launch, as `Backend` has them.
void provide_peers(const Runs &runs);
void run_peers(const Runs &runs, bool collects);
void collect_peers(const Runs &runs);

} // namespace atos::cuda
