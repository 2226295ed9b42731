// A libcuda.so.1 for machines without a GPU: its memory is the host's, and it notes what it is called for. It runs the kernels
// that the core itself brings; any other takes every item of a queue of 4-byte items, and pushes none. FAKE_GPUS, FAKE_BYTES,
// FAKE_POOLS and FAKE_MANAGED say what GPUs there are; with FAKE_SPILLED that kernel first stops with one item in the spill
// area. With an inbox it goes on until that is closed or has a stop, and calls that would wait for it are noted as such. With
// FAKE_SLOW_LOADS a module is loaded after it only, and streams wait for that. With FAKE_ENDLESS that kernel takes no item, and
// goes on until there is a stop or its time limit is over; with FAKE_ASKS it waits for fake_go(), and then for a growth.
// With FAKE_LATE_CLEARS memory is cleared when something waits for the legacy stream, and not before. FAKE_LINKED says whether
// GPUs reach each other's memory; in a launch over several of them, that kernel also says that all has ended.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "protocol/counters.h"
#include "protocol/inbox.cuh"
#include "protocol/kernel_params.h"

namespace {

enum Result { kSuccess = 0, kInvalid = 1, kOutOfMemory = 2, kNotInitialized = 3, kNotFound = 500 };
using Pointer = unsigned long long;
using Stream = void *;

struct Block {
  uint64_t bytes;
  int gpu;
  bool of_pool, managed;
};

struct Shared {
  uint64_t bytes;
  int gpu;
  bool own;
};

struct Gpu {
  uint64_t plain = 0, reserved = 0, used = 0; // bytes outside of the pool, of the pool, of it in use
};

std::recursive_mutex guard;
std::mutex loading;
std::map<Pointer, Block> blocks;
std::map<int, Gpu> gpus;
std::map<uint64_t, Shared> shared; // by handle: a file, and this bit
constexpr uint64_t kShared = uint64_t(1) << 47;
constexpr int kElsewhere = 99; // the GPU of memory that another process has created
std::string noted, read_by_test, module_text;
pid_t owner = getpid();
std::atomic<int> open_kernels{0};
std::atomic<bool> may_ask{false};
// 1: the kernel goes on until there is a stop; 2: it heeds no stop until this is 1 or 0; 3: another process holds the GPU until
// this is 1 or 0, so that the kernel does not begin, and copies in the legacy stream wait too.
std::atomic<int> endless{0};
std::atomic<int> kernels_ended{0}, until_refusal{0};
std::multiset<void *> streams_of_kernels; // that have not ended
thread_local int current[16], depth = 0;  // GPUs of the contexts that are current

uint64_t number(const char *name, uint64_t otherwise) {
  const char *value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 0) : otherwise;
}
uint64_t total() { return number("FAKE_BYTES", uint64_t(1) << 30); }
uint64_t free_of(const Gpu &gpu) { return total() - gpu.plain - gpu.reserved; }

void note(const std::string &what) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  noted += what + "\n";
}

// Of a call that waits for all kernels.
void note_wait(const std::string &what) {
  if (open_kernels) note("waits for the kernel: " + what);
}

// The same of a call for a stream, if a kernel is in it; the null stream is the legacy one.
bool is_legacy(Stream stream) { return reinterpret_cast<uintptr_t>(stream) <= 1; }
void note_wait_in(Stream stream, const std::string &what) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  if (streams_of_kernels.count(is_legacy(stream) ? nullptr : stream)) note_wait(what);
}

// Whether a call beside a kernel is the one that fake_refuse() has chosen.
bool refuses(const char *what) {
  if (!until_refusal || --until_refusal) return false;
  note(std::string("refuse ") + what);
  return true;
}

std::string refused_next; // a call that fake_refuse_once() has chosen
bool refuses_once(const std::string &what) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  return refused_next == what && (refused_next.clear(), true);
}

// The memory holds nonsense at first.
Pointer make(uint64_t bytes, bool of_pool, bool managed) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return 0;
  if (!managed) std::memset(memory, 0xab, bytes);
  const Pointer pointer = reinterpret_cast<Pointer>(memory);
  blocks[pointer] = {bytes, current[depth - 1], of_pool, managed};
  return pointer;
}

