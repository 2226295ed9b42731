// The memory for far items of a queue, as words of the model, and what the host does with it (csrc/host/prioritized.cpp).
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "host.hpp"
#include "protocol/far_items.cuh"

namespace model {

struct FarMemory {
  using Counters = atos::FarCounters;
  static constexpr unsigned kWords = 128;
  static constexpr unsigned kEntryWords = sizeof(atos::FarItem<BYTES>) / 8; // the last one has the level
  struct Entry {
    unsigned item, level;
  };

  alignas(32) uint64_t words[kWords]{};

  static unsigned directory() {
    unsigned power = 1;
    while (power < bounds.blocks) power *= 2;
    return power;
  }
  static atos::FarLayout layout() { return atos::far_layout(bounds.buckets, bounds.blocks, directory(), BYTES); }
  static unsigned entries() { return bounds.buckets ? bounds.blocks * unsigned(atos::kBlockItems) : 0; }
  uint64_t &word(uint64_t at, uint64_t i) { return words[at / 8 + i]; }
  uint64_t &tail(unsigned list) { return words[list * sizeof(atos::FarList) / 8]; }
  uint64_t &head(unsigned list) { return words[list * sizeof(atos::FarList) / 8 + 1]; }
  uint64_t &entry(unsigned number, unsigned k) { return word(layout().items_at, number * kEntryWords + k); }

  // All lists empty, all blocks free.
  void empty() {
    const atos::FarLayout at = layout();
    for (uint64_t i = 0; i < at.free_at / 8; ++i)
      if (i % 4 < 2 || i >= at.directory_at / 8) set(words[i], 0);
    set(word(at.free_at, 0), (uint64_t(1) << bounds.blocks) - 1);
    for (unsigned block = 0; block < bounds.blocks; ++block) set(word(at.unread_at, block), atos::kBlockItems);
    for (unsigned i = 0; i < entries(); ++i)
      for (unsigned k = 0; k < kEntryWords; ++k) set(entry(i, k), atos::kEmpty);
  }

  // Puts items into the lists of their buckets, in a window whose current bucket is given. `used`: whether the memory may have some.
  void provide(Counters &c, uint64_t &untracked, float current, const std::vector<Entry> &far, bool used) {
    for (uint64_t *zero : {&c.chunks, &c.left, &c.busy, &c.list, &c.begin, &c.end, &c.chunk_shift, &c.opened, &c.again, &c.taken_out,
                           &c.last_beyond, &c.passed, &c.inside, &c.beyond, &c.misplaced})
      set(*zero, 0);
    set(c.window, atos::Window{current, 1}.pack());
    if (bounds.devices) set(c.next, atos::bits_of(current));
    set(c.adapts, bounds.adapts);
    set(c.stored, far.size());
    set(c.least, atos::kEmpty);
    if (used || !far.empty()) empty();
    uint64_t block = 0;
    for (unsigned list = 0; list <= bounds.buckets; ++list) {
      uint64_t ticket = 0;
      for (const Entry &each : far) {
        const float level = float(each.level);
        if ((level - current < float(bounds.buckets) ? atos::list_of_bucket(level, bounds.buckets) : bounds.buckets) != list) continue;
        const uint64_t place = list * directory() + ticket / atos::kBlockItems, level_bits = atos::bits_of(level);
        if (ticket % atos::kBlockItems == 0) set(word(layout().directory_at, place), atos::block_word(ticket, block++));
        const unsigned number = unsigned((block - 1) * atos::kBlockItems + ticket++ % atos::kBlockItems);
        set(entry(number, 0), each.item);
        set(entry(number, kEntryWords - 1), BYTES == 4 ? level_bits << 32 | each.item : level_bits);
        if (list == bounds.buckets) set(c.least, std::min(now(c.least), atos::ordered(level)));
      }
      set(tail(list), ticket);
    }
    set(word(layout().free_at, 0), now(word(layout().free_at, 0)) >> block << block);
    set(untracked, far.size());
  }

  // The items in the lists.
  std::vector<unsigned> peek() {
    std::vector<unsigned> all;
    for (unsigned i = 0; i < entries(); ++i)
      if (now(entry(i, kEntryWords - 1)) != atos::kEmpty) all.push_back(unsigned(now(entry(i, 0))));
    return all;
  }

