// Far items: items of a queue with buckets whose priority says that they are not to run yet (the far pile of near-far
// worklists, cut into the buckets of delta-stepping).
//
// An item's level is its priority divided by delta; its bucket is the level divided by the width, rounded down. Items up to the
// window's current bucket are near: workers keep them, or store them in the ring. All other items lie in lists: one for each
// bucket of the window, and one for all items beyond the window. When workers have nothing else to do, one of them opens the
// lowest bucket that has items: this worker makes the bucket's first items claimable in chunks, and moves the window to the
// bucket. To run a chunk is to push its items again.
//
// The level is stored with the item, so an item in the wrong list is no error: the window may have moved between the choice of
// a list and the store, and moves down again when an item of a lower bucket comes. When a list with such items is opened, each
// item goes where its level says.
//
// A list has tickets as the ring has: a tail, from which pushes reserve entries, and a head, up to which the list was opened.
// Its entries lie in blocks from a pool, and a directory says which block has which tickets. A far item counts as an unfinished
// task in `untracked`, from before it is stored until it was pushed again: a far item is a task that pushes itself.
#pragma once
#include "protocol/far_layout.cuh"
#include "protocol/queue_ref.cuh"
#include "protocol/split_item.cuh"

namespace atos {

constexpr uint64_t kNoBlock = ~uint64_t(0);
constexpr uint64_t kBetweenRounds = ~uint64_t(0); // a value of `most`: opens all items of the bucket, strictly in order

// At the end of a round: whether all tasks of the round ran, i.e. the tickets below `end` and the far items opened for the
// round. Far items in lists that were not opened are unfinished.
ATOS_FUNCTION bool ran_all_below(const Counters *counters, uint64_t end) {
  const uint64_t unopened = load(&counters->far.stored) - load(&counters->far.taken_out);
  return load(&counters->finished) + unopened == end + load(&counters->untracked);
}

// A view of the far items of a queue.
template <unsigned bytes> struct FarItems {
  QueueRef<bytes> queue;
  unsigned char *memory;
  uint32_t buckets, blocks, directory;

  FarItems() = default;
  explicit ATOS_FUNCTION FarItems(const QueueAddresses &at)
      : queue(at), memory(static_cast<unsigned char *>(at.far)), buckets(at.buckets), blocks(at.blocks),
        directory(at.directory) {}

  ATOS_FUNCTION FarCounters &state() const { return queue.counters->far; }
  ATOS_FUNCTION Window window() const { return Window::unpack(load(&state().window)); }

  // Counts n items as unfinished tasks, before they are stored.
  ATOS_FUNCTION void count(uint64_t n) const {
    fetch_add(&queue.counters->untracked, n);
    fetch_add(&state().stored, n);
  }

  // Whether there seem to be items that have not been opened, and no list is open.
  ATOS_FUNCTION bool can_open() const {
    const uint64_t stored = load(&state().stored), opened = load(&state().taken_out), left = load(&state().left);
    return left == 0 && stored != opened;
  }

  // The list for a level. An item of a lower bucket than the current one moves the window down to its bucket, so that the item
  // goes first.
  ATOS_FUNCTION unsigned list_of(float level, Window window) const {
    const float bucket = window.bucket_of(level), ahead = bucket - window.current;
    if (ahead < 0) move_window_down(bucket);
    if (ahead < float(buckets)) return list_of_bucket(bucket);
    uint64_t least = load(&state().least);
    while (ordered(level) < least && !compare_exchange(&state().least, least, ordered(level))) {}
    return buckets;
  }

  // After items were stored, of which the lowest has this level: moves the window down if it has passed these items since
  // `list_of`, since their list then belongs to a later bucket.
  ATOS_FUNCTION void return_to(float level) const {
    const Window window = this->window();
    const float bucket = window.bucket_of(level);
    if (bucket < window.current) move_window_down(bucket);
  }

  // Reserves n entries of a list; returns the first of their tickets.
  ATOS_FUNCTION uint64_t reserve(unsigned list, uint64_t n) const { return fetch_add(&lists()[list].tail, n); }

  // Finds the block for a reserved ticket, if the ticket is the block's first. A warp calls this for all of its tickets before
  // `put` for any, since `put` waits for the block. If no block is free, or another block still has the place in the directory,
  // the workers stop, as when the ring is full.
  ATOS_FUNCTION void begin_block(unsigned list, uint64_t ticket) const {
    if (ticket % kBlockItems) return;
    uint64_t *word = place_of_block(list, ticket);
    const uint64_t block = load(word) ? kNoBlock : take_block(list + ticket / kBlockItems);
    if (block == kNoBlock) return set_bits(&queue.counters->stop, kStopFull);
    store(word, block_word(ticket, block));
  }

  // Stores an item under its ticket; if the ticket has no block, in the spill area. A stop for another reason does not keep the
  // item from its entry: every reserved ticket of a list has its item when the workers have left. The one fence orders the
  // task's writes, the additions of `count`, and the load that found the block, whose entries are empty.
  ATOS_FUNCTION void put(unsigned list, uint64_t ticket, const Item<bytes> &item, float level) const {
    FarItem<bytes> *entry = find(list, ticket, kNoBlocks);
    fence();
    if (entry) entry->put(item, level);
    else queue.spill_one(item, far_ticket(list, ticket));
  }

  // Whether the lists have items; *level: the level at which the bucket begins that `open` opens next, as far as is known.
  // Lists that have to be looked through (`misplaced`) come before all.
  ATOS_FUNCTION bool lowest(float *level, bool between_rounds) const {
    if (load(&state().stored) == load(&state().taken_out)) return false;
    const Window window = this->window();
    const unsigned ahead = empty_from(list_of_bucket(window.current));
    const uint64_t least = load(&state().least);
    float bucket = window.current + float(ahead);
    const bool beyond = ahead == buckets || (between_rounds && reaches_beyond(window, ahead));
    if (beyond && least != kEmpty) bucket = window.bucket_of(of_ordered(least));
    *level = load(&state().misplaced) ? -INFINITY : bucket / window.inverse_width;
    return true;
  }

  // Between rounds: moves the window up to a level below which there are no items.
  ATOS_FUNCTION void move_window_up(float level) const {
    Window window = this->window();
    if (!(window.bucket_of(level) > window.current)) return;
    window.current = window.bucket_of(level);
    store(&state().window, window.pack());
  }

  ATOS_FUNCTION uint64_t open(uint64_t most, uint64_t workers, uint64_t largest) const {
    return open(most, workers, largest, [] { return true; });
  }

  // Opens the lowest bucket that has items, if the bucket opened last is worked off: at most its first `most` items, but all
  // items if they are beyond the window. Returns the number of chunks, 0 if nothing was opened. A chunk has a power of two of
  // items: `largest`, or fewer, so that `workers` get some. Asks `may_open` before, one worker at a time.
  template <class MayOpen>
  ATOS_FUNCTION uint64_t open(uint64_t most, uint64_t workers, uint64_t largest, MayOpen may_open) const {
    uint64_t busy = 0;
    if (load(&state().left) || !compare_exchange(&state().busy, busy, 1)) return 0;
    fence(); // after the writes of the last opener
    const bool all_done = load(&state().left) == 0;
    fence(); // after the reads of the workers that finished the last opener's chunks
    const uint64_t chunks = all_done && may_open() ? open_locked(most, workers, largest) : 0;
    fence();
    store(&state().busy, 0);
    return chunks;
  }

  // Whether the opened list seems to have chunks to claim.
  ATOS_FUNCTION bool has_chunk() const { return load(&state().chunks) > kChunkBias; }

  // Claims a chunk of the opened list. As with split items, claims after the last chunk are harmless.
  ATOS_FUNCTION bool claim_chunk(FarChunk *got) const {
    if (!has_chunk()) return false;
    const uint64_t unclaimed = fetch_add(&state().chunks, ~uint64_t(0));
    if (unclaimed <= kChunkBias) return false;
    fence(); // after the writes of the opener
    const uint64_t begin = load(&state().begin), end = load(&state().end), shift = load(&state().chunk_shift);
    const uint64_t last = (end - 1) >> shift, from = (last + 1 - (unclaimed - kChunkBias)) << shift; // the first chunk first
    const uint64_t to = from + (uint64_t(1) << shift);
    got->from = from < begin ? begin : from;
    got->to = to < end ? to : end;
    got->list = uint32_t(load(&state().list));
    got->again = uint32_t(load(&state().again));
    return true;
  }

  // The entry of the first ticket of a claimed chunk; the chunk's other entries follow. Null if the workers stop.
  ATOS_FUNCTION FarItem<bytes> *entries(const FarChunk &chunk) const {
    FarItem<bytes> *first = find(chunk.list, chunk.from, ~kRun);
    fence(); // the earlier contents of the entries are gone
    return first;
  }

  // Takes the item of an opened entry; waits until the item is stored. False if the workers stop meanwhile. A fence has to come
  // before the item runs, so that the item sees what was written before its push.
  ATOS_FUNCTION bool take(FarItem<bytes> *entry, Item<bytes> *item, float *level) const {
    for (Spin spin;; spin.again()) {
      if (entry->take(item, level)) return true;
      if (queue.stopped()) return false;
    }
  }

  // After all items of a chunk were taken: counts the chunk as done, and frees its block if the chunk was the block's last.
  ATOS_FUNCTION void finish_chunk(const FarChunk &chunk) const {
    fence(); // the entries are empty
    uint64_t *word = place_of_block(chunk.list, chunk.from);
    const uint64_t block = uint32_t(load(word)), n = chunk.to - chunk.from;
    if (fetch_add(&unread()[block], 0 - n) == n) {
      store(word, 0);
      store(&unread()[block], kBlockItems);
      fence();
      fetch_add(&free_blocks()[block / 64], uint64_t(1) << block % 64); // the bit is 0
    }
    fetch_add(&state().left, ~uint64_t(0));
  }

  ATOS_FUNCTION FarList *lists() const { return reinterpret_cast<FarList *>(memory); }
  ATOS_FUNCTION uint64_t *directories() const { return reinterpret_cast<uint64_t *>(memory + layout().directory_at); }
  ATOS_FUNCTION uint64_t *free_blocks() const { return reinterpret_cast<uint64_t *>(memory + layout().free_at); }
  ATOS_FUNCTION uint64_t *unread() const { return reinterpret_cast<uint64_t *>(memory + layout().unread_at); }
  ATOS_FUNCTION FarItem<bytes> *items() const { return reinterpret_cast<FarItem<bytes> *>(memory + layout().items_at); }

  static ATOS_FUNCTION float of_ordered(uint64_t order) {
    const uint32_t bits = uint32_t(order);
    return float_of(bits >> 31 ? bits & 0x7fffffffu : ~bits);
  }

private:
  // delta = "auto", when the window goes on to a bucket of `there` items. After some buckets: doubles the width if they had too
  // few items for `workers` on average, and halves the width if they had more than several batches for each worker. Also halves
  // the width if hardly any items lie beyond the bucket, which is then as wide as pushes go ahead, and so hardly orders them.
  // Returns whether the width changed: then items of all lists are in wrong lists, and have to be pushed again, so the width
  // waits until pushing them costs little.
  ATOS_FUNCTION bool adapt(Window *window, uint64_t there, uint64_t workers, uint64_t most) const {
    const uint64_t others = load(&state().stored) - load(&state().taken_out) - there;
    const uint64_t passed = load(&state().passed) + 1;
    const uint64_t inside = load(&state().inside) + there, beyond = load(&state().beyond) + others;
    const bool enough = passed >= kBucketsToAdapt && inside >= others;
    store(&state().passed, enough ? 0 : passed);
    store(&state().inside, enough ? 0 : inside);
    store(&state().beyond, enough ? 0 : beyond);
    if (!enough) return false;
    const bool narrow = inside > passed * 2 * most || 8 * beyond < inside;
    const bool widen = !narrow && inside < passed * kFewItems * workers && inside < 3 * beyond;
    if (!widen && !narrow) return false;
    const float factor = widen ? 0.5f : 2.0f, inverse_width = window->inverse_width * factor;
    if (inverse_width > kMostScale || inverse_width < 1 / kMostScale) return false; // many items of one level never get fewer
    window->current = floorf(window->current * factor);
    window->inverse_width = inverse_width;
    store(&state().misplaced, buckets + 1);
    return true;
  }

  // When only items beyond the window are left, `there` in number: doubles the width if most items of the last such time were
  // pushed beyond the window again, so that many buckets take few passes; narrows the width back to delta if few were. Leaves
  // no item in a wrong list.
  ATOS_FUNCTION void fit_window(Window *window, uint64_t there) const {
    const uint64_t before = load(&state().last_beyond);
    store(&state().last_beyond, there);
    const bool many = there > 4 * kBlockItems; // few items take few passes at any width
    const bool widen = many && there > before - before / 4;
    const bool narrow = there < before / 4 && window->inverse_width < 1 && !load(&state().adapts); // `adapt` narrows, too
    if ((!widen && !narrow) || window->inverse_width < 1 / kMostScale) return;
    const float factor = widen ? 0.5f : 2.0f;
    window->current = floorf(window->current * factor);
    window->inverse_width *= factor;
  }

  ATOS_FUNCTION FarLayout layout() const { return far_layout(buckets, blocks, directory, bytes); }
  ATOS_FUNCTION uint64_t *place_of_block(unsigned list, uint64_t ticket) const {
    return &directories()[list * uint64_t(directory) + (ticket / kBlockItems & (directory - 1))];
  }
  ATOS_FUNCTION unsigned list_of_bucket(float bucket) const { return atos::list_of_bucket(bucket, buckets); }

  ATOS_FUNCTION void move_window_down(float bucket) const {
    uint64_t seen = load(&state().window);
    for (;;) {
      Window window = Window::unpack(seen);
      if (!(bucket < window.current)) return;
      window.current = bucket;
      if (compare_exchange(&state().window, seen, window.pack())) return;
    }
  }

  // Bits of Counters::stop at which a push need not wait for the block of its ticket: the push that was to find the block found
  // none, or is gone.
  static constexpr uint64_t kNoBlocks = kStopFull | kStopElsewhere | kStopGone;

  // The entry of a ticket, whose block another push may be about to find; null if the workers stop meanwhile for one of
  // `reasons`. A fence has to come before the entry is used.
  ATOS_FUNCTION FarItem<bytes> *find(unsigned list, uint64_t ticket, uint64_t reasons) const {
    for (Spin spin;; spin.again()) {
      const uint64_t word = load(place_of_block(list, ticket));
      if (word >> 32 == block_tag(ticket)) return &items()[uint32_t(word) * kBlockItems + ticket % kBlockItems];
      if (load(&queue.counters->stop) & reasons) return nullptr;
    }
  }

  // A free block, from `hint` on, or kNoBlock.
  ATOS_FUNCTION uint64_t take_block(uint64_t hint) const {
    const uint32_t words = (blocks + 63) / 64;
    uint32_t at = uint32_t(hint) % words;
    for (uint32_t i = 0; i < words; ++i, at = at + 1 < words ? at + 1 : 0) {
      uint64_t free = load(&free_blocks()[at]);
      while (free) {
        const unsigned bit = lowest_bit(free);
        if (!compare_exchange(&free_blocks()[at], free, free & (free - 1))) continue;
        fence(); // the block's entries are empty
        return 64 * uint64_t(at) + bit;
      }
    }
    return kNoBlock;
  }

  // Items of a list that have not been opened.
  ATOS_FUNCTION uint64_t waiting(unsigned list) const {
    const uint64_t begin = load(&lists()[list].head);
    return load(&lists()[list].tail) - begin;
  }

  ATOS_FUNCTION uint64_t open_locked(uint64_t most, uint64_t workers, uint64_t largest) const {
    // After a change of the width each list is opened once for its items to be pushed again, then the window moves on.
    for (uint64_t misplaced = load(&state().misplaced); misplaced;) {
      const unsigned list = unsigned(--misplaced);
      store(&state().misplaced, misplaced);
      if (list == buckets) store(&state().least, kEmpty);
      if (const uint64_t there = waiting(list)) return open_list(list, there, true, workers, largest);
    }
    uint64_t seen = load(&state().window);
    Window window = Window::unpack(seen);
    const unsigned first = list_of_bucket(window.current), i = empty_from(first);
    bool again = i == buckets || (most == kBetweenRounds && reaches_beyond(window, i));
    const unsigned list = again ? buckets : (first + i) & (buckets - 1);
    const uint64_t there = waiting(list);
    if (there == 0) return 0;
    if (again) {
      if (i == buckets) fit_window(&window, there);
      // The lowest level is unknown while some items only have reserved tickets. All items of the list are looked at anyhow.
      const uint64_t least = load(&state().least);
      window.current = least == kEmpty ? window.current + float(buckets) : window.bucket_of(of_ordered(least));
      store(&state().least, kEmpty);
    } else if (i > 0) {
      window.current += float(i);
      again = load(&state().adapts) && adapt(&window, there, workers, most);
    }
    compare_exchange(&state().window, seen, window.pack()); // unless the window has moved down meanwhile
    return open_list(list, again || there < most ? there : most, again, workers, largest);
  }

  // Whether items stored as beyond the window may belong to the bucket that is `ahead` of the current one, or to a lower one.
  // Between rounds these items are looked through first; otherwise when nothing is left in the window, which takes fewer
  // passes.
  ATOS_FUNCTION bool reaches_beyond(Window window, unsigned ahead) const {
    const uint64_t least = load(&state().least);
    return least != kEmpty && window.bucket_of(of_ordered(least)) <= window.current + float(ahead);
  }

  // The number of the window's lists, from `first` on, that have no items. Loads of several lists take as long as one.
  ATOS_FUNCTION unsigned empty_from(unsigned first) const {
    constexpr unsigned kAtOnce = 4;
    for (unsigned i = 0; i < buckets; i += kAtOnce) {
      uint64_t there[kAtOnce];
      for (unsigned k = 0; k < kAtOnce; ++k) there[k] = waiting((first + i + k) & (buckets - 1));
      for (unsigned k = 0; k < kAtOnce && i + k < buckets; ++k)
        if (there[k]) return i + k;
    }
    return buckets;
  }

  // Makes the first n items of a list claimable; returns the number of chunks.
  ATOS_FUNCTION uint64_t open_list(unsigned list, uint64_t n, bool again, uint64_t workers, uint64_t largest) const {
    const uint64_t begin = load(&lists()[list].head);
    store(&lists()[list].head, begin + n);
    store(&state().taken_out, load(&state().taken_out) + n);
    uint64_t shift = 0;
    while ((uint64_t(2) << shift) <= largest) ++shift;
    while ((uint64_t(1) << shift) > kLeastChunk && (workers << shift) / 2 >= n) --shift;
    const uint64_t chunks = ((begin + n - 1) >> shift) - (begin >> shift) + 1;
    store(&state().chunk_shift, shift);
    store(&state().again, again);
    store(&state().list, list);
    store(&state().begin, begin);
    store(&state().end, begin + n);
    store(&state().left, chunks);
    fence();
    store(&state().chunks, kChunkBias + chunks);
    return chunks;
  }
};

} // namespace atos
