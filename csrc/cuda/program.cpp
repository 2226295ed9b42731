// Loads and unloads a cubin, and asks for its occupancy.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/program.h"

namespace atos::cuda {

CudaProgram::~CudaProgram() {
  if (!module || gpu.stuck() || driver().cuCtxPushCurrent(gpu.context) != CUDA_SUCCESS) return;
  gpu.release_unless_run([unwanted = module] { driver().cuModuleUnload(unwanted); });
  CUcontext popped;
  driver().cuCtxPopCurrent(&popped);
}

void CudaProgram::load(const void *cubin, const char *symbol) {
  gpu.refuse_if_stuck();
  ScopedContext current(gpu.context);
  check(driver().cuModuleLoadData(&module, cubin), "loading the kernel");
  check(driver().cuModuleGetFunction(&function, module, symbol), "finding the kernel");
}

uint32_t CudaProgram::resident_blocks(const atos_launch &launch, uint32_t item_bytes, uint32_t peers) {
  const uint32_t shared = shared_bytes(launch, item_bytes, buffer_items(launch, item_bytes), peers);
  std::lock_guard<std::mutex> lock(guard);
  if (known_blocks && known_threads == launch.threads && known_shared == shared) return known_blocks;
  ScopedContext current(gpu.context);
  const Driver &d = driver();
  const uint32_t most = gpu.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  if (shared > most)
    throw Failure(
        ATOS_TOO_MANY,
        format("a block of %u threads with fetch_size %u needs %u bytes of shared memory, more than "
               "the %u that this GPU has: lower fetch_size, push_buffer, num_threads, or the scratch (%u bytes a worker)",
               launch.threads, launch.fetch, shared, most, scratch_bytes(launch)));
  if (shared > shared_allowed) {
    check(d.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, int(shared)),
          "raising the shared memory of the kernel");
    shared_allowed = shared;
  }
  int blocks = 0;
  check(d.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, int(launch.threads), shared),
        "asking for the occupancy");
  if (blocks == 0)
    throw Failure(ATOS_TOO_MANY, format("a block of %u threads with %u bytes of shared memory does not fit on a "
                                        "multiprocessor: lower num_threads, fetch_size, or the scratch (%u bytes a worker)",
                                        launch.threads, shared, scratch_bytes(launch)));
  known_threads = launch.threads;
  known_shared = shared;
  known_blocks = uint32_t(blocks) * gpu.multiprocessor_count;
  return known_blocks;
}

} // namespace atos::cuda

#endif
