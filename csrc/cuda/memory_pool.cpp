// Allocates from a pool of the driver, and gives back what is kept.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/memory_pool.h"

#include "cuda/spread_memory.h"

namespace atos::cuda {

// An eighth of the GPU's memory, so that other libraries and processes still find some.
constexpr uint64_t kKeptShare = 8;

MemoryPool::MemoryPool(int32_t index) : device(instance_of_device<CudaDevice>(index)) {
  if (!device.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) return;
  const Driver &d = driver();
  size_t free_bytes = 0, total = 0;
  check(d.cuMemGetInfo(&free_bytes, &total), "asking for the GPU's memory");
  most_unused = total / kKeptShare;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = location_of(device.handle);
  check(d.cuMemPoolCreate(&pool, &properties), "making a memory pool");
  // The driver compares its threshold with all memory of the pool, used or not, so `free` looks after the limit.
  cuuint64_t threshold = UINT64_MAX;
  check(d.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), "making a memory pool");
  // Else an allocation in a callback might wait for a release that is behind the launch's own kernel.
  int waits_for_releases = 0;
  check(d.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &waits_for_releases),
        "making a memory pool");
}

CUresult MemoryPool::allocate(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
  const Driver &d = driver();
  device.release_due();
  const auto once = [&] {
    return pool ? d.cuMemAllocFromPoolAsync(pointer, bytes, pool, stream) : d.cuMemAlloc(pointer, bytes);
  };
  const CUresult result = once();
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  if (!device.call_unless_run([&] { d.cuCtxSynchronize(); })) return result; // cuCtxSynchronize may wait for a run
  device.release_due();
  return device.call_unless_run([&] { give_back(); }) ? once() : result;
}

void MemoryPool::share_with(const CudaDevice &other) {
  if (!pool) throw Failure(ATOS_INVALID, format("GPU %d has no memory pools, whose memory others could reach", device.index));
  const CUmemAccessDesc access = access_of(other.handle);
  check(driver().cuMemPoolSetAccess(pool, &access, 1), "letting another GPU reach the memory of one");
}

void MemoryPool::free(CUdeviceptr pointer) noexcept {
  if (!pool)
    return device.release_unless_run([pointer] {
      if (driver().cuCtxSynchronize() == CUDA_SUCCESS) driver().cuMemFree(pointer); // or the context is lost
    });
  device.release_when_unused([pointer] { driver().cuMemFreeAsync(pointer, CU_STREAM_LEGACY); });
  if (unused() > most_unused) device.release_unless_run([this] { trim(most_unused); }); // `trim` waits for the stream
}

uint64_t MemoryPool::attribute(CUmemPool_attribute what) const noexcept {
  cuuint64_t value = 0;
  driver().cuMemPoolGetAttribute(pool, what, &value);
  return value;
}

uint64_t MemoryPool::unused() const noexcept {
  if (!pool) return 0;
  driver().cuStreamQuery(CU_STREAM_LEGACY); // memory counts as used until its release has been seen to be over
  const uint64_t reserved = attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), used = attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  return reserved > used ? reserved - used : 0;
}

void MemoryPool::trim(uint64_t most) noexcept {
  if (!pool) return;
  const Driver &d = driver();
  d.cuStreamSynchronize(CU_STREAM_LEGACY); // only memory whose release is over by then can be given back
  d.cuMemPoolTrimTo(pool, attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) + most);
}

void MemoryPool::give_back() noexcept {
  const Driver &d = driver();
  for (const AddressRange &range : managed.take_all()) d.cuMemFree(address(range.begin));
  for (const AddressRange &range : addresses.take_all()) d.cuMemAddressFree(address(range.begin), range.bytes);
  give_back_spread();
  trim(0);
}

} // namespace atos::cuda

#endif
