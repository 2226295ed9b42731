// A kernel that makes slots of items.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/store_items.h"

#include "cuda/ptx_kernel.h"

namespace atos::cuda {
namespace {

// In C++, with the thread's number in the grid as i and the number of threads as step, and a slot as a pair:
//   for (; i < count; i += step) slots[i] = {items ? items[i] : first + i, sequence};
#define ATOS_STORE_KERNEL(name, type, item_shift, slot_shift)                                                                  \
  ".visible .entry " name "(.param .u64 items, .param .u64 first, .param .u64 slots, .param .u64 count, "                      \
  ".param .u64 sequence) {\n"                                                                                                  \
  "  .reg .u64 from, least, to, n, at;\n"                                                                                      \
  "  .reg ." type " item, number;\n"                                                                                           \
  "  .reg .pred given;\n"                                                                                                      \
  "  ld.param.u64 from, [items];\n"                                                                                            \
  "  ld.param.u64 least, [first];\n"                                                                                           \
  "  ld.param.u64 to, [slots];\n"                                                                                              \
  "  ld.param.u64 n, [count];\n"                                                                                               \
  "  ld.param." type " number, [sequence];\n"                                                                                  \
  "  setp.ne.u64 given, from, 0;\n"                                                                                            \
  "  cvta.to.global.u64 from, from;\n"                                                                                         \
  "  cvta.to.global.u64 to, to;\n" ATOS_PTX_BEGIN_LOOP "  add.u64 at, least, i;\n"                                             \
  "  cvt." type ".u64 item, at;\n"                                                                                             \
  "  shl.b64 at, i, " item_shift ";\n"                                                                                         \
  "  add.u64 at, from, at;\n"                                                                                                  \
  "  @given ld.global." type " item, [at];\n"                                                                                  \
  "  shl.b64 at, i, " slot_shift ";\n"                                                                                         \
  "  add.u64 at, to, at;\n"                                                                                                    \
  "  st.global.v2." type " [at], {item, number};\n" ATOS_PTX_END_LOOP

// A slot of a 4-byte item is a word of 8 bytes, the item in its lower half; a slot of an 8-byte item is the item and a number.
const char kProgram[] =
    ATOS_PTX_HEADER ATOS_STORE_KERNEL("store_4", "u32", "2", "3") ATOS_STORE_KERNEL("store_8", "u64", "3", "4");
static_assert(sizeof(Slot<4>) == 8 && sizeof(Slot<8>) == 16);

struct StoreKernels {
  const PtxModule module{kProgram, "the kernel that stores items"};
  const CUfunction of_4_bytes = module.kernel("store_4"), of_8_bytes = module.kernel("store_8");

  explicit StoreKernels(int32_t) {}
};

} // namespace

void store_items(CudaDevice &device, void *slots, const void *items, uint64_t first, uint64_t count, uint32_t item_bytes,
                 uint64_t generation) {
  device.refuse_if_stuck();
  ScopedContext current(device.context);
  const StoreKernels &kernels = instance_of_device<StoreKernels>(device.index);
  const CUfunction kernel = item_bytes == 4 ? kernels.of_4_bytes : kernels.of_8_bytes;
  uint64_t sequence = 2 * generation + 1; // sequence number of a ready slot; a slot of a 4-byte item has its lower half
  void *parameters[] = {&items, &first, &slots, &count, &sequence};
  run_over(device, kernel, count, parameters, "storing items");
}

} // namespace atos::cuda

#endif
