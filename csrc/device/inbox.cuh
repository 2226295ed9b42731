// Items that the host sends while workers run: one of the warps that have nothing else to do moves them into the queue.
#pragma once
#include "device/group.cuh"
#include "protocol/inbox.cuh"

namespace atos {

// [all lanes of a warp] Moves the items of the inbox into the queue, unless another warp moves them.
template <unsigned bytes> ATOS_DEVICE void take_from_inbox(const QueueRef<bytes> &queue, void *where) {
  Inbox *inbox = static_cast<Inbox *>(where);
  Delivery delivery;
  if (lane_id() == 0) delivery = begin_delivery(queue, inbox);
  delivery.count = __shfl_sync(kAll, delivery.count, 0);
  if (delivery.count == 0) return;
  delivery.first = __shfl_sync(kAll, delivery.first, 0);
  delivery.tail = __shfl_sync(kAll, delivery.tail, 0);
  __syncwarp(); // the first lane has looked, and a shuffle orders no memory
  fence();      // as each thread that publishes needs one
  deliver(queue, inbox, delivery, lane_id(), kWarpSize);
  __syncwarp();
  if (lane_id() == 0) end_delivery(queue, inbox, delivery);
}

// [all lanes of a warp] Calls `take_from_inbox` now and then, for busy workers: where all workers are busy, the host would wait
// for ever.
template <unsigned bytes> ATOS_DEVICE void take_from_inbox_at_times(const QueueRef<bytes> &queue, void *where) {
  const uint32_t now = quotient_rounded_by_chance(1, kStepsBetweenLooks, 1);
  if (__shfl_sync(kAll, now, 0)) take_from_inbox(queue, where);
}

} // namespace atos
