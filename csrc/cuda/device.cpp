// Opens a GPU, asks for its properties, and keeps the list of kernels that are stuck on the GPU.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/device.h"

#include <algorithm>

namespace atos::cuda {

CudaDevice::CudaDevice(int32_t index) : index(index) {
  const Driver &d = driver();
  if (!d.missing.empty()) throw Failure(ATOS_NO_DEVICE, d.missing);
  int count = 0;
  check(d.cuDeviceGetCount(&count), "counting GPUs");
  if (index < 0 || index >= count)
    throw Failure(ATOS_NO_DEVICE, format("there is no GPU %d: this machine has %d", index, count));
  check(d.cuDeviceGet(&handle, index), "opening the GPU");
  check(d.cuDevicePrimaryCtxRetain(&context, handle), "making a context");
  multiprocessor_count = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

void CudaDevice::query(atos_device_info *info) {
  ScopedContext current(context);
  const Driver &d = driver();
  check(d.cuDeviceGetName(info->name, sizeof info->name, handle), "asking for the GPU's name");
  info->compute_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  info->compute_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  info->multiprocessor_count = multiprocessor_count;
  check(d.cuDriverGetVersion(&info->driver_version), "asking for the driver's version");
  info->max_threads_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  info->shared_bytes_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  size_t free_bytes, total;
  check(d.cuMemGetInfo(&free_bytes, &total), "asking for the GPU's memory");
  info->total_bytes = total;
  info->free_bytes = free_bytes;
}

int CudaDevice::attribute(CUdevice_attribute what) const {
  int value = 0;
  check(driver().cuDeviceGetAttribute(&value, what, handle), "asking for a property of the GPU");
  return value;
}

void CudaDevice::note_clearing() {
  std::lock_guard<std::mutex> lock(guard);
  if (!cleared) check(driver().cuEventCreate(&cleared, CU_EVENT_DISABLE_TIMING), "making an event");
  check(driver().cuEventRecord(cleared, CU_STREAM_LEGACY), "clearing memory");
}

void CudaDevice::wait_for_clearing(CUstream stream) {
  if (!stream || stream == CU_STREAM_LEGACY) return; // the legacy stream is in order
  std::lock_guard<std::mutex> lock(guard);
  if (cleared) check(driver().cuStreamWaitEvent(stream, cleared, 0), "launching");
}

void CudaDevice::wait(CUstream stream) {
  ScopedContext current(context);
  check(driver().cuStreamSynchronize(stream), "waiting for a stream");
}

bool CudaDevice::stuck() {
  if (!has_stuck_kernels) return false;
  std::lock_guard<std::mutex> lock(guard);
  stuck_kernels.erase(std::remove_if(stuck_kernels.begin(), stuck_kernels.end(), has_completed), stuck_kernels.end());
  has_stuck_kernels = !stuck_kernels.empty();
  return has_stuck_kernels;
}

void CudaDevice::refuse_if_stuck() {
  if (stuck())
    throw Failure(ATOS_BUSY, format("GPU %d is held by a kernel with a task that was asked to stop, and still runs", index));
}

void CudaDevice::add_stuck(const StuckKernel &kernel) noexcept {
  std::lock_guard<std::mutex> lock(guard);
  stuck_kernels.push_back(kernel); // `begin_run` has made room
  has_stuck_kernels = true;
}

std::vector<CUmemAccessDesc> CudaDevice::access() {
  std::lock_guard<std::mutex> lock(guard);
  std::vector<CUmemAccessDesc> all{access_of(handle)};
  for (CUdevice other : reaching) all.push_back(access_of(other));
  return all;
}

bool CudaDevice::reached_by(const CudaDevice &other) {
  std::lock_guard<std::mutex> lock(guard);
  return other.handle == handle || std::find(reaching.begin(), reaching.end(), other.handle) != reaching.end();
}

void CudaDevice::let_reach(const CudaDevice &other) {
  std::lock_guard<std::mutex> lock(guard);
  reaching.push_back(other.handle);
}

void CudaDevice::begin_run(bool for_host) {
  std::unique_lock<std::shared_mutex> begins(beginning);
  std::lock_guard<std::mutex> lock(guard);
  stuck_kernels.reserve(stuck_kernels.size() + (runs + 1) * ATOS_MAX_STREAMS);
  ++runs;
  runs_for_host += for_host;
}

void CudaDevice::end_run(bool for_host) noexcept {
  {
    std::lock_guard<std::mutex> lock(guard);
    --runs;
    runs_for_host -= for_host;
    if (unreleased.empty()) return;
  }
  if (driver().cuCtxPushCurrent(context) != CUDA_SUCCESS) return;
  release_due();
  CUcontext popped;
  driver().cuCtxPopCurrent(&popped);
}

bool CudaDevice::has_run() {
  std::lock_guard<std::mutex> lock(guard);
  return runs_for_host || StopMonitor::in_callback();
}

bool CudaDevice::is_idle() {
  std::lock_guard<std::mutex> lock(guard);
  return !runs && !StopMonitor::in_callback();
}

CUevent CudaDevice::event_of_all() const noexcept {
  const Driver &d = driver();
  CUevent event = nullptr;
  if (d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return nullptr;
  if (d.cuCtxRecordEvent(context, event) == CUDA_SUCCESS) return event;
  d.cuEventDestroy(event);
  return nullptr;
}

bool CudaDevice::waits_for_all() noexcept { return driver().cuCtxSynchronize() == CUDA_SUCCESS; }

void CudaDevice::release_due() noexcept {
  if (stuck()) return;
  std::shared_lock<std::shared_mutex> none_begins(beginning);
  std::vector<PutOff> due;
  {
    std::lock_guard<std::mutex> lock(guard);
    if (unreleased.empty()) return;
    if (!runs) due.swap(unreleased);
  }
  if (!due.empty() && !waits_for_all()) return;
  for (const PutOff &each : due) {
    each.release();
    if (each.unused) driver().cuEventDestroy(each.unused);
  }
  for (PutOff each; take_unused(&each);) {
    each.release();
    driver().cuEventDestroy(each.unused);
  }
}

// Takes a release whose event has come. Events come in the order of `unreleased`.
bool CudaDevice::take_unused(PutOff *found) noexcept {
  std::lock_guard<std::mutex> lock(guard);
  const auto first =
      std::find_if(unreleased.begin(), unreleased.end(), [](const PutOff &each) { return each.unused != nullptr; });
  if (first == unreleased.end() || driver().cuEventQuery(first->unused) != CUDA_SUCCESS) return false;
  *found = std::move(*first);
  unreleased.erase(first);
  return true;
}

} // namespace atos::cuda

#endif
