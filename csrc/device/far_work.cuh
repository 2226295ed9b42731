// Far items in a worker (protocol/far_items.cuh): pushes with a level, the flush of far pushes, and the chunks of an opened
// list, whose items a worker pushes again.
#pragma once
#include "device/worker_state.cuh"

namespace atos {

// [one lane] Opens the lowest bucket that has far items (FarItems::open); returns the number of its chunks. A function of its
// own, as it is large and called from several places.
template <unsigned bytes> ATOS_NOINLINE uint64_t open_bucket(const Launch &launch, uint64_t most, uint64_t largest) {
  return far_items_of<bytes>(launch).open(most, launch.workers, largest,
                                          [&] { return !has_peers || peers_of(launch).template may_open<bytes>(); });
}

// [any lanes] Appends an item to the buffer of the near or of the far items, as its level says. Lanes that push together share
// one atomic for each buffer. If the buffer is full, the item is stored at once.
template <unsigned bytes> ATOS_DEVICE void Worker<bytes>::push_with_level(const Item<bytes> &item, float level) {
  FarState &far = *far_state();
  const bool is_near = far.window.is_near(level);
  const unsigned active = __activemask();
  const unsigned near_lanes = __ballot_sync(active, is_near), mine = is_near ? near_lanes : active & ~near_lanes;
  const unsigned leader = __ffs(mine) - 1, before = __popc(mine & ((1u << lane_id()) - 1));
  uint32_t at = 0;
  if (lane_id() == leader) at = atomicAdd(is_near ? &header->pushes : &far.pushes, __popc(mine));
  at = __shfl_sync(active, at, leader) + before;
  if (at < launch->buffer) {
    (is_near ? buffer : far_buffer())[at] = item;
    (is_near ? levels() : far_levels())[at] = level;
    return;
  }
  limit_count(is_near ? &header->pushes : &far.pushes, at);
  fence();
  // Lane by lane, without masks: few pushes come here.
  const FarItems<bytes> items = far_items_of_owner(owner_of(item));
  items.count(1);
  const unsigned list = items.list_of(level, has_peers ? items.window() : far.window);
  const uint64_t ticket = items.reserve(list, 1);
  items.begin_block(list, ticket);
  items.put(list, ticket, item, level);
  if (has_peers) items.return_to(level);
}

template <class Group, unsigned bytes> struct FarWork : WorkerState<Group, bytes> {
  using State = WorkerState<Group, bytes>;
  using State::header;
  using State::launch;
  using State::queue;
  using State::State;
  using State::worker;

  // The far pushes in the buffer, which are yet to be flushed.
  ATOS_DEVICE uint32_t far_buffered() const {
    const uint32_t pushes = worker.far_state()->pushes;
    return pushes < launch.buffer ? pushes : launch.buffer;
  }

  // [one lane] Counts n items as unfinished tasks, before all threads store them.
  ATOS_DEVICE void count_far(uint32_t n) const {
    if (n) worker.far_items().count(n);
  }

  // [team] Counts n items of a launch over several GPUs as unfinished tasks, each on its owner.
  template <class Team> ATOS_DEVICE void count_far_of_owners(PushArray<Item<bytes>> items, uint32_t n) const {
    PeerPush *to = worker.peer_pushes();
#pragma unroll 1
    for (uint32_t k = Team::rank(); k < n; k += Team::size()) atomicAdd(&to[worker.owner_of(items[k])].count, 1);
    Team::sync();
#pragma unroll 1
    for (uint32_t number = Team::rank(); number < launch.peer_count; number += Team::size()) {
      if (to[number].count) worker.far_items_of_owner(number).count(to[number].count);
      to[number].count = 0;
    }
    Team::sync();
  }

  // [team] Stores n items in the lists of their levels. Items of a warp that go to one list share one atomic.
  template <class Team> ATOS_DEVICE void store_far(PushArray<Item<bytes>> items, PushArray<float> levels, uint32_t n) const {
    FarItems<bytes> far = worker.far_items();
    Window window = worker.far_state()->window;
    uint32_t owner = 0;
#pragma unroll 1
    for (uint32_t base = 0; base < n; base += Team::size()) {
      const uint32_t k = base + Team::rank();
      const bool mine = k < n;
      const float level = mine ? levels[k] : 0.0f;
      if (has_peers) {
        owner = mine ? worker.owner_of(items[k]) : 0;
        far = worker.far_items_of_owner(owner);
        window = far.window();
      }
      const unsigned list = mine ? far.list_of(level, window) : ~0u;
      const unsigned peers = __match_any_sync(kAll, owner * (launch.buckets + 1) + list), leader = __ffs(peers) - 1;
      uint64_t ticket = 0;
      if (mine && lane_id() == leader) ticket = far.reserve(list, __popc(peers));
      ticket = __shfl_sync(kAll, ticket, leader) + __popc(peers & ((1u << lane_id()) - 1));
      if (mine) far.begin_block(list, ticket);
      __syncwarp();
      if (mine) far.put(list, ticket, items[k], level);
      if (has_peers && mine) far.return_to(level);
      __syncwarp();
    }
  }

  // [one lane] Claims a chunk of the open list.
  ATOS_DEVICE bool claim_far_chunk() { return has_buckets && worker.far_items().claim_chunk(&worker.far_state()->chunk); }

  // [one lane] Claims a chunk of the open list; in a relaxed launch, opens a list if none is open.
  ATOS_DEVICE bool find_far_chunk() {
    if (!has_buckets || queue().stopped()) return false;
    const FarItems<bytes> far = worker.far_items();
    FarChunk *chunk = &worker.far_state()->chunk;
    if (far.claim_chunk(chunk)) return true;
    if (!this->relaxed() || !far.can_open()) return false;
    const uint64_t most = uint64_t(launch.workers) * launch.fetch * kOpenedBatches, room = launch.size / 4 + 1;
    return open_bucket<bytes>(launch, most < room ? most : room, largest_chunk()) && far.claim_chunk(chunk);
  }

  // Whether the first of the claimed tickets has got its item, as last sampled.
  ATOS_DEVICE bool has_filled_ticket() const { return worker.far_state()->filled; }
  // [one lane] While a step runs: the window, whether there are far items to take, and whether the first claimed ticket has its
  // item. After the step these loads would take as long again as a short step.
  ATOS_DEVICE void sample_far() {
    const FarItems<bytes> far = worker.far_items();
    worker.far_state()->window = far.window();
    worker.far_state()->open = far.has_chunk() || far.can_open();
    const Consumer &consumer = header->consumer;
    bool filled = false;
    if (consumer.claimed) {
      const Place place = consumer.ring.at(consumer.first);
      typename Slot<bytes>::Seen seen;
      filled = consumer.ring.template slot<bytes>(place.index).is_ready(place.sequence, seen);
    }
    worker.far_state()->filled = filled;
  }

  // [one lane] Between two rounds: opens all of the next bucket; returns the number of its chunks.
  ATOS_DEVICE uint64_t open_next_bucket() const { return open_bucket<bytes>(launch, kBetweenRounds, largest_chunk()); }

  // [one lane] Between two rounds of a launch over several GPUs: opens all of the lowest bucket, on each GPU that has items in
  // this bucket; whether there was one.
  ATOS_DEVICE bool open_next_bucket_of_peers() const {
    return peers_of(launch).template open_far<bytes>(launch.workers, largest_chunk());
  }

  // The most items of a chunk: a batch, or in a relaxed launch what a worker adds to the items that it has kept.
  ATOS_DEVICE uint64_t largest_chunk() const {
    static_assert(kThinPart >= 4, "a batch has no room for a chunk behind the items that a worker has kept");
    const uint64_t room = this->relaxed() ? launch.fetch / 2 + 1 : launch.fetch;
    uint64_t chunk = 1;
    while (chunk < kFarChunk && 2 * chunk <= room) chunk *= 2;
    return chunk;
  }

  // [all threads] Pushes the items of the claimed chunk again.
  ATOS_DEVICE void run_far() {
    FarState &state = *worker.far_state();
    const FarItems<bytes> far = worker.far_items();
    if (Group::rank() == 0) state.window = far.window();
    Group::sync();
    const FarChunk chunk = state.chunk;
    FarItem<bytes> *const entries = far.entries(chunk);
    const uint32_t there = entries ? uint32_t(chunk.to - chunk.from) : 0;
#pragma unroll 1
    for (uint32_t k = Group::rank(); k < there; k += Group::size()) {
      Item<bytes> item;
      float level;
      if (!far.take(&entries[k], &item, &level)) break;
      atomicAdd(&state.taken, 1);
      worker.push_with_level(item, level);
    }
    fence(); // some may stay with the worker, and need what was written before they were pushed
  }

  // [one lane] While the items of a taken chunk run: finishes the chunk. All of its items were taken, unless the workers stop.
  ATOS_DEVICE void finish_taken_chunk() {
    FarState &state = *worker.far_state();
    if (state.taken && state.taken == state.chunk.to - state.chunk.from) worker.far_items().finish_chunk(state.chunk);
    state.taken = 0;
  }

  // [one lane] After the flush of a chunk's pushes: accounts for its items, unfinished tasks that pushed themselves. If the
  // workers stop, the host recovers the items that were not taken.
  ATOS_DEVICE void account_far() {
    FarState &state = *worker.far_state();
    header->end.unreported += state.taken;
    header->pushed -= state.taken;
    if (state.taken == state.chunk.to - state.chunk.from) worker.far_items().finish_chunk(state.chunk);
    state.taken = 0;
  }
};

} // namespace atos
