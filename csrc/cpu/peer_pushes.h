// PeerPushes: the pushes of a CPU worker in a launch over several devices: each goes into the queue of its item's owner.
#pragma once
#include <algorithm>
#include <vector>

#include "cpu/far_pushes.h"
#include "protocol/peers.cuh"
#include "protocol/producer.cuh"

namespace atos {

template <unsigned bytes> struct NoPeers { // in place of PeerPushes, in a launch on one device
  NoPeers(const Peers &, uint64_t) {}
  void look() {}
  bool push(const Item<bytes> &, float, uint64_t *) { return false; }
  uint64_t store() { return 0; }
  bool may_open() const { return true; }
};

template <unsigned bytes> class PeerPushes {
public:
  const Peers peers;

  // The pushes of a worker that pushes at most so many items at once.
  PeerPushes(const Peers &peers, uint64_t most) : peers(peers), producers(peers.count), ends(peers.count) {
    near.reserve(kMost);
    owners.reserve(std::max<uint64_t>(most, kMost));
    sorted.reserve(std::max<uint64_t>(most, kMost));
    for (uint32_t k = 0; k < peers.count; ++k) producers[k].begin(peers.queue<bytes>(k));
  }

  // With buckets: reads the windows of the other devices, by which items of these devices are near or far.
  void look() {
    if (far.empty())
      for (uint32_t k = 0; k < peers.count; ++k) far.emplace_back(peers.far_items<bytes>(k));
    for (uint32_t k = 0; k < peers.count; ++k)
      if (k != peers.own) far[k].look();
  }
  // Takes an item if another device owns it; whether one does. Adds to *stored the items that had to be stored now.
  bool push(const Item<bytes> &item, float level, uint64_t *stored) {
    const uint32_t owner = peers.owner(item);
    if (owner == peers.own) return false;
    bool full = false;
    if (far[owner].is_near(level)) near.push_back(item), full = near.size() >= kMost;
    else full = far[owner].add(item, level);
    if (full) *stored += store();
    return true;
  }
  // Stores the pushes; returns how many.
  uint64_t store() {
    uint64_t n = near.size();
    if (n) publish(near.data(), n);
    near.clear();
    for (FarPushes<bytes> &pushes : far) n += pushes.store();
    if (n) look();
    return n;
  }

  // Stores n items. The items of one owner get their tickets by one addition to its tail.
  void publish(const Item<bytes> *items, uint64_t n) {
    std::fill(ends.begin(), ends.end(), 0);
    owners.resize(n);
    for (uint64_t i = 0; i < n; ++i) ++ends[owners[i] = peers.owner(items[i])];
    for (uint32_t k = 1; k < peers.count; ++k) ends[k] += ends[k - 1];
    sorted.resize(n);
    for (uint64_t i = n; i-- > 0;) sorted[--ends[owners[i]]] = items[i]; // from the end on, so that the order is kept
    for (uint32_t k = 0; k < peers.count; ++k) {                         // `ends` are begins now
      const uint64_t begin = ends[k], end = k + 1 < peers.count ? ends[k + 1] : n;
      if (begin != end) publish_to(k, &sorted[begin], end - begin);
    }
  }

  // Whether a worker may open the lowest bucket of its device.
  bool may_open() const { return peers.template may_open<bytes>(); }

private:
  // The demand of a queue is not sampled: a queue that may grow is asked for space before each push into it.
  void publish_to(uint32_t number, const Item<bytes> *items, uint64_t n) {
    const QueueRef<bytes> queue = peers.queue<bytes>(number);
    Producer &producer = producers[number];
    if (producer.above_high_water(uint32_t(n))) producer.reserve_when_space(queue, n, [] {}); // all rings are mapped
    else producer.reserve(queue, n);
    queue.publish(producer.ring, producer.base, items, n, 0, 1);
    producer.reserved = 0;
  }

  static constexpr size_t kMost = 256; // near items kept before all of them are stored
  std::vector<FarPushes<bytes>> far;   // for each device
  std::vector<Item<bytes>> near;       // for other devices
  std::vector<Producer> producers;     // for the queue of each device
  std::vector<uint64_t> ends;
  std::vector<uint32_t> owners;
  std::vector<Item<bytes>> sorted;
};

} // namespace atos
