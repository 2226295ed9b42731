// The kernel, compiled to LTO-IR for each kind of worker and size of item; a task is linked into the kernel.
#include "device/debug_groups.cuh"
#include "device/debug_rendezvous.cuh"
#include "device/task_api.cuh"
#include "device/task_groups.cuh"
#include "device/this_worker.cuh"

using namespace atos;

extern "C" __global__ void atos_kernel(const __grid_constant__ Launch launch, const __grid_constant__ Arguments args) {
  extern __shared__ __align__(16) unsigned char shared[];
  report_begin(launch);
  if (checked) reset_rendezvous();
  // An opaque zero hides the base address of shared memory. Otherwise the compiler computes this address of a CTA worker anew
  // at each use, from a register that is slow to read.
  unsigned zero = 0;
  if (kWorker == ATOS_CTA) asm volatile("mov.u32 %0, 0;" : "=r"(zero));
  Workers(launch, args, shared + zero).work();
}
