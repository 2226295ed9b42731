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

template <class T> __device__ __forceinline__ T combine(T a, T b, int op) {
  return op == 0 ? a + b : op == 1 ? (b < a ? b : a) : (a < b ? b : a);
}

// Reduction over the threads of a worker; every thread gets the result.
template <class T> __device__ __forceinline__ T reduce(void *worker, T value, int op) {
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

} // namespace atos

using namespace atos;

extern "C" {

__global__ void atos_kernel(const __grid_constant__ Launch launch, const __grid_constant__ Arguments args) {
  extern __shared__ __align__(16) unsigned char shared[];
  Workers(launch, args, shared).work();
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
