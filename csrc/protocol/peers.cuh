// Peers: the queues of several devices in one launch. The workers of a device take items from its own queue, and push into all.
//
// Each queue works as in any launch: a push reserves a ticket there and stores the item into the ticket's slot, by plain
// pointers. An item has an owner, the device that runs it: its key, the first word of the item, says which.
//
// Termination: no device can tell the end alone, since a task that runs elsewhere may push into its queue. Whoever reads
// `finished` of *all* devices first, then the tickets of all devices, and finds the sums equal, has proof that nothing is left
// anywhere (docs/design.md). Device 0 reads these counts, and tells the other devices by `kEnded`.
#pragma once
#include "protocol/far_items.cuh"
#include "protocol/termination.cuh"

namespace atos {

// The queue of a device, as pushes of any device see the queue.
struct Peer : QueueAddresses {
  CompletionRecord *record; // of the kernel on the queue's GPU; a push requests a growth from its host there
};

// A view of the queues of all devices, from one device; copied freely.
struct Peers {
  const Peer *peer;
  uint32_t count, own; // devices, and the number of this one
  uint32_t key_bytes;  // of the key of an item, 4 or 8
  uint64_t chunk;      // device k has the keys [k * chunk, (k + 1) * chunk), and the last device all keys beyond
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
    // Equal sums are confirmed by reads that cannot be stale (QueueRef::ended).
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
    // The tickets of a queue run on its device, so the counts of device 0 must be equal too: only then are the other devices
    // read.
    const uint64_t tail = load(&queue.counters->tail);
    if (own == 0 && load(&queue.counters->finished) == tickets_of(tail) + load(&queue.counters->untracked) && ended()) {
      tell(kEnded);
      return Waiting::kLeave;
    }
    consumer.look_for_ring(queue, tail);
    return Waiting::kPoll;
  }

  // For a worker that leaves, or ends its part of a round: makes a stop of its device a stop of all devices.
  template <unsigned bytes> ATOS_FUNCTION void spread_stop(const QueueRef<bytes> &queue) const {
    if (load(&queue.counters->stop) & ~(kEnded | kStopElsewhere)) tell(kStopElsewhere);
  }

  // Rounds: workers meet at the barrier of their device, and the last worker of each device meets the last workers of the other
  // devices, so that few wait for words of another device. Arrivals are counted on device 0; every device is told on its own
  // counters that the meeting is over, and the mode. All pushes of the round have reserved their tickets then.
  ATOS_FUNCTION Counters *meeting() const { return peer[0].counters; }

  // [the last worker of a device] Arrives at the meeting that follows `before` others; whether this worker arrives last. What
  // other workers of the device have written is ordered by their fences and by this one.
  ATOS_FUNCTION bool meet(uint64_t before) const {
    fence();
    return fetch_add(&meeting()->met, uint64_t(1)) + 1 == (before + 1) * count;
  }
  // [the last worker of a device] Whether the meeting that follows `before` others is over.
  ATOS_FUNCTION bool has_met(uint64_t before) const { return load(&peer[own].counters->meetings) != before; }
  // [the last worker of all] Ends the meeting, after a fence.
  ATOS_FUNCTION void end_meeting(uint64_t before) const {
    ATOS_ROLLED
    for (uint32_t k = 0; k < count; ++k) store(&peer[k].counters->meetings, before + 1);
  }

  // [the function between rounds] Sets the mode of the next round.
  ATOS_FUNCTION void set_mode(uint64_t mode) const {
    ATOS_ROLLED
    for (uint32_t k = 0; k < count; ++k) store(&peer[k].counters->mode, mode);
  }

  // [the last worker of all] Ends the round on each device. Returns whether all devices ran all tasks of the round, if the
  // workers have reported what they ran: only then the function between rounds is called.
  ATOS_FUNCTION bool close_round(bool has_buckets) const {
    bool ran = true;
    ATOS_ROLLED
    for (uint32_t k = 0; k < count; ++k) {
      Counters &its = *peer[k].counters;
      const uint64_t end = load(&its.round_end);
      ran &= has_buckets ? ran_all_below(&its, end) : load(&its.finished) == end;
      lower_to(&its.head, end); // claims ran past the end; pushes between rounds would take them for space
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

  // After `close_round`: opens the next round of each device, maybe an empty one, or says that none follows. If nothing waits
  // in the queues, the next round runs the far items that `open_far` opens, if there are any.
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

  // In a launch without rounds: whether a worker may open the lowest bucket of its device. The worker waits while another
  // device that has unfinished tasks is at a lower bucket, whose items could make this worker's work void. The device at the
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

  // Between rounds: opens the lowest bucket of all devices, on each device that has items in that bucket, in chunks of
  // `largest` items or fewer; whether there was any. The windows of the other devices move up to the bucket, so that items
  // pushed to them run in it.
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
