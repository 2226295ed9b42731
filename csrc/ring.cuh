// The slots that tickets belong to, in laps.
#pragma once
#include "atomic.cuh"

namespace atos {

template <unsigned bytes> struct Item;
template <> struct Item<4> { uint32_t word; };
template <> struct Item<8> { uint64_t word[1]; };
template <> struct Item<16> { uint64_t word[2]; };

// A slot: an item and its turn. `put` then `fill` publish, with a fence between them; `full`, a fence, `get`, a fence and
// `retire` take. A 4-byte item travels in one word with its turn, so that `put` and `get` cost nothing.
template <unsigned bytes> struct Slot {
  uint64_t item[bytes / 8];
  uint64_t turn;

  static constexpr bool packed = false;
  struct Seen {}; // what `full` has read, as far as `get` needs it
  ATOS_FUNCTION bool has(uint64_t expected) const { return load(&turn) == expected; }
  ATOS_FUNCTION bool full(uint64_t expected, Seen &) const { return has(expected + 1); }
  ATOS_FUNCTION void put(const Item<bytes> &value) {
    for (unsigned i = 0; i < bytes / 8; ++i) store(&item[i], value.word[i]);
  }
  ATOS_FUNCTION void fill(const Item<bytes> &, uint64_t expected) { store(&turn, expected + 1); }
  ATOS_FUNCTION Item<bytes> get(const Seen &) const {
    Item<bytes> value;
    for (unsigned i = 0; i < bytes / 8; ++i) value.word[i] = load(&item[i]);
    return value;
  }
  ATOS_FUNCTION void retire(uint64_t expected) { store(&turn, expected + 2); }
};

template <> struct Slot<4> {
  uint64_t word; // turn in the upper half: its low 32 bits suffice, since a slot is never more than a lap behind

  static constexpr bool packed = true;
  using Seen = uint64_t;
  static ATOS_FUNCTION uint64_t join(uint32_t value, uint64_t turn) { return turn << 32 | value; }
  ATOS_FUNCTION bool has(uint64_t expected) const {
    return static_cast<uint32_t>(load(&word) >> 32) == static_cast<uint32_t>(expected);
  }
  ATOS_FUNCTION bool full(uint64_t expected, Seen &seen) const {
    seen = load(&word);
    return static_cast<uint32_t>(seen >> 32) == static_cast<uint32_t>(expected + 1);
  }
  ATOS_FUNCTION void put(const Item<4> &) {}
  ATOS_FUNCTION void fill(const Item<4> &value, uint64_t expected) { store(&word, join(value.word, expected + 1)); }
  ATOS_FUNCTION Item<4> get(const Seen &seen) const { return Item<4>{static_cast<uint32_t>(seen)}; }
  ATOS_FUNCTION void retire(uint64_t expected) { store(&word, join(0, expected + 2)); }
};

// Where a ticket's item lives, and the turn of that slot before the item is put there.
struct Place {
  uint64_t index;
  uint64_t turn;
};

// The slots of the tickets from `start` on.
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
    uint64_t lap = multiply_high(ticket, reciprocal);
    uint64_t index = ticket - lap * size;
    if (index >= size) {
      index -= size;
      ++lap;
    }
    return {index, 2 * lap};
  }

  // Whether no ticket had its slot before it.
  ATOS_FUNCTION bool first_lap(uint64_t ticket) const { return ticket - start < size; }
};

} // namespace atos
