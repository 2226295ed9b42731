// What the task and its launch use, as constants that the task's module defines when it is linked into the kernel.
//
// They are variables, and not functions: before it inlines anything the linker folds a constant variable where it is read, and
// drops the branches that are never taken. So what a launch does not use is not in its code, and costs its link nothing. (A
// function is folded after it was inlined, when all that it rules out has been inlined, too: links took three times as long.)
#pragma once
#include <cstdint>

#if defined(__CUDACC__)
namespace atos {

extern __device__ const int32_t nested;           // the task has a workload
extern __device__ const int32_t has_idle;         // it has a function for workers that find nothing to do
extern __device__ const int32_t has_each_round;   // it has a function between rounds
extern __device__ const int32_t asks_for_round;   // it asks for the number or the mode of the round
extern __device__ const int32_t asks_for_pending; // the function between rounds asks how many items wait for the next one
extern __device__ const int32_t checked;          // it was compiled with checks
extern __device__ const int32_t has_buckets;      // the queue has buckets
extern __device__ const int32_t has_inbox;        // workers look for items from the host
extern __device__ const int32_t has_peers;        // the launch is over several GPUs: what they share is of system scope
extern __device__ const int32_t has_counters;     // workers count what atos_sharing says
extern __device__ const int32_t value_words;      // how many values the workload hands to the body, a word each
// Consecutive threads of a warp or CTA worker that run an iteration together: a power of two up to 32.
extern __device__ const uint32_t threads_of_iteration;
// Kinds of tasks, told by the last byte of an item. 0: there is one, and no such byte.
extern __device__ const uint32_t num_kinds;
extern __device__ const uint32_t flat_kinds; // bits of the kinds that are flat, where others are nested; otherwise 0

} // namespace atos
#endif
