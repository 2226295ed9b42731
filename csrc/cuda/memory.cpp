// Memory of a GPU, from its pool or by cuMemAllocManaged; fills and copies go to the legacy stream and are waited for.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/memory.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "cuda/launch_resources.h"
#include "cuda/memory_pool.h"
#include "cuda/shared_memory.h"
#include "cuda/spread_memory.h"
#include "protocol/inbox.cuh"

namespace atos::cuda {
namespace {

constexpr uint64_t kStaged = 1 << 20;  // bytes that are copied at once
constexpr uint64_t kStrided = 1 << 12; // elements that are filled word by word

// The stream for the copies of the calling thread: the legacy stream or, in a launch and its callback, a stream that waits for
// no kernel, neither of this launch nor of another thread's. The device's context has to be current.
CUstream stream_of_caller(CudaDevice &device) {
  if (!StopMonitor::in_launch()) return CU_STREAM_LEGACY;
  const CUstream stream = resources_of_thread(device).control;
  device.wait_for_clearing(stream);
  return stream;
}

void copy_in(CUstream stream, CUdeviceptr to, CUdeviceptr from, uint64_t bytes, const char *doing) {
  const Driver &d = driver();
  check(stream == CU_STREAM_LEGACY ? d.cuMemcpy(to, from, bytes) : d.cuMemcpyAsync(to, from, bytes, stream), doing);
}

// Fills memory beside a run, which may hold all multiprocessors: by the copy engines, since a memset may be a kernel.
void fill_by_copies(CudaDevice &device, CUdeviceptr at, const void *element, uint64_t element_bytes, uint64_t count) {
  const CUstream stream = stream_of_caller(device);
  const uint64_t most = std::min(count, kStaged / element_bytes), bytes = count * element_bytes;
  std::vector<unsigned char> part(most * element_bytes);
  for (uint64_t i = 0; i < most; ++i) std::memcpy(&part[i * element_bytes], element, element_bytes);
  for (uint64_t done = 0; done < bytes; done += part.size())
    copy_in(stream, at + done, address(part.data()), std::min<uint64_t>(part.size(), bytes - done), "filling");
  check(driver().cuStreamSynchronize(stream), "filling");
}

// Fills memory with elements of several words: the first ones by a strided column of each word, which is slow, and the others
// by copies of the filled part, twice as much each time.
void fill_with_words(CUdeviceptr at, const uint32_t *words, uint32_t element_bytes, uint64_t count) {
  const uint64_t first = std::min(count, kStrided);
  for (uint32_t w = 0; w < element_bytes / 4; ++w)
    check(driver().cuMemsetD2D32(at + 4 * w, element_bytes, words[w], 1, first), "filling");
  for (uint64_t done = first; done < count; done += std::min(done, count - done))
    check(driver().cuMemcpy(at + done * element_bytes, at, std::min(done, count - done) * element_bytes), "filling");
}

// Beside launches, whose kernels may hold all multiprocessors: by the copy engines, since a memset may be a kernel.
void clear_beside_launches(CudaDevice &device, CUdeviceptr at, uint64_t bytes) {
  const LaunchResources &resources = resources_of_thread(device);
  for (uint64_t done = 0; done < bytes; done += kZeros)
    check(driver().cuMemcpyHtoDAsync(at + done, resources.zeros, std::min(kZeros, bytes - done), resources.control),
          "clearing memory");
  check(driver().cuStreamSynchronize(resources.control), "clearing memory");
}

CUdeviceptr take_from_pool(CudaDevice &device, uint64_t bytes, CUstream stream) {
  CUdeviceptr pointer = 0;
  const CUresult result = pool_of(device).allocate(&pointer, bytes, stream);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free_bytes = 0, total = 0;
    driver().cuMemGetInfo(&free_bytes, &total);
    throw Failure(ATOS_NO_MEMORY,
                  format("%llu bytes asked for, but GPU %d has only %llu of %llu free", (unsigned long long)bytes, device.index,
                         (unsigned long long)free_bytes, (unsigned long long)total));
  }
  check(result, "allocating memory");
  return pointer;
}

} // namespace

void clear(CudaDevice &device, CUdeviceptr at, uint64_t bytes) {
  ScopedContext current(device.context);
  if (!device.call_if_idle([&] {
        check(driver().cuMemsetD8(at, 0, bytes), "clearing memory");
        check(driver().cuStreamSynchronize(CU_STREAM_LEGACY), "clearing memory");
      }))
    clear_beside_launches(device, at, bytes);
}

