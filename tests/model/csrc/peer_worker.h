// A worker of one of several devices, as simple as can be: one ticket at a time, and each push by itself. It uses the protocol as
// the workers in csrc do, whose own steps the other model explores. At most one item is local.
#pragma once
#include "protocol/kernel_params.h"
#include "protocol/peers.cuh"
#include "protocol/producer.cuh"

namespace atos {

constexpr unsigned kMostDevices = 3;

// State of a worker between two steps.
struct PeerWorker {
  uint64_t begun, device;
  // In a launch with barriers: 1 while it waits at that of its device, 2 for the other devices, 3 if it tells them that all have met;
  // how often that has opened.
  uint64_t round_end, waits, phase;
  uint64_t has_local; // 1: the next item to run is this one, which has no ticket
  Item<BYTES> local;
  Consumer consumer;
  TerminationDetector end;
  Producer producers[kMostDevices];

  void begin(const Peers &peers) {
    consumer = Consumer();
    end = TerminationDetector();
    consumer.begin(peers.queue<BYTES>(peers.own));
    for (unsigned k = 0; k < peers.count; ++k) producers[k] = Producer(), producers[k].begin(peers.queue<BYTES>(k));
    round_end = load(&peers.peer[peers.own].counters->round_end); // the host wrote it before
    begun = 1;
  }

  // As on a GPU: with barriers, these order what passes from one device to another.
  static void fence_of_items() {
    if (model::bounds.barrier) fence_device();
    else fence();
  }

  // An item of this device stays local if the launch keeps items and there is none yet.
  void push(const Peers &peers, const Item<BYTES> &item) {
    if (model::bounds.local && !has_local && peers.owner(item) == peers.own) local = item, has_local = 1;
    else publish(peers, item);
  }

  void publish(const Peers &peers, const Item<BYTES> &item) {
    const unsigned to = peers.owner(item);
    const QueueRef<BYTES> queue = peers.queue<BYTES>(to);
    Producer &producer = producers[to];
    fence_of_items(); // what the task wrote
    if (producer.above_high_water(1)) producer.reserve_when_space(queue, 1, [] {});
    else producer.reserve(queue, 1);
    producer.reserved = 0;
    queue.publish(producer.ring, producer.base, item);
  }

  // The same of an item with a level, in a queue with buckets: near or far by the window of its owner. Near items that a `task`
  // pushes may be too many for the ring, and those of a chunk never are.
  void push(const Peers &peers, const Item<BYTES> &item, float level, bool task) {
    const FarItems<BYTES> far = peers.far_items<BYTES>(peers.owner(item));
    const Window window = far.window();
    const bool stays = model::bounds.local && !has_local && peers.owner(item) == peers.own;
    if (window.is_near(level) && !(model::bounds.surplus && task && !stays)) return push(peers, item);
    far.count(1);
    const unsigned list = far.list_of(level, window);
    const uint64_t ticket = far.reserve(list, 1);
    far.begin_block(list, ticket);
    far.put(list, ticket, item, level);
  }

  // Pushes the items of a chunk of the open list again; opens a list before, if none is open and `opens`. False without a chunk.
  bool move_far_chunk(const Peers &peers, bool opens) {
    const FarItems<BYTES> far = peers.far_items<BYTES>(peers.own);
    FarChunk chunk;
    if (!far.claim_chunk(&chunk)) {
      const auto may_open = [&] { return peers.may_open<BYTES>(); };
      if (!opens || !far.can_open() || !far.open(~uint64_t(0), 1, kFarChunk, may_open) || !far.claim_chunk(&chunk)) return false;
    }
    FarItem<BYTES> *const entries = far.entries(chunk);
    const uint64_t there = chunk.to - chunk.from;
    uint64_t taken = 0;
    for (; entries && taken < there; ++taken) {
      Item<BYTES> item;
      float level;
      if (!far.take(&entries[taken], &item, &level)) break;
      push(peers, item, level, false);
    }
    end.unreported += taken; // they were unfinished tasks that pushed themselves
    if (taken == there) far.finish_chunk(chunk);
    return true;
  }

