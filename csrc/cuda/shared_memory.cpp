// Creates memory that other processes can map, and maps theirs (cuMemExportToShareableHandle, cuMemImportFromShareableHandle).
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/shared_memory.h"

#include <algorithm>

#include "cuda/memory.h"
#include "cuda/memory_pool.h"

namespace atos::cuda {
namespace {

class SharedMemory;
std::mutex guard;
std::atomic<uint64_t> number_of_ranges{0};
std::map<CUdeviceptr, const SharedMemory *> &ranges() { // never taken down, since arrays may outlive static objects
  static auto &all = *new std::map<CUdeviceptr, const SharedMemory *>;
  return all;
}

class SharedMemory final : public atos_shared {
public:
  SharedMemory(CudaDevice &gpu, uint64_t size) : gpu(gpu) {
    device = gpu.index;
    bytes = (std::max<uint64_t>(size, 1) + kGranule - 1) / kGranule * kGranule;
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = location_of(gpu.handle);
    ScopedContext current(gpu.context);
    if (!gpu.attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
      throw Failure(ATOS_INVALID, format("the driver shares no memory of GPU %d between processes", gpu.index));
    CUdeviceptr pointer = 0;
    check(driver().cuMemAddressReserve(&pointer, bytes, kGranule, 0, 0), "reserving addresses");
    begin = reinterpret_cast<char *>(pointer);
    std::lock_guard<std::mutex> lock(guard);
    ranges()[pointer] = this;
    ++number_of_ranges;
  }

  ~SharedMemory() override {
    {
      std::lock_guard<std::mutex> lock(guard);
      ranges().erase(address(begin));
      --number_of_ranges;
    }
    if (gpu.stuck() || driver().cuCtxPushCurrent(gpu.context) != CUDA_SUCCESS) return; // or the context is lost
    gpu.release_unless_run([at = address(begin), size = bytes, mapped = mapped] {
      const Driver &d = driver();
      if (d.cuCtxSynchronize() != CUDA_SUCCESS) return;
      for (const Mapped &each : mapped) {
        d.cuMemUnmap(at + each.part.at, each.part.size);
        d.cuMemRelease(each.handle);
      }
      d.cuMemAddressFree(at, size);
    });
    CUcontext popped;
    driver().cuCtxPopCurrent(&popped);
  }

  void create(Part part) override {
    gpu.refuse_if_stuck();
    ScopedContext current(gpu.context);
    const Driver &d = driver();
    CUmemGenericAllocationHandle handle = 0;
    CUresult made = d.cuMemCreate(&handle, part.size, &properties, 0);
    if (made == CUDA_ERROR_OUT_OF_MEMORY && gpu.call_unless_run([&] { pool_of(gpu).give_back(); }))
      made = d.cuMemCreate(&handle, part.size, &properties, 0);
    if (made == CUDA_ERROR_OUT_OF_MEMORY)
      throw Failure(ATOS_NO_MEMORY,
                    format("%llu bytes asked for, but GPU %d has less free", (unsigned long long)part.size, gpu.index));
    check(made, "asking for memory");
    map(part, handle);
    clear(gpu, address(begin) + part.at, part.size);
    created.push_back(part);
    handles.push_back(handle);
  }

  void attach(Part part, int file) override {
    gpu.refuse_if_stuck();
    ScopedContext current(gpu.context);
    CUmemGenericAllocationHandle handle = 0;
    check(driver().cuMemImportFromShareableHandle(&handle, reinterpret_cast<void *>(intptr_t(file)),
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
          "opening memory of another process's GPU, which this process has to see too");
    map(part, handle);
  }

  int descriptor(size_t number) const override {
    ScopedContext current(gpu.context);
    int file = -1;
    check(driver().cuMemExportToShareableHandle(&file, handles[number], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          "sharing memory");
    return file;
  }

  uint64_t left_of_part(uint64_t at) const {
    for (const Mapped &each : mapped)
      if (at >= each.part.at && at - each.part.at < each.part.size) return each.part.at + each.part.size - at;
    return UINT64_MAX;
  }

private:
  struct Mapped {
    Part part;
    CUmemGenericAllocationHandle handle;
  };

  void map(Part part, CUmemGenericAllocationHandle handle) {
    const Driver &d = driver();
    const CUresult done = d.cuMemMap(address(begin) + part.at, part.size, 0, handle, 0);
    if (done != CUDA_SUCCESS) d.cuMemRelease(handle);
    check(done, "mapping memory");
    mapped.push_back({part, handle});
    const CUmemAccessDesc access = access_of(gpu.handle);
    check(d.cuMemSetAccess(address(begin) + part.at, part.size, &access, 1),
          "mapping memory for a GPU, which has to reach that of the other processes");
  }

  CudaDevice &gpu;
  CUmemAllocationProp properties{};
  std::vector<Mapped> mapped;
  std::vector<CUmemGenericAllocationHandle> handles; // handles of the parts created here
};

// Calls `f` with the range that holds an address, and the address's offset in the range; returns `otherwise` outside of all
// ranges.
template <class T, class F> T in_range(CUdeviceptr at, T otherwise, F f) {
  if (!number_of_ranges) return otherwise;
  std::lock_guard<std::mutex> lock(guard);
  auto found = ranges().upper_bound(at);
  if (found == ranges().begin()) return otherwise;
  const SharedMemory &range = *(--found)->second;
  return at - found->first < range.bytes ? f(range, at - found->first) : otherwise;
}

} // namespace

std::unique_ptr<atos_shared> share_memory(CudaDevice &gpu, uint64_t bytes) {
  return std::make_unique<SharedMemory>(gpu, bytes);
}

uint64_t bytes_of_part(CUdeviceptr at) {
  return in_range(at, UINT64_MAX, [](const SharedMemory &range, uint64_t distance) { return range.left_of_part(distance); });
}

int32_t device_reaching(CUdeviceptr at, int32_t otherwise) {
  return in_range(at, otherwise, [](const SharedMemory &range, uint64_t) { return range.device; });
}

} // namespace atos::cuda

#endif