  // After a stop for which no item was spilled, lists stay as they are (FarMemory::read_lists): each item that nobody has claimed
  // is in the entry of its ticket, whose block is known.
  void check_lists(const Counters &c) {
    const uint64_t chunks = now(c.chunks) > atos::kChunkBias ? now(c.chunks) - atos::kChunkBias : 0, shift = now(c.chunk_shift);
    for (unsigned list = 0; list <= bounds.buckets; ++list) {
      uint64_t ticket = now(head(list));
      if (chunks && now(c.list) == list)
        ticket = std::max(now(c.begin), (((now(c.end) - 1) >> shift) + 1 - chunks) << shift);
      for (; ticket < now(tail(list)); ++ticket) {
        const uint64_t place = ticket / atos::kBlockItems & (directory() - 1);
        const uint64_t word = now(this->word(layout().directory_at, list * directory() + place));
        const unsigned number = unsigned(uint32_t(word) * atos::kBlockItems + ticket % atos::kBlockItems);
        if (word >> 32 != atos::block_tag(ticket)) fail("a ticket of a list has no block");
        else if (now(entry(number, kEntryWords - 1)) == atos::kEmpty) fail("a ticket of a list has no item");
      }
    }
  }

  // At the end of a launch: nothing is left, and every block is free or has room for more.
  void check_end(const Counters &c) {
    if (!peek().empty()) fail("a far item was left");
    uint64_t used = 0; // by the items of unfinished blocks
    for (unsigned list = 0; list <= bounds.buckets; ++list) {
      if (now(head(list)) != now(tail(list))) fail("a list is not empty");
      used += now(tail(list)) % atos::kBlockItems != 0;
    }
    if (now(c.left) || now(c.busy) || now(c.chunks) > atos::kChunkBias || now(c.stored) != now(c.taken_out))
      fail("a list is open at the end");
    if (uint64_t(__builtin_popcountll(now(word(layout().free_at, 0)))) + used != bounds.blocks) fail("a block was lost");
  }

  // Names the words for `name`, those of device `of`; false if there are too few.
  template <class Name> bool name_words(Counters &f, const std::string &of, Name name) {
    const atos::FarLayout at = layout();
    if (at.bytes > sizeof words) return false;
    const bool strong = !bounds.weak; // what the opener writes alone is read behind `chunks`
    name(f.window, "window" + of, false, false), name(f.least, "least" + of, false, true);
    name(f.chunks, "far chunks" + of, false, true), name(f.left, "far left" + of, false, false);
    name(f.busy, "far busy" + of, false, false), name(f.list, "far list" + of, strong, false);
    name(f.begin, "far begin" + of, strong, false), name(f.end, "far end" + of, strong, false);
    name(f.chunk_shift, "far chunk shift" + of, strong, false), name(f.opened, "far opened" + of, strong, false);
    name(f.again, "far again" + of, strong, false), name(f.taken_out, "taken out" + of, false, false);
    name(f.adapts, "adapts" + of, true, false), name(f.last_beyond, "last beyond" + of, true, false);
    name(f.passed, "passed" + of, true, false), name(f.inside, "inside" + of, true, false);
    name(f.beyond, "beyond" + of, true, false), name(f.misplaced, "misplaced" + of, strong, false);
    name(f.stored, "stored" + of, false, false);
    if (bounds.devices) name(f.next, "next" + of, false, false);
    for (unsigned list = 0; list <= bounds.buckets; ++list) {
      const std::string number = std::to_string(list);
      name(tail(list), "list " + number + " tail" + of, false, false), name(head(list), "list " + number + " head" + of, strong, false);
      for (unsigned i = 0; i < directory(); ++i)
        name(word(at.directory_at, list * directory() + i), "directory " + number + "." + std::to_string(i) + of, false, false);
    }
    name(word(at.free_at, 0), "free" + of, false, false);
    for (unsigned i = 0; i < bounds.blocks; ++i) name(word(at.unread_at, i), "unread " + std::to_string(i) + of, false, false);
    for (unsigned i = 0; i < entries(); ++i)
      for (unsigned k = 0; k < kEntryWords; ++k)
        name(entry(i, k), "entry " + std::to_string(i) + (k + 1 == kEntryWords ? "" : " item") + of, false, false);
    return true;
  }
};

} // namespace model