Result drop(Pointer pointer) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  const auto found = blocks.find(pointer);
  if (found == blocks.end()) return kInvalid;
  const Block block = found->second;
  Gpu &gpu = gpus[block.gpu];
  if (block.of_pool) gpu.used -= block.bytes;
  else if (!block.managed) gpu.plain -= block.bytes;
  munmap(reinterpret_cast<void *>(pointer), block.bytes);
  blocks.erase(found);
  return kSuccess;
}

// Copies that wait for the GPU, which another process holds.
struct LateCopy {
  Pointer to;
  const void *from;
  size_t bytes;
};
std::vector<LateCopy> late_copies;
void copy_late() {
  std::lock_guard<std::recursive_mutex> lock(guard);
  for (const LateCopy &each : std::exchange(late_copies, {}))
    std::memcpy(reinterpret_cast<void *>(each.to), each.from, each.bytes);
}

// A call that waits for the legacy stream, while another process holds the GPU.
void wait_while_held() {
  while (endless == 3) std::this_thread::yield();
}

// Memory that is yet to be cleared in the legacy stream.
std::vector<std::pair<Pointer, size_t>> late_clears;
void clear_late() {
  std::lock_guard<std::recursive_mutex> lock(guard);
  for (const auto &[at, bytes] : std::exchange(late_clears, {})) std::memset(reinterpret_cast<void *>(at), 0, bytes);
}

template <class T> void fill(Pointer at, size_t pitch, T value, size_t width, size_t height) {
  for (size_t row = 0; row < height; ++row) std::fill_n(reinterpret_cast<T *>(at + row * pitch), width, value);
}

} // namespace

