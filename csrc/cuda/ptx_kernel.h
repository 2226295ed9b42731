// Kernels that the core has as PTX, which every driver compiles at its load, so that no use of them has to link a program
// first.
#pragma once
#include "cuda/device.h"

namespace atos::cuda {

// The PTX of a module, whose kernels loop over elements: i, from the thread's number in the grid, by the number of threads.
#define ATOS_PTX_HEADER ".version 6.4\n.target sm_75\n.address_size 64\n"
#define ATOS_PTX_BEGIN_LOOP                                                                                                    \
  "  .reg .u64 i, step, first_of_block;\n"                                                                                     \
  "  .reg .u32 block, blocks, threads, thread;\n"                                                                              \
  "  .reg .pred over;\n"                                                                                                       \
  "  mov.u32 block, %ctaid.x;\n"                                                                                               \
  "  mov.u32 blocks, %nctaid.x;\n"                                                                                             \
  "  mov.u32 threads, %ntid.x;\n"                                                                                              \
  "  mov.u32 thread, %tid.x;\n"                                                                                                \
  "  mul.wide.u32 step, blocks, threads;\n"                                                                                    \
  "  cvt.u64.u32 i, thread;\n"                                                                                                 \
  "  mul.wide.u32 first_of_block, block, threads;\n"                                                                           \
  "  add.u64 i, i, first_of_block;\n"                                                                                          \
  "next:\n"                                                                                                                    \
  "  setp.ge.u64 over, i, n;\n"                                                                                                \
  "  @over bra done;\n"
#define ATOS_PTX_END_LOOP                                                                                                      \
  "  add.u64 i, i, step;\n"                                                                                                    \
  "  bra next;\n"                                                                                                              \
  "done:\n"                                                                                                                    \
  "  ret;\n"                                                                                                                   \
  "}\n"

class PtxModule {
public:
  // Compiles PTX; `what` it is, for messages.
  PtxModule(const char *ptx, const char *what);
  CUfunction kernel(const char *name) const;

private:
  CUmodule module = nullptr;
  const char *what;
};

// Runs a kernel over `count` elements, and waits for its end; `doing`, for messages. The context of the device is current.
void run_over(CudaDevice &device, CUfunction kernel, uint64_t count, void **parameters, const char *doing);

} // namespace atos::cuda
