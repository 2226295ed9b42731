// Maps memory of several GPUs beside each other, and knows where each GPU's part ends. Mapping takes milliseconds, so ranges
// that are released are kept for the next array with the same borders.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/spread_memory.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <new>

#include "cuda/memory.h"
#include "cuda/memory_pool.h"

namespace atos::cuda {
namespace {

struct Part {
  CudaDevice *gpu;
  uint64_t at, size;
  CUmemGenericAllocationHandle handle;
};

struct SpreadRange {
  std::vector<CudaDevice *> gpus, asked; // each GPU once; GPUs as they were asked for
  std::vector<uint64_t> borders;
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

  void clear() const {
    for (const Part &part : parts) cuda::clear(*part.gpu, begin + part.at, part.size);
  }
};

std::mutex guard;
std::atomic<uint64_t> number_of_ranges{0};
std::map<CUdeviceptr, SpreadRange> &ranges() { // never taken down, since arrays may outlive static objects
  static auto &all = *new std::map<CUdeviceptr, SpreadRange>;
  return all;
}
// Ranges that nobody uses, and how many bytes these ranges may take.
std::vector<SpreadRange> &kept_ranges() {
  static auto &all = *new std::vector<SpreadRange>;
  return all;
}
constexpr uint64_t kMostKept = uint64_t(4) << 30;

// Takes a kept range with these borders; the result has a null `begin` if there is none.
SpreadRange take_kept(const std::vector<CudaDevice *> &asked, const std::vector<uint64_t> &borders) {
  std::lock_guard<std::mutex> lock(guard);
  for (auto range = kept_ranges().rbegin(); range != kept_ranges().rend(); ++range) {
    if (range->asked != asked || range->borders != borders) continue;
    const SpreadRange found = *range;
    kept_ranges().erase(std::next(range).base());
    return found;
  }
  return {};
}

// Keeps a range that nobody uses any more, or unmaps it if too much is kept.
void keep(const SpreadRange &range) noexcept {
  {
    std::lock_guard<std::mutex> lock(guard);
    uint64_t kept = range.bytes;
    for (const SpreadRange &other : kept_ranges()) kept += other.bytes;
    try {
      if (kept <= kMostKept) return kept_ranges().push_back(range);
    } catch (const std::bad_alloc &) {}
  }
  range.unmap();
}

void *use(const SpreadRange &range) {
  std::lock_guard<std::mutex> lock(guard);
  ++number_of_ranges;
  ranges()[range.begin] = range;
  return reinterpret_cast<void *>(range.begin);
}

CUmemAllocationProp memory_of(const CudaDevice &gpu) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = location_of(gpu.handle);
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

// The number of the device that has a granule, by the byte in the granule's middle.
size_t owner_of(uint64_t middle, const std::vector<uint64_t> &borders) {
  const auto after = std::upper_bound(borders.begin() + 1, borders.end() - 1, middle);
  return size_t(after - borders.begin() - 1);
}

void map_part(SpreadRange &range, Part part) {
  const Driver &d = driver();
  ScopedContext current(part.gpu->context);
  const CUmemAllocationProp properties = memory_of(*part.gpu);
  CUresult made = d.cuMemCreate(&part.handle, part.size, &properties, 0);
  if (made == CUDA_ERROR_OUT_OF_MEMORY && part.gpu->call_unless_run([&] { pool_of(*part.gpu).give_back(); }))
    made = d.cuMemCreate(&part.handle, part.size, &properties, 0);
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
}

// Runs `release` when no run is open on any of the GPUs, from the k-th on.
void release_when_idle(const std::vector<CudaDevice *> &gpus, size_t k, const std::function<void()> &release) noexcept {
  if (k == gpus.size()) return release();
  gpus[k]->release_unless_run([gpus, k, release] { release_when_idle(gpus, k + 1, release); });
}

} // namespace

void *allocate_over(const std::vector<CudaDevice *> &gpus, const std::vector<uint64_t> &borders) {
  for (CudaDevice *gpu : gpus) gpu->refuse_if_stuck();
  SpreadRange range = take_kept(gpus, borders);
  if (range.begin) {
    range.clear();
    return use(range);
  }
  range.asked = gpus;
  range.borders = borders;
  for (CudaDevice *gpu : gpus) {
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
    range.clear();
  } catch (...) {
    range.unmap();
    throw;
  }
  return use(range);
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
    keep(range);
  });
}

void give_back_spread() noexcept {
  std::vector<SpreadRange> unwanted;
  {
    std::lock_guard<std::mutex> lock(guard);
    unwanted.swap(kept_ranges());
  }
  for (const SpreadRange &range : unwanted) range.unmap();
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
