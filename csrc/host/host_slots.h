// Slots of a ring as the host reads and writes them, in copies of raw memory, while no workers run.
#pragma once
#include <cstring>

#include "protocol/slot.cuh"

namespace atos {

// Slots of `bytes`-byte items.
template <unsigned bytes> struct HostSlots {
  using Any = Slot<bytes>;
  static constexpr unsigned kBytes = bytes;

  static uint64_t sequence(const Any &slot) {
    if constexpr (bytes == 4) return slot.word >> 32;
    else return slot.sequence;
  }
  // Distance of the sequence number of a slot from `expected`. Of a packed slot only the low 32 bits are known.
  static int64_t distance(const Any &slot, uint64_t expected) {
    if constexpr (bytes == 4) return int32_t(uint32_t(slot.word >> 32) - uint32_t(expected));
    else return int64_t(slot.sequence - expected);
  }
  static void get(const Any &slot, unsigned char *item) {
    const typename Any::Seen seen = seen_in(slot);
    const Item<bytes> value = slot.get(seen);
    std::memcpy(item, &value, bytes);
  }
  // Stores the item of the ticket whose slot is free at `sequence`.
  static void put(Any *slot, const unsigned char *item, uint64_t sequence) {
    Item<bytes> value;
    std::memcpy(&value, item, bytes);
    slot->put(value);
    slot->commit(value, sequence);
  }
  static void set_free(Any *slot, uint64_t sequence) { slot->release(sequence - 2); }

private:
  static typename Any::Seen seen_in(const Any &slot) {
    typename Any::Seen seen{};
    slot.is_ready(sequence(slot) - 1, seen);
    return seen;
  }
};

// The slot of a ticket, with a sequence number of `expected` while the slot is free for this ticket.
template <class View> struct VisitedSlot {
  typename View::Any *slot;
  uint64_t expected;
  bool *changed;

  int64_t distance() const { return View::distance(*slot, expected); }
  void get(unsigned char *item) const { View::get(*slot, item); }
  void put(const unsigned char *item) { View::put(slot, item, expected), *changed = true; }
  void free_next() { View::set_free(slot, expected + 2), *changed = true; }
};

template <class F> void with_slots(uint32_t item_bytes, F f) {
  if (item_bytes == 4) f(HostSlots<4>{});
  else if (item_bytes == 8) f(HostSlots<8>{});
  else if (item_bytes == 16) f(HostSlots<16>{});
  else f(HostSlots<32>{});
}

} // namespace atos
