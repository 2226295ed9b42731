// Counters that tell how many of a task's dependencies are left: `worker.arrive`.
//
// Whoever brings a counter to zero sees all writes before the other arrivals: each addition releases, and the last addition has
// a fence after it (docs/design.md, memory order).
#pragma once
#include "device/hardware.cuh"
#include "protocol/atomic.cuh"

namespace atos {

// An addition with release order: ordered after earlier writes of the thread, and of other threads before a barrier with this
// one. A fence would do as well, but empties the L1 cache too.
ATOS_DEVICE uint64_t release_add(uint64_t *counter, uint64_t n) {
  uint64_t old;
  ATOS_SCOPED("atom.release", ".global.add.u64 %0, [%1], %2;", : "=l"(old) : "l"(global(counter)), "l"(n) : "memory");
  return old;
}
ATOS_DEVICE uint32_t release_add(uint32_t *counter, uint32_t n) {
  uint32_t old;
  ATOS_SCOPED("atom.release", ".global.add.u32 %0, [%1], %2;", : "=r"(old) : "l"(global(counter)), "r"(n) : "memory");
  return old;
}

// [any lanes] Subtracts n from a counter: 1 for the caller who makes it zero, -1 if it is below zero now, otherwise 0. Lanes
// that subtract the same number from the same counter share one addition, by one of these lanes, which counts as the last one.
template <class T> ATOS_DEVICE int32_t arrive_at(void *at, T n) {
  T *counter = static_cast<T *>(at);
  const unsigned active = __activemask();
  const unsigned same = __match_any_sync(active, reinterpret_cast<uint64_t>(at)) & __match_any_sync(active, n);
  __syncwarp(same); // what these lanes have written comes before the addition
  if (lane_id() != unsigned(__ffs(same) - 1)) return 0;
  const T total = n * T(__popc(same)), before = release_add(counter, T(0) - total);
  if (before != total) return (before - total) >> (8 * sizeof(T) - 1) ? -1 : 0;
  fence();
  return 1;
}

} // namespace atos
