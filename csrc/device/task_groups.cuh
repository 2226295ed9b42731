// The functions behind the groups of a task: 2 to 32 consecutive threads of a warp or CTA worker, which lie in one warp. With
// thread workers a group is one thread. `size` is a power of two.
#pragma once
#include "device/this_worker.cuh"

namespace atos {

// Combines two values, alike in either order, so that all threads of a group get the same bits: a NaN loses against a number.
template <class T> ATOS_DEVICE T combine_in_any_order(T a, T b, int op) {
  if (op == ATOS_SUM) return a + b;
  if constexpr (std::is_same_v<T, float>) return op == ATOS_MIN ? fminf(a, b) : fmaxf(a, b);
  else if constexpr (std::is_same_v<T, double>) return op == ATOS_MIN ? fmin(a, b) : fmax(a, b);
  else return op == ATOS_MIN ? (b < a ? b : a) : (a < b ? b : a);
}

// [all threads of a warp] Reduces integers of 32 bits, by an instruction of sm_80 and later.
template <class T> ATOS_DEVICE T reduce_in_warp(T value, int op) {
  return op == ATOS_SUM   ? __reduce_add_sync(kAll, value)
         : op == ATOS_MIN ? __reduce_min_sync(kAll, value)
                          : __reduce_max_sync(kAll, value);
}

// [all threads of the group] A butterfly: after log2(size) exchanges every thread has the result.
template <class T> ATOS_DEVICE T reduce_in_group(T value, int op, unsigned size) {
  if constexpr (kWorker != ATOS_THREAD) {
#if __CUDA_ARCH__ >= 800
    if constexpr (std::is_integral_v<T> && sizeof(T) == 4)
      if (size == 32) return reduce_in_warp(value, op);
#endif
    const unsigned lanes = lanes_of_group(size);
#pragma unroll
    for (unsigned distance = 16; distance; distance /= 2)
      if (distance < size) value = combine_in_any_order(value, __shfl_xor_sync(lanes, value, distance), op);
  }
  return value;
}

template <class T> ATOS_DEVICE T shuffle_in_group(T value, int32_t source, unsigned size) {
  return kWorker == ATOS_THREAD ? value : __shfl_sync(lanes_of_group(size), value, source, size);
}

extern "C" {

__device__ int32_t atos_group_size(int32_t size) { return kWorker == ATOS_THREAD ? 1 : size; }
__device__ int32_t atos_group_rank(int32_t size) { return kWorker == ATOS_THREAD ? 0 : lane_id() & (size - 1); }

__device__ void atos_group_sync(int32_t size) {
  if (kWorker != ATOS_THREAD) __syncwarp(lanes_of_group(size));
}
__device__ int32_t atos_group_any(int32_t predicate, int32_t size) {
  return kWorker == ATOS_THREAD ? predicate != 0 : __any_sync(lanes_of_group(size), predicate);
}
__device__ int32_t atos_group_all(int32_t predicate, int32_t size) {
  return kWorker == ATOS_THREAD ? predicate != 0 : __all_sync(lanes_of_group(size), predicate);
}

__device__ int32_t atos_group_reduce_i32(int32_t value, int32_t op, int32_t size) { return reduce_in_group(value, op, size); }
__device__ uint32_t atos_group_reduce_u32(uint32_t value, int32_t op, int32_t size) { return reduce_in_group(value, op, size); }
__device__ float atos_group_reduce_f32(float value, int32_t op, int32_t size) { return reduce_in_group(value, op, size); }
__device__ double atos_group_reduce_f64(double value, int32_t op, int32_t size) { return reduce_in_group(value, op, size); }
__device__ int64_t atos_group_reduce_i64(int64_t value, int32_t op, int32_t size) {
  return reduce_in_group(static_cast<long long>(value), op, size);
}
__device__ uint64_t atos_group_reduce_u64(uint64_t value, int32_t op, int32_t size) {
  return reduce_in_group(static_cast<unsigned long long>(value), op, size);
}

__device__ int32_t atos_group_shuffle_32(int32_t value, int32_t source, int32_t size) {
  return shuffle_in_group(value, source, size);
}
__device__ int64_t atos_group_shuffle_64(int64_t value, int32_t source, int32_t size) {
  return shuffle_in_group(static_cast<long long>(value), source, size);
}
} // extern "C"

} // namespace atos
