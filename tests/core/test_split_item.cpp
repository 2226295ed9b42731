// The sharing of long items (csrc/protocol/split_item.cuh), which is device code, compiled for the host so that its races can be staged.
#include "protocol/queue_ref.cuh"

#include <atomic>
#include <functional>
#include <thread>

#include "check.h"

namespace atos {

std::function<void()> before_set_bit;   // what another worker does before a split item is marked as open
uint64_t stale_open = 0;                // bits that a worker read before they were cleared
thread_local bool with_stale_open = false;
const uint64_t *open_word = nullptr;

inline void set_bit(uint64_t *p, unsigned bit) {
  if (before_set_bit) std::exchange(before_set_bit, nullptr)();
  __atomic_fetch_or(p, uint64_t(1) << bit, __ATOMIC_ACQ_REL);
}
inline void clear_bit(uint64_t *p, unsigned bit) { __atomic_fetch_and(p, ~(uint64_t(1) << bit), __ATOMIC_ACQ_REL); }
inline uint64_t load_or_stale(const uint64_t *p) {
  return with_stale_open && p == open_word ? std::exchange(with_stale_open, false), stale_open : load(p);
}

} // namespace atos

#define __CUDACC__
#define __device__
#define __forceinline__ inline
#define __ffsll(x) __builtin_ffsll(static_cast<long long>(x))
#define load load_or_stale
#include "protocol/split_item.cuh"
#undef load

using namespace atos;

namespace {

struct World {
  Counters counters{};
  std::vector<SplitItem> split_items{kSplitItems};

  bool open(unsigned hint, uint64_t value, uint64_t length, uint64_t chunk, bool counted = true) {
    const uint64_t values[2] = {value * 3, ~value};
    return split_item<8>(&counters, split_items.data(), hint, Item<8>{{value}}, values, 2, length, chunk,
                         counted);
  }
  bool claim(unsigned hint, uint64_t chunk, uint64_t *value, Chunk *got) {
    Item<8> item{};
    uint64_t values[2] = {};
    if (!claim_chunk<8>(&counters, split_items.data(), hint, &item, values, 2, chunk, got)) return false;
    *value = item.word[0];
    CHECK(values[0] == *value * 3 && values[1] == ~*value, "the values are those of another item");
    return true;
  }
};

} // namespace

TEST(chunks_cover_an_item_once) {
  World world;
  for (const uint64_t length : {1, 99, 100, 101, 4096, 4097, 10000}) {
    for (unsigned hint : {0u, 1u, 63u, 64u, 200u}) {
      CHECK(world.open(hint, 7, length, 100), "there is no place");
      CHECK(!world.open(hint, 8, length, 100), "a place was given twice");
      CHECK(load(&world.counters.splits_open) == 1ull << hint % kSplitItems, "the wrong bit is set");
      std::vector<int> times(length);
      uint64_t value;
      Chunk chunk;
      int last = 0;
      while (world.claim(5, 100, &value, &chunk)) {
        CHECK(value == 7 && chunk.split == int(hint % kSplitItems), "chunk of split item %d", chunk.split);
        CHECK(0 <= chunk.from && chunk.from < chunk.to && chunk.to <= int64_t(length), "iterations %" PRId64 " to %" PRId64, chunk.from, chunk.to);
        for (int64_t i = chunk.from; i < chunk.to; ++i) ++times[i];
        CHECK(last == 0, "a chunk came after the last one was done");
        last += finish_chunk(world.split_items.data(), chunk.split);
      }
      for (const int n : times) CHECK(n == 1, "an iteration ran %d times", n);
      CHECK(last == 1 && load(&world.counters.splits_open) == 0, "the split item does not end");
    }
  }
}

