// Memory in one range of addresses over several GPUs, each of which provides a part of it and reaches all.
#pragma once
#include "cuda/device.h"

namespace atos::cuda {

// Zeroed; GPU k has the bytes from borders[k] to borders[k + 1], in whole granules: one across a border is of either.
void *allocate_over(const std::vector<CudaDevice *> &gpus, const std::vector<uint64_t> &borders);
void release_over(void *pointer) noexcept; // waits for all that runs on these GPUs; the range is kept for the next of its kind
void give_back_spread() noexcept;          // all ranges that are kept

// Bytes from an address on that are of one GPU: all, unless it lies in such a range.
uint64_t bytes_of_one(CUdeviceptr at);

} // namespace atos::cuda
