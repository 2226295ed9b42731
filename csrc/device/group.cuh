// Groups of threads that work together: a warp, or a CTA (thread block). Both have the same functions, so that a worker is
// written once; all threads of the group call them together.
#pragma once
#include "device/hardware.cuh"

namespace atos {

constexpr unsigned kAll = ~0u; // every lane of a warp

// The lanes of this lane's group in a task: `size` consecutive lanes, a power of two. Collective operations of the group name
// only these lanes, since other lanes may be in another place of the task.
ATOS_DEVICE unsigned lanes_of_group(unsigned size) { return kAll >> (kWarpSize - size) << (lane_id() & ~(size - 1)); }

// Inclusive scan over the lanes of a warp.
ATOS_DEVICE uint32_t inclusive_scan(uint32_t x) {
#pragma unroll
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const uint32_t y = __shfl_up_sync(kAll, x, distance);
    if (lane_id() >= distance) x += y;
  }
  return x;
}

struct Warp {
  static ATOS_DEVICE unsigned rank() { return lane_id(); }
  static ATOS_DEVICE unsigned size() { return kWarpSize; }
  static ATOS_DEVICE bool has_more_warps() { return false; }
  static ATOS_DEVICE void sync() { __syncwarp(); }
  static ATOS_DEVICE unsigned index_in_block() { return threadIdx.x / 32; }
  static ATOS_DEVICE unsigned per_block() { return blockDim.x / 32; }
  static ATOS_DEVICE bool any(bool p) {
    __syncwarp(); // the vote alone orders no memory
    return __any_sync(kAll, p);
  }

  // Inclusive scan over the threads, and the sum.
  static ATOS_DEVICE uint32_t scan(uint32_t x, uint32_t *sum, uint64_t *) {
    const uint32_t inclusive = inclusive_scan(x);
    *sum = __shfl_sync(kAll, inclusive, 31);
    return inclusive;
  }
};

struct Cta {
  static ATOS_DEVICE unsigned rank() { return threadIdx.x; }
  static ATOS_DEVICE unsigned size() { return blockDim.x; }
  static ATOS_DEVICE bool has_more_warps() { return blockDim.x > kWarpSize; }
  static ATOS_DEVICE void sync() { __syncthreads(); }
  static ATOS_DEVICE unsigned index_in_block() { return 0; }
  static ATOS_DEVICE unsigned per_block() { return 1; }
  static ATOS_DEVICE bool any(bool p) { return __syncthreads_or(p); }

  // Inclusive scan over the threads, and the sum; `space` is shared memory for a word of each warp.
  static ATOS_DEVICE uint32_t scan(uint32_t x, uint32_t *sum, uint64_t *space) {
    uint32_t *sums = reinterpret_cast<uint32_t *>(space);
    const uint32_t inclusive = inclusive_scan(x);
    if (lane_id() == 31) sums[threadIdx.x / 32] = inclusive;
    __syncthreads();
    const uint32_t mine = lane_id() < blockDim.x / 32 ? sums[lane_id()] : 0;
    const uint32_t all = inclusive_scan(mine);
    *sum = __shfl_sync(kAll, all, 31);
    return inclusive + __shfl_sync(kAll, all - mine, threadIdx.x / 32);
  }
};

} // namespace atos
