// The kernel, compiled to LTO-IR for each kind of worker and size of item (ATOS_WORKER, ATOS_ITEM_BYTES); a task is linked into
// it. Also what a task may call.
#include "worker.cuh"

namespace atos {

constexpr unsigned kBytes = ATOS_ITEM_BYTES;

#if ATOS_WORKER == 0
using Workers = ThreadWorkers<kBytes>;
#elif ATOS_WORKER == 1
using Workers = GroupWorker<Warp, kBytes>;
#else
using Workers = GroupWorker<Cta, kBytes>;
#endif

template <class T> ATOS_DEVICE T combine(T a, T b, int op) {
  return op == 0 ? a + b : op == 1 ? (b < a ? b : a) : (a < b ? b : a);
}

// Reduction over the threads of a worker; every thread gets the result.
template <class T> ATOS_DEVICE T reduce(void *worker, T value, int op) {
#if ATOS_WORKER != 0
  for (int distance = 16; distance; distance /= 2) value = combine(value, __shfl_xor_sync(kAll, value, distance), op);
#endif
#if ATOS_WORKER == 2
  T *parts = reinterpret_cast<T *>(static_cast<Worker<kBytes> *>(worker)->reduce);
  __syncthreads();
  if (lane_id() == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (unsigned w = 1; w < blockDim.x / 32; ++w) value = combine(value, parts[w], op);
#endif
  return value;
}

// A task with checks (ATOS_CONFIG_CHECKED) returns from where one fails, and its thread then reports it if it was the first of
// its block. The other threads of a worker may be waiting for it: their collective calls begin with a rendezvous that they give
// up once a thread has left. It spins in shared memory, since a barrier of the hardware would wait for ever: the thread that
// left waits for the others of its warp where their ways meet again. Without checks none of this is linked in.
struct Failing {
  uint32_t thread; // 0: none; kReported; otherwise 1 + the thread that is to report `what`
  atos_failure what;
};
struct Rendezvous {
  uint32_t arrived, phase, left;
};
constexpr uint32_t kReported = ~0u;
__shared__ Failing failing;
__shared__ Rendezvous rendezvous[32]; // of each warp, or of the block

ATOS_DEVICE volatile uint32_t &failing_thread() { return failing.thread; }
ATOS_DEVICE Rendezvous &rendezvous_of_worker() { return rendezvous[ATOS_WORKER == ATOS_CTA ? 0 : threadIdx.x / 32]; }

} // namespace atos

using namespace atos;

extern "C" {

__global__ void atos_kernel(const __grid_constant__ Launch launch, const __grid_constant__ Arguments args) {
  extern __shared__ __align__(16) unsigned char shared[];
  if (atos_config(ATOS_CONFIG_CHECKED)) {
    if (threadIdx.x == 0) failing.thread = 0;
    if (threadIdx.x < 32) rendezvous[threadIdx.x] = {};
    __syncthreads();
  }
  // A worker that has all of the shared memory would work out where it begins wherever that is used, from a register that is slow
  // to read. The sum with something that the compiler does not know is worked out once, as for workers that have a part of it.
  unsigned zero = 0;
  if (ATOS_WORKER == ATOS_CTA) asm volatile("mov.u32 %0, 0;" : "=r"(zero));
  Workers(launch, args, shared + zero).work();
}

__device__ void atos_push(void *worker, const void *item) {
  static_cast<Worker<kBytes> *>(worker)->push(*static_cast<const Item<kBytes> *>(item));
}

__device__ int32_t atos_size(void *) { return ATOS_WORKER == ATOS_THREAD ? 1 : ATOS_WORKER == ATOS_WARP ? 32 : blockDim.x; }
__device__ int32_t atos_rank(void *) { return ATOS_WORKER == ATOS_THREAD ? 0 : ATOS_WORKER == ATOS_WARP ? lane_id() : threadIdx.x; }

__device__ void atos_sync(void *) {
  if (ATOS_WORKER == ATOS_CTA) __syncthreads();
  else if (ATOS_WORKER == ATOS_WARP) __syncwarp();
}

__device__ void atos_fail(int64_t site, int64_t value, int64_t bound, int64_t array) {
  if (atomicCAS(&failing.thread, 0u, threadIdx.x + 1) == 0) failing.what = {1, site, value, bound, array, 0, {0, 0}};
  static_cast<volatile uint32_t &>(rendezvous_of_worker().left) = 1;
}

// By every thread that has returned from a function of a task with checks; `item` is null after idle.
__device__ void atos_report(void *worker, const void *item) {
  if (failing_thread() != threadIdx.x + 1) return;
  failing.what.in_item = item != nullptr;
  if (item) memcpy(failing.what.item, item, kBytes);
  static_cast<Worker<kBytes> *>(worker)->queue().fail(failing.what);
  failing_thread() = kReported;
}

// Before a collective call of a task with checks: 1 when all threads of the worker have come, 0 if one has left the task, and
// the others have to leave it too.
__device__ int32_t atos_together(void *) {
  if (ATOS_WORKER == ATOS_THREAD) return 1;
  volatile Rendezvous &here = rendezvous_of_worker();
  const uint32_t size = ATOS_WORKER == ATOS_WARP ? 32 : blockDim.x, phase = here.phase;
  __threadfence_block();
  if (atomicAdd(const_cast<uint32_t *>(&here.arrived), 1) == size - 1) {
    here.arrived = 0;
    __threadfence_block();
    here.phase = phase + 1;
    return 1;
  }
  while (here.phase == phase) {
    if (here.left) { // maybe after all had come
      __threadfence_block();
      return here.phase != phase;
    }
    __nanosleep(20);
  }
  return 1;
}

// By every thread that has returned from a flat task or idle with checks.
__device__ void atos_left(void *worker) {
  if (ATOS_WORKER == ATOS_THREAD) return;
  atos_sync(worker);
  Rendezvous &here = rendezvous_of_worker();
  if (atos_rank(worker) == 0) here.arrived = here.left = 0;
  atos_sync(worker);
}

__device__ int64_t atos_reduce_i64(void *worker, int64_t value, int32_t op) {
  return reduce(worker, static_cast<long long>(value), op);
}
__device__ uint64_t atos_reduce_u64(void *worker, uint64_t value, int32_t op) {
  return reduce(worker, static_cast<unsigned long long>(value), op);
}
__device__ double atos_reduce_f64(void *worker, double value, int32_t op) { return reduce(worker, value, op); }

__device__ int32_t atos_any(void *, int32_t predicate) {
  return ATOS_WORKER == ATOS_THREAD ? predicate != 0 : ATOS_WORKER == ATOS_WARP ? __any_sync(kAll, predicate) : __syncthreads_or(predicate);
}
__device__ int32_t atos_all(void *, int32_t predicate) {
  return ATOS_WORKER == ATOS_THREAD ? predicate != 0 : ATOS_WORKER == ATOS_WARP ? __all_sync(kAll, predicate) : __syncthreads_and(predicate);
}

__device__ void *atos_scratch(void *worker) { return static_cast<Worker<kBytes> *>(worker)->scratch; }
__device__ int64_t atos_scratch_bytes(void *worker) { return static_cast<Worker<kBytes> *>(worker)->launch->scratch; }
}
