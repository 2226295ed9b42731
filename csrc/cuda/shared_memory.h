// Memory of several GPUs, each of which has a process of its own: created in one process, and mapped in all.
#pragma once
#include "cuda/device.h"
#include "host/shared_memory.h"

namespace atos::cuda {

std::unique_ptr<atos_shared> share_memory(CudaDevice &gpu, uint64_t bytes);

// For copies: the bytes from an address to the end of its part, no limit outside of shared ranges; and the device by which this
// process reaches the address, `otherwise` outside of shared ranges.
uint64_t bytes_of_part(CUdeviceptr at);
int32_t device_reaching(CUdeviceptr at, int32_t otherwise);

} // namespace atos::cuda