extern "C" {

const char *fake_calls() { // since the last time
  std::lock_guard<std::recursive_mutex> lock(guard);
  read_by_test.swap(noted);
  noted.clear();
  return read_by_test.c_str();
}
const char *fake_module() { return module_text.c_str(); }
void fake_go() { may_ask = true; }
void fake_endless(int how) { endless = how; }
void fake_refuse_once(const char *what) { refused_next = what; }
void fake_refuse(int which) { until_refusal = which; } // of the calls from now on that are for running kernels; 0: none

int cuInit(unsigned) { return kSuccess; }
int cuDriverGetVersion(int *version) { return *version = 13000, kSuccess; }
int cuGetErrorString(int result, const char **words) {
  *words = result == kOutOfMemory ? "out of memory" : "refused";
  return kSuccess;
}
int cuDeviceGetCount(int *count) { return *count = int(number("FAKE_GPUS", 1)), kSuccess; }
int cuDeviceGet(int *device, int index) { return *device = index, kSuccess; }
int cuDeviceGetName(char *name, int bytes, int) { return std::strncpy(name, "fake", size_t(bytes)), kSuccess; }
int cuDeviceGetAttribute(int *value, int what, int) {
  *value = what == 115  ? int(number("FAKE_POOLS", 1))   // MEMORY_POOLS_SUPPORTED
           : what == 89 ? int(number("FAKE_MANAGED", 1)) // CONCURRENT_MANAGED_ACCESS
                        : 1 << 16;
  return kSuccess;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = reinterpret_cast<void *>(uintptr_t(device) + 1);
  return kSuccess;
}
int cuDeviceCanAccessPeer(int *can, int, int) { return *can = int(number("FAKE_LINKED", 1)), kSuccess; }
int cuCtxPushCurrent(void *context) {
  if (getpid() != owner) return kNotInitialized; // as in a forked child
  current[depth++] = int(reinterpret_cast<uintptr_t>(context)) - 1;
  return kSuccess;
}
int cuCtxPopCurrent(void **) { return --depth, kSuccess; }
int cuCtxSynchronize() { return note_wait("synchronize"), note("synchronize"), kSuccess; }

int cuMemGetInfo(size_t *free_bytes, size_t *all) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  *all = total();
  *free_bytes = free_of(gpus[current[depth - 1]]);
  return kSuccess;
}
int cuMemAlloc(Pointer *pointer, size_t bytes) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  note("allocate " + std::to_string(bytes));
  Gpu &gpu = gpus[current[depth - 1]];
  if (bytes > free_of(gpu)) return kOutOfMemory;
  gpu.plain += bytes;
  *pointer = make(bytes, false, false);
  return kSuccess;
}
int cuMemFree(Pointer pointer) { return note_wait("free"), note("free"), drop(pointer); }
int cuMemAllocManaged(Pointer *pointer, size_t bytes, unsigned) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  note("allocate managed");
  *pointer = make(bytes, false, true);
  return *pointer ? kSuccess : kOutOfMemory;
}
int cuMemPoolCreate(void **pool, const void *properties) {
  int location[2]; // behind allocType and handleTypes
  std::memcpy(location, static_cast<const char *>(properties) + 8, sizeof location);
  *pool = reinterpret_cast<void *>(uintptr_t(location[1]) + 1);
  return location[0] == 1 ? kSuccess : kInvalid; // CU_MEM_LOCATION_TYPE_DEVICE
}
int cuMemPoolSetAttribute(void *, int what, void *value) {
  return (what == 4 && *static_cast<uint64_t *>(value) == UINT64_MAX) || (what == 3 && !*static_cast<int *>(value))
             ? kSuccess
             : kInvalid; // RELEASE_THRESHOLD, REUSE_ALLOW_INTERNAL_DEPENDENCIES
}
int cuMemPoolGetAttribute(void *pool, int what, void *value) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  const Gpu &gpu = gpus[int(reinterpret_cast<uintptr_t>(pool)) - 1];
  if (what != 5 && what != 7) return kInvalid; // RESERVED_MEM_CURRENT, USED_MEM_CURRENT
  *static_cast<uint64_t *>(value) = what == 5 ? gpu.reserved : gpu.used;
  return kSuccess;
}
int cuMemPoolSetAccess(void *pool, const int *access, size_t) { // a location, of a kind and a number, and what is allowed
  note("GPU " + std::to_string(access[1]) + " reaches the pool of GPU " + std::to_string(uintptr_t(pool) - 1));
  return access[0] == 1 && access[2] == 3 ? kSuccess : kInvalid;
}
int cuMemPoolTrimTo(void *pool, size_t keep) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  Gpu &gpu = gpus[int(reinterpret_cast<uintptr_t>(pool)) - 1];
  note("trim to " + std::to_string(keep));
  gpu.reserved = std::min(gpu.reserved, std::max<uint64_t>(gpu.used, keep));
  return kSuccess;
}
int cuMemAllocFromPoolAsync(Pointer *pointer, size_t bytes, void *pool, Stream stream) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  note_wait_in(stream, "allocate");
  Gpu &gpu = gpus[int(reinterpret_cast<uintptr_t>(pool)) - 1];
  note("allocate from pool " + std::to_string(bytes));
  if (gpu.used + bytes > gpu.reserved) {
    // Kept memory never serves a larger block, as in a pool that is scattered.
    if (bytes > free_of(gpu)) return kOutOfMemory;
    gpu.reserved += bytes;
  }
  gpu.used += bytes;
  *pointer = make(bytes, true, false);
  return kSuccess;
}
int cuMemFreeAsync(Pointer pointer, Stream) { return note("free to pool"), drop(pointer); }

