// The features that the task and its launch use, as constants that the task's module defines when the module is linked into the
// kernel.
//
// The constants are variables, not functions: the linker folds a constant variable where it is read, before it inlines
// anything, and drops branches that are never taken. So features that a launch does not use cost neither code nor link time. (A
// function is folded only after inlining, together with everything that it rules out: links took three times as long.)
//
// With ATOS_READY the worker loop becomes machine code when the core is built, which reads the constants while it runs, and to
// which a task is linked in some 50 ms, without any optimization. It lacks the features that few launches use.
#pragma once
#include <cstdint>

#if defined(__CUDACC__)
namespace atos {

extern __device__ const int32_t nested;           // the task has a workload
extern __device__ const int32_t has_idle;         // the task has a function for workers that find nothing to do
extern __device__ const int32_t has_each_round;   // the task has a function between rounds
extern __device__ const int32_t asks_for_round;   // the task asks for the number or the mode of the round
extern __device__ const int32_t asks_for_pending; // the function between rounds asks how many items wait for the next one
#ifdef ATOS_READY
#define ATOS_RARE(name) constexpr int32_t name = 0
#else
#define ATOS_RARE(name) extern __device__ const int32_t name
#endif
ATOS_RARE(checked);      // the task was compiled with checks
ATOS_RARE(has_buckets);  // the queue has buckets
ATOS_RARE(has_stack);    // the queue takes the newest items first
ATOS_RARE(has_inbox);    // workers look for items from the host
ATOS_RARE(has_peers);    // the launch is over several GPUs: atomics are of system scope
ATOS_RARE(has_counters); // workers count what atos_sharing says
#undef ATOS_RARE
extern __device__ const int32_t value_words; // how many values the workload hands to the body, a word each
// Consecutive threads of a warp or CTA worker that run an iteration together: a power of two up to 32.
extern __device__ const uint32_t threads_of_iteration;
// The number of kinds of tasks; an item's last byte is its kind. 0: there is one kind, and items have no such byte.
extern __device__ const uint32_t num_kinds;
extern __device__ const uint32_t flat_kinds; // a bit for each flat kind, where other kinds are nested; otherwise 0

} // namespace atos
#endif
