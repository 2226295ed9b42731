// The functions behind `worker` in a task: push, stop, rank and size, index among all workers, barrier, reductions, votes and
// scratch.
#pragma once
#include "device/dependency_counters.cuh"
#include "device/this_worker.cuh"
#include "protocol/receiver.cuh"

namespace atos {

template <class T> ATOS_DEVICE T combine(T a, T b, int op) {
  return op == 0 ? a + b : op == 1 ? (b < a ? b : a) : (a < b ? b : a);
}

// [all threads] A reduction over the threads of a worker; every thread gets the result. `op`: 0 sum, 1 minimum, 2 maximum.
template <class T> ATOS_DEVICE T reduce(void *worker, T value, int op) {
  if constexpr (kWorker != ATOS_THREAD)
    for (int distance = 16; distance; distance /= 2) value = combine(value, __shfl_xor_sync(kAll, value, distance), op);
  if constexpr (kWorker == ATOS_CTA) {
    T *parts = reinterpret_cast<T *>(static_cast<Worker<kBytes> *>(worker)->reduce);
    __syncthreads();
    if (lane_id() == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (unsigned w = 1; w < blockDim.x / 32; ++w) value = combine(value, parts[w], op);
  }
  return value;
}

template <unsigned bytes> ATOS_DEVICE void push_item_into(const void *receiver, const void *item) {
  push_into(*static_cast<const Receiver *>(receiver), *static_cast<const Item<bytes> *>(item));
}

extern "C" {

__device__ void atos_push(void *worker, const void *item) {
  static_cast<Worker<kBytes> *>(worker)->push(*static_cast<const Item<kBytes> *>(item));
}

__device__ void atos_push_with_priority(void *worker, const void *item, double priority) {
  Worker<kBytes> *its = static_cast<Worker<kBytes> *>(worker);
  its->push_with_level(*static_cast<const Item<kBytes> *>(item), level_of(priority, its->launch->inverse_delta));
}

__device__ void atos_push_into_4(const void *to, const void *item) { push_item_into<4>(to, item); }
__device__ void atos_push_into_8(const void *to, const void *item) { push_item_into<8>(to, item); }
__device__ void atos_push_into_16(const void *to, const void *item) { push_item_into<16>(to, item); }
__device__ void atos_push_into_32(const void *to, const void *item) { push_item_into<32>(to, item); }

__device__ void atos_fence() { fence(); }
__device__ int32_t atos_arrive_4(void *counter, uint32_t n) { return arrive_at(counter, n); }
__device__ int32_t atos_arrive_8(void *counter, uint64_t n) { return arrive_at(counter, n); }

__device__ void atos_stop(void *worker) { static_cast<Worker<kBytes> *>(worker)->queue().stop(); }

__device__ int64_t atos_round(void *worker) { return static_cast<Worker<kBytes> *>(worker)->round; }
__device__ int64_t atos_mode(void *worker) { return static_cast<Worker<kBytes> *>(worker)->mode; }
__device__ int64_t atos_pending(void *worker) { return static_cast<Worker<kBytes> *>(worker)->pending; }
__device__ void atos_set_mode(void *worker, int64_t mode) {
  const Worker<kBytes> *its = static_cast<Worker<kBytes> *>(worker);
  if (has_peers) peers_of(*its->launch).set_mode(uint64_t(mode));
  else store(&its->queue().counters->mode, uint64_t(mode));
}

__device__ int32_t atos_size(void *) { return kWorker == ATOS_THREAD ? 1 : kWorker == ATOS_WARP ? 32 : blockDim.x; }
__device__ int32_t atos_rank(void *) { return kWorker == ATOS_THREAD ? 0 : kWorker == ATOS_WARP ? lane_id() : threadIdx.x; }

// The index of the worker among the workers of the kernel: of the launch, or of a discrete launch's round.
__device__ int64_t atos_index(void *worker) {
  const int64_t before = has_peers ? static_cast<Worker<kBytes> *>(worker)->launch->first_worker : 0;
  const int64_t first = before + int64_t(block_index()) * (kWorker == ATOS_THREAD ? blockDim.x
                                                           : kWorker == ATOS_WARP ? blockDim.x / 32
                                                                                  : 1);
  return first + (kWorker == ATOS_THREAD ? threadIdx.x : kWorker == ATOS_WARP ? threadIdx.x / 32 : 0);
}
__device__ int64_t atos_count(void *worker) {
  if (has_peers) return static_cast<Worker<kBytes> *>(worker)->launch->all_workers;
  return int64_t(gridDim.x) * (kWorker == ATOS_THREAD ? blockDim.x : kWorker == ATOS_WARP ? blockDim.x / 32 : 1);
}

__device__ void atos_sync(void *) {
  if (kWorker == ATOS_CTA) __syncthreads();
  else if (kWorker == ATOS_WARP) __syncwarp();
}

__device__ int64_t atos_reduce_i64(void *worker, int64_t value, int32_t op) {
  return reduce(worker, static_cast<long long>(value), op);
}
__device__ uint64_t atos_reduce_u64(void *worker, uint64_t value, int32_t op) {
  return reduce(worker, static_cast<unsigned long long>(value), op);
}
__device__ double atos_reduce_f64(void *worker, double value, int32_t op) { return reduce(worker, value, op); }

__device__ int32_t atos_any(void *, int32_t predicate) {
  return kWorker == ATOS_THREAD ? predicate != 0
         : kWorker == ATOS_WARP ? __any_sync(kAll, predicate)
                                : __syncthreads_or(predicate);
}
__device__ int32_t atos_all(void *, int32_t predicate) {
  return kWorker == ATOS_THREAD ? predicate != 0
         : kWorker == ATOS_WARP ? __all_sync(kAll, predicate)
                                : __syncthreads_and(predicate);
}

__device__ void *atos_scratch(void *worker) { return static_cast<Worker<kBytes> *>(worker)->scratch; }
__device__ int64_t atos_scratch_bytes(void *worker) { return static_cast<Worker<kBytes> *>(worker)->launch->unsized_scratch; }
// The regions that the task sizes itself, which follow the unsized scratch.
__device__ void *atos_sized_scratch(void *worker) {
  const Worker<kBytes> *w = static_cast<Worker<kBytes> *>(worker);
  return w->scratch + (w->launch->unsized_scratch + 15) / 16 * 16;
}
} // extern "C"

} // namespace atos