// The GPU that memory is on, or -1 for memory that this driver does not know.
int gpu_of(Pointer pointer) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  auto after = blocks.upper_bound(pointer);
  if (after == blocks.begin()) return -1;
  const auto &[begin, block] = *--after;
  return pointer - begin < block.bytes ? block.gpu : -1;
}
int cuPointerGetAttributes(unsigned count, const int *asked, void **answers, Pointer pointer) {
  const int gpu = gpu_of(pointer);
  for (unsigned k = 0; k < count; ++k)
    *static_cast<int *>(answers[k]) = gpu < 0 ? 0 : asked[k] == 2 ? 2 : gpu; // MEMORY_TYPE, of a device; DEVICE_ORDINAL
  return kSuccess;
}
int cuMemcpy(Pointer to, Pointer from, size_t bytes) {
  const int target = gpu_of(to), source = gpu_of(from);
  if (target >= 0 && source >= 0 && target != source) return kInvalid; // memory of pools is for one GPU
  wait_while_held();
  clear_late();
  note(target < 0 ? "copy to host" : source < 0 ? "copy from host" : "copy on GPU");
  note_wait_in(nullptr, "copy");
  std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
  return kSuccess;
}
int cuMemcpyAsync(Pointer to, Pointer from, size_t bytes, Stream stream) {
  note("copy in a stream");
  note_wait_in(stream, "copy");
  std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
  return kSuccess;
}
int cuMemcpyPeer(Pointer to, void *, Pointer from, void *, size_t bytes) {
  note("copy between GPUs");
  std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
  return kSuccess;
}
int cuMemsetD8(Pointer at, unsigned char value, size_t count) {
  if (!value && number("FAKE_LATE_CLEARS", 0)) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    return late_clears.emplace_back(at, count), kSuccess;
  }
  return note_wait("set"), fill(at, 0, value, count, 1), kSuccess;
}
int cuMemsetD16(Pointer at, unsigned short value, size_t count) { return fill(at, 0, value, count, 1), kSuccess; }
int cuMemsetD32(Pointer at, unsigned value, size_t count) { return note_wait("set"), fill(at, 0, value, count, 1), kSuccess; }
int cuMemsetD2D32(Pointer at, size_t pitch, unsigned value, size_t width, size_t height) {
  return fill(at, pitch, value, width, height), kSuccess;
}
int cuStreamSynchronize(Stream stream) {
  if (reinterpret_cast<uintptr_t>(stream) != 1 && refuses("synchronize")) return kInvalid;
  if (is_legacy(stream)) wait_while_held(), clear_late();
  return note_wait_in(stream, "synchronize"), kSuccess;
}
int cuStreamQuery(Stream) {
  std::lock_guard<std::mutex> lock(loading);
  return kSuccess;
}

int cuModuleLoadData(void **module, const void *image) {
  std::lock_guard<std::mutex> lock(loading);
  if (number("FAKE_SLOW_LOADS", 0)) {
    note("load");
    while (open_kernels) std::this_thread::yield();
  }
  module_text = static_cast<const char *>(image);
  return *module = &module_text, kSuccess;
}
int cuModuleUnload(void *) { return note_wait("unload"), note("unload"), kSuccess; }
int cuModuleGetFunction(void **function, void *, const char *name) {
  if (module_text.find(".entry " + std::string(name) + "(") == std::string::npos) return kNotFound;
  return *function = strdup(name), kSuccess;
}

