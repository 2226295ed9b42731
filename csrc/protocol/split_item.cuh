// Split items: long items cut into chunks that any warp or CTA worker can claim (self-scheduling of a loop, in chunks), so that
// an item of 160,000 iterations does not hold one worker while the others wait. A few items can be split at a time, each in an
// entry of a table. The *owner* of a split item is the worker whose batch has the item; if the entry is taken, the owner runs
// the item alone.
#pragma once
#include "protocol/counters.h"
#include "protocol/slot.cuh"
#include "protocol/tuning.h"

namespace atos {

constexpr int kValueWords = ATOS_MAX_VALUE_WORDS;

// An entry of the table, which has one owner at a time: while `busy` is not 0. `chunks` is a bias plus the number of unclaimed
// chunks. A worker claims a chunk by subtracting one. Several workers may try for the last chunk, so `chunks` can fall below
// the bias; without the bias, `chunks` would wrap around to a huge number. The next owner stores `chunks` anew. Bit i of
// `counters->splits_open` says that entry i may have unclaimed chunks: workers search that one word, not the table.
struct alignas(128) SplitItem {
  uint64_t chunks;
  uint64_t left; // chunks that are not finished
  uint64_t busy; // not 0 while the entry is taken: 1, or with counters a number of its owner
  uint64_t length;
  uint64_t item[kMostItemBytes / 8];
  uint64_t values[kValueWords];
};

constexpr uint64_t kChunkBias = uint64_t(1) << 31;

#if defined(__CUDACC__)

// A chunk to run: iterations [from, to) of an item.
struct Chunk {
  int64_t from, to;
  int32_t split; // the item's entry in the table, or -1: the item is not split
};

// [one lane] Makes the chunks of an item claimable; false if its entry is taken. `counted`: the item was counted as unfinished
// when it was pushed, since it has a ticket or is a far item. A local item (push_buffer.cuh) was not counted then; since other
// workers may finish it now, it is counted here, in `untracked`.
template <unsigned bytes> ATOS_DEVICE bool split_item(Counters *counters, SplitItem *split_items, unsigned hint,
                                                      const Item<bytes> &item, const uint64_t *values, int value_words,
                                                      uint64_t length, uint64_t chunk, bool counted, uint64_t owner = 1) {
  const unsigned at = hint % kSplitItems;
  SplitItem &split = split_items[at];
  uint64_t busy = 0;
  if (!compare_exchange(&split.busy, busy, owner)) return false;
  // Pairs with the fence before `busy` in `finish_chunk`: all workers have finished reading the entry's old words.
  fence(); // before the words are overwritten
  const uint64_t chunks = (length + chunk - 1) / chunk;
  if constexpr (bytes == 4) store(&split.item[0], item.word);
  else
    for (unsigned i = 0; i < bytes / 8; ++i) store(&split.item[i], item.word[i]);
  for (int i = 0; i < value_words; ++i) store(&split.values[i], values[i]);
  store(&split.length, length);
  store(&split.left, chunks);
  if (!counted) fetch_add(&counters->untracked, 1); // before any chunk can be finished
  // The bit is set before chunks can be claimed: the worker that claims the last chunk clears the bit, and must not clear it
  // earlier.
  set_bit(&counters->splits_open, at);
  fence();
  store(&split.chunks, kChunkBias + chunks);
  return true;
}

// [one lane] Claims a chunk of some split item; copies that item and its values.
template <unsigned bytes> ATOS_DEVICE bool claim_chunk(Counters *counters, SplitItem *split_items, unsigned hint,
                                                       Item<bytes> *item, uint64_t *values, int value_words, uint64_t chunk,
                                                       Chunk *got) {
  uint64_t open = load(&counters->splits_open);
  while (open) {
    // Workers begin their search at different bits.
    const unsigned rotation = hint % kSplitItems;
    const uint64_t rotated = open >> rotation | (rotation ? open << (kSplitItems - rotation) : 0);
    const unsigned at = (__ffsll(rotated) - 1 + rotation) % kSplitItems;
    SplitItem &split = split_items[at];
    open &= ~(uint64_t(1) << at);
    if (load(&split.chunks) <= kChunkBias) continue;
    const uint64_t unclaimed = fetch_add(&split.chunks, ~uint64_t(0));
    if (unclaimed <= kChunkBias) continue;
    // Pairs with the fence before `chunks` in `split_item`.
    fence(); // after the writes of the owner, also of the bit
    if (unclaimed == kChunkBias + 1) clear_bit(&counters->splits_open, at);
    const uint64_t number = unclaimed - kChunkBias - 1, length = load(&split.length);
    got->from = int64_t(number * chunk);
    got->to = int64_t(number * chunk + chunk < length ? number * chunk + chunk : length);
    got->split = int32_t(at);
    if constexpr (bytes == 4) item->word = uint32_t(load(&split.item[0]));
    else
      for (unsigned i = 0; i < bytes / 8; ++i) item->word[i] = load(&split.item[i]);
    for (int i = 0; i < value_words; ++i) values[i] = load(&split.values[i]);
    return true;
  }
  return false;
}

// [one lane] Counts a chunk as finished, after the flush of its pushes; true if it was the item's last one.
ATOS_DEVICE bool finish_chunk(SplitItem *split_items, int32_t at) {
  fence();
  if (fetch_add(&split_items[at].left, ~uint64_t(0)) != 1) return false;
  fence();
  store(&split_items[at].busy, 0);
  return true;
}

#endif

} // namespace atos
