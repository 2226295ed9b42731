#include "host/far_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "host/status.h"

namespace atos {
namespace {

constexpr uint64_t kCopiedEntries = 1 << 15; // entries copied at once, to the device or from there

// The entries of far items, seen from the host as raw memory.
template <class F> void with_far_items(uint32_t item_bytes, F f) {
  if (item_bytes == 4) f(FarItem<4>{});
  else if (item_bytes == 8) f(FarItem<8>{});
  else if (item_bytes == 16) f(FarItem<16>{});
  else f(FarItem<32>{});
}

// Takes the items of n entries, as far as they have some, and leaves the entries empty.
template <class Entry> void take_items(Entry *entries, uint64_t n, std::vector<LeveledItem> *all) {
  auto value = Entry::none();
  for (uint64_t i = 0; i < n; ++i) {
    LeveledItem one{};
    if (!entries[i].take(&value, &one.level)) continue;
    std::memcpy(one.item, &value, sizeof value);
    all->push_back(one);
  }
}

} // namespace

std::vector<uint64_t> FarMemory::read(uint64_t offset, uint64_t words) const {
  std::vector<uint64_t> result(words);
  backend.copy(result.data(), memory + offset, words * 8);
  return result;
}
void FarMemory::write(uint64_t offset, const std::vector<uint64_t> &words) const {
  backend.copy(memory + offset, words.data(), words.size() * 8);
}

// f(offset, from, n): the places of n blocks of a list in its directory, from one on, some at a time.
template <class F> void FarMemory::for_places(unsigned list, uint64_t first_block, uint64_t n, F f) const {
  for (uint64_t done = 0, some; done < n; done += some) {
    const uint64_t place = (first_block + done) & (directory - 1);
    some = std::min(n - done, directory - place);
    f(at.directory_at + (uint64_t(list) * directory + place) * 8, done, some);
  }
}
std::vector<uint64_t> FarMemory::read_words(unsigned list, uint64_t first_block, uint64_t n) const {
  std::vector<uint64_t> words(n);
  for_places(list, first_block, n,
             [&](uint64_t offset, uint64_t from, uint64_t some) { backend.copy(&words[from], memory + offset, some * 8); });
  return words;
}
void FarMemory::write_words(unsigned list, uint64_t first_block, const std::vector<uint64_t> &words) const {
  for_places(list, first_block, words.size(),
             [&](uint64_t offset, uint64_t from, uint64_t some) { backend.copy(memory + offset, &words[from], some * 8); });
}

void FarMemory::empty() const {
  const uint64_t zero = 0, ones = ~uint64_t(0), all = kBlockItems;
  backend.fill(memory, &zero, 8, at.free_at / 8);
  backend.fill(memory + at.free_at, &ones, 8, blocks / 64);
  if (blocks % 64) write(at.free_at + blocks / 64 * 8, {(uint64_t(1) << blocks % 64) - 1});
  backend.fill(memory + at.unread_at, &all, 8, blocks);
  backend.fill(memory + at.items_at, &ones, 8, (at.bytes - at.items_at) / 8);
}

bool FarMemory::find_room(const std::vector<uint64_t> &counts, Room *room) const {
  room->lists.resize(buckets + 1);
  room->words.resize(buckets + 1);
  backend.copy(room->lists.data(), memory, room->lists.size() * sizeof(FarList));
  room->free_blocks = read(at.free_at, (blocks + 63) / 64);
  uint64_t looked_at = 0; // words of free blocks
  for (unsigned list = 0; list <= buckets; ++list) {
    if (!counts[list]) continue;
    const FarList &its = room->lists[list];
    const uint64_t first = its.tail / kBlockItems, last = (its.tail + counts[list] - 1) / kBlockItems;
    if (last - its.head / kBlockItems >= directory) return false;
    std::vector<uint64_t> &words = room->words[list];
    if (its.tail % kBlockItems) words = read_words(list, first, 1);
    while (words.size() <= last - first) {
      while (looked_at < room->free_blocks.size() && !room->free_blocks[looked_at]) ++looked_at;
      if (looked_at == room->free_blocks.size()) return false;
      uint64_t &free = room->free_blocks[looked_at];
      const uint64_t block = 64 * looked_at + uint64_t(__builtin_ctzll(free));
      free &= free - 1;
      words.push_back(block_word((first + words.size()) * kBlockItems, block));
    }
  }
  return true;
}

void FarMemory::add(const std::vector<LeveledItem> &items, Window window, Room &room) const {
  std::vector<FarList> lists = room.lists;
  with_far_items(item_bytes, [&](auto none) {
    using Entry = decltype(none);
    struct Run { // entries that lie one behind the other, from one on
      uint64_t first = 0;
      std::vector<Entry> entries;
    };
    const uint64_t most = std::max<uint64_t>(kBlockItems, kCopiedEntries / (buckets + 1));
    std::vector<Run> runs(buckets + 1);
    const auto store = [&](Run &run) {
      if (run.entries.empty()) return;
      backend.copy(memory + at.items_at + run.first * sizeof(Entry), run.entries.data(), run.entries.size() * sizeof(Entry));
      run.entries.clear();
    };
    for (const LeveledItem &each : items) {
      if (window.is_near(each.level)) continue;
      const unsigned list = list_of(each.level, window);
      const uint64_t ticket = lists[list].tail++;
      const uint64_t place = entry_at(room.words[list][ticket / kBlockItems - room.lists[list].tail / kBlockItems], ticket);
      Run &run = runs[list];
      if (run.entries.size() == most || place != run.first + run.entries.size()) store(run), run.first = place;
      auto value = Entry::none();
      std::memcpy(&value, each.item, sizeof value);
      run.entries.emplace_back();
      run.entries.back().put(value, each.level);
    }
    for (Run &run : runs) store(run);
  });
  for (unsigned list = 0; list <= buckets; ++list)
    if (!room.words[list].empty()) write_words(list, room.lists[list].tail / kBlockItems, room.words[list]);
  write(at.free_at, room.free_blocks);
  backend.copy(memory, lists.data(), lists.size() * sizeof(FarList));
}

void FarMemory::read_lists(const FarCounters &state, Lists *its) const {
  its->lists.resize(buckets + 1);
  backend.copy(its->lists.data(), memory, its->lists.size() * sizeof(FarList));
  its->open = unsigned(state.list), its->begin = state.begin, its->unclaimed = its->end = state.end;
  if (state.chunks > kChunkBias) { // the first chunks were claimed first
    const uint64_t last = (state.end - 1) >> state.chunk_shift;
    its->unclaimed = std::max(state.begin, (last + 1 - (state.chunks - kChunkBias)) << state.chunk_shift);
  }
  its->lists[its->open].head = its->unclaimed;
  for (const FarList &list : its->lists) its->unopened += list.tail - list.head;
  if (its->begin == its->unclaimed) return;
  const uint64_t first = its->begin / kBlockItems;
  its->words = read_words(its->open, first, (its->unclaimed - 1) / kBlockItems - first + 1);
  its->unread = read(at.unread_at, blocks);
  its->free_blocks = read(at.free_at, (blocks + 63) / 64);
  with_far_items(item_bytes, [&](auto none) {
    std::vector<decltype(none)> entries(kBlockItems);
    for (uint64_t i = 0; i < its->words.size(); ++i) {
      const uint64_t from = std::max(its->begin, (first + i) * kBlockItems);
      const uint64_t n = std::min(its->unclaimed, (first + i + 1) * kBlockItems) - from;
      if (its->words[i] >> 32 != block_tag(from)) continue; // all of it was taken
      backend.copy(entries.data(), memory + at.items_at + entry_at(its->words[i], from) * sizeof none, n * sizeof none);
      take_items(entries.data(), n, &its->left);
    }
  });
}

bool FarMemory::cut(const std::vector<TicketItem> &spilled, Lists *lists) const {
  std::vector<uint64_t> counts(buckets + 1), lowest(buckets + 1, ~uint64_t(0));
  for (const TicketItem &its : spilled) {
    const unsigned list = list_of_ticket(its.ticket);
    ++counts[list], lowest[list] = std::min(lowest[list], ticket_in_list(its.ticket));
  }
  for (unsigned list = 0; list <= buckets; ++list) {
    if (!counts[list]) continue;
    FarList &its = lists->lists[list];
    if (lowest[list] < its.head || its.tail - counts[list] != lowest[list]) return false;
    const uint64_t first = (lowest[list] + kBlockItems - 1) / kBlockItems, end = (its.tail + kBlockItems - 1) / kBlockItems;
    if (end - first > directory) return false;
    for (const uint64_t word : read_words(list, first, end - first))
      if (word) return false; // a block that came too late
    its.tail = lowest[list];
    lists->unopened -= counts[list];
  }
  return true;
}

void FarMemory::close(Lists &its) const {
  backend.copy(memory, its.lists.data(), its.lists.size() * sizeof(FarList));
  if (its.begin == its.unclaimed) return;
  const uint64_t first = its.begin / kBlockItems, ones = ~uint64_t(0);
  const uint64_t entry_words = far_item_bytes(item_bytes) / 8;
  for (uint64_t i = 0; i < its.words.size(); ++i) {
    const uint64_t from = std::max(its.begin, (first + i) * kBlockItems), end = (first + i + 1) * kBlockItems;
    uint64_t &word = its.words[i];
    if (word >> 32 != block_tag(from)) continue;
    const uint64_t block = uint32_t(word), n = std::min(its.unclaimed, end) - from;
    backend.fill(memory + at.items_at + entry_at(word, from) * entry_words * 8, &ones, 8, n * entry_words);
    its.unread[block] = end <= its.unclaimed ? kBlockItems : end - its.unclaimed;
    if (end > its.unclaimed) continue;
    its.free_blocks[block / 64] |= uint64_t(1) << block % 64;
    word = 0;
  }
  write_words(its.open, first, its.words);
  write(at.unread_at, its.unread);
  write(at.free_at, its.free_blocks);
}

void FarMemory::read_items(std::vector<LeveledItem> *all) const {
  with_far_items(item_bytes, [&](auto none) {
    const unsigned char *from = memory + at.items_at;
    std::vector<decltype(none)> entries(std::min(blocks * kBlockItems, kCopiedEntries));
    for (uint64_t left = blocks * kBlockItems, some; left; left -= some, from += some * sizeof none) {
      some = std::min<uint64_t>(left, entries.size());
      backend.copy(entries.data(), from, some * sizeof none);
      take_items(entries.data(), some, all);
    }
  });
}

} // namespace atos
