// The GPU, through the driver alone: the library is loaded when it is first asked for, so that everything else works on a
// machine without one.
#include "backend.h"

#include <algorithm>
#include <map>
#include <mutex>

#if __has_include(<cuda.h>)
#include <cuda.h>
#include <dlfcn.h>

namespace atos {
namespace {

// The functions used, by the versioned names that cuda.h maps them to.
#define ATOS_TEXT(name) #name
#define ATOS_SYMBOL(name) ATOS_TEXT(name)
#define ATOS_DRIVER_FUNCTIONS(X)                                                                                               \
  X(init, cuInit)                                                                                                              \
  X(error_string, cuGetErrorString)                                                                                            \
  X(driver_version, cuDriverGetVersion)                                                                                        \
  X(device_count, cuDeviceGetCount)                                                                                            \
  X(device_get, cuDeviceGet)                                                                                                   \
  X(device_name, cuDeviceGetName)                                                                                              \
  X(device_attribute, cuDeviceGetAttribute)                                                                                    \
  X(device_memory, cuDeviceTotalMem)                                                                                           \
  X(context_retain, cuDevicePrimaryCtxRetain)                                                                                  \
  X(context_push, cuCtxPushCurrent)                                                                                            \
  X(context_pop, cuCtxPopCurrent)                                                                                              \
  X(memory_info, cuMemGetInfo)                                                                                                 \
  X(memory_allocate, cuMemAlloc)                                                                                               \
  X(memory_free, cuMemFree)                                                                                                    \
  X(managed_allocate, cuMemAllocManaged)                                                                                       \
  X(address_reserve, cuMemAddressReserve)                                                                                      \
  X(address_free, cuMemAddressFree)                                                                                            \
  X(block_size, cuMemGetAllocationGranularity)                                                                                 \
  X(block_create, cuMemCreate)                                                                                                 \
  X(block_release, cuMemRelease)                                                                                               \
  X(block_map, cuMemMap)                                                                                                       \
  X(block_unmap, cuMemUnmap)                                                                                                   \
  X(block_access, cuMemSetAccess)                                                                                              \
  X(host_allocate, cuMemAllocHost)                                                                                             \
  X(copy, cuMemcpy)                                                                                                            \
  X(copy_to_device, cuMemcpyHtoDAsync)                                                                                         \
  X(copy_to_host, cuMemcpyDtoHAsync)                                                                                           \
  X(fill8, cuMemsetD8)                                                                                                         \
  X(fill16, cuMemsetD16)                                                                                                       \
  X(fill32, cuMemsetD32)                                                                                                       \
  X(fill32_strided, cuMemsetD2D32)                                                                                             \
  X(pointer_attribute, cuPointerGetAttribute)                                                                                  \
  X(module_load, cuModuleLoadData)                                                                                             \
  X(module_unload, cuModuleUnload)                                                                                             \
  X(module_function, cuModuleGetFunction)                                                                                      \
  X(function_set, cuFuncSetAttribute)                                                                                          \
  X(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                                    \
  X(launch, cuLaunchKernel)                                                                                                    \
  X(launch_together, cuLaunchCooperativeKernel)                                                                                \
  X(stream_create, cuStreamCreate)                                                                                             \
  X(stream_query, cuStreamQuery)                                                                                               \
  X(stream_synchronize, cuStreamSynchronize)                                                                                   \
  X(event_create, cuEventCreate)                                                                                               \
  X(event_record, cuEventRecord)                                                                                               \
  X(event_synchronize, cuEventSynchronize)                                                                                     \
  X(event_elapsed, cuEventElapsedTime)

struct Driver {
#define ATOS_MEMBER(member, function) decltype(&::function) member = nullptr;
  ATOS_DRIVER_FUNCTIONS(ATOS_MEMBER)
#undef ATOS_MEMBER
  std::string missing; // why there is no driver, or empty

  Driver() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      missing = "no NVIDIA driver is installed (libcuda.so.1 was not found)";
      return;
    }
#define ATOS_LOAD(member, function)                                                                                            \
  member = reinterpret_cast<decltype(member)>(dlsym(library, ATOS_SYMBOL(function)));                                          \
  if (!member) missing = "the NVIDIA driver is too old: it has no " ATOS_SYMBOL(function);
    ATOS_DRIVER_FUNCTIONS(ATOS_LOAD)
#undef ATOS_LOAD
    if (!missing.empty()) return;
    const CUresult result = init(0);
    if (result != CUDA_SUCCESS) missing = "the NVIDIA driver does not start: " + describe(result);
  }

