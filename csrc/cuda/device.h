// CudaDevice: a GPU with its primary context, its attributes, and the kernels that are stuck on it. Memory, programs and
// launches are built on CudaDevice.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "cuda/driver.h"
#include "host/backend.h"

namespace atos::cuda {

// One object for each device that was asked for. Never taken down, since threads may still end while the process does.
template <class T> struct InstancesByDevice {
  std::mutex guard;
  std::map<int32_t, std::unique_ptr<T>> instances;

  static InstancesByDevice &all() {
    static auto &all = *new InstancesByDevice;
    return all;
  }
};

// The object of a device, made on first use.
template <class T> T &instance_of_device(int32_t index) {
  InstancesByDevice<T> &all = InstancesByDevice<T>::all();
  std::lock_guard<std::mutex> lock(all.guard);
  std::unique_ptr<T> &instance = all.instances[index];
  if (!instance) instance = std::make_unique<T>(index);
  return *instance;
}

// The objects that have been made so far.
template <class T> std::vector<T *> existing_instances() {
  InstancesByDevice<T> &all = InstancesByDevice<T>::all();
  std::lock_guard<std::mutex> lock(all.guard);
  std::vector<T *> existing;
  for (const auto &[index, instance] : all.instances)
    if (instance) existing.push_back(instance.get());
  return existing;
}

// Makes the device's primary context current, as CuPy and PyTorch use it, and restores the context that was current before.
struct ScopedContext {
  explicit ScopedContext(CUcontext context) { check(driver().cuCtxPushCurrent(context), "making the device current"); }
  ~ScopedContext() {
    CUcontext popped;
    driver().cuCtxPopCurrent(&popped);
  }
  ScopedContext(const ScopedContext &) = delete;
  ScopedContext &operator=(const ScopedContext &) = delete;
};

// A kernel that was asked to stop and did not: its completion record, and the sequence number that the record will have.
using StuckKernel = std::pair<const CompletionRecord *, uint64_t>;

inline bool has_begun(const StuckKernel &kernel) {
  return __atomic_load_n(&kernel.first->begun, __ATOMIC_RELAXED) == kernel.second;
}
inline bool has_completed(const StuckKernel &kernel) {
  return __atomic_load_n(&kernel.first->sequence, __ATOMIC_ACQUIRE) == kernel.second;
}

// The place of a GPU's memory, and the right of a GPU to read and write memory. Set by name, since in some versions of CUDA's
// header the number of the device lies in a union, in others not, so that no initializer in braces suits both.
inline CUmemLocation location_of(CUdevice gpu) {
  CUmemLocation location{};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = gpu;
  return location;
}
inline CUmemAccessDesc access_of(CUdevice gpu) { return {location_of(gpu), CU_MEM_ACCESS_FLAGS_PROT_READWRITE}; }

class CudaDevice {
public:
  explicit CudaDevice(int32_t index); // throws ATOS_NO_DEVICE
  CudaDevice(const CudaDevice &) = delete;
  CudaDevice &operator=(const CudaDevice &) = delete;

  void query(atos_device_info *info);
  int attribute(CUdevice_attribute what) const;
  void wait(CUstream stream);

  // New memory is cleared on the legacy stream, which other streams need not wait for. `note_clearing` notes that a clearing
  // was asked for; `wait_for_clearing` lets a stream wait until the clearing is done. The context has to be current.
  void note_clearing();
  void wait_for_clearing(CUstream stream);

  // Whether a kernel that did not stop holds the GPU: any call that waits for the GPU would then wait for that kernel.
  bool stuck();
  void refuse_if_stuck();
  void add_stuck(const StuckKernel &kernel) noexcept; // a kernel of a run

  // Count the launches whose kernels may run. Kernels of launches `for_host` wait for items from the host.
  void begin_run(bool for_host);
  void end_run(bool for_host) noexcept;

  // Whether the calling thread must not wait for all work of the GPU: a run waits for the host, perhaps for this thread, or
  // this thread is in the callback of a launch, which serves the run. `call_unless_run` then does not call, and returns false.
  // `call_if_idle` does not call beside any run: the call may wait for kernels, which may run for hours. No run begins during a
  // call. The context has to be current.
  bool has_run();
  bool is_idle();
  template <class Call> bool call_unless_run(Call call) {
    std::shared_lock<std::shared_mutex> none_begins(beginning);
    if (has_run()) return false;
    call();
    return true;
  }
  template <class Call> bool call_if_idle(Call call) {
    std::shared_lock<std::shared_mutex> none_begins(beginning);
    if (!is_idle()) return false;
    call();
    return true;
  }

  // Releases a resource that is not in use; the release may wait for all work of the GPU, and is put off while there are runs.
  // The context has to be current.
  template <class Release> void release_unless_run(Release release) noexcept {
    std::shared_lock<std::shared_mutex> none_begins(beginning);
    if (!put_off(release, false)) release();
  }
  // Releases memory that streams of any library may still use, by a `release` that itself waits for nothing: waits for all work
  // of the GPU, or, while there are runs, puts the release off until the GPU's current work has ended.
  template <class Release> void release_when_unused(Release release) noexcept {
    {
      std::shared_lock<std::shared_mutex> none_begins(beginning);
      if (!put_off(release, true)) {
        if (waits_for_all()) release();
        return;
      }
    }
    release_due(); // put off by other calls
  }
  void release_due() noexcept; // runs the releases that were put off, if it is time

  // The access rights to this GPU's memory: of this GPU, and of each GPU that reaches its memory.
  std::vector<CUmemAccessDesc> access();
  bool reached_by(const CudaDevice &other);
  void let_reach(const CudaDevice &other);

  const int32_t index;
  CUdevice handle = 0;
  CUcontext context = nullptr;
  int multiprocessor_count = 0;

private:
  std::mutex guard;
  std::vector<StuckKernel> stuck_kernels; // of all launches
  std::vector<CUdevice> reaching;         // other GPUs that reach this GPU's memory
  CUevent cleared = nullptr;              // when memory was cleared last
  std::atomic<bool> has_stuck_kernels{false};
  // A release that was put off until an event, or, if the event is null, until there is no run.
  struct PutOff {
    CUevent unused;
    std::function<void()> release;
  };
  std::shared_mutex beginning; // held by a run while it begins, and shared by calls during which no run shall begin
  unsigned runs = 0, runs_for_host = 0;
  std::vector<PutOff> unreleased;

  // Keeps a release for later; false if there is no run.
  template <class Release> bool put_off(const Release &release, bool by_event) noexcept {
    std::lock_guard<std::mutex> lock(guard);
    if (!runs) return false;
    try {
      unreleased.push_back({nullptr, release});
      if (by_event) unreleased.back().unused = event_of_all();
    } catch (const std::bad_alloc &) { // then the memory is never released
    }
    return true;
  }
  bool take_unused(PutOff *found) noexcept;
  CUevent event_of_all() const noexcept; // when the GPU's current work has ended; null if the driver has no such event
  static bool waits_for_all() noexcept;  // false if the context is lost
};

} // namespace atos::cuda
