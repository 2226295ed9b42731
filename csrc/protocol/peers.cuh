// Peers: the queues of several devices in one launch. The workers of a device take items from its own queue, and push into all.
//
// Each queue is as any other: whoever pushes into it reserves a ticket there and stores the item into that ticket's slot, by
// plain pointers. An item has an owner, which runs it: the device that its key, the first word of the item, falls to.
//
// The end: no device can tell it alone, since a task that runs elsewhere may push into its queue. Whoever reads `finished` of
// *all* devices first, then the tickets of all, and finds the sums equal, has proof that nothing is left anywhere
// (docs/design.md). The device of number 0 does that, and tells the others by `kEnded`.
#pragma once
#include "protocol/far_items.cuh"
#include "protocol/termination.cuh"

namespace atos {

// The queue of a device, for those that push into it.
struct Peer : QueueAddresses {
  CompletionRecord *record; // of the kernel on that GPU, by which its host is asked for a growth
};

// A view of all of them from one device, copied freely.
struct Peers {
  const Peer *peer;
  uint32_t count, own; // devices, and the number of this one
  uint32_t key_bytes;  // of the key of an item, 4 or 8
  uint64_t chunk;      // keys of a device: [number * chunk, (number + 1) * chunk), and what lies beyond is the last one's
  uint64_t reciprocal; // (2^64 - 1) / chunk

  template <unsigned bytes> ATOS_FUNCTION QueueRef<bytes> queue(uint32_t number) const { return QueueRef<bytes>(peer[number]); }
  template <unsigned bytes> ATOS_FUNCTION FarItems<bytes> far_items(uint32_t number) const {
    return FarItems<bytes>(peer[number]);
  }

  // The number of the device that runs an item.
  template <unsigned bytes> ATOS_FUNCTION uint32_t owner(const Item<bytes> &item) const {
    uint64_t key;
    if constexpr (bytes == 4) key = item.word;
    else key = key_bytes == 4 ? uint32_t(item.word[0]) : item.word[0];
    uint64_t number = umulhi(key, reciprocal); // at most one too small
    number += key - number * chunk >= chunk;
    return uint32_t(number < count ? number : count - 1);
  }

  // Whether no task of any device is unfinished.
  ATOS_FUNCTION bool ended() const {
    uint64_t finished = 0, counted = 0, confirmed = 0;
    ATOS_ROLLED
    for (uint32_t k = 0; k < count; ++k) finished += load(&peer[k].counters->finished);
    fence();
    ATOS_ROLLED
    for (uint32_t k = 0; k < count; ++k)
      counted += tickets_of(load(&peer[k].counters->tail)) + load(&peer[k].counters->untracked);
    if (finished != counted) return false;
    // As in QueueRef::ended: reads that cannot be stale.
    ATOS_ROLLED
    for (uint32_t k = 0; k < count; ++k)
      confirmed += tickets_of(fetch_add(&peer[k].counters->tail, 0)) + fetch_add(&peer[k].counters->untracked, 0);
    return finished == confirmed;
  }

  // In place of TerminationDetector::while_waiting; there is no idle function.
  template <unsigned bytes>
  ATOS_FUNCTION Waiting while_waiting(const QueueRef<bytes> &queue, Consumer &consumer, TerminationDetector &end) const {
    end.report(queue);
    if (queue.stopped()) return Waiting::kLeave;
    // Every ticket of a queue is run on its device, so the home counts must be equal too: only then it looks further.
    const uint64_t tail = load(&queue.counters->tail);
    if (own == 0 && load(&queue.counters->finished) == tickets_of(tail) + load(&queue.counters->untracked) && ended()) {
      tell(kEnded);
      return Waiting::kLeave;
    }
    consumer.look_for_ring(queue, tail);
    return Waiting::kPoll;
  }

  // For a worker that leaves, or ends its part of a round: a stop of its device is one of all.
  template <unsigned bytes> ATOS_FUNCTION void spread_stop(const QueueRef<bytes> &queue) const {
    if (load(&queue.counters->stop) & ~(kEnded | kStopElsewhere)) tell(kStopElsewhere);
  }

  // Rounds: workers meet at the barrier of their device, and the last one there meets those of the others, so that few wait for
  // words of another device. They are counted on the first one, and told on their own that the meeting is over, as they are
  // told the mode. Everything of the round is reserved then.
  ATOS_FUNCTION Counters *meeting() const { return peer[0].counters; }

  // [the last worker of a device] Arrives at a meeting that has taken place `before` times; whether it is the last one there.
  // What the others of its device have written is ordered by their fences, and by this one.
  ATOS_FUNCTION bool meet(uint64_t before) const {
    fence();
    return fetch_add(&meeting()->met, uint64_t(1)) + 1 == (before + 1) * count;
  }
  // [the last worker of a device] Whether that meeting is over.
  ATOS_FUNCTION bool has_met(uint64_t before) const { return load(&peer[own].counters->meetings) != before; }
  // [the last worker of all] Ends it, after a fence.
  ATOS_FUNCTION void end_meeting(uint64_t before) const {
    ATOS_ROLLED
    for (uint32_t k = 0; k < count; ++k) store(&peer[k].counters->meetings, before + 1);
  }