int cuMemAllocHost(void **pointer, size_t bytes) {
  if (refuses_once("allocate pinned")) return kOutOfMemory;
  return note("allocate pinned"), *pointer = std::calloc(bytes, 1), kSuccess;
}
int cuMemFreeHost(void *pointer) { return note_wait("free pinned"), note("free pinned"), std::free(pointer), kSuccess; }
int cuMemcpyHtoDAsync(Pointer to, const void *from, size_t bytes, Stream stream) {
  if (refuses("copy to GPU")) return kInvalid;
  if (endless == 3 && is_legacy(stream)) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    return late_copies.push_back({to, from, bytes}), kSuccess;
  }
  return std::memcpy(reinterpret_cast<void *>(to), from, bytes), kSuccess;
}
int cuMemcpyDtoHAsync(void *to, Pointer from, size_t bytes, Stream) {
  if (refuses("copy from GPU")) return kInvalid;
  return std::memcpy(to, reinterpret_cast<void *>(from), bytes), kSuccess;
}
int cuStreamCreate(Stream *stream, unsigned) {
  if (refuses_once("make a stream")) return kOutOfMemory;
  return note("make stream"), *stream = new int, kSuccess;
}
int cuStreamDestroy(Stream stream) { return note("destroy stream"), delete static_cast<int *>(stream), kSuccess; }
// An event comes when the kernels have ended that had begun when it was recorded.
int cuEventCreate(void **event, unsigned) { return note("make event"), *event = new int(0), kSuccess; }
std::map<void *, Stream> stream_of_event;
int cuEventRecord(void *event, Stream stream) {
  if (refuses("record an event")) return kInvalid;
  std::lock_guard<std::recursive_mutex> lock(guard);
  stream_of_event[event] = stream;
  return *static_cast<int *>(event) = kernels_ended, kSuccess;
}
int cuStreamWaitEvent(Stream, void *event, unsigned) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  if (is_legacy(stream_of_event[event])) clear_late();
  return kSuccess;
}
int cuCtxRecordEvent(void *, void *event) { return *static_cast<int *>(event) = kernels_ended + open_kernels, kSuccess; }
int cuEventQuery(void *event) { return kernels_ended >= *static_cast<int *>(event) ? kSuccess : 600; } // NOT_READY
int cuEventDestroy(void *event) { return note("destroy event"), delete static_cast<int *>(event), kSuccess; }
int cuEventElapsedTime(float *milliseconds, void *start, void *) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  if (endless == 3 && is_legacy(stream_of_event[start])) return 600; // NOT_READY
  return *milliseconds = 1, kSuccess;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *, int, size_t) { return *blocks = 2, kSuccess; }
int cuMemGetAllocationGranularity(size_t *bytes, const void *, int) { return *bytes = 2 << 20, kSuccess; }
int cuMemAddressReserve(Pointer *pointer, size_t bytes, size_t, Pointer, unsigned long long) {
  note("reserve addresses");
  void *found = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *pointer = reinterpret_cast<Pointer>(found);
  return found == MAP_FAILED ? kOutOfMemory : kSuccess;
}
int cuMemAddressFree(Pointer pointer, size_t bytes) {
  note("free addresses");
  return munmap(reinterpret_cast<void *>(pointer), bytes), kSuccess;
}

// Memory that other processes may map is a file.
int cuMemCreate(uint64_t *handle, size_t bytes, const void *properties, uint64_t) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  int words[4]; // type, requestedHandleTypes, and the location
  std::memcpy(words, properties, sizeof words);
  Gpu &gpu = gpus[words[3]];
  if (bytes > free_of(gpu)) return kOutOfMemory;
  gpu.plain += bytes;
  *handle = uint64_t(words[3]) << 48 | bytes;
  if (words[1]) {
    const int file = memfd_create("fake", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, off_t(bytes)) != 0) return kOutOfMemory;
    *handle = kShared | uint64_t(file);
    shared[*handle] = {bytes, words[3], true};
  }
  return kSuccess;
}
int cuMemRelease(uint64_t handle) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  if (const auto found = shared.find(handle); found != shared.end()) {
    if (found->second.own) gpus[found->second.gpu].plain -= found->second.bytes;
    close(int(handle & ~kShared));
    shared.erase(found);
  } else {
    gpus[int(handle >> 48)].plain -= handle & ((uint64_t(1) << 48) - 1);
  }
  return kSuccess;
}
int cuMemExportToShareableHandle(void *file, uint64_t handle, int, uint64_t) {
  const int copy = dup(int(handle & ~kShared));
  std::memcpy(file, &copy, sizeof copy);
  return copy < 0 ? kInvalid : kSuccess;
}
int cuMemImportFromShareableHandle(uint64_t *handle, void *file, int) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  const int copy = dup(int(reinterpret_cast<intptr_t>(file)));
  struct stat status;
  if (copy < 0 || fstat(copy, &status) != 0) return kInvalid;
  *handle = kShared | uint64_t(copy);
  shared[*handle] = {uint64_t(status.st_size), kElsewhere, false};
  return kSuccess;
}
int cuMemMap(Pointer at, size_t bytes, size_t, uint64_t handle, uint64_t) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  const auto found = shared.find(handle);
  const int gpu = found == shared.end() ? int(handle >> 48) : found->second.gpu;
  note("map " + std::to_string(bytes >> 20) + " MiB of GPU " + (gpu == kElsewhere ? "elsewhere" : std::to_string(gpu)));
  if (found != shared.end() && bytes != found->second.bytes) return kInvalid;
  blocks[at] = {bytes, gpu, false, false};
  void *const begin = reinterpret_cast<void *>(at);
  if (found == shared.end()) return mprotect(begin, bytes, PROT_READ | PROT_WRITE) == 0 ? kSuccess : kInvalid;
  return mmap(begin, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, int(handle & ~kShared), 0) == begin ? kSuccess
                                                                                                                : kInvalid;
}
int cuMemUnmap(Pointer at, size_t bytes) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  note("unmap");
  blocks.erase(at);
  void *const begin = reinterpret_cast<void *>(at);
  return mmap(begin, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == begin ? kSuccess
                                                                                                                : kInvalid;
}
int cuMemSetAccess(Pointer, size_t, const void *, size_t count) {
  return note("access for " + std::to_string(count)), kSuccess;
}