template <unsigned bytes> void an_item_comes_whole() {
  World world;
  Item<bytes> item{}, back{};
  unsigned char *raw = reinterpret_cast<unsigned char *>(&item);
  for (unsigned i = 0; i < bytes; ++i) raw[i] = static_cast<unsigned char>(i + 1);
  const uint64_t values[kValueWords] = {1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(split_item<bytes>(&world.counters, world.split_items.data(), 3, item, values, kValueWords, 100, 100, true), "no place");
  uint64_t values_back[kValueWords] = {};
  Chunk chunk;
  CHECK(claim_chunk<bytes>(&world.counters, world.split_items.data(), 0, &back, values_back, kValueWords, 100, &chunk), "no chunk");
  CHECK(!std::memcmp(&item, &back, bytes), "another item of %u bytes came", bytes);
  CHECK(!std::memcmp(values, values_back, sizeof values), "other values came with an item of %u bytes", bytes);
}

TEST(an_item_of_4_bytes_comes_whole) { an_item_comes_whole<4>(); }
TEST(an_item_of_16_bytes_comes_whole) { an_item_comes_whole<16>(); }
TEST(an_item_of_32_bytes_comes_whole) { an_item_comes_whole<32>(); }

TEST(a_place_is_free_only_after_the_last_chunk_is_done) {
  World world;
  CHECK(world.open(0, 1, 200, 100), "there is no place");
  uint64_t value;
  Chunk first, second, none;
  CHECK(world.claim(0, 100, &value, &first) && world.claim(0, 100, &value, &second), "there are two chunks");
  CHECK(!world.claim(0, 100, &value, &none), "there is a third");
  CHECK(!world.open(0, 2, 200, 100), "the place is free though two chunks run");
  CHECK(!finish_chunk(world.split_items.data(), second.split) && !world.open(0, 2, 200, 100), "the place is free though a chunk runs");
  CHECK(finish_chunk(world.split_items.data(), first.split) && world.open(0, 2, 200, 100), "the place is not free");
}

// A worker may read the bits of open split items, then see a split item closed and opened anew before it claims. If it claims the last
// chunk before the owner marks the split item as open, the mark must not stay behind: workers would look for chunks for ever.
TEST(a_share_claimed_before_its_bit_is_set_leaves_no_bit_behind) {
  World world;
  open_word = &world.counters.splits_open;
  stale_open = 1;
  uint64_t value;
  Chunk chunk{};
  bool claimed = false;
  before_set_bit = [&] {
    with_stale_open = true;
    claimed = world.claim(0, 4096, &value, &chunk);
  };
  CHECK(world.open(0, 1, 4096, 4096), "there is no place");
  open_word = nullptr;
  if (!claimed) CHECK(world.claim(0, 4096, &value, &chunk), "the chunk is not to be had");
  CHECK(finish_chunk(world.split_items.data(), chunk.split), "it was the only chunk");
  CHECK(load(&world.counters.splits_open) == 0, "the bit of a split item without chunks is set");
}

// An item that has no ticket counts as unfinished before anybody can take a chunk of it, and so finish it.
TEST(an_item_without_a_ticket_counts_before_it_can_be_claimed) {
  World world;
  uint64_t counted = 99, value;
  Chunk chunk{};
  bool claimed = true;
  before_set_bit = [&] {
    claimed = world.claim(0, 4096, &value, &chunk);
    counted = world.counters.untracked;
  };
  CHECK(world.open(0, 1, 4096, 4096, false), "there is no place");
  CHECK(!claimed && counted == 1, "%" PRIu64 " counted when a chunk could be claimed", counted);
  CHECK(world.open(1, 1, 4096, 4096) && world.counters.untracked == 1, "an item with a ticket counts by that alone");
  CHECK(!world.open(0, 1, 4096, 4096, false) && world.counters.untracked == 1, "an item that found no place was counted");
}

// Owners open items in few places while all claim: every iteration of every item runs once, and nothing stays open. Who claims a
// chunk sees what its owner wrote before, and who does the last one what the others did, in plain memory.
TEST(owners_and_helpers) {
  constexpr uint64_t kItems = 300, kThreads = 4, kChunk = 64;
  World world;
  check::Random lengths(1);
  std::vector<std::vector<uint8_t>> times;
  for (uint64_t i = 0; i < kItems * kThreads; ++i) times.emplace_back(1 + lengths.below(500));
  std::vector<int> opened(times.size()), done(times.size());
  std::vector<std::thread> threads;
  std::atomic<uint64_t> all_done{0};
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      uint64_t next = 0;
      while (all_done.load(std::memory_order_relaxed) < times.size()) {
        if (next < kItems) {
          const uint64_t item = t * kItems + next;
          opened[item] = 1;
          if (world.open(unsigned(item % 3), item, times[item].size(), kChunk)) ++next;
        }
        uint64_t value;
        Chunk chunk;
        while (world.claim(unsigned(t), kChunk, &value, &chunk)) {
          CHECK(opened[value], "item %" PRIu64 " came without its memory", value);
          for (int64_t i = chunk.from; i < chunk.to; ++i) ++times[value][i];
          if (finish_chunk(world.split_items.data(), chunk.split)) {
            for (const uint8_t n : times[value]) CHECK(n == 1, "an iteration of item %" PRIu64 " ran %d times", value, n);
            ++done[value];
            all_done.fetch_add(1, std::memory_order_relaxed); // which orders nothing
          }
        }
      }
    });
  for (std::thread &thread : threads) thread.join();
  for (uint64_t i = 0; i < times.size(); ++i) {
    CHECK(done[i] == 1, "item %" PRIu64 " ended %d times", i, done[i]);
    for (const uint8_t n : times[i]) CHECK(n == 1, "an iteration of item %" PRIu64 " ran %d times", i, n);
  }
  CHECK(load(&world.counters.splits_open) == 0, "the bit of a split item without chunks is set");
}
