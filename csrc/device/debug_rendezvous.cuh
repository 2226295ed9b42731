// Tasks with checks (`checked`): how a failed check is reported, and what becomes of the other threads of its worker.
//
// A thread returns from its task where a check fails, and then reports the failure if it was the first of its block. The other
// threads of the worker may be waiting for this thread: their collective calls begin with a rendezvous that they give up once a
// thread has left the task. The rendezvous spins in shared memory, since a hardware barrier would wait for ever: the thread
// that left waits for the other threads of its warp where they converge. Without checks no rendezvous is linked in.
#pragma once
#include "device/task_api.cuh"

namespace atos {

struct Failing {
  uint32_t thread; // 0: none; kReported; otherwise 1 + the thread that is to report `what`
  atos_failure what;
};
struct Rendezvous {
  uint32_t arrived, phase, left;
};
constexpr uint32_t kReported = ~0u;
__shared__ Failing failing;
__shared__ Rendezvous rendezvous[32];            // of each warp, or of the block
__shared__ unsigned long long lanes_of_warp[32]; // for groups: a lower bit for each lane, which flips when the lane comes, and
                                                 // an upper bit for each lane, which is set when the lane has left

ATOS_DEVICE volatile uint32_t &failing_thread() { return failing.thread; }
ATOS_DEVICE Rendezvous &rendezvous_of_worker() { return rendezvous[kWorker == ATOS_CTA ? 0 : threadIdx.x / 32]; }

// [all threads] When the kernel begins.
ATOS_DEVICE void reset_rendezvous() {
  if (threadIdx.x == 0) failing.thread = 0;
  if (threadIdx.x < 32) rendezvous[threadIdx.x] = {}, lanes_of_warp[threadIdx.x] = 0;
  __syncthreads();
}

extern "C" {

__device__ void atos_fail(int64_t site, int64_t value, int64_t bound, int64_t array) {
  if (atomicCAS(&failing.thread, 0u, threadIdx.x + 1) == 0) failing.what = {1, site, value, bound, array, 0, {}};
  static_cast<volatile uint32_t &>(rendezvous_of_worker().left) = 1;
  atomicOr(&lanes_of_warp[threadIdx.x / 32], 1ull << (32 + lane_id()));
}

// [all threads] After each thread has returned from a function of a task with checks; `item` is null after idle.
__device__ void atos_report(void *worker, const void *item) {
  if (failing_thread() != threadIdx.x + 1) return;
  failing.what.in_item = item != nullptr;
  if (item) memcpy(failing.what.item, item, kBytes);
  static_cast<Worker<kBytes> *>(worker)->queue().fail(failing.what);
  failing_thread() = kReported;
}

// [all threads] Before a collective call of a task with checks: 1 when all threads of the worker have come, 0 if a thread has
// left the task, and the other threads have to leave it too.
__device__ int32_t atos_together(void *) {
  if (kWorker == ATOS_THREAD) return 1;
  volatile Rendezvous &here = rendezvous_of_worker();
  const uint32_t size = kWorker == ATOS_WARP ? 32 : blockDim.x, phase = here.phase;
  __threadfence_block();
  if (atomicAdd(const_cast<uint32_t *>(&here.arrived), 1) == size - 1) {
    here.arrived = 0;
    __threadfence_block();
    here.phase = phase + 1;
    return 1;
  }
  while (here.phase == phase) {
    if (here.left) { // maybe after all threads had come
      __threadfence_block();
      return here.phase != phase;
    }
    __nanosleep(20);
  }
  return 1;
}

// [all threads] After each thread has returned from a flat task or idle with checks.
__device__ void atos_left(void *worker) {
  if (kWorker == ATOS_THREAD) return;
  atos_sync(worker);
  Rendezvous &here = rendezvous_of_worker();
  if (atos_rank(worker) == 0) here.arrived = here.left = 0;
  if (lane_id() == 0) lanes_of_warp[threadIdx.x / 32] = 0;
  atos_sync(worker);
}
} // extern "C"

} // namespace atos