// Takes the items of all tickets, if they are there.
int run_all(const atos::Launch &launch) {
  atos::Counters &counters = *static_cast<atos::Counters *>(launch.counters);
  const uint64_t begin = counters.head;
  for (; counters.head < counters.tail && !(counters.stop & atos::kStopAsked); ++counters.head) {
    const uint64_t generation = counters.head / launch.size;
    uint64_t &slot = static_cast<uint64_t *>(launch.slots)[counters.head % launch.size];
    if (slot >> 32 != 2 * generation + 1) return kInvalid;
    slot = (2 * generation + 2) << 32;
  }
  const uint64_t ran = counters.head - begin;
  counters.finished = counters.head;
  static uint64_t to_spill = uint64_t(number("FAKE_SPILLED", 0));
  if (const uint64_t n = std::exchange(to_spill, 0)) { // the last ticket first
    for (uint64_t k = 0; k < n; ++k)
      static_cast<atos::SpilledItem<4> *>(launch.spill)[n - 1 - k] = {{uint32_t(42 + k)}, counters.tail++};
    counters.spilled = n;
    counters.stop = atos::kStopFull;
  }
  if (launch.peer_table) {
    counters.ran += ran;
    counters.stop |= atos::kEnded;
  }
  *launch.record = {counters.tail, counters.stop, ran, 0, 1, 0, counters.head - launch.round_begin, 0, 0, 0, 0};
  __atomic_store_n(&launch.record->sequence, launch.sequence, __ATOMIC_RELEASE);
  return kSuccess;
}

// Does so in a thread, after `wait`.
int run_later(const atos::Launch &launch, Stream stream, void (*wait)(const atos::Launch &)) {
  Stream const where = is_legacy(stream) ? nullptr : stream;
  {
    std::lock_guard<std::recursive_mutex> lock(guard);
    streams_of_kernels.insert(where);
  }
  ++open_kernels;
  std::thread([launch, wait, where] {
    while (endless == 3) std::this_thread::yield();
    copy_late();
    atos::store(&launch.record->begun, launch.sequence);
    wait(launch);
    {
      std::lock_guard<std::recursive_mutex> lock(guard);
      streams_of_kernels.erase(streams_of_kernels.find(where));
    }
    --open_kernels;
    ++kernels_ended;
    run_all(launch);
  }).detach();
  return kSuccess;
}

void wait_until_closed(const atos::Launch &launch) {
  const auto &inbox = *static_cast<atos::Inbox *>(launch.inbox);
  uint64_t sent;
  while (!((sent = atos::load_system(&inbox.sent)) & (atos::kClosed | atos::kStopSent))) std::this_thread::yield();
  if (sent & atos::kStopSent) static_cast<atos::Counters *>(launch.counters)->stop |= atos::kStopAsked;
}

