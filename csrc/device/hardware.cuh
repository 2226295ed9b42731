// The GPU beyond CUDA C++ and the atomics of the protocol: special registers, randomness, and the places where the model of the
// protocol (tests/model), which has a file of its own in place of this one, takes control.
#pragma once
#include <cstdint>

#include "protocol/atomic.cuh"
#include "protocol/kernel_params.h"

namespace atos {

constexpr unsigned kWarpSize = 32;

ATOS_DEVICE unsigned lane_id() { return threadIdx.x & 31; }

// The number of this block, read from its register at each call: values computed from blockIdx would be kept in registers.
ATOS_DEVICE unsigned block_index() {
  unsigned block;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
  return block;
}

// The clock that all multiprocessors share.
ATOS_DEVICE uint64_t global_nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// The lower half of the shared clock in ticks (kTickShift); and whether this clock has reached a tick at most kMostTicks away.
ATOS_DEVICE uint32_t clock_ticks() { return uint32_t(global_nanoseconds() >> kTickShift); }
ATOS_DEVICE bool is_past(uint32_t tick) { return int32_t(clock_ticks() - tick) >= 0; }

// a / b, rounded up or down at random in proportion to the remainder; at most `most`.
ATOS_DEVICE uint32_t quotient_rounded_by_chance(int32_t a, int32_t b, uint32_t most) {
  const float part = __fdividef(float(a), float(b)) + float((uint32_t(clock()) * 0x9E3779B1u) >> 8) * 0x1p-24f;
  return part < float(most) ? uint32_t(part) : most;
}

// Arrays in a worker's shared memory, of the size of a batch and of the size of a push buffer. The model checker tests every
// index.
template <class T> using BatchArray = T *;
template <class T> using PushArray = T *;

// A place from which a worker could start anew with nothing but its shared memory. No code here: the model checker saves the
// shared memory there. `step`, where given, has been accounted for and is not needed any more.
ATOS_DEVICE void restart_point() {}
template <class Step> ATOS_DEVICE void restart_point(Step &) {}

} // namespace atos
