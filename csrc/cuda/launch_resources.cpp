// Makes launch resources, and keeps resources of threads that have ended for other threads.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/launch_resources.h"

namespace atos::cuda {
namespace {

// The resources that threads which have ended left on a device.
class FreeLaunchResources {
public:
  explicit FreeLaunchResources(int32_t) {}

  void make_room() { // for one more to be given back
    std::lock_guard<std::mutex> lock(guard);
    unused.reserve(++made);
  }

  void give_back(const LaunchResources &resources) noexcept {
    std::lock_guard<std::mutex> lock(guard);
    unused.push_back(resources);
  }

  void take(LaunchResources &resources) {
    std::lock_guard<std::mutex> lock(guard);
    if (unused.empty()) return;
    resources = unused.back();
    unused.pop_back();
  }

  std::vector<LaunchResources> take_all() {
    std::lock_guard<std::mutex> lock(guard);
    return std::exchange(unused, {});
  }

private:
  std::mutex guard;
  std::vector<LaunchResources> unused;
  size_t made = 0;
};

// The resources of one thread, by device; left to other threads when the thread ends.
struct LaunchResourcesByDevice : std::map<int32_t, LaunchResources> {
  ~LaunchResourcesByDevice() {
    for (const auto &[index, resources] : *this)
      if (resources.start) instance_of_device<FreeLaunchResources>(index).give_back(resources); // else nothing was made
  }
};

LaunchResourcesByDevice &resources_by_device() {
  static thread_local LaunchResourcesByDevice resources;
  return resources;
}

// Destroys resources that no kernel and no copy uses any more. A part that the driver refused to make is null.
void destroy(const LaunchResources &resources) {
  const Driver &d = driver();
  for (CUevent event : {resources.start, resources.stop})
    if (event) d.cuEventDestroy(event);
  for (CUstream stream : resources.streams)
    if (stream) d.cuStreamDestroy(stream);
  if (resources.control) d.cuStreamDestroy(resources.control);
  if (resources.counters) d.cuMemFreeHost(resources.counters);
  if (resources.peer_table) d.cuMemFree(resources.peer_table);
}

} // namespace

void make_streams(LaunchResources &resources, uint32_t count) {
  for (uint32_t s = 0; s < count; ++s)
    if (!resources.streams[s]) check(driver().cuStreamCreate(&resources.streams[s], CU_STREAM_NON_BLOCKING), "making a stream");
}

LaunchResources &resources_of_thread(CudaDevice &device) {
  LaunchResources &resources = resources_by_device()[device.index];
  if (resources.records) return resources;
  if (!resources.start) instance_of_device<FreeLaunchResources>(device.index).take(resources);
  if (resources.records) return resources;
  // Resumes after a part that the driver refused before.
  const Driver &d = driver();
  if (!resources.start) instance_of_device<FreeLaunchResources>(device.index).make_room();
  for (CUevent *event : {&resources.start, &resources.stop})
    if (!*event) check(d.cuEventCreate(event, CU_EVENT_DEFAULT), "making an event");
  make_streams(resources, kStreams);
  if (!resources.control) check(d.cuStreamCreate(&resources.control, CU_STREAM_NON_BLOCKING), "making a stream");
  void *pinned;
  check(
      d.cuMemAllocHost(&pinned, (1 + kMostGpus) * sizeof(Counters) + ATOS_MAX_STREAMS * sizeof(CompletionRecord) + 16 + kZeros),
      "allocating pinned memory");
  resources.counters = static_cast<Counters *>(pinned);
  resources.observed = resources.counters + 1;
  resources.records = reinterpret_cast<CompletionRecord *>(resources.observed + kMostGpus);
  resources.stop_word = reinterpret_cast<uint64_t *>(resources.records + ATOS_MAX_STREAMS);
  *resources.stop_word = kStopAsked >> 32;
  resources.growths_granted = resources.stop_word + 1;
  resources.zeros = resources.stop_word + 2;
  __builtin_memset(resources.zeros, 0, kZeros);
  return resources;
}

void free_unused_resources(CudaDevice &device) {
  check(driver().cuCtxSynchronize(), "releasing memory");
  for (const LaunchResources &resources : instance_of_device<FreeLaunchResources>(device.index).take_all()) destroy(resources);
  LaunchResourcesByDevice &own = resources_by_device();
  if (const auto found = own.find(device.index); found != own.end()) {
    destroy(found->second);
    own.erase(found);
  }
}

void abandon_resources(CudaDevice &device) { resources_by_device().erase(device.index); }

} // namespace atos::cuda

#endif
