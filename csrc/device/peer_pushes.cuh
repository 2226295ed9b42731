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

// Orders earlier writes before a push of items: for this GPU alone if no item goes `away` to another GPU, or a barrier of all
// GPUs follows before the items run.
ATOS_DEVICE void fence_before_publishing(bool away, bool barrier) {
  if (away && !barrier) fence();
  else fence_device();
}

// [the lanes of a mask] Stores one item of each lane in a queue at once, under consecutive tickets.
template <unsigned bytes>
ATOS_DEVICE void publish_together(const QueueRef<bytes> &queue, unsigned lanes, const Item<bytes> &item) {
  const unsigned leader = __ffs(lanes) - 1;
  uint64_t tail = 0; // two numbers: the ticket, and the growths, which say its ring
  if (lane_id() == leader) tail = queue.reserve(__popc(lanes));
  tail = __shfl_sync(lanes, tail, leader);
  const unsigned k = growths_of(tail);
  const uint64_t ticket = tickets_of(tail) + __popc(lanes & ((1u << lane_id()) - 1));
  queue.publish(queue.ring(k, queue.first_ticket_of(k)), ticket, item);
}

// [any lanes] Stores an item in the queue of its owner at once.
template <unsigned bytes> ATOS_DEVICE void publish_to_owner(const Peers &peers, const Item<bytes> &item, bool barrier) {
  const uint32_t owner = peers.owner(item);
  fence_before_publishing(owner != peers.own, barrier);
  publish_together(peers.queue<bytes>(owner), __match_any_sync(__activemask(), owner), item);
}

// [team] Stores n items in the queues of their owners: counts the items of each owner, reserves their tickets by one addition
// on each GPU, by a thread for each GPU, and stores the items. The items of a warp for one GPU get consecutive tickets. `to`:
// one PeerPush for each GPU. Earlier writes are ordered by a fence of each thread.
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
  Team::sync(); // all threads have read the count
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

// [team] Counts the items of this GPU among the first n, in `own`, this GPU's PeerPush, which is free between flushes.
template <class Team, unsigned bytes>
ATOS_DEVICE void count_own(const Peers &peers, PeerPush *own, PushArray<Item<bytes>> items, uint32_t n) {
#pragma unroll 1
  for (uint32_t base = 0; base < n; base += Team::size()) {
    const uint32_t k = base + Team::rank();
    const unsigned mine = __ballot_sync(kAll, k < n && peers.owner(items[k]) == peers.own);
    if (lane_id() == 0 && mine) atomicAdd(&own->count, __popc(mine));
  }
  Team::sync();
}

// [team] Of the first n items, moves up to `most` items of this GPU to `own_items`, and the others to the front; returns the
// number of the others. A function of its own, since its loop takes registers, and none are in use between two steps.
template <class Team, unsigned bytes> ATOS_NOINLINE uint32_t move_own(const Launch &launch, PeerPush *own,
                                                                      PushArray<Item<bytes>> items, uint32_t n,
                                                                      BatchArray<Item<bytes>> own_items, uint32_t most) {
  const Peers peers = peers_of(launch);
  const unsigned below = (1u << lane_id()) - 1;
#pragma unroll 1
  for (uint32_t base = 0; base < n; base += Team::size()) {
    const uint32_t k = base + Team::rank();
    Item<bytes> item;
    if (k < n) item = items[k];
    const unsigned mine = __ballot_sync(kAll, k < n && peers.owner(item) == peers.own);
    uint32_t at = 0, to = 0;
    if (lane_id() == 0 && mine) at = atomicAdd(&own->next, __popc(mine));
    at = __shfl_sync(kAll, at, 0) + __popc(mine & below);
    const bool stays = mine >> lane_id() & 1 && at < most;
    const unsigned others = __ballot_sync(kAll, k < n && !stays);
    if (lane_id() == 0 && others) to = atomicAdd(&own->count, __popc(others));
    to = __shfl_sync(kAll, to, 0) + __popc(others & below);
    Team::sync(); // all threads have read their items
    if (stays) own_items[at] = item;
    else if (k < n) items[to] = item;
  }
  Team::sync();
  const uint32_t rest = own->count;
  Team::sync();
  if (Team::rank() == 0) own->count = 0;
  Team::sync();
  return rest;
}

} // namespace atos
