// Kernels over spilled items.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/spilled_items.h"

#include "cuda/ptx_kernel.h"

namespace atos::cuda {
namespace {

// A spilled item has `item_bytes` bytes, 4 or a multiple of 8, and a ticket, which begins at a multiple of 8: `bytes` in all.
// In C++, with `ticket(i)`, `begin(i)` of spilled item i:
//   gather_spilled:  if (int64_t(ticket(i)) < int64_t(end) && (k = (*number)++) < size) copy(begin(k), begin(i), bytes);
//   store_spilled:   if (ticket(i) - first < num_tickets) slot of (ticket(i) - start) % size = {item(i), sequence};
// The ticket of a far item is negative as a signed number. A slot has the size of a spilled item, and its sequence number lies
// where the spilled item's ticket does; but a slot of 4 bytes has the sequence number above the item, in one word.
const char kProgram[] = ATOS_PTX_HEADER
    ".visible .entry gather_spilled(.param .u64 items, .param .u64 bytes, .param .u64 end, .param .u64 count, "
    ".param .u64 number, .param .u64 size) {\n"
    "  .reg .u64 from, each, last, n, counter, most, at, to, k, word, ticket;\n"
    "  ld.param.u64 from, [items];\n"
    "  ld.param.u64 each, [bytes];\n"
    "  ld.param.u64 last, [end];\n"
    "  ld.param.u64 n, [count];\n"
    "  ld.param.u64 counter, [number];\n"
    "  ld.param.u64 most, [size];\n"
    "  cvta.to.global.u64 from, from;\n"
    "  cvta.to.global.u64 counter, counter;\n" ATOS_PTX_BEGIN_LOOP "  mad.lo.u64 at, i, each, from;\n"
    "  add.u64 to, at, each;\n"
    "  ld.global.u64 ticket, [to+-8];\n"
    "  setp.ge.s64 over, ticket, last;\n"
    "  @over bra skip;\n"
    "  atom.global.add.u64 k, [counter], 1;\n"
    "  setp.ge.u64 over, k, most;\n"
    "  @over bra skip;\n"
    "  mad.lo.u64 to, k, each, from;\n"
    "  mov.u64 k, each;\n"
    "copy:\n"
    "  sub.u64 k, k, 8;\n"
    "  add.u64 ticket, at, k;\n"
    "  ld.global.u64 word, [ticket];\n"
    "  add.u64 ticket, to, k;\n"
    "  st.global.u64 [ticket], word;\n"
    "  setp.ne.u64 over, k, 0;\n"
    "  @over bra copy;\n"
    "skip:\n" ATOS_PTX_END_LOOP
    ".visible .entry store_spilled(.param .u64 items, .param .u64 bytes, .param .u64 first, .param .u64 count, "
    ".param .u64 num_tickets, .param .u64 start, .param .u64 size, .param .u64 slots, .param .u64 packed) {\n"
    "  .reg .u64 from, each, least, n, tickets, origin, places, memory, joins, at, to, k, word, ticket, sequence;\n"
    "  .reg .u32 item;\n"
    "  .reg .pred joined;\n"
    "  ld.param.u64 from, [items];\n"
    "  ld.param.u64 each, [bytes];\n"
    "  ld.param.u64 least, [first];\n"
    "  ld.param.u64 n, [count];\n"
    "  ld.param.u64 tickets, [num_tickets];\n"
    "  ld.param.u64 origin, [start];\n"
    "  ld.param.u64 places, [size];\n"
    "  ld.param.u64 memory, [slots];\n"
    "  ld.param.u64 joins, [packed];\n"
    "  setp.ne.u64 joined, joins, 0;\n"
    "  cvta.to.global.u64 from, from;\n"
    "  cvta.to.global.u64 memory, memory;\n" ATOS_PTX_BEGIN_LOOP "  mad.lo.u64 at, i, each, from;\n"
    "  add.u64 to, at, each;\n"
    "  ld.global.u64 ticket, [to+-8];\n"
    "  sub.u64 k, ticket, least;\n"
    "  setp.ge.u64 over, k, tickets;\n"
    "  @over bra skip;\n"
    "  sub.u64 ticket, ticket, origin;\n"
    "  div.u64 sequence, ticket, places;\n"
    "  mul.lo.u64 k, sequence, places;\n"
    "  sub.u64 ticket, ticket, k;\n"
    "  shl.b64 sequence, sequence, 1;\n"
    "  add.u64 sequence, sequence, 1;\n"
    "  @joined bra join;\n"
    "  mad.lo.u64 to, ticket, each, memory;\n"
    "  sub.u64 k, each, 8;\n"
    "  add.u64 ticket, to, k;\n"
    "  st.global.u64 [ticket], sequence;\n"
    "copy:\n"
    "  sub.u64 k, k, 8;\n"
    "  add.u64 ticket, at, k;\n"
    "  ld.global.u64 word, [ticket];\n"
    "  add.u64 ticket, to, k;\n"
    "  st.global.u64 [ticket], word;\n"
    "  setp.ne.u64 over, k, 0;\n"
    "  @over bra copy;\n"
    "  bra skip;\n"
    "join:\n"
    "  ld.global.u32 item, [at];\n"
    "  cvt.u64.u32 word, item;\n"
    "  shl.b64 sequence, sequence, 32;\n"
    "  or.b64 word, word, sequence;\n"
    "  shl.b64 ticket, ticket, 3;\n"
    "  add.u64 to, memory, ticket;\n"
    "  st.global.u64 [to], word;\n"
    "skip:\n" ATOS_PTX_END_LOOP;
static_assert(sizeof(Slot<4>) == 8 && sizeof(Slot<8>) == sizeof(SpilledItem<8>) && sizeof(Slot<32>) == sizeof(SpilledItem<32>));

struct SpillKernels {
  const PtxModule module{kProgram, "the kernels that move spilled items"};
  const CUfunction gather = module.kernel("gather_spilled"), store = module.kernel("store_spilled");

  explicit SpillKernels(int32_t) {}
};

} // namespace

void gather_spilled(CudaDevice &device, const SpilledItems &spilled, uint64_t end, uint64_t *number, uint64_t size) {
  device.refuse_if_stuck();
  ScopedContext current(device.context);
  const CUfunction kernel = instance_of_device<SpillKernels>(device.index).gather;
  void *begin = spilled.begin;
  uint64_t bytes = spilled_bytes(spilled.item_bytes), count = spilled.count;
  void *parameters[] = {&begin, &bytes, &end, &count, &number, &size};
  run_over(device, kernel, count, parameters, "looking for spilled items");
}

void store_spilled(CudaDevice &device, const SpilledItems &spilled, uint64_t first, uint64_t num_tickets, uint64_t start,
                   uint64_t size, void *slots) {
  device.refuse_if_stuck();
  ScopedContext current(device.context);
  const CUfunction kernel = instance_of_device<SpillKernels>(device.index).store;
  void *begin = spilled.begin;
  uint64_t bytes = spilled_bytes(spilled.item_bytes), count = spilled.count, packed = spilled.item_bytes == 4;
  void *parameters[] = {&begin, &bytes, &first, &count, &num_tickets, &start, &size, &slots, &packed};
  run_over(device, kernel, count, parameters, "storing spilled items");
}

} // namespace atos::cuda

#endif
