// Kernels that move items between a queue's rings and its spill area.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/move_items.h"

#include "cuda/ptx_kernel.h"

namespace atos::cuda {
namespace {

// Copies k bytes, a multiple of 8, from `at` to `to`, the last word first.
#define COPY_WORDS                                                                                                             \
  "copy:\n"                                                                                                                    \
  "  sub.u64 k, k, 8;\n"                                                                                                       \
  "  add.u64 spot, at, k;\n"                                                                                                   \
  "  ld.global.u64 word, [spot];\n"                                                                                            \
  "  add.u64 spot, to, k;\n"                                                                                                   \
  "  st.global.u64 [spot], word;\n"                                                                                            \
  "  setp.ne.u64 over, k, 0;\n"                                                                                                \
  "  @over bra copy;\n"

// A spilled item has `item_bytes` bytes, 4 or a multiple of 8, and a ticket, which begins at a multiple of 8: `bytes` in all.
// In C++, with `ticket(i)`, `begin(i)` of spilled item i, `place(t)` = (t - start) % size and sequence numbers of ready slots:
//   gather_spilled:  if (int64_t(ticket(i)) < int64_t(end) && (k = (*number)++) < size) copy(begin(k), begin(i), bytes);
//   store_spilled:   if (ticket(i) - first < tickets) slots[place(ticket(i))] = {item(i), 2 * ((ticket(i) - start) / size) +
//   1}; move_slots:      to[i] = {item of slots[place(first + i)], 1};
// The ticket of a far item is negative as a signed number. A slot has the size of a spilled item, and its sequence number lies
// where the spilled item's ticket does; but a slot of 4 bytes has the sequence number above the item, in one word.
const char kProgram[] = ATOS_PTX_HEADER
    ".visible .entry gather_spilled(.param .u64 items, .param .u64 bytes, .param .u64 end, .param .u64 count, "
    ".param .u64 number, .param .u64 size) {\n"
    "  .reg .u64 from, each, last, n, counter, most, at, to, k, word, ticket, spot;\n"
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
    "  mov.u64 k, each;\n" COPY_WORDS "skip:\n" ATOS_PTX_END_LOOP
    ".visible .entry store_spilled(.param .u64 items, .param .u64 bytes, .param .u64 first, .param .u64 count, "
    ".param .u64 num_tickets, .param .u64 start, .param .u64 size, .param .u64 slots, .param .u64 packed) {\n"
    "  .reg .u64 from, each, least, n, tickets, origin, places, memory, joins, at, to, k, word, ticket, sequence, spot;\n"
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
    "  st.global.u64 [ticket], sequence;\n" COPY_WORDS "  bra skip;\n"
    "join:\n"
    "  ld.global.u32 item, [at];\n"
    "  cvt.u64.u32 word, item;\n"
    "  shl.b64 sequence, sequence, 32;\n"
    "  or.b64 word, word, sequence;\n"
    "  shl.b64 ticket, ticket, 3;\n"
    "  add.u64 to, memory, ticket;\n"
    "  st.global.u64 [to], word;\n"
    "skip:\n" ATOS_PTX_END_LOOP
    ".visible .entry move_slots(.param .u64 slots, .param .u64 bytes, .param .u64 first, .param .u64 count, "
    ".param .u64 start, .param .u64 size, .param .u64 target) {\n"
    "  .reg .u64 memory, each, least, n, origin, places, fresh, at, to, k, word, place, spot;\n"
    "  .reg .pred joined;\n"
    "  ld.param.u64 memory, [slots];\n"
    "  ld.param.u64 each, [bytes];\n"
    "  ld.param.u64 least, [first];\n"
    "  ld.param.u64 n, [count];\n"
    "  ld.param.u64 origin, [start];\n"
    "  ld.param.u64 places, [size];\n"
    "  ld.param.u64 fresh, [target];\n"
    "  sub.u64 least, least, origin;\n"
    "  setp.eq.u64 joined, each, 8;\n"
    "  cvta.to.global.u64 memory, memory;\n"
    "  cvta.to.global.u64 fresh, fresh;\n" ATOS_PTX_BEGIN_LOOP "  add.u64 place, least, i;\n"
    "  rem.u64 place, place, places;\n"
    "  mad.lo.u64 at, place, each, memory;\n"
    "  mad.lo.u64 to, i, each, fresh;\n"
    "  @joined bra join;\n"
    "  sub.u64 k, each, 8;\n"
    "  add.u64 place, to, k;\n"
    "  mov.u64 word, 1;\n"
    "  st.global.u64 [place], word;\n" COPY_WORDS "  bra skip;\n"
    "join:\n"
    "  ld.global.u64 word, [at];\n"
    "  and.b64 word, word, 0xffffffff;\n"
    "  or.b64 word, word, 0x100000000;\n"
    "  st.global.u64 [to], word;\n"
    "skip:\n" ATOS_PTX_END_LOOP;
static_assert(sizeof(Slot<4>) == 8 && sizeof(Slot<8>) == sizeof(SpilledItem<8>) && sizeof(Slot<32>) == sizeof(SpilledItem<32>));

struct MoveKernels {
  const PtxModule module{kProgram, "the kernels that move items"};
  const CUfunction gather_spilled = module.kernel("gather_spilled"), store_spilled = module.kernel("store_spilled"),
                   move_slots = module.kernel("move_slots");

  explicit MoveKernels(int32_t) {}
};

// Runs a kernel over elements, with these parameters.
template <class... Parameters>
void run(CudaDevice &device, const CUfunction MoveKernels::*kernel, uint64_t count, Parameters... parameters) {
  device.refuse_if_stuck();
  ScopedContext current(device.context);
  void *all[] = {&parameters...};
  run_over(device, instance_of_device<MoveKernels>(device.index).*kernel, count, all, "moving items");
}

} // namespace

void gather_spilled(CudaDevice &device, const SpilledItems &spilled, uint64_t end, uint64_t *number, uint64_t size) {
  run(device, &MoveKernels::gather_spilled, spilled.count, spilled.begin, spilled_bytes(spilled.item_bytes), end, spilled.count,
      number, size);
}

void store_spilled(CudaDevice &device, const SpilledItems &spilled, uint64_t first, uint64_t n, const RingSlots &to) {
  run(device, &MoveKernels::store_spilled, spilled.count, spilled.begin, spilled_bytes(spilled.item_bytes), first,
      spilled.count, n, to.start, to.size, to.begin, uint64_t(spilled.item_bytes == 4));
}

void move_slots(CudaDevice &device, const RingSlots &from, uint64_t first, uint64_t n, uint32_t item_bytes, void *to) {
  const uint64_t bytes = item_bytes == 4 ? 8 : item_bytes + 8;
  run(device, &MoveKernels::move_slots, n, from.begin, bytes, first, n, from.start, from.size, to);
}

} // namespace atos::cuda

#endif