// As workers whose tasks push themselves for ever.
void wait_until_stopped(const atos::Launch &launch) {
  atos::Counters &counters = *static_cast<atos::Counters *>(launch.counters);
  const auto ticks = [] { return std::chrono::steady_clock::now().time_since_epoch().count() >> atos::kTickShift; };
  const auto begin = ticks();
  while (!atos::load(&counters.stop) || endless == 2) {
    std::this_thread::yield();
    if (launch.time_limit && ticks() - begin >= launch.time_limit) atos::set_bits(&counters.stop, atos::kStopAsked);
  }
}

void wait_for_growth(const atos::Launch &launch) {
  const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto wait_for = [&](auto there, const char *what) {
    while (!there() && std::chrono::steady_clock::now() < soon) std::this_thread::yield();
    if (!there()) note(std::string("no ") + what);
  };
  wait_for([] { return may_ask.load(); }, "callback");
  const uint64_t &granted = static_cast<atos::Counters *>(launch.counters)->growths_granted;
  const uint64_t before = atos::load(&granted);
  atos::store(&launch.record->growths_requested, 1);
  wait_for([&] { return atos::load(&granted) > before; }, "growth");
}

// Whether it is a kernel of csrc/cuda/move_items.cpp, which is then run, as the words above these kernels say.
bool moves_items(const std::string &name, void **parameters) {
  const auto parameter = [&](int i) { return *static_cast<uint64_t *>(parameters[i]); };
  const auto word = [](uint64_t at) -> uint64_t & { return *reinterpret_cast<uint64_t *>(at); };
  const auto put = [&](uint64_t to, uint64_t from, uint64_t bytes, bool packed, uint64_t sequence) {
    if (packed) word(to) = sequence << 32 | (word(from) & 0xffffffff);
    else std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes - 8), word(to + bytes - 8) = sequence;
  };
  if (name == "gather_spilled") {
    const uint64_t items = parameter(0), bytes = parameter(1), end = parameter(2), count = parameter(3), size = parameter(5);
    for (uint64_t i = 0; i < count; ++i) {
      if (int64_t(word(items + (i + 1) * bytes - 8)) >= int64_t(end)) continue;
      const uint64_t k = word(parameter(4))++;
      if (k < size)
        std::memmove(reinterpret_cast<void *>(items + k * bytes), reinterpret_cast<void *>(items + i * bytes), bytes);
    }
    return true;
  }
  if (name == "store_spilled") {
    const uint64_t items = parameter(0), bytes = parameter(1), first = parameter(2), count = parameter(3), start = parameter(5),
                   size = parameter(6), slots = parameter(7), packed = parameter(8);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t ticket = word(items + (i + 1) * bytes - 8), place = (ticket - start) % size;
      if (ticket - first >= parameter(4)) continue;
      put(slots + place * (packed ? 8 : bytes), items + i * bytes, bytes, packed, 2 * ((ticket - start) / size) + 1);
    }
    return true;
  }
  if (name != "move_slots") return false;
  const uint64_t slots = parameter(0), bytes = parameter(1), first = parameter(2), n = parameter(3), start = parameter(4),
                 size = parameter(5), to = parameter(6);
  for (uint64_t i = 0; i < n; ++i) put(to + i * bytes, slots + (first + i - start) % size * bytes, bytes, bytes == 8, 1);
  return true;
}

int cuLaunchKernel(void *function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned,
                   Stream stream, void **parameters, void **) {
  const std::string name = static_cast<const char *>(function);
  note("launch " + name);
  if (is_legacy(stream)) clear_late();
  const auto parameter = [&](int i) { return *static_cast<uint64_t *>(parameters[i]); };
  if (moves_items(name, parameters)) return blocks && threads ? kSuccess : kInvalid;
  if (name.rfind("store", 0)) {
    const atos::Launch &launch = *static_cast<atos::Launch *>(parameters[0]);
    if (launch.inbox && static_cast<atos::Counters *>(launch.counters)->untracked == 1) note("counts the inbox as unfinished");
    if (launch.inbox) return run_later(launch, stream, wait_until_closed);
    if (endless || number("FAKE_ENDLESS", 0)) return run_later(launch, stream, wait_until_stopped);
    return number("FAKE_ASKS", 0) ? run_later(launch, stream, wait_for_growth) : run_all(launch);
  }
  const uint64_t first = parameter(1), count = parameter(3), sequence = parameter(4);
  if (!blocks || !threads) return kInvalid;
  const auto store = [&](auto item) {
    const auto *items = reinterpret_cast<decltype(item) *>(parameter(0));
    auto *slots = reinterpret_cast<decltype(item) *>(parameter(2));
    for (uint64_t i = 0; i < count; ++i) {
      slots[2 * i] = items ? items[i] : decltype(item)(first + i);
      slots[2 * i + 1] = decltype(item)(sequence);
    }
  };
  if (name == "store_4") store(uint32_t());
  else store(uint64_t());
  return kSuccess;
}

