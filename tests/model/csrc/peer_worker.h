// A worker of one of several devices, as simple as can be: one ticket at a time, and each push by itself. It uses the protocol as
// the workers in csrc do, whose own steps the other model explores.
#pragma once
#include "protocol/peers.cuh"
#include "protocol/producer.cuh"

namespace model {

using namespace atos;
constexpr unsigned kMostDevices = 3;

// What a worker knows between two steps.
struct PeerWorker {
  uint64_t begun, device;
  Consumer consumer;
  TerminationDetector end;
  Producer producers[kMostDevices];

  void begin(const Peers &peers) {
    consumer = Consumer();
    end = TerminationDetector();
    consumer.begin(peers.queue<BYTES>(peers.own));
    for (unsigned k = 0; k < peers.count; ++k) producers[k] = Producer(), producers[k].begin(peers.queue<BYTES>(k));
    begun = 1;
  }

  void push(const Peers &peers, const Item<BYTES> &item) {
    const unsigned to = peers.owner(item);
    const QueueRef<BYTES> queue = peers.queue<BYTES>(to);
    Producer &producer = producers[to];
    fence(); // what the task wrote
    if (producer.above_high_water(1)) producer.reserve_when_space(queue, 1, [] {});
    else producer.reserve(queue, 1);
    producer.reserved = 0;
    queue.publish(producer.ring, producer.base, item);
  }

  // One step; false if the worker leaves. `run` calls the task, which pushes.
  template <class Run> bool step(const Peers &peers, Run run) {
    const QueueRef<BYTES> queue = peers.queue<BYTES>(peers.own);
    if (queue.stopped()) return false;
    if (!consumer.claimed) consumer.claim(queue, 1);
    const Place place = consumer.ring.at(consumer.first);
    Slot<BYTES> &slot = consumer.ring.template slot<BYTES>(place.index);
    typename Slot<BYTES>::Seen seen{};
    if (slot.is_ready(place.sequence, seen)) {
      fence();
      const Item<BYTES> item = slot.get(seen);
      if (!Slot<BYTES>::packed) fence();
      slot.release(place.sequence);
      consumer.claimed = 0;
      run(item);
      ++end.unreported;
      return true;
    }
    if (peers.while_waiting(queue, consumer, end) == Waiting::kLeave) return false;
    if (consumer.is_past_ring(consumer.first)) consumer.next_ring(queue);
    return true;
  }

  void leave(const Peers &peers) {
    const QueueRef<BYTES> queue = peers.queue<BYTES>(peers.own);
    peers.leave(queue);
    end.report(queue);
  }
};

} // namespace model