  // Runs the item of the claimed ticket, if it is there; `run` calls the task, which pushes.
  template <class Run> bool run_claimed([[maybe_unused]] const QueueRef<BYTES> &queue, Run run) {
    const Place place = consumer.ring.at(consumer.first);
    Slot<BYTES> &slot = consumer.ring.template slot<BYTES>(place.index);
    typename Slot<BYTES>::Seen seen{};
    if (!slot.is_ready(place.sequence, seen)) return false;
    fence_of_items();
    const Item<BYTES> item = slot.get(seen);
    if (!Slot<BYTES>::packed) fence_of_items();
    slot.release(place.sequence);
    consumer.claimed = 0;
    run(item);
    ++end.unreported;
    return true;
  }

  // One step of a launch with barriers; false if the worker leaves. `between`: the function between rounds, if the launch `has` one.
  template <class Run, class Between> bool step_of_rounds(const Peers &peers, uint64_t workers, Run run, bool has, Between between) {
    const QueueRef<BYTES> queue = peers.queue<BYTES>(peers.own);
    if (waits == 3) {
      fence();
      peers.end_meeting(phase);
      waits = 2;
      return true;
    }
    if (waits) {
      if (waits == 2 ? !peers.has_met(phase) : load(&queue.counters->phase) == phase) return true;
      fence();
      if (waits == 2) store(&queue.counters->phase, phase + 1);
      waits = 0;
      round_end = load(&queue.counters->round_end);
      return !(round_end & kLastRound);
    }
    Launch launch{};
    launch.fetch = 1;
    launch.workers = uint32_t(workers);
    if (model::bounds.buckets && !queue.stopped() && move_far_chunk(peers, false)) return true;
    if (!queue.stopped() &&
        (consumer.claimed || consumer.claim_of_round(launch, &queue.counters->head, 0, round_end, 1))) {
      if (run_claimed(queue, run)) return true;
      consumer.look_for_ring(queue, load(&queue.counters->tail));
      if (consumer.is_past_ring(consumer.first)) consumer.next_ring(queue);
      return true;
    }
    if (has) end.report(queue);
    peers.spread_stop(queue);
    phase = load(&queue.counters->phase);
    fence_device(); // before it arrives
    waits = 1;
    if (fetch_add(&queue.counters->arrived, 1) + 1 != (phase + 1) * workers) return true;
    waits = 2;
    if (peers.meet(phase)) {
      fence();
      if (peers.close_round(model::bounds.buckets) && has) between();
      peers.open_round([&] { return model::bounds.buckets && peers.open_far<BYTES>(workers, kFarChunk); });
      waits = 3; // a step of its own: others go on before all have been told
    }
    return true;
  }

  // Runs the local item, or pushes it if the device is stopped. It counts as part of the unreported task that it descends from.
  template <class Run> void take_local(const Peers &peers, bool stopped, Run run) {
    const Item<BYTES> item = local;
    local = Item<BYTES>(), has_local = 0;
    if (stopped) publish(peers, item);
    else run(item);
  }

  // One step of a launch without; false if the worker leaves.
  template <class Run> bool step(const Peers &peers, Run run) {
    const QueueRef<BYTES> queue = peers.queue<BYTES>(peers.own);
    const bool stopped = queue.stopped();
    if (has_local) return take_local(peers, stopped, run), true;
    if (stopped) return false;
    if (!consumer.claimed) consumer.claim(queue, 1);
    if (run_claimed(queue, run)) return true;
    if (model::bounds.buckets && move_far_chunk(peers, true)) return true;
    if (peers.while_waiting(queue, consumer, end) == Waiting::kLeave) return false;
    if (consumer.is_past_ring(consumer.first)) consumer.next_ring(queue);
    return true;
  }

  void leave(const Peers &peers) {
    const QueueRef<BYTES> queue = peers.queue<BYTES>(peers.own);
    if (consumer.claimed) queue.leave_tickets(consumer.first);
    peers.spread_stop(queue);
    end.report(queue);
  }
};

} // namespace atos
