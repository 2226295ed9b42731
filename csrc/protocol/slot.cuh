// A slot of a ring: one item, and the sequence number that says whether the item is there.
//
// The sequence number is 2 * generation while the slot is free for the ticket of that generation, and 2 * generation + 1 once
// that ticket's item is in it. So any value of an item's type may be an item.
#pragma once
#include "include/interface.h"
#include "protocol/atomic.cuh"

namespace atos {

constexpr unsigned kMostItemBytes = sizeof(atos_failure::item);

// An item of the queue, as words.
template <unsigned bytes> struct Item {
  uint64_t word[bytes / 8];
};
template <> struct Item<4> {
  uint32_t word;
};

// A slot: an item and a sequence number. A push stores the item with `put` and then commits it, with a fence between the two; a
// pop asks `is_ready`, then `get` and `release`, with a fence after each of the first two. A 4-byte item shares one word with
// its sequence number, so that `put` and `get` cost nothing.
template <unsigned bytes> struct Slot {
  uint64_t item[bytes / 8];
  uint64_t sequence;

  static constexpr bool packed = false;
  struct Seen {}; // what `is_ready` has read, as far as `get` needs it
  ATOS_FUNCTION bool is_free(uint64_t expected) const { return load(&sequence) == expected; }
  ATOS_FUNCTION bool is_ready(uint64_t expected, Seen &) const { return is_free(expected + 1); }
  ATOS_FUNCTION void put(const Item<bytes> &value) {
    for (unsigned i = 0; i < bytes / 8; ++i) store(&item[i], value.word[i]);
  }
  ATOS_FUNCTION void commit(const Item<bytes> &, uint64_t expected) { store(&sequence, expected + 1); }
  ATOS_FUNCTION Item<bytes> get(const Seen &) const {
    Item<bytes> value;
    for (unsigned i = 0; i < bytes / 8; ++i) value.word[i] = load(&item[i]);
    return value;
  }
  ATOS_FUNCTION void release(uint64_t expected) { store(&sequence, expected + 2); }
};

template <> struct Slot<4> {
  uint64_t word; // the sequence number in the upper half: 32 bits suffice, since a slot is never more than a generation behind

  static constexpr bool packed = true;
  using Seen = uint64_t;
  static ATOS_FUNCTION uint64_t join(uint32_t value, uint64_t sequence) { return sequence << 32 | value; }
  ATOS_FUNCTION bool is_free(uint64_t expected) const {
    return static_cast<uint32_t>(load(&word) >> 32) == static_cast<uint32_t>(expected);
  }
  ATOS_FUNCTION bool is_ready(uint64_t expected, Seen &seen) const {
    seen = load(&word);
    return static_cast<uint32_t>(seen >> 32) == static_cast<uint32_t>(expected + 1);
  }
  ATOS_FUNCTION void put(const Item<4> &) {}
  ATOS_FUNCTION void commit(const Item<4> &value, uint64_t expected) { store(&word, join(value.word, expected + 1)); }
  ATOS_FUNCTION Item<4> get(const Seen &seen) const { return Item<4>{static_cast<uint32_t>(seen)}; }
  ATOS_FUNCTION void release(uint64_t expected) { store(&word, join(0, expected + 2)); }
};

} // namespace atos
