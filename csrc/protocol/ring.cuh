// A ring of slots, which tickets use in generations.
#pragma once
#include "protocol/slot.cuh"

namespace atos {

// The slot of a ticket, and its sequence number before the item is put there.
struct Place {
  uint64_t index;
  uint64_t sequence;
};

// The slots of the tickets from `start` on: ticket t has slot (t - start) % size, in generation (t - start) / size.
struct alignas(16) Ring {
  void *slots;
  uint64_t start;
  uint64_t size;
  uint64_t reciprocal; // (2^64 - 1) / size

  template <unsigned bytes> ATOS_FUNCTION Slot<bytes> &slot(uint64_t index) const {
    return static_cast<Slot<bytes> *>(slots)[index];
  }

  // The estimate of ticket / size by the reciprocal is at most one too small, for every 64-bit ticket.
  ATOS_FUNCTION Place at(uint64_t ticket) const {
    ticket -= start;
    uint64_t generation = umulhi(ticket, reciprocal);
    uint64_t index = ticket - generation * size;
    if (index >= size) {
      index -= size;
      ++generation;
    }
    return {index, 2 * generation};
  }

  // Whether no earlier ticket had this ticket's slot.
  ATOS_FUNCTION bool first_generation(uint64_t ticket) const { return ticket - start < size; }
};

} // namespace atos
