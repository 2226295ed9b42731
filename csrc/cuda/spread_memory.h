// Memory in one range of addresses over several GPUs, each of which provides a part of the range and reaches all of it.
#pragma once
#include "cuda/device.h"

namespace atos::cuda {

// Zeroed; GPU k has the bytes from borders[k] to borders[k + 1], in whole granules: a granule across a border is of either GPU.
void *allocate_over(const std::vector<CudaDevice *> &gpus, const std::vector<uint64_t> &borders);
void release_over(void *pointer) noexcept; // waits for all work of these GPUs; the range is kept for a next one
void give_back_spread() noexcept;          // all ranges that are kept

// Bytes from an address on that are of one GPU: all bytes, unless the address lies in a range over several GPUs.
uint64_t bytes_of_one(CUdeviceptr at);

} // namespace atos::cuda