int anything_else() { return kSuccess; }

int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long, int *) {
  static const std::map<std::string, void *> known = {
#define KNOWN(name) {#name, reinterpret_cast<void *>(name)}
      KNOWN(cuInit),
      KNOWN(cuDriverGetVersion),
      KNOWN(cuGetErrorString),
      KNOWN(cuDeviceGetCount),
      KNOWN(cuDeviceGet),
      KNOWN(cuDeviceGetName),
      KNOWN(cuDeviceGetAttribute),
      KNOWN(cuDevicePrimaryCtxRetain),
      KNOWN(cuDeviceCanAccessPeer),
      KNOWN(cuCtxPushCurrent),
      KNOWN(cuCtxPopCurrent),
      KNOWN(cuCtxSynchronize),
      KNOWN(cuMemGetInfo),
      KNOWN(cuMemAlloc),
      KNOWN(cuMemFree),
      KNOWN(cuMemAllocManaged),
      KNOWN(cuMemPoolCreate),
      KNOWN(cuMemPoolSetAttribute),
      KNOWN(cuMemPoolGetAttribute),
      KNOWN(cuMemPoolSetAccess),
      KNOWN(cuMemPoolTrimTo),
      KNOWN(cuMemCreate),
      KNOWN(cuMemRelease),
      KNOWN(cuMemExportToShareableHandle),
      KNOWN(cuMemImportFromShareableHandle),
      KNOWN(cuMemMap),
      KNOWN(cuMemUnmap),
      KNOWN(cuMemSetAccess),
      KNOWN(cuMemAllocFromPoolAsync),
      KNOWN(cuMemFreeAsync),
      KNOWN(cuPointerGetAttributes),
      KNOWN(cuMemcpy),
      KNOWN(cuMemcpyPeer),
      KNOWN(cuMemcpyAsync),
      KNOWN(cuMemsetD8),
      KNOWN(cuMemsetD16),
      KNOWN(cuMemsetD32),
      KNOWN(cuMemsetD2D32),
      KNOWN(cuStreamSynchronize),
      KNOWN(cuStreamQuery),
      KNOWN(cuModuleLoadData),
      KNOWN(cuModuleUnload),
      KNOWN(cuModuleGetFunction),
      KNOWN(cuLaunchKernel),
      KNOWN(cuMemAllocHost),
      KNOWN(cuMemFreeHost),
      KNOWN(cuMemcpyHtoDAsync),
      KNOWN(cuMemcpyDtoHAsync),
      KNOWN(cuStreamCreate),
      KNOWN(cuStreamDestroy),
      KNOWN(cuEventCreate),
      KNOWN(cuEventDestroy),
      KNOWN(cuEventRecord),
      KNOWN(cuEventQuery),
      KNOWN(cuStreamWaitEvent),
      KNOWN(cuCtxRecordEvent),
      KNOWN(cuEventElapsedTime),
      KNOWN(cuOccupancyMaxActiveBlocksPerMultiprocessor),
      KNOWN(cuMemGetAllocationGranularity),
      KNOWN(cuMemAddressReserve),
      KNOWN(cuMemAddressFree)};
  if (version > 13000) return kInvalid;
  const auto found = known.find(name);
  *function = found == known.end() ? reinterpret_cast<void *>(anything_else) : found->second;
  return kSuccess;
}

} // extern "C"
