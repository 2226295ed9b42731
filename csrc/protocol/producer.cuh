// The pushing side of a worker: the tickets reserved for a flush, the ring that they are for, and how much may be pushed
// without a wait for space.
//
// On the GPU it lies in shared memory, and one lane calls what is not const.
#pragma once
#include "protocol/queue_ref.cuh"

namespace atos {

struct Producer {
  Ring ring;                // that of the reserved tickets
  uint64_t base = 0;        // the first of them
  int64_t demand = kUnseen; // workers that wait for items, or less than 0: items that wait for workers
  int64_t headroom = 0;     // pushes beyond the demand that reserve their tickets at once
  uint32_t growths = 0;     // before `ring`
  uint32_t reserved = 0;    // 1 if there are tickets for all that is to be flushed

  template <unsigned bytes> ATOS_FUNCTION void begin(const QueueRef<bytes> &queue) {
    ring = queue.ring(0, 0);
    headroom = queue.headroom_of(ring);
  }

  // Whether a flush of n items has to wait for space, with `reserve_when_space`.
  ATOS_FUNCTION bool above_high_water(uint32_t n) const { return int64_t(n) > demand + headroom && !reserved; }

  // Reserves tickets for n items.
  template <unsigned bytes> ATOS_FUNCTION void reserve(const QueueRef<bytes> &queue, uint64_t n) {
    use(queue, queue.reserve(n));
  }

  // The same when the ring has space; `ask` requests one more growth.
  template <unsigned bytes, class Ask>
  ATOS_FUNCTION void reserve_when_space(const QueueRef<bytes> &queue, uint64_t n, Ask ask) {
    use(queue, queue.reserve_with_space(n, ask));
    reserved = 1;
  }

private:
  // Takes the tickets from a tail on, and follows to their ring.
  template <unsigned bytes> ATOS_FUNCTION void use(const QueueRef<bytes> &queue, uint64_t tail) {
    base = tickets_of(tail);
    const unsigned k = growths_of(tail);
    if (k == growths) return;
    growths = k;
    ring = queue.ring(k, queue.first_ticket_of(k));
    headroom = queue.headroom_of(ring);
  }
};

} // namespace atos
