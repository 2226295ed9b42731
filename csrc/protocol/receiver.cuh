// Receiver: a queue that the tasks of another queue's launch push into. Nobody takes items from a receiver during that launch.
//
// So a receiver's ring has no consumers, and fills once. A push reserves one ticket and stores the item into its slot. Where
// the slot is occupied, the push spills the item and asks its own launch for a stop; the host then grows the receiver, and the
// launch goes on. The end of the launch does not depend on receivers: the kernel's end makes the stored items visible.
#pragma once
#include "protocol/queue_ref.cuh"

namespace atos {

// The words of an argument that is a receiver, which the core fills in.
struct Receiver : QueueAddresses {
  Counters *own;                                    // of the launch that pushes
  void (*push)(const Receiver *, const void *item); // for tasks on the CPU
};
static_assert(sizeof(Receiver) == 8 * ATOS_RECEIVER_WORDS);

template <unsigned bytes> ATOS_FUNCTION void push_into(const Receiver &receiver, const Item<bytes> &item) {
  const QueueRef<bytes> queue(receiver);
  const uint64_t ticket = queue.reserve(1);
  const Ring ring = queue.ring(0, 0);
  const Place place = ring.at(ticket);
  const bool full = !ring.first_generation(ticket) && !ring.template slot<bytes>(place.index).is_free(place.sequence);
  queue.publish(ring, ticket, item);
  if (full) set_bits(&receiver.own->stop, kStopFull);
}

} // namespace atos