  // [the function between rounds] Sets the mode of the next round.
  ATOS_FUNCTION void set_mode(uint64_t mode) const {
    ATOS_ROLLED
    for (uint32_t k = 0; k < count; ++k) store(&peer[k].counters->mode, mode);
  }

  // For the last worker there: ends the round on each device. If the workers have reported what they ran, whether all devices
  // have run all that they had in it, so that the function between rounds is called.
  ATOS_FUNCTION bool close_round(bool has_buckets) const {
    bool ran = true;
    ATOS_ROLLED
    for (uint32_t k = 0; k < count; ++k) {
      Counters &its = *peer[k].counters;
      const uint64_t end = load(&its.round_end);
      ran &= has_buckets ? ran_all_below(&its, end) : load(&its.finished) == end;
      lower_to(&its.head, end); // claims ran past it, and pushes of that function would take it for space
    }
    return ran;
  }

  // The items that wait for the next round, on all devices.
  ATOS_FUNCTION uint64_t waiting() const {
    uint64_t n = 0;
    ATOS_ROLLED
    for (uint32_t k = 0; k < count; ++k) n += tickets_of(load(&peer[k].counters->tail)) - load(&peer[k].counters->round_end);
    return n;
  }

  // After that: opens the next round of each device, maybe an empty one, or says that none follows. If nothing waits in the
  // queues, the round is that of the far items that `open_far` opens, if it does.
  template <class Open> ATOS_FUNCTION void open_round(Open open_far) const {
    bool more = false, stopped = false;
    ATOS_ROLLED
    for (uint32_t k = 0; k < count; ++k) {
      const Counters &its = *peer[k].counters;
      const uint64_t stop = load(&its.stop), tail = tickets_of(load(&its.tail));
      stopped |= stop != kRun;
      more |= tail != load(&its.round_end);
    }
    if (!more && !stopped) more = open_far();
    const bool opens = more && !stopped;
    ATOS_ROLLED
    for (uint32_t k = 0; k < count; ++k) {
      Counters &its = *peer[k].counters;
      store(&its.round_end, opens ? tickets_of(load(&its.tail)) : load(&its.round_end) | kLastRound);
    }
  }

  // In a launch without rounds: whether a worker may open the lowest bucket of its device. It waits while another device that
  // has unfinished tasks is at a lower bucket, so that it does no work that items of that one make void. The device at the
  // lowest bucket waits for none (docs/design.md).
  template <unsigned bytes> ATOS_FUNCTION bool may_open() const {
    float level = 0;
    if (!far_items<bytes>(own).lowest(&level, false)) return false;
    store(&peer[own].counters->far.next, uint64_t(bits_of(level)));
    ATOS_ROLLED
    for (uint32_t k = 0; k < count; ++k) {
      const Counters &its = *peer[k].counters;
      if (k == own || !(float_of(uint32_t(load(&its.far.next))) < level)) continue;
      const uint64_t finished = load(&its.finished);
      if (finished != tickets_of(load(&its.tail)) + load(&its.untracked)) return false;
    }
    return true;
  }

  // Between rounds: opens the lowest bucket of all devices, on each that has items in it, in chunks of `largest` items or
  // fewer; whether there was any. The windows of the others move up to it, so that what is pushed to them runs in it.
  template <unsigned bytes> ATOS_FUNCTION bool open_far(uint64_t workers, uint64_t largest) const {
    float level = 0, least = 0;
    bool any = false;
    ATOS_ROLLED
    for (uint32_t k = 0; k < count; ++k) {
      if (!far_items<bytes>(k).lowest(&level, true)) continue;
      if (!any || level < least) least = level;
      any = true;
    }
    uint64_t opened = 0;
    ATOS_ROLLED
    for (uint32_t k = 0; any && k < count; ++k) {
      const FarItems<bytes> far = far_items<bytes>(k);
      if (far.lowest(&level, true) && level <= least) opened += far.open(kBetweenRounds, workers, largest);
      else far.move_window_up(least);
    }
    return opened != 0;
  }

private:
  ATOS_FUNCTION void tell(uint64_t why) const {
    ATOS_ROLLED
    for (uint32_t k = 0; k < count; ++k) set_bits(&peer[k].counters->stop, why);
  }
};

// A view of the GPUs of a launch.
ATOS_FUNCTION Peers peers_of(const Launch &launch) {
  return {static_cast<const Peer *>(launch.peer_table),
          launch.peer_count,
          launch.peer_own,
          launch.key_bytes,
          launch.peer_chunk,
          launch.peer_reciprocal};
}

} // namespace atos
