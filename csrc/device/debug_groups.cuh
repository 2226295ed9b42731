// Groups in tasks with checks: threads that wait for a thread of their group give up once it has left the task, as threads of a
// worker do (debug_rendezvous.cuh).
#pragma once
#include "device/debug_rendezvous.cuh"
#include "device/task_groups.cuh"

namespace atos {

// [all threads of the group] Outside of tasks: forgets which threads have come or left.
ATOS_DEVICE void forget_group(unsigned size) {
  const unsigned lanes = lanes_of_group(size);
  __syncwarp(lanes); // all threads have left the task before
  if ((lane_id() & (size - 1)) == 0) atomicAnd(&lanes_of_warp[threadIdx.x / 32], ~(uint64_t(lanes) << 32 | lanes));
  __syncwarp(lanes);
}

extern "C" {

// [all threads of the group] Before an iteration of a nested task with checks.
__device__ void atos_group_begin(int32_t size) {
  if (kWorker != ATOS_THREAD) forget_group(size);
}

// [all threads of the group] Before a collective call of a group: 1 when all of its threads have come, 0 if a thread has left.
// In a flat task a thread of another group may have left: then this group gives up too, since its own threads may wait for that
// other group.
//
// A thread comes by flipping its bit; all threads have come when the bits of the group are equal. No thread can flip its bit
// again before all have seen equal bits, since the collective call itself comes in between. Coming and leaving change one word:
// a thread gives up before the last thread comes, or not at all.
__device__ int32_t atos_group_together(int32_t size, int32_t nested) {
  if (kWorker == ATOS_THREAD) return 1;
  const uint64_t lanes = lanes_of_group(size), mine = uint64_t(1) << lane_id();
  unsigned long long *here = &lanes_of_warp[threadIdx.x / 32];
  uint64_t seen = atomicXor(here, mine) ^ mine;
  const uint64_t all_here = seen & mine ? lanes : 0;
  for (;;) {
    if (seen >> 32 & lanes) return 0;
    if ((seen & lanes) == all_here) return 1;
    volatile Rendezvous &worker = rendezvous_of_worker();
    if (!nested && worker.left && atomicCAS(here, seen, seen | mine << 32) == seen) return 0;
    __nanosleep(20);
    seen = *const_cast<volatile unsigned long long *>(here);
  }
}
} // extern "C"

} // namespace atos
