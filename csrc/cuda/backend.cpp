// CudaBackend: implements Backend for a GPU by delegating to the other files of this folder.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/kernel_monitor.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/memory_pool.h"
#include "cuda/move_items.h"
#include "cuda/peers.h"
#include "cuda/program.h"
#include "cuda/shared_memory.h"
#include "cuda/spread_memory.h"
#include "cuda/store_items.h"
#include "cuda/virtual_memory.h"

namespace atos {
namespace cuda {
namespace {

class CudaBackend final : public Backend {
public:
  explicit CudaBackend(int32_t index) : device(instance_of_device<CudaDevice>(index)) {}

  void query(atos_device_info *info) override {
    device.query(info);
    ScopedContext current(device.context);
    info->free_bytes += pool_of(device).unused();
  }
  void wait(void *stream) override { device.wait(static_cast<CUstream>(stream)); }
  void order(void *earlier, void *later) override {
    cuda::order(device, static_cast<CUstream>(earlier), static_cast<CUstream>(later));
  }

  void *allocate(uint64_t bytes) override { return cuda::allocate(device, bytes); }
  void *allocate_uncleared(uint64_t bytes) override { return cuda::allocate(device, bytes, false); }
  void *reserve(uint64_t *bytes, uint64_t least) override { return cuda::reserve(device, bytes, least); }
  void release(void *pointer) noexcept override { cuda::release(device, pointer); }
  void release_reserved(void *pointer, uint64_t bytes, uint64_t least, bool written) noexcept override {
    cuda::release_reserved(device, {pointer, bytes}, least, written);
  }
  void copy(void *to, const void *from, uint64_t bytes) override { cuda::copy(device, to, from, bytes); }
  void fill(void *to, const void *element, uint32_t element_bytes, uint64_t count) override {
    cuda::fill(device, to, element, element_bytes, count);
  }
  bool store_items(void *slots, const void *items, uint64_t first, uint64_t count, uint32_t item_bytes,
                   uint64_t generation) override {
    // A run that waits for the host may hold all multiprocessors, and the kernel would wait for that run.
    return device.call_unless_run([&] { cuda::store_items(device, slots, items, first, count, item_bytes, generation); });
  }
  bool gather_spilled(const SpilledItems &spilled, uint64_t end, uint64_t *number, uint64_t size) override {
    return device.call_if_idle([&] { cuda::gather_spilled(device, spilled, end, number, size); });
  }
  bool store_spilled(const SpilledItems &spilled, uint64_t first, uint64_t n, const RingSlots &to) override {
    return device.call_if_idle([&] { cuda::store_spilled(device, spilled, first, n, to); });
  }
  bool move_slots(const RingSlots &from, uint64_t first, uint64_t n, uint32_t item_bytes, void *to) override {
    return device.call_if_idle([&] { cuda::move_slots(device, from, first, n, item_bytes, to); });
  }
  std::unique_ptr<GrowableRange> reserve_growable(uint64_t bytes) override { return reserve_range(device, bytes); }

  InboxMemory make_inbox() override { return cuda::make_inbox(device); }
  void release_inbox(const InboxMemory &memory) noexcept override { cuda::release_inbox(device, memory); }

  uint32_t resident_blocks(const Run &run) override {
    return static_cast<CudaProgram &>(*run.program).resident_blocks(run.launch, run.item_bytes, run.kernel.peer_count);
  }
  uint32_t workers_per_block(const atos_launch &launch) override { return cuda::workers_per_block(launch); }

  void run_persistent(Run &run) override { cuda::run_persistent(device, run); }
  void run_discrete(Run &run) override { cuda::run_discrete(device, run); }
  bool ended(Run &run) override { return completed_since(device, run); }
  void provide_peers(const Runs &runs) override { cuda::provide_peers(runs); }
  void run_peers(const Runs &runs, bool collects) override { cuda::run_peers(runs, collects); }
  void collect_peers(const Runs &runs) override { cuda::collect_peers(runs); }
  void start_clock(const atos_launch &launch) override { cuda::start_clock(device, static_cast<CUstream>(launch.stream)); }
  double stop_clock(const atos_launch &) override { return cuda::stop_clock(device); }

private:
  CudaDevice &device;
};

} // namespace
} // namespace cuda

Backend &cuda_backend(int32_t device) { return cuda::instance_of_device<cuda::CudaBackend>(device); }

int32_t cuda_device_count(std::string *why_none) {
  const cuda::Driver &d = cuda::driver();
  int count = 0;
  if (!d.missing.empty()) *why_none = d.missing;
  else if (d.cuDeviceGetCount(&count) != CUDA_SUCCESS || count == 0) *why_none = "the NVIDIA driver finds no GPU";
  return count;
}

std::unique_ptr<atos_program> cuda_program(int32_t device, const void *cubin, const char *symbol) {
  auto program = std::make_unique<cuda::CudaProgram>(cuda::instance_of_device<cuda::CudaDevice>(device));
  program->load(cubin, symbol);
  return program;
}

int32_t cuda_pointer_device(const void *pointer) { return cuda::device_of_pointer(pointer); }

void cuda_release_memory() {
  for (cuda::MemoryPool *pool : cuda::existing_instances<cuda::MemoryPool>()) { // elsewhere nothing was ever allocated
    pool->device.refuse_if_stuck();
    cuda::ScopedContext current(pool->device.context);
    const bool done = pool->device.call_unless_run([&] {
      cuda::free_unused_resources(pool->device);
      cuda::free_unused_inboxes(pool->device);
      pool->give_back();
    });
    if (!done)
      throw Failure(ATOS_INVALID, format("a run on GPU %d is open, for whose end the release of memory would wait: close or "
                                         "stop it first",
                                         pool->device.index));
  }
}

namespace {

std::vector<cuda::CudaDevice *> gpus_of(const std::vector<int32_t> &devices) {
  std::vector<cuda::CudaDevice *> gpus;
  for (int32_t index : devices) gpus.push_back(&cuda::instance_of_device<cuda::CudaDevice>(index));
  return gpus;
}

} // namespace

void cuda_connect(const std::vector<int32_t> &devices) { cuda::connect(gpus_of(devices)); }

void *cuda_allocate_over(const std::vector<int32_t> &devices, const std::vector<uint64_t> &borders) {
  return cuda::allocate_over(gpus_of(devices), borders);
}

void cuda_release_over(void *pointer) noexcept { cuda::release_over(pointer); }

std::unique_ptr<atos_shared> cuda_share(int32_t device, uint64_t bytes) {
  return cuda::share_memory(cuda::instance_of_device<cuda::CudaDevice>(device), bytes);
}

} // namespace atos

#endif