// Allocates from the pool of the driver. Where no launch runs, the memory is there and cleared in the order of the legacy
// stream, for which other streams wait. Beside a launch, that stream may be behind the launch's kernel, while its callback
// already writes to the memory: so all is done then when `allocate` returns.
void *allocate(CudaDevice &device, uint64_t asked, bool cleared) {
  device.refuse_if_stuck();
  ScopedContext current(device.context);
  const uint64_t bytes = std::max<uint64_t>(asked, 1);
  if (device.is_idle()) {
    const CUdeviceptr pointer = take_from_pool(device, bytes, CU_STREAM_LEGACY);
    const bool still_idle = device.call_if_idle([&] {
      if (cleared) check(driver().cuMemsetD8(pointer, 0, bytes), "clearing memory");
      device.note_clearing();
    });
    if (still_idle) return reinterpret_cast<void *>(pointer);
    pool_of(device).free(pointer);
  }
  const CUstream stream = resources_of_thread(device).control;
  const CUdeviceptr pointer = take_from_pool(device, bytes, stream);
  check(driver().cuStreamSynchronize(stream), "allocating memory");
  if (cleared) clear_beside_launches(device, pointer, bytes);
  return reinterpret_cast<void *>(pointer);
}

void *reserve(CudaDevice &device, uint64_t *bytes, uint64_t least) {
  device.refuse_if_stuck();
  if (device.attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)) {
    ScopedContext current(device.context);
    const AddressRange kept = pool_of(device).managed.take(least + 1, UINT64_MAX);
    if (kept.begin) {
      *bytes = kept.bytes;
      return kept.begin;
    }
    *bytes = std::min(*bytes, host_memory_to_spare());
    CUdeviceptr pointer = 0;
    if (*bytes > least && driver().cuMemAllocManaged(&pointer, *bytes, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS)
      return reinterpret_cast<void *>(pointer);
  }
  *bytes = least;
  return allocate(device, least);
}

void release_reserved(CudaDevice &device, const AddressRange &range, uint64_t least, bool written) noexcept {
  if (range.bytes <= least) return release(device, range.begin); // the range was allocated, not reserved
  if (device.stuck() || driver().cuCtxPushCurrent(device.context) != CUDA_SUCCESS) return;
  device.release_unless_run([&device, range, written] {
    const AddressRange unwanted = written ? range : pool_of(device).managed.keep(range);
    if (unwanted.begin) driver().cuMemFree(address(unwanted.begin));
  });
  CUcontext popped;
  driver().cuCtxPopCurrent(&popped);
}

void release(CudaDevice &device, void *pointer) noexcept {
  if (device.stuck()) return;
  if (driver().cuCtxPushCurrent(device.context) != CUDA_SUCCESS) return; // the context is lost, and the memory with it
  pool_of(device).free(address(pointer));
  CUcontext popped;
  driver().cuCtxPopCurrent(&popped);
}

namespace {

// The inboxes of a device that are not in use. There is room for all inboxes that were made, so that each can be given back.
struct FreeInboxes {
  explicit FreeInboxes(int32_t) {}
  std::mutex guard;
  std::vector<InboxMemory> unused;
  size_t made = 0;
};

} // namespace

InboxMemory make_inbox(CudaDevice &device) {
  device.refuse_if_stuck();
  FreeInboxes &free = instance_of_device<FreeInboxes>(device.index);
  {
    std::lock_guard<std::mutex> lock(free.guard);
    if (!free.unused.empty()) {
      const InboxMemory memory = free.unused.back();
      free.unused.pop_back();
      return memory;
    }
    free.unused.reserve(free.made + 1);
    ++free.made;
  }
  ScopedContext current(device.context);
  CUstream stream = nullptr;
  void *pinned = nullptr;
  check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "making a stream");
  const CUresult result = driver().cuMemAllocHost(&pinned, inbox_bytes(kMostItemBytes));
  if (result != CUDA_SUCCESS) driver().cuStreamDestroy(stream);
  check(result, "allocating pinned memory");
  return {static_cast<Inbox *>(pinned), stream};
}

void release_inbox(CudaDevice &device, const InboxMemory &memory) noexcept {
  FreeInboxes &free = instance_of_device<FreeInboxes>(device.index);
  std::lock_guard<std::mutex> lock(free.guard);
  free.unused.push_back(memory);
}

