// Pushes of a launch over several GPUs: each goes into the queue of its item's owner, by plain pointers (protocol/peers.cuh).
#pragma once
#include "device/worker_state.cuh"

namespace atos {

// [one thread] Reserves tickets for n items on the GPU of this number, once there is space; returns the tail as it was before.
template <unsigned bytes> ATOS_DEVICE uint64_t reserve_on(const Peers &peers, uint32_t number, uint64_t n) {
  const QueueRef<bytes> queue = peers.queue<bytes>(number);
  if (!queue.growths) return queue.reserve(n);
  const auto ask = [&] { store_system(&peers.peer[number].record->growths_requested, 1); };
  return queue.reserve_with_space(n, ask);
}

// Orders what was written before items are pushed: for this GPU alone if none of them goes `away` to another one, or a barrier
// of all GPUs follows before they run.
ATOS_DEVICE void fence_before_publishing(bool away, bool barrier) {
  if (away && !barrier) fence();
  else fence_device();
}

// [any lanes] Stores an item in the queue of its owner at once.
template <unsigned bytes> ATOS_DEVICE void publish_to_owner(const Peers &peers, const Item<bytes> &item, bool barrier) {
  const uint32_t owner = peers.owner(item);
  fence_before_publishing(owner != peers.own, barrier);
  const QueueRef<bytes> queue = peers.queue<bytes>(owner);
  const uint64_t tail = queue.reserve(1);
  const unsigned growths = growths_of(tail);
  queue.publish(queue.ring(growths, queue.first_ticket_of(growths)), tickets_of(tail), item);
}

// [team] Stores n items in the queues of their owners: counts those of each, reserves their tickets by one addition there, by a
// thread for each GPU, and stores them. The items of a warp for one GPU get tickets beside each other. `to`: one for each GPU.
// Everything written before is ordered by a fence of each thread.
template <class Team, unsigned bytes>
ATOS_DEVICE void publish_to_owners(const Peers &peers, PeerPush *to, PushArray<Item<bytes>> items, uint32_t n, bool barrier) {
#pragma unroll 1
  for (uint32_t base = 0; base < n; base += Team::size()) {
    const uint32_t k = base + Team::rank(), owner = k < n ? peers.owner(items[k]) : ~0u;
    const unsigned same = __match_any_sync(kAll, owner);
    if (k < n && lane_id() == unsigned(__ffs(same)) - 1) atomicAdd(&to[owner].count, __popc(same));
  }
  Team::sync();
  fence_before_publishing(to[peers.own].count != n, barrier);
  Team::sync(); // all have read the count
#pragma unroll 1
  for (uint32_t number = Team::rank(); number < peers.count; number += Team::size()) {
    PeerPush &push = to[number];
    if (push.count == 0) continue;
    const uint64_t tail = reserve_on<bytes>(peers, number, push.count);
    const unsigned growths = growths_of(tail);
    const QueueRef<bytes> queue = peers.queue<bytes>(number);
    push.ring = queue.ring(growths, queue.first_ticket_of(growths));
    push.base = tickets_of(tail);
    push.count = push.next = 0;
  }
  Team::sync();
#pragma unroll 1
  for (uint32_t base = 0; base < n; base += Team::size()) {
    const uint32_t k = base + Team::rank(), owner = k < n ? peers.owner(items[k]) : ~0u;
    const unsigned same = __match_any_sync(kAll, owner), leader = __ffs(same) - 1;
    uint32_t at = 0;
    if (k < n && lane_id() == leader) at = atomicAdd(&to[owner].next, __popc(same));
    at = __shfl_sync(kAll, at, leader) + __popc(same & ((1u << lane_id()) - 1));
    if (k < n) peers.queue<bytes>(owner).publish(Ring(to[owner].ring), to[owner].base + at, items[k]);
    __syncwarp();
  }
}

} // namespace atos
