// The pushing side of a worker: the tickets (counters.h) reserved for a flush of its push buffer, the ring of these tickets,
// and how much may be pushed without a wait for space.
//
// On the GPU a Producer lies in shared memory, and one lane calls the functions that are not const.
#pragma once
#include "protocol/queue_ref.cuh"

namespace atos {

struct Producer {
  Ring ring;                // ring of the reserved tickets
  uint64_t base = 0;        // the first reserved ticket
  int64_t demand = kUnseen; // head - tail, as last sampled: > 0, claims that wait for items; < 0, a backlog of items
  int64_t headroom = 0;     // pushes beyond the demand that reserve their tickets at once
  uint32_t growths = 0;     // growths before `ring`
  uint32_t reserved = 0;    // 1 if there are tickets for all items to be flushed

  template <unsigned bytes> ATOS_FUNCTION void begin(const QueueRef<bytes> &queue) {
    ring = queue.ring(0, 0);
    headroom = queue.headroom_of(ring);
  }

  // Whether a flush of n items may exceed the high-water mark, half of the ring, and so has to wait in `reserve_when_space`.
  // True while the demand is kUnseen (very negative), unless the queue does not grow (headroom kPlenty).
  ATOS_FUNCTION bool above_high_water(uint32_t n) const { return int64_t(n) > demand + headroom && !reserved; }

  // Reserves tickets for n items.
  template <unsigned bytes> ATOS_FUNCTION void reserve(const QueueRef<bytes> &queue, uint64_t n) {
    use(queue, queue.reserve(n));
  }

  // Reserves n tickets once the ring has space for their items; calls `ask` to request one more growth from the host.
  template <unsigned bytes, class Ask>
  ATOS_FUNCTION void reserve_when_space(const QueueRef<bytes> &queue, uint64_t n, Ask ask) {
    use(queue, queue.reserve_with_space(n, ask));
    reserved = 1;
  }

private:
  // Stores the reserved tickets, which begin at `tail`, and the ring after the growths in `tail`.
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