  std::string describe(CUresult result) const {
    const char *words = nullptr;
    if (error_string) error_string(result, &words);
    return words ? words : text("error %d", int(result));
  }
};

const Driver &driver() {
  static const Driver instance;
  return instance;
}

// Results after which the driver refuses everything in the context, with the same result again.
bool is_fault(CUresult result) {
  switch (result) {
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_LAUNCH_FAILED:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_CONTEXT_IS_DESTROYED: return true;
  default: return false;
  }
}

void check(CUresult result, const char *doing) {
  if (result == CUDA_SUCCESS) return;
  const atos_status status = result == CUDA_ERROR_OUT_OF_MEMORY ? ATOS_NO_MEMORY : is_fault(result) ? ATOS_FAULT : ATOS_DRIVER;
  throw Failure(status, text("%s: %s", doing, driver().describe(result).c_str()));
}

CUdeviceptr address(const void *pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

struct CudaProgram : atos_program {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUcontext context;
  std::mutex guard; // of what follows: several threads may launch the program
  uint32_t shared_allowed = 48 << 10;
  // Resident blocks of the latest configuration, since a repeated launch asks again.
  uint32_t known_threads = 0, known_shared = 0, known_blocks = 0;

  CudaProgram(int32_t device, CUcontext context) : atos_program(device), context(context) {}
  ~CudaProgram() override;
};

// Makes the device's primary context current, as CuPy and PyTorch use it, and restores what was current before.
struct Current {
  explicit Current(CUcontext context) { check(driver().context_push(context), "making the device current"); }
  ~Current() {
    CUcontext popped;
    driver().context_pop(&popped);
  }
};

bool cuda_stuck(int32_t device);

CudaProgram::~CudaProgram() {
  if (!module || cuda_stuck(device) || driver().context_push(context) != CUDA_SUCCESS) return;
  driver().module_unload(module);
  CUcontext popped;
  driver().context_pop(&popped);
}

class CudaBackend;

// Addresses, and blocks of memory behind the first of them, which may be added while kernels run. The backend fills them.
class CudaRoom final : public Room {
public:
  CudaRoom(CudaBackend &backend, CUdevice device, uint64_t size);
  ~CudaRoom() override;
  void extend(uint64_t size) override;

private:
  CudaBackend &backend;
  CUmemAllocationProp properties{};
  size_t block = 0; // bytes; those of a part are multiples of it
  struct Part {
    CUmemGenericAllocationHandle handle;
    uint64_t at, size;
  };
  std::vector<Part> parts;
};

class CudaBackend final : public Backend {
public:
  explicit CudaBackend(int32_t index) : index(index) {
    const Driver &d = driver();
    if (!d.missing.empty()) throw Failure(ATOS_NO_DEVICE, d.missing);
    int count = 0;
    check(d.device_count(&count), "counting GPUs");
    if (index < 0 || index >= count)
      throw Failure(ATOS_NO_DEVICE, text("there is no GPU %d: this machine has %d", index, count));
    check(d.device_get(&device, index), "opening the GPU");
    check(d.context_retain(&context, device), "making a context");
    processors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  }

  CUcontext primary() const { return context; }

  void query(atos_device_info *info) override {
    Current current(context);
    const Driver &d = driver();
    check(d.device_name(info->name, sizeof info->name, device), "asking for the GPU's name");
    info->compute_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    info->compute_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    info->processors = processors;
    check(d.driver_version(&info->driver_version), "asking for the driver's version");
    info->max_threads_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    info->shared_bytes_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    size_t free_bytes, total;
    check(d.memory_info(&free_bytes, &total), "asking for the GPU's memory");
    info->total_bytes = total;
    info->free_bytes = free_bytes;
  }

  void *allocate(uint64_t bytes) override {
    refuse_if_stuck();
    Current current(context);
    CUdeviceptr pointer = 0;
    const CUresult result = driver().memory_allocate(&pointer, bytes ? bytes : 1);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      size_t free_bytes = 0, total = 0;
      driver().memory_info(&free_bytes, &total);
      throw Failure(ATOS_NO_MEMORY, text("%llu bytes asked for, but GPU %d has only %llu of %llu free",
                                         (unsigned long long)bytes, index, (unsigned long long)free_bytes,
                                         (unsigned long long)total));
    }
    check(result, "allocating memory");
    check(driver().fill8(pointer, 0, bytes ? bytes : 1), "clearing memory");
    return reinterpret_cast<void *>(pointer);
  }

  // Managed memory: pages come when they are written, and go to the host if the GPU has no room. Where the GPU cannot fault,
  // just what is needed.
  void *reserve(uint64_t *bytes, uint64_t least) override {
    refuse_if_stuck();
    *bytes = attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) ? std::max(*bytes, least) : least;
    CUdeviceptr pointer = 0;
    if (*bytes > least) {
      Current current(context);
      if (driver().managed_allocate(&pointer, *bytes, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS)
        return reinterpret_cast<void *>(pointer);
    }
    *bytes = least;
    return allocate(least);
  }
  void release_reserved(void *pointer, uint64_t) noexcept override { release(pointer); }

  std::unique_ptr<Room> room(uint64_t bytes) override {
    if (!attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) return nullptr;
    Current current(context);
    try {
      return std::make_unique<CudaRoom>(*this, device, bytes);
    } catch (const Failure &) {
      return nullptr; // the queue then grows between kernels
    }
  }

  // Fills memory with zeros while a kernel may hold all multiprocessors: by the engines that copy.
  void clear_beside_kernels(CUdeviceptr at, uint64_t bytes) {
    Session &session = session_of_thread();
    for (uint64_t done = 0; done < bytes; done += kZeros)
      check(driver().copy_to_device(at + done, session.zeros, std::min(kZeros, bytes - done), session.control), "clearing memory");
  }

  // Freeing memory would wait for a kernel that is stuck.
  void release(void *pointer) noexcept override {
    if (stuck()) return;
    if (driver().context_push(context) != CUDA_SUCCESS) return; // the context is lost, and the memory with it
    driver().memory_free(address(pointer));
    CUcontext popped;
    driver().context_pop(&popped);
  }

  void copy(void *to, const void *from, uint64_t bytes) override {
    if (!bytes) return;
    refuse_if_stuck();
    Current current(context);
    check(driver().copy(address(to), address(from), bytes), "copying");
    check(driver().stream_synchronize(CU_STREAM_LEGACY), "copying");
  }

  void fill(void *to, const void *element, uint32_t element_bytes, uint64_t count) override {
    if (!count) return;
    refuse_if_stuck();
    Current current(context);
    const Driver &d = driver();
    const CUdeviceptr at = address(to);
    uint32_t words[4] = {};
    __builtin_memcpy(words, element, element_bytes < 16 ? element_bytes : 16);
    switch (element_bytes) {
    case 1: check(d.fill8(at, static_cast<unsigned char>(words[0]), count), "filling"); break;
    case 2: check(d.fill16(at, static_cast<unsigned short>(words[0]), count), "filling"); break;
    case 4: check(d.fill32(at, words[0], count), "filling"); break;
    case 8:
    case 16:
      if (words[0] == words[1] && (element_bytes == 8 || (words[0] == words[2] && words[0] == words[3]))) {
        check(d.fill32(at, words[0], count * (element_bytes / 4)), "filling");
        break;
      }
      for (uint32_t w = 0; w < element_bytes / 4; ++w) // one strided column of words after the other
        check(d.fill32_strided(at + 4 * w, element_bytes, words[w], 1, count), "filling");
      break;
    default: throw Failure(ATOS_INVALID, text("cannot fill with elements of %u bytes", element_bytes));
    }
    check(d.stream_synchronize(CU_STREAM_LEGACY), "filling");
  }

  void wait(void *stream) override {
    Current current(context);
    check(driver().stream_synchronize(static_cast<CUstream>(stream)), "waiting for a stream");
  }

  uint32_t workers_per_block(const atos_launch &launch) override {
    return launch.worker == ATOS_THREAD ? launch.threads : launch.worker == ATOS_WARP ? launch.threads / 32 : 1;
  }

  uint32_t resident_blocks(atos_program &given, const atos_launch &launch, uint32_t item_bytes) override {
    CudaProgram &program = static_cast<CudaProgram &>(given);
    const uint32_t shared = shared_bytes(launch, item_bytes, buffer_items(launch, item_bytes));
    std::lock_guard<std::mutex> lock(program.guard);
    if (program.known_blocks && program.known_threads == launch.threads && program.known_shared == shared)
      return program.known_blocks;
    Current current(context);
    const Driver &d = driver();
    const uint32_t most = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    if (shared > most)
      throw Failure(ATOS_TOO_MANY, text("a block of %u threads with fetch_size %u needs %u bytes of shared memory, more than "
                                        "the %u that this GPU has: lower fetch_size, num_threads or shared_memory",
                                        launch.threads, launch.fetch, shared, most));
    if (shared > program.shared_allowed) {
      check(d.function_set(program.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, int(shared)),
            "raising the shared memory of the kernel");
      program.shared_allowed = shared;
    }
    int blocks = 0;
    check(d.occupancy(&blocks, program.function, int(launch.threads), shared), "asking for the occupancy");
    if (blocks == 0)
      throw Failure(ATOS_TOO_MANY, text("a block of %u threads with %u bytes of shared memory does not fit on a "
                                        "multiprocessor: lower num_threads, fetch_size or shared_memory",
                                        launch.threads, shared));
    program.known_threads = launch.threads;
    program.known_shared = shared;
    program.known_blocks = uint32_t(blocks) * processors;
    return program.known_blocks;
  }

  void run_persistent(Run &run) override {
    refuse_if_stuck();
    Current current(context);
    const Driver &d = driver();
    Session &session = session_of_thread();
    const CUstream stream = static_cast<CUstream>(run.launch.stream);
    if (run.stale) upload(run, stream);
    Report &report = session.reports[0];
    report = Report{};
    run.kernel.round_end = run.first_end;
    run.kernel.stream = 0;
    run.kernel.report = &report;
    run.kernel.sequence = 1;
    start(run, stream);
    check(d.event_record(session.stop, stream), "launching");
    run.owed = {{&report, 1}};
    for (unsigned looks = 1; !arrived(run.owed[0]); ++looks) {
      if (__atomic_load_n(&report.wanted, __ATOMIC_ACQUIRE)) provide(run, report);
      if (looks % kLooks == 0) look(run, stream);
    }
    run.counters->wanted |= report.wanted;
    const bool asked = run.watch.stopped();
    if (asked || run.counters->wanted) check(d.stream_synchronize(session.control), "stopping the workers");
    if (report.stop == kRun) {
      run.counters->published = report.published;
      run.counters->ran = report.ran;
      run.counters->pushed = report.pushed;
      run.counters->sampled = report.sampled;
      run.counters->rounds = run.launch.barrier ? report.rounds : run.counters->rounds + 1;
      run.stale = asked; // the word may have come after the end
    } else {
      download(run, stream);
      run.counters->rounds += !run.launch.barrier;
    }
  }

  // The host launches a kernel over what was published since the one before. With a barrier, kernels follow each other in the
  // caller's stream; without, they go to several streams, so that one begins while others still run. The last block of each
  // reports in memory that the host watches, which is faster than waiting for a stream.
  void run_discrete(Run &run) override {
    refuse_if_stuck();
    Current current(context);
    const Driver &d = driver();
    const atos_launch &launch = run.launch;
    Session &session = session_of_thread();
    const CUstream callers = static_cast<CUstream>(launch.stream);
    const uint32_t streams = launch.barrier ? 1 : kStreams;
    const auto stream_of = [&](uint32_t s) { return launch.barrier ? callers : session.streams[s]; };
    upload(run, callers);
    check(d.stream_synchronize(callers), "launching");

    uint64_t begin = run.counters->head, published = run.first_end;
    uint64_t sequence = 0, latest[kStreams] = {}; // kernels are numbered from 1; the latest of each stream
    for (uint32_t s = 0; s < streams; ++s) session.reports[s] = Report{};
    bool stop = false, idle_called = false;
    run.owed.clear();
    for (unsigned looks = 0;; ++looks) {
      uint32_t running = 0, vacant = 0;
      for (uint32_t s = 0; s < streams; ++s) {
        if (__atomic_load_n(&session.reports[s].sequence, __ATOMIC_ACQUIRE) != latest[s]) {
          ++running;
          continue;
        }
        vacant = s;
        published = std::max(published, session.reports[s].published);
        stop |= session.reports[s].stop != kRun;
      }
      const bool quiet = running == 0 && published == begin;
      if (running == 0 && (stop || (quiet && (!launch.idle || idle_called)))) break;
      if (looks >= kLooks) {
        looks = 0;
        run.owed.clear();
        for (uint32_t s = 0; s < streams; ++s) run.owed.emplace_back(&session.reports[s], latest[s]);
        for (uint32_t s = 0; s < streams; ++s) stop |= look(run, stream_of(s));
        continue;
      }
      if (stop || running == streams || (published == begin && !quiet)) continue;
      const uint32_t per_block = workers_per_block(launch);
      const uint64_t useful = (published - begin + per_block - 1) / per_block;
      run.blocks = !quiet && useful < launch.blocks ? uint32_t(useful) : launch.blocks; // an idle round has all of them
      run.kernel.workers = run.blocks * per_block;
      run.kernel.idle_round = idle_called = quiet;
      run.kernel.round_begin = begin;
      run.kernel.round_end = begin = published;
      run.kernel.stream = vacant;
      run.kernel.report = &session.reports[vacant];
      run.kernel.sequence = latest[vacant] = ++sequence;
      start(run, stream_of(vacant));
      looks += kLooks / 64; // a launch takes the time of many looks
    }
    if (!launch.barrier)
      for (uint32_t s = 0; s < streams; ++s) check(d.stream_synchronize(session.streams[s]), "running the kernel");
    check(d.event_record(session.stop, callers), "reading the clock");
    if (run.watch.stopped()) check(d.stream_synchronize(session.control), "stopping the workers");
    download(run, callers);
    if (stop && run.watch.stopped()) run.counters->stop |= kStopAsked; // perhaps no kernel ran to see it
    run.counters->head = begin;
    run.counters->rounds += sequence;
    run.stale = true;
  }

  // The kernels of a launch that was stuck: what they left.
  bool ended(Run &run) override {
    for (const Debt &debt : run.owed)
      if (!arrived(debt)) return false;
    run.owed.clear();
    copy(run.counters, run.kernel.counters, sizeof(Counters));
    if (!run.launch.persistent) run.counters->head = run.kernel.round_end;
    run.counters->stop |= kStopAsked;
    return true;
  }

  // Whether a kernel that did not stop holds the GPU: whoever waits for the GPU then, waits for that kernel.
  bool stuck() {
    if (!has_debts) return false;
    std::lock_guard<std::mutex> lock(guard);
    debts.erase(std::remove_if(debts.begin(), debts.end(), arrived), debts.end());
    has_debts = !debts.empty();
    return has_debts;
  }

  void refuse_if_stuck() {
    if (stuck())
      throw Failure(ATOS_BUSY, text("GPU %d is held by a kernel with a task that was asked to stop, and still runs", index));
  }

  void start_clock(const atos_launch &launch) override {
    refuse_if_stuck();
    Current current(context);
    check(driver().event_record(session_of_thread().start, static_cast<CUstream>(launch.stream)), "launching");
  }

  double stop_clock(const atos_launch &) override {
    Current current(context);
    Session &session = session_of_thread();
    float milliseconds = 0;
    check(driver().event_synchronize(session.stop), "reading the clock");
    check(driver().event_elapsed(&milliseconds, session.start, session.stop), "reading the clock");
    return milliseconds;
  }

private:
  // What a thread that launches needs of the driver: events, streams, and memory that both sides see. A thread that ends leaves
  // it to the next one.
  struct Session {
    CUevent start = nullptr, stop = nullptr;
    CUstream streams[kStreams] = {}, control = nullptr; // the last never has to wait for a kernel
    Counters *counters = nullptr, *observed = nullptr;
    Report *reports = nullptr;
    uint64_t *asked = nullptr, *allowed = nullptr;
    void *zeros = nullptr;
  };
  using Debt = std::pair<const Report *, uint64_t>;

  static bool arrived(const Debt &debt) { return __atomic_load_n(&debt.first->sequence, __ATOMIC_ACQUIRE) == debt.second; }

  // Those of one thread, by device.
  struct Sessions : std::map<int32_t, Session> {
    ~Sessions() {
      for (const auto &[index, session] : *this) give_back(index, session);
    }
  };
  static Sessions &sessions_of_thread() {
    static thread_local Sessions sessions;
    return sessions;
  }
  static void give_back(int32_t index, const Session &session);

  Session &session_of_thread() {
    Session &session = sessions_of_thread()[index];
    if (session.reports) return session;
    if (!session.start) {
      std::lock_guard<std::mutex> lock(guard);
      if (!spare_sessions.empty()) {
        session = spare_sessions.back();
        spare_sessions.pop_back();
      }
    }
    if (session.reports) return session;
    // Where the driver refused a part of it before, it goes on from there.
    const Driver &d = driver();
    for (CUevent *event : {&session.start, &session.stop})
      if (!*event) check(d.event_create(event, CU_EVENT_DEFAULT), "making an event");
    for (CUstream &stream : session.streams)
      if (!stream) check(d.stream_create(&stream, CU_STREAM_NON_BLOCKING), "making a stream");
    if (!session.control) check(d.stream_create(&session.control, CU_STREAM_NON_BLOCKING), "making a stream");
    void *pinned;
    check(d.host_allocate(&pinned, 2 * sizeof(Counters) + kStreams * sizeof(Report) + 16 + kZeros), "allocating pinned memory");
    session.counters = static_cast<Counters *>(pinned);
    session.observed = session.counters + 1;
    session.reports = reinterpret_cast<Report *>(session.observed + 1);
    session.asked = reinterpret_cast<uint64_t *>(session.reports + kStreams);
    *session.asked = kStopAsked >> 32;
    session.allowed = session.asked + 1;
    session.zeros = session.asked + 2;
    __builtin_memset(session.zeros, 0, kZeros);
    return session;
  }

  // Memory for one more growth of the queue, and for those that fit into the same blocks; the workers wait for it.
  void provide(Run &run, Report &report) {
    Session &session = session_of_thread();
    uint64_t &allowed = run.counters->allowed;
    __atomic_store_n(&report.wanted, 0, __ATOMIC_RELAXED);
    run.counters->wanted = allowed + 1;
    try {
      run.room->extend(bytes_of_growths(run.ring_bytes, unsigned(allowed) + 1));
      allowed = std::min(run.kernel.growths, growths_within(run.ring_bytes, run.room->there));
    } catch (const Failure &) { // whatever it is: the workers wait for an answer
      allowed |= kNoMore;
    }
    *session.allowed = allowed;
    const CUdeviceptr at = address(&static_cast<Counters *>(run.kernel.counters)->allowed);
    check(driver().copy_to_device(at, session.allowed, 8, session.control), "providing memory");
    check(driver().stream_synchronize(session.control), "providing memory");
  }

  // While the host looks at a report it asks the driver now and then, since a kernel that failed never reports.
  static constexpr unsigned kLooks = 1 << 14;
  static constexpr uint64_t kZeros = 1 << 20; // bytes
  static void still_running(CUstream stream) {
    const CUresult result = driver().stream_query(stream);
    if (result != CUDA_ERROR_NOT_READY) check(result, "running the kernel");
  }

  // Looks after a kernel that has not reported; whether it is to stop. The word is sent again and again, since the counters
  // may be written by the stream after it came. If the kernel does not stop, this thread gets another session.
  bool look(Run &run, CUstream stream) {
    still_running(stream);
    atos_sample now{};
    const bool known = observe(run, &now);
    try {
      if (!run.watch.look(known ? &now : nullptr)) return false;
    } catch (...) {
      std::lock_guard<std::mutex> lock(guard);
      debts.insert(debts.end(), run.owed.begin(), run.owed.end());
      has_debts = true;
      sessions_of_thread().erase(index);
      throw;
    }
    const Session &session = session_of_thread();
    const CUdeviceptr upper_half = address(&static_cast<Counters *>(run.kernel.counters)->stop) + 4;
    if (driver().stream_query(session.control) != CUDA_ERROR_NOT_READY)
      check(driver().copy_to_device(upper_half, session.asked, 4, session.control), "stopping the workers");
    return true;
  }

  // How things stood when the user was asked before, if a copy of the counters has come since; asks for another one. The copy
  // goes beside the kernel, and is never waited for.
  bool observe(Run &run, atos_sample *now) {
    if (!run.launch.progress || !run.watch.asks()) return false;
    const Session &session = session_of_thread();
    if (driver().stream_query(session.control) == CUDA_ERROR_NOT_READY) return false;
    const Counters &seen = *session.observed;
    const Launch &kernel = run.kernel;
    const uint64_t taken = std::min(kernel.round_begin + seen.claims[kernel.stream], kernel.round_end);
    const bool known = run.observing;
    *now = {0, seen.ran_so_far, tickets_of(seen.published), run.launch.persistent ? seen.head : taken};
    check(driver().copy_to_host(session.observed, address(kernel.counters), sizeof(Counters), session.control), "observing");
    run.observing = true;
    return known;
  }

  void upload(Run &run, CUstream stream) {
    const Timed timed(run.copied);
    Session &session = session_of_thread();
    *session.counters = *run.counters;
    check(driver().copy_to_device(address(run.kernel.counters), session.counters, sizeof(Counters), stream), "launching");
  }

  void download(Run &run, CUstream stream) {
    const Timed timed(run.copied);
    Session &session = session_of_thread();
    check(driver().copy_to_host(session.counters, address(run.kernel.counters), sizeof(Counters), stream), "running the kernel");
    check(driver().stream_synchronize(stream), "running the kernel");
    *run.counters = *session.counters;
  }

  void start(const Run &run, CUstream stream) {
    Arguments arguments;
    __builtin_memcpy(arguments.word, run.launch.arguments, run.launch.argument_words * 8);
    void *parameters[] = {const_cast<Launch *>(&run.kernel), &arguments};
    const uint32_t shared = shared_bytes(run.launch, run.item_bytes, run.kernel.buffer);
    const CUfunction function = static_cast<CudaProgram *>(run.program)->function;
    const uint32_t threads = run.launch.threads;
    // Workers that wait for all others need all others on the GPU. That so many fit is not enough: half of them and half of
    // another launch could hold it, and wait for ever.
    const bool together = run.launch.persistent && (run.launch.barrier || run.launch.idle);
    check(together ? driver().launch_together(function, run.blocks, 1, 1, threads, 1, 1, shared, stream, parameters)
                   : driver().launch(function, run.blocks, 1, 1, threads, 1, 1, shared, stream, parameters, nullptr),
          "launching");
  }

  int attribute(CUdevice_attribute what) const {
    int value = 0;
    check(driver().device_attribute(&value, what, device), "asking for a property of the GPU");
    return value;
  }

  const int32_t index;
  std::mutex guard;
  std::vector<Debt> debts; // of all kernels that did not stop
  std::vector<Session> spare_sessions; // of threads that have ended
  std::atomic<bool> has_debts{false};
  CUdevice device = 0;
  CUcontext context = nullptr;
  int processors = 0;
};

CudaBackend &backend_of(int32_t device) {
  // One context for each device. Never taken down, since threads may still end while the process does.
  static std::mutex &mutex = *new std::mutex;
  static auto &backends = *new std::map<int32_t, std::unique_ptr<CudaBackend>>;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<CudaBackend> &slot = backends[device];
  if (!slot) slot = std::make_unique<CudaBackend>(device);
  return *slot;
}

void CudaBackend::give_back(int32_t index, const Session &session) {
  if (!session.start) return; // nothing was made
  CudaBackend &backend = backend_of(index);
  std::lock_guard<std::mutex> lock(backend.guard);
  backend.spare_sessions.push_back(session);
}

bool cuda_stuck(int32_t device) { return backend_of(device).stuck(); }

CudaRoom::CudaRoom(CudaBackend &backend, CUdevice device, uint64_t size) : backend(backend) {
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  check(driver().block_size(&block, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "reserving addresses");
  bytes = size;
  CUdeviceptr pointer = 0;
  check(driver().address_reserve(&pointer, (size + block - 1) / block * block, 0, 0, 0), "reserving addresses");
  begin = reinterpret_cast<void *>(pointer);
}

CudaRoom::~CudaRoom() {
  if (backend.stuck()) return;
  for (const Part &part : parts) {
    driver().block_unmap(address(begin) + part.at, part.size);
    driver().block_release(part.handle);
  }
  driver().address_free(address(begin), (bytes + block - 1) / block * block);
}

void CudaRoom::extend(uint64_t size) {
  if (size <= there) return;
  const Driver &d = driver();
  Part part{0, there, (size - there + block - 1) / block * block};
  check(d.block_create(&part.handle, part.size, &properties, 0), "asking for memory");
  parts.push_back(part);
  check(d.block_map(address(begin) + part.at, part.size, 0, part.handle, 0), "mapping memory");
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  check(d.block_access(address(begin) + part.at, part.size, &access, 1), "mapping memory");
  backend.clear_beside_kernels(address(begin) + part.at, part.size);
  there += part.size;
}

} // namespace

Backend &cuda_backend(int32_t device) { return backend_of(device); }

int32_t cuda_device_count(std::string *why_none) {
  const Driver &d = driver();
  int count = 0;
  if (!d.missing.empty()) *why_none = d.missing;
  else if (d.device_count(&count) != CUDA_SUCCESS || count == 0) *why_none = "the NVIDIA driver finds no GPU";
  return count;
}

std::unique_ptr<atos_program> cuda_program(int32_t device, const void *cubin, const char *symbol) {
  CudaBackend &backend = backend_of(device);
  backend.refuse_if_stuck();
  Current current(backend.primary());
  auto program = std::make_unique<CudaProgram>(device, backend.primary());
  check(driver().module_load(&program->module, cubin), "loading the kernel");
  check(driver().module_function(&program->function, program->module, symbol), "finding the kernel");
  return program;
}

int32_t cuda_pointer_device(const void *pointer) {
  if (!driver().missing.empty()) return ATOS_CPU;
  int32_t type = 0, ordinal = 0;
  if (driver().pointer_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(pointer)) != CUDA_SUCCESS)
    return ATOS_CPU; // memory that the driver does not know
  if (type != CU_MEMORYTYPE_DEVICE) return ATOS_CPU;
  check(driver().pointer_attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address(pointer)), "locating memory");
  return ordinal;
}

} // namespace atos

#else // built without CUDA's headers: the CPU is all there is

namespace atos {

static const char *const kAbsent = "this build has no GPU support, since the CUDA headers were missing when it was built";

Backend &cuda_backend(int32_t device) { throw Failure(ATOS_NO_DEVICE, text("there is no GPU %d: %s", device, kAbsent)); }
int32_t cuda_device_count(std::string *why_none) {
  *why_none = kAbsent;
  return 0;
}
std::unique_ptr<atos_program> cuda_program(int32_t, const void *, const char *) { throw Failure(ATOS_NO_DEVICE, kAbsent); }
int32_t cuda_pointer_device(const void *) { return ATOS_CPU; }

} // namespace atos

#endif
