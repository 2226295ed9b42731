// Inbox: the way of items from the host to workers that run, and the worker's side of that way.
//
// An inbox is a ring in memory of the host that workers reach too: pinned, for a GPU, since a copy beside a kernel takes
// milliseconds. The host stores items and then `sent`; one worker at a time moves the items into the queue and then stores
// `taken`, so that the host may use their places again. `Counters::inbox`, in the memory of the device, decides which worker: a
// look at the inbox of a GPU takes a microsecond or two, and one worker that looks is enough.
//
// To the end of a launch the inbox is a task that pushes (docs/design.md): the inbox counts as unfinished, in `untracked`, from
// before the workers start until it is closed and empty.
#pragma once
#include "protocol/queue_ref.cuh"

namespace atos {

// Bits of Inbox::sent.
constexpr uint64_t kClosed = uint64_t(1) << 63;   // no more items will come
constexpr uint64_t kStopSent = uint64_t(1) << 62; // the launch is to stop
constexpr uint64_t kSentItems = kStopSent - 1;

struct Inbox {
  alignas(128) uint64_t sent;     // items put here so far, by the host; and kClosed and kStopSent
  alignas(128) uint64_t taken;    // items moved into the queue so far, by workers
  alignas(128) uint64_t items[1]; // the ring: kInboxItems items of inbox_words() words each
};

// Values of Counters::inbox: twice the number of items taken so far, plus 1 while a worker moves others. Once the inbox is
// closed and empty the counter stays odd, so that no worker looks again.
constexpr uint64_t kInboxHeld = 1;

// Words of an item in an inbox.
ATOS_FUNCTION constexpr unsigned inbox_words(unsigned bytes) { return bytes < 8 ? 1 : bytes / 8; }
inline uint64_t inbox_bytes(unsigned bytes) { return sizeof(Inbox) + kInboxItems * inbox_words(bytes) * 8; }

// Delivery: items that a worker moves from the inbox to the ring at once, [first, first + count), and the tickets for them.
struct Delivery {
  uint64_t first = 0, tail = 0;
  uint32_t count = 0;
  uint32_t last = 0; // 1 if the inbox is closed, and empty after this delivery
};

// [one lane] Ends a delivery whose items have all been read and stored.
template <unsigned bytes>
ATOS_FUNCTION void end_delivery(const QueueRef<bytes> &queue, Inbox *inbox, const Delivery &delivery) {
  if (delivery.count) {
    fence_system(); // the items were read before their places are free
    store_system(&inbox->taken, delivery.first + delivery.count);
    fence_system(); // before the next worker stores `taken`
  }
  if (delivery.last) queue.finish(1); // `inbox` stays odd: no worker gets the inbox any more
  else store(&queue.counters->inbox, 2 * (delivery.first + delivery.count));
}

// Room in the ring for items of the inbox, at most n: half of the ring stays empty, and there is no room while the last item
// would find its slot occupied. The host can wait, so the items that it sends shall neither grow nor fill a queue.
template <unsigned bytes> ATOS_FUNCTION uint32_t room_for_inbox(const QueueRef<bytes> &queue, uint64_t n) {
  const uint64_t tail = load(&queue.counters->tail);
  const unsigned growths = growths_of(tail);
  const Ring ring = queue.ring(growths, queue.first_ticket_of(growths));
  const int64_t waiting = int64_t(tickets_of(tail) - load(&queue.counters->head));
  const int64_t room = int64_t((ring.size + 1) / 2) - (waiting > 0 ? waiting : 0);
  if (room <= 0) return 0;
  const uint32_t count = n < uint64_t(room) ? uint32_t(n) : uint32_t(room);
  const uint64_t last = tickets_of(tail) + count - 1;
  const Place place = ring.at(last);
  return ring.first_generation(last) || ring.template slot<bytes>(place.index).is_free(place.sequence) ? count : 0;
}

// [one lane] Gets the inbox, if no other worker has it and it holds items: reserves tickets for the items to move.
template <unsigned bytes> ATOS_FUNCTION Delivery begin_delivery(const QueueRef<bytes> &queue, Inbox *inbox) {
  Counters *counters = queue.counters;
  Delivery delivery;
  uint64_t state = load(&counters->inbox);
  if (state & kInboxHeld || !compare_exchange(&counters->inbox, state, state | kInboxHeld)) return delivery;
  delivery.first = state / 2;
  const uint64_t sent = load_system(&inbox->sent);
  // After what the host stored before `sent`, and after the reservations of the workers that had the inbox before.
  fence_system();
  if (sent & kStopSent) set_bits(&counters->stop, kStopAsked);
  // `sent` may be an older value than the worker before has read; that worker has then taken more items than `sent` says.
  const uint64_t items = sent & kSentItems, there = items > delivery.first ? items - delivery.first : 0;
  if (there) delivery.count = room_for_inbox(queue, there);
  if (delivery.count) delivery.tail = queue.reserve(delivery.count);
  delivery.last = sent & kClosed && delivery.count == there;
  if (delivery.count == 0) end_delivery(queue, inbox, delivery);
  return delivery;
}

// The caller's part (rank, rank + stride, ...) of a delivery: from the inbox to the slots.
template <unsigned bytes> ATOS_FUNCTION void deliver(const QueueRef<bytes> &queue, const Inbox *inbox, const Delivery &delivery,
                                                     uint64_t rank, uint64_t stride) {
  const unsigned growths = growths_of(delivery.tail);
  const Ring ring = queue.ring(growths, queue.first_ticket_of(growths));
  ATOS_ROLLED
  for (uint64_t i = rank; i < delivery.count; i += stride) {
    const uint64_t *at = &inbox->items[(delivery.first + i) % kInboxItems * inbox_words(bytes)];
    Item<bytes> item;
    if constexpr (bytes == 4) item.word = uint32_t(load_system(at));
    else
      for (unsigned k = 0; k < bytes / 8; ++k) item.word[k] = load_system(at + k);
    queue.publish(ring, tickets_of(delivery.tail) + i, item);
  }
}

} // namespace atos
