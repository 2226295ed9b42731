// Maps memory of several GPUs beside each other, and knows where it ends on each.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/spread_memory.h"

#include <algorithm>
#include <atomic>
#include <functional>

namespace atos::cuda {
namespace {

struct Part {
  CudaDevice *gpu;
  uint64_t at, size;
  CUmemGenericAllocationHandle handle;
};

struct SpreadRange {
  std::vector<CudaDevice *> gpus; // each once
  CUdeviceptr begin = 0;
  uint64_t bytes = 0;
  std::vector<Part> parts; // mapped

  void unmap() const noexcept {
    const Driver &d = driver();
    for (const Part &part : parts) {
      d.cuMemUnmap(begin + part.at, part.size);
      d.cuMemRelease(part.handle);
    }
    if (begin) d.cuMemAddressFree(begin, bytes);
  }
};

std::mutex guard;
std::atomic<uint64_t> number_of_ranges{0};
std::map<CUdeviceptr, SpreadRange> &ranges() { // never taken down, since arrays may outlive it
  static auto &all = *new std::map<CUdeviceptr, SpreadRange>;
  return all;
}

CUmemAllocationProp memory_of(const CudaDevice &gpu) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = gpu.handle;
  return properties;
}

uint64_t granularity_of(const std::vector<CudaDevice *> &gpus) {
  size_t largest = 0;
  for (const CudaDevice *gpu : gpus) {
    const CUmemAllocationProp properties = memory_of(*gpu);
    size_t its = 0;
    check(driver().cuMemGetAllocationGranularity(&its, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "reserving addresses");
    largest = std::max(largest, its);
  }
  return largest;
}

// The number of the device that a granule is of, by the byte in its middle.
size_t owner_of(uint64_t middle, const std::vector<uint64_t> &borders) {
  const auto after = std::upper_bound(borders.begin() + 1, borders.end() - 1, middle);
  return size_t(after - borders.begin() - 1);
}

void map_part(SpreadRange &range, Part part) {
  const Driver &d = driver();
  ScopedContext current(part.gpu->context);
  const CUmemAllocationProp properties = memory_of(*part.gpu);
  const CUresult made = d.cuMemCreate(&part.handle, part.size, &properties, 0);
  if (made == CUDA_ERROR_OUT_OF_MEMORY)
    throw Failure(ATOS_NO_MEMORY,
                  format("%llu bytes asked for, but GPU %d has less free", (unsigned long long)part.size, part.gpu->index));
  check(made, "asking for memory");
  const CUresult mapped = d.cuMemMap(range.begin + part.at, part.size, 0, part.handle, 0);
  if (mapped != CUDA_SUCCESS) d.cuMemRelease(part.handle);
  check(mapped, "mapping memory");
  range.parts.push_back(part);
  const std::vector<CUmemAccessDesc> access = part.gpu->access();
  check(d.cuMemSetAccess(range.begin + part.at, part.size, access.data(), access.size()), "mapping memory");
  check(d.cuMemsetD8(range.begin + part.at, 0, part.size), "clearing memory");
  check(d.cuStreamSynchronize(CU_STREAM_LEGACY), "clearing memory");
}

// Runs `release` when no run is open on any of the GPUs, from the k-th on.
void release_when_idle(const std::vector<CudaDevice *> &gpus, size_t k, const std::function<void()> &release) noexcept {
  if (k == gpus.size()) return release();
  gpus[k]->release_unless_run([gpus, k, release] { release_when_idle(gpus, k + 1, release); });
}

} // namespace

void *allocate_over(const std::vector<CudaDevice *> &gpus, const std::vector<uint64_t> &borders) {
  SpreadRange range;
  for (CudaDevice *gpu : gpus) {
    gpu->refuse_if_stuck();
    if (std::find(range.gpus.begin(), range.gpus.end(), gpu) == range.gpus.end()) range.gpus.push_back(gpu);
  }
  const uint64_t granularity = granularity_of(range.gpus), asked = std::max<uint64_t>(borders.back(), 1);
  range.bytes = (asked + granularity - 1) / granularity * granularity;
  check(driver().cuMemAddressReserve(&range.begin, range.bytes, 0, 0, 0), "reserving addresses");
  try {
    for (uint64_t at = 0, end; at < range.bytes; at = end) {
      const auto owner = [&](uint64_t granule) {
        return gpus[owner_of(std::min(granule + granularity / 2, asked - 1), borders)];
      };
      CudaDevice *gpu = owner(at);
      for (end = at + granularity; end < range.bytes && owner(end) == gpu;) end += granularity;
      map_part(range, {gpu, at, end - at, 0});
    }
  } catch (...) {
    range.unmap();
    throw;
  }
  std::lock_guard<std::mutex> lock(guard);
  ++number_of_ranges;
  ranges()[range.begin] = range;
  return reinterpret_cast<void *>(range.begin);
}

void release_over(void *pointer) noexcept {
  SpreadRange range;
  {
    std::lock_guard<std::mutex> lock(guard);
    const auto found = ranges().find(address(pointer));
    if (found == ranges().end()) return;
    range = found->second;
    ranges().erase(found);
    --number_of_ranges;
  }
  if (std::any_of(range.gpus.begin(), range.gpus.end(), [](CudaDevice *gpu) { return gpu->stuck(); })) return;
  release_when_idle(range.gpus, 0, [range] {
    for (const CudaDevice *gpu : range.gpus) {
      if (driver().cuCtxPushCurrent(gpu->context) != CUDA_SUCCESS) return; // the context is lost, and the memory with it
      const CUresult waited = driver().cuCtxSynchronize();
      CUcontext popped;
      driver().cuCtxPopCurrent(&popped);
      if (waited != CUDA_SUCCESS) return;
    }
    range.unmap();
  });
}

uint64_t bytes_of_one(CUdeviceptr at) {
  if (!number_of_ranges) return UINT64_MAX;
  std::lock_guard<std::mutex> lock(guard);
  auto found = ranges().upper_bound(at);
  if (found == ranges().begin()) return UINT64_MAX;
  const SpreadRange &range = (--found)->second;
  for (const Part &part : range.parts)
    if (at - range.begin < part.at + part.size) return part.at + part.size - (at - range.begin);
  return UINT64_MAX;
}

} // namespace atos::cuda

#endif