void free_unused_inboxes(CudaDevice &device) {
  FreeInboxes &free = instance_of_device<FreeInboxes>(device.index);
  std::lock_guard<std::mutex> lock(free.guard);
  for (const InboxMemory &memory : std::exchange(free.unused, {})) {
    driver().cuMemFreeHost(memory.ring);
    driver().cuStreamDestroy(static_cast<CUstream>(memory.stream));
  }
}

namespace {

uint64_t bytes_of_one_memory(const void *pointer) {
  return std::min(bytes_of_one(address(pointer)), bytes_of_part(address(pointer)));
}

// Copies memory each end of which is of one GPU, or of the host.
void copy_part(CUstream stream, void *to, const void *from, uint64_t bytes) {
  const Driver &d = driver();
  const int32_t target = device_reaching(address(to), device_of_pointer(to));
  const int32_t source = device_reaching(address(from), device_of_pointer(from));
  // Memory of a pool is for its own GPU alone, so that cuMemcpy cannot reach the pool of another GPU.
  if (target == source || target == ATOS_CPU || source == ATOS_CPU)
    return copy_in(stream, address(to), address(from), bytes, "copying");
  const CUcontext there = instance_of_device<CudaDevice>(target).context, here = instance_of_device<CudaDevice>(source).context;
  check(stream == CU_STREAM_LEGACY ? d.cuMemcpyPeer(address(to), there, address(from), here, bytes)
                                   : d.cuMemcpyPeerAsync(address(to), there, address(from), here, bytes, stream),
        "copying");
}

} // namespace

void copy(CudaDevice &device, void *to, const void *from, uint64_t bytes) {
  if (!bytes) return;
  device.refuse_if_stuck();
  ScopedContext current(device.context);
  const CUstream stream = stream_of_caller(device);
  for (uint64_t done = 0, some; done < bytes; done += some) {
    unsigned char *target = static_cast<unsigned char *>(to) + done;
    const unsigned char *source = static_cast<const unsigned char *>(from) + done;
    some = std::min({bytes - done, bytes_of_one_memory(target), bytes_of_one_memory(source)});
    copy_part(stream, target, source, some);
  }
  check(driver().cuStreamSynchronize(stream), "copying");
}

void fill(CudaDevice &device, void *to, const void *element, uint32_t element_bytes, uint64_t count) {
  if (!count) return;
  device.refuse_if_stuck();
  ScopedContext current(device.context);
  const uint64_t here = bytes_of_one_memory(to) / element_bytes;
  if (here < count) { // the rest is another GPU's
    fill(device, static_cast<unsigned char *>(to) + here * element_bytes, element, element_bytes, count - here);
    count = here;
  }
  const Driver &d = driver();
  const CUdeviceptr at = address(to);
  if (!device.is_idle()) return fill_by_copies(device, at, element, element_bytes, count);
  uint32_t words[4] = {};
  __builtin_memcpy(words, element, element_bytes < 16 ? element_bytes : 16);
  switch (element_bytes) {
  case 1: check(d.cuMemsetD8(at, static_cast<unsigned char>(words[0]), count), "filling"); break;
  case 2: check(d.cuMemsetD16(at, static_cast<unsigned short>(words[0]), count), "filling"); break;
  case 4: check(d.cuMemsetD32(at, words[0], count), "filling"); break;
  case 8:
  case 16:
    if (words[0] == words[1] && (element_bytes == 8 || (words[0] == words[2] && words[0] == words[3]))) {
      check(d.cuMemsetD32(at, words[0], count * (element_bytes / 4)), "filling");
      break;
    }
    fill_with_words(at, words, element_bytes, count);
    break;
  default: throw Failure(ATOS_INVALID, format("cannot fill with elements of %u bytes", element_bytes));
  }
  check(d.cuStreamSynchronize(CU_STREAM_LEGACY), "filling");
}

int32_t device_of_pointer(const void *pointer) {
  const Driver &d = driver();
  if (!d.missing.empty()) return ATOS_CPU;
  // For memory that the driver does not know, cuPointerGetAttributes reports zeros; cuPointerGetAttribute fails.
  uint32_t type = 0;
  int32_t ordinal = 0;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void *answers[] = {&type, &ordinal};
  check(d.cuPointerGetAttributes(2, asked, answers, address(pointer)), "locating memory");
  if (type != CU_MEMORYTYPE_DEVICE) return ATOS_CPU;
  return ordinal;
}

} // namespace atos::cuda

#endif
