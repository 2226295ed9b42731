// Memory of several GPUs of which each has a process of its own: created in one of them, and mapped in all.
#pragma once
#include "cuda/device.h"
#include "host/shared_memory.h"

namespace atos::cuda {

std::unique_ptr<atos_shared> share_memory(CudaDevice &gpu, uint64_t bytes);

// What `copy` has to know of an address in such a range: how many bytes from there on are in one part (all, if it is in none),
// and the device by which this process reaches it, `otherwise` if it is in none.
uint64_t bytes_of_part(CUdeviceptr at);
int32_t device_reaching(CUdeviceptr at, int32_t otherwise);

} // namespace atos::cuda
