// MemoryPool: the memory of a GPU that was released and is kept for later allocations: a pool of the driver's stream-ordered
// allocator, and ranges of addresses.
#pragma once
#include "cuda/device.h"
#include "host/kept_ranges.h"

namespace atos::cuda {

class MemoryPool {
  static constexpr size_t kMostKept = 4;

public:
  explicit MemoryPool(int32_t index);

  // Allocates in the order of a stream; empties the pool and tries again if there is too little memory.
  CUresult allocate(CUdeviceptr *pointer, size_t bytes, CUstream stream);

  // Frees memory when all streams that use it are done: waits for these streams, or, during a launch, frees some time later.
  void free(CUdeviceptr pointer) noexcept;

  // Lets another GPU reach all memory of the pool, now and later.
  void share_with(const CudaDevice &other);

  uint64_t unused() const noexcept; // bytes of GPU memory that are kept and belong to nobody
  void give_back() noexcept;        // all kept memory, also of ranges over several GPUs

  CudaDevice &device;
  KeptRanges managed{kMostKept}, addresses{kMostKept}; // managed memory of which nothing was written; addresses without memory

private:
  uint64_t attribute(CUmemPool_attribute what) const noexcept;
  void trim(uint64_t most_unused) noexcept;

  CUmemoryPool pool = nullptr; // null where the GPU has no such pools, as some virtual ones
  uint64_t most_unused = 0;
};

// The GPU's context has to be current wherever its pool is used.
inline MemoryPool &pool_of(const CudaDevice &device) { return instance_of_device<MemoryPool>(device.index); }

} // namespace atos::cuda
