// Reserves ranges of addresses on a GPU, maps memory into these ranges, and clears this memory.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/virtual_memory.h"

#include <algorithm>

#include "cuda/memory.h"
#include "cuda/memory_pool.h"

namespace atos::cuda {

CudaGrowableRange::CudaGrowableRange(CudaDevice &device, uint64_t size) : device(device) {
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = location_of(device.handle);
  check(driver().cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        "reserving addresses");
  bytes = size;
  begin = pool_of(device).addresses.take(reserved(), reserved()).begin;
  if (begin) return;
  CUdeviceptr pointer = 0;
  check(driver().cuMemAddressReserve(&pointer, reserved(), 0, 0, 0), "reserving addresses");
  begin = reinterpret_cast<void *>(pointer);
}

CudaGrowableRange::~CudaGrowableRange() {
  if (device.stuck()) return;
  if (driver().cuCtxPushCurrent(device.context) != CUDA_SUCCESS) return; // the context is lost, and the addresses with it
  device.release_unless_run([&device = device, range = AddressRange{begin, reserved()}, parts = std::move(parts)] {
    for (const Part &part : parts) {
      driver().cuMemUnmap(address(range.begin) + part.at, part.size);
      driver().cuMemRelease(part.handle);
    }
    const AddressRange unwanted = pool_of(device).addresses.keep(range);
    if (unwanted.begin) driver().cuMemAddressFree(address(unwanted.begin), unwanted.bytes);
  });
  CUcontext popped;
  driver().cuCtxPopCurrent(&popped);
}

void CudaGrowableRange::extend(uint64_t size) {
  if (size <= mapped) return;
  const Driver &d = driver();
  parts.reserve(parts.size() + 1);
  Part part{0, mapped, (size - mapped + granularity - 1) / granularity * granularity};
  check(d.cuMemCreate(&part.handle, part.size, &properties, 0), "asking for memory");
  parts.push_back(part);
  check(d.cuMemMap(address(begin) + part.at, part.size, 0, part.handle, 0), "mapping memory");
  const std::vector<CUmemAccessDesc> access = device.access();
  check(d.cuMemSetAccess(address(begin) + part.at, part.size, access.data(), access.size()), "mapping memory");
  clear(device, address(begin) + part.at, part.size);
  mapped += part.size;
}

std::unique_ptr<GrowableRange> reserve_range(CudaDevice &device, uint64_t bytes) {
  if (!device.attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) return nullptr;
  ScopedContext current(device.context);
  try {
    return std::make_unique<CudaGrowableRange>(device, bytes);
  } catch (const Failure &) {
    return nullptr;
  }
}

} // namespace atos::cuda

#endif
