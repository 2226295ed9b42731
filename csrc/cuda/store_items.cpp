// A kernel that makes slots of items. The kernel is PTX, which every driver compiles at its load, so that no push has to link a
// program first.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/store_items.h"

#include <algorithm>

namespace atos::cuda {
namespace {

// In C++, with the thread's number in the grid as i and the number of threads as step, and a slot as a pair:
//   for (; i < count; i += step) slots[i] = {items ? items[i] : first + i, sequence};
#define ATOS_STORE_KERNEL(name, type, item_shift, slot_shift)                                                                  \
  ".visible .entry " name "(.param .u64 items, .param .u64 first, .param .u64 slots, .param .u64 count, "                      \
  ".param .u64 sequence) {\n"                                                                                                  \
  "  .reg .u64 from, least, to, n, i, step, at;\n"                                                                             \
  "  .reg .u32 block, blocks, threads, thread;\n"                                                                              \
  "  .reg ." type " item, number;\n"                                                                                           \
  "  .reg .pred over, given;\n"                                                                                                \
  "  ld.param.u64 from, [items];\n"                                                                                            \
  "  ld.param.u64 least, [first];\n"                                                                                           \
  "  ld.param.u64 to, [slots];\n"                                                                                              \
  "  ld.param.u64 n, [count];\n"                                                                                               \
  "  ld.param." type " number, [sequence];\n"                                                                                  \
  "  setp.ne.u64 given, from, 0;\n"                                                                                            \
  "  cvta.to.global.u64 from, from;\n"                                                                                         \
  "  cvta.to.global.u64 to, to;\n"                                                                                             \
  "  mov.u32 block, %ctaid.x;\n"                                                                                               \
  "  mov.u32 blocks, %nctaid.x;\n"                                                                                             \
  "  mov.u32 threads, %ntid.x;\n"                                                                                              \
  "  mov.u32 thread, %tid.x;\n"                                                                                                \
  "  mul.wide.u32 step, blocks, threads;\n"                                                                                    \
  "  cvt.u64.u32 i, thread;\n"                                                                                                 \
  "  mul.wide.u32 at, block, threads;\n"                                                                                       \
  "  add.u64 i, i, at;\n"                                                                                                      \
  "next:\n"                                                                                                                    \
  "  setp.ge.u64 over, i, n;\n"                                                                                                \
  "  @over bra done;\n"                                                                                                        \
  "  add.u64 at, least, i;\n"                                                                                                  \
  "  cvt." type ".u64 item, at;\n"                                                                                             \
  "  shl.b64 at, i, " item_shift ";\n"                                                                                         \
  "  add.u64 at, from, at;\n"                                                                                                  \
  "  @given ld.global." type " item, [at];\n"                                                                                  \
  "  shl.b64 at, i, " slot_shift ";\n"                                                                                         \
  "  add.u64 at, to, at;\n"                                                                                                    \
  "  st.global.v2." type " [at], {item, number};\n"                                                                            \
  "  add.u64 i, i, step;\n"                                                                                                    \
  "  bra next;\n"                                                                                                              \
  "done:\n"                                                                                                                    \
  "  ret;\n"                                                                                                                   \
  "}\n"

// A slot of a 4-byte item is a word of 8 bytes, the item in its lower half; a slot of an 8-byte item is the item and a number.
const char kProgram[] = ".version 6.4\n.target sm_75\n.address_size 64\n" ATOS_STORE_KERNEL("store_4", "u32", "2", "3")
    ATOS_STORE_KERNEL("store_8", "u64", "3", "4");
static_assert(sizeof(Slot<4>) == 8 && sizeof(Slot<8>) == 16);

constexpr uint32_t kThreads = 256, kBlocksPerMultiprocessor = 8;

struct StoreKernels {
  CUmodule module = nullptr;
  CUfunction of_4_bytes = nullptr, of_8_bytes = nullptr;

  explicit StoreKernels(int32_t) {
    const Driver &d = driver();
    check(d.cuModuleLoadData(&module, kProgram), "compiling the kernel that stores items");
    check(d.cuModuleGetFunction(&of_4_bytes, module, "store_4"), "loading the kernel that stores items");
    check(d.cuModuleGetFunction(&of_8_bytes, module, "store_8"), "loading the kernel that stores items");
  }
};

} // namespace

void store_items(CudaDevice &device, void *slots, const void *items, uint64_t first, uint64_t count, uint32_t item_bytes,
                 uint64_t generation) {
  device.refuse_if_stuck();
  ScopedContext current(device.context);
  const StoreKernels &kernels = instance_of_device<StoreKernels>(device.index);
  const CUfunction kernel = item_bytes == 4 ? kernels.of_4_bytes : kernels.of_8_bytes;
  uint64_t sequence = 2 * generation + 1; // sequence number of a ready slot; a slot of a 4-byte item has its lower half
  const uint64_t useful = (count + kThreads - 1) / kThreads;
  const uint32_t blocks =
      uint32_t(std::min<uint64_t>(useful, uint64_t(device.multiprocessor_count) * kBlocksPerMultiprocessor));
  void *parameters[] = {&items, &first, &slots, &count, &sequence};
  check(driver().cuLaunchKernel(kernel, blocks, 1, 1, kThreads, 1, 1, 0, CU_STREAM_LEGACY, parameters, nullptr),
        "storing items");
  check(driver().cuStreamSynchronize(CU_STREAM_LEGACY), "storing items");
}

} // namespace atos::cuda

#endif
