// The memory of far items (far_items.cuh): levels, the window of buckets, entries of lists, and their offsets.
#pragma once
#include <cmath>
#include <cstring>

#include "protocol/slot.cuh"
#include "protocol/tuning.h"

namespace atos {

constexpr uint64_t kEmpty = ~uint64_t(0); // level of an entry without an item; a NaN, so no level has these bits
constexpr float kMostScale = 1e18f;       // largest factor of an adapting width, so that no level times 1 / width is a NaN

ATOS_FUNCTION uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}
ATOS_FUNCTION float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

// The level of a priority; a NaN goes last.
ATOS_FUNCTION float level_of(double priority, double inverse_delta) {
  const float level = float(priority * inverse_delta);
  return level == level ? level : INFINITY;
}

// The current bucket, and 1 / width, a power of two.
struct Window {
  float current, inverse_width;

  static ATOS_FUNCTION Window unpack(uint64_t word) { return {float_of(uint32_t(word >> 32)), float_of(uint32_t(word))}; }
  ATOS_FUNCTION uint64_t pack() const { return uint64_t(bits_of(current)) << 32 | bits_of(inverse_width); }
  ATOS_FUNCTION float bucket_of(float level) const { return floorf(level * inverse_width); }
  ATOS_FUNCTION bool is_near(float level) const { return bucket_of(level) <= current; }
};

// The list of a bucket of the window; `buckets` is a power of two.
ATOS_FUNCTION unsigned list_of_bucket(float bucket, uint32_t buckets) {
  const int64_t number = fabsf(bucket) < 4e18f ? int64_t(bucket) : 0;
  return unsigned(uint64_t(number) & (buckets - 1));
}

// The bits of a level, in the order of levels.
ATOS_FUNCTION uint64_t ordered(float level) {
  const uint32_t bits = bits_of(level);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// A word of a directory: the block of a ticket, and in the upper half a tag, the block's number in its list, since several
// blocks of a list share a place.
ATOS_FUNCTION uint64_t block_tag(uint64_t ticket) { return uint32_t(ticket / kBlockItems + 1); }
ATOS_FUNCTION uint64_t block_word(uint64_t ticket, uint64_t block) { return block_tag(ticket) << 32 | block; }

// The ticket of a far item in the spill area, which found no block: its list, its ticket in that list, and the highest bit,
// which no ticket of a ring has.
constexpr unsigned kListShift = 52;
ATOS_FUNCTION uint64_t far_ticket(unsigned list, uint64_t ticket) {
  return uint64_t(1) << 63 | uint64_t(list) << kListShift | ticket;
}
ATOS_FUNCTION bool is_far_ticket(uint64_t ticket) { return ticket >> 63; }
ATOS_FUNCTION unsigned list_of_ticket(uint64_t ticket) { return unsigned(ticket >> kListShift) & 2047; }
ATOS_FUNCTION uint64_t ticket_in_list(uint64_t ticket) { return ticket & ((uint64_t(1) << kListShift) - 1); }

// An entry of a list: an item and its level, which also says that the item is there. The level shares a word with a 4-byte
// item. An item of 8 bytes is written and read together with its level, where the hardware can: two fences less.
template <unsigned bytes> struct FarItem {
  static constexpr bool kIsPair = bytes == 8 && kHasPairs;
  uint64_t item[bytes / 8];
  uint64_t level;

  static ATOS_FUNCTION Item<bytes> none() { return {}; }
  ATOS_FUNCTION void put(const Item<bytes> &value, float its_level) {
    if constexpr (kIsPair) {
      store_pair(item, value.word[0], bits_of(its_level));
    } else {
      for (unsigned i = 0; i < bytes / 8; ++i) store(&item[i], value.word[i]);
      fence();
      store(&level, bits_of(its_level));
    }
  }
  ATOS_FUNCTION bool take(Item<bytes> *value, float *its_level) {
    uint64_t seen;
    if constexpr (kIsPair) load_pair(item, &value->word[0], &seen);
    else seen = load(&level);
    if (seen == kEmpty) return false;
    *its_level = float_of(uint32_t(seen));
    if constexpr (kIsPair) {
      store_pair(item, 0, kEmpty);
    } else {
      fence();
      for (unsigned i = 0; i < bytes / 8; ++i) value->word[i] = load(&item[i]);
      fence(); // the item was read
      store(&level, kEmpty);
    }
    return true;
  }
};

template <> struct FarItem<4> {
  uint64_t word; // the level in the upper half

  static ATOS_FUNCTION Item<4> none() { return {}; }
  ATOS_FUNCTION void put(const Item<4> &value, float its_level) {
    store(&word, uint64_t(bits_of(its_level)) << 32 | value.word);
  }
  ATOS_FUNCTION bool take(Item<4> *value, float *its_level) {
    const uint64_t seen = load(&word);
    if (seen == kEmpty) return false;
    value->word = uint32_t(seen);
    *its_level = float_of(uint32_t(seen >> 32));
    store(&word, kEmpty);
    return true;
  }
};

// A list: tickets [head, tail) are of items that have not been opened.
struct alignas(32) FarList {
  uint64_t tail, head;
};

// A chunk of an opened list: tickets [from, to), all of one block. If `again`, some of its items may not belong to the current
// bucket: all are pushed again, which puts each where it belongs. Otherwise the items may run at once.
struct FarChunk {
  uint64_t from, to;
  uint32_t list, again;
};

// The size of a FarItem.
ATOS_FUNCTION constexpr uint64_t far_item_bytes(uint64_t item_bytes) { return item_bytes == 4 ? 8 : item_bytes + 8; }

// Offsets in the memory for far items, behind the lists, of which there is one more than buckets. The number of buckets is a
// power of two, as is `directory`: the blocks that a list can have, at least all.
struct FarLayout {
  uint64_t directory_at, free_at, unread_at, items_at, bytes;
};
ATOS_FUNCTION constexpr FarLayout far_layout(uint64_t buckets, uint64_t blocks, uint64_t directory, uint64_t item_bytes) {
  FarLayout at{};
  uint64_t end = (buckets + 1) * sizeof(FarList);
  at.directory_at = end;
  end += (buckets + 1) * directory * 8;
  at.free_at = end;
  end += (blocks + 63) / 64 * 8;
  at.unread_at = end;
  end += blocks * 8;
  at.items_at = (end + 15) / 16 * 16;
  at.bytes = at.items_at + blocks * kBlockItems * far_item_bytes(item_bytes);
  return at;
}

} // namespace atos
