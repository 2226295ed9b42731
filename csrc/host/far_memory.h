// FarMemory: the far items of a queue (protocol/far_items.cuh) in the memory of its device, as the host reads and writes them
// while no workers run.
#pragma once
#include <vector>

#include "host/backend.h"
#include "host/in_place_recovery.h"
#include "protocol/counters.h"
#include "protocol/far_items.cuh"

namespace atos {

// An item and its level.
struct LeveledItem {
  unsigned char item[kMostItemBytes];
  float level;
};

class FarMemory {
public:
  const uint32_t buckets, blocks, directory, item_bytes; // as in FarItems
  const FarLayout at;

  FarMemory(Backend &backend, void *memory, uint32_t buckets, uint32_t blocks, uint32_t directory, uint32_t item_bytes)
      : buckets(buckets), blocks(blocks), directory(directory), item_bytes(item_bytes),
        at(far_layout(buckets, blocks, directory, item_bytes)), backend(backend), memory(static_cast<unsigned char *>(memory)) {
  }

  // All lists empty, all blocks free.
  void empty() const;

  // The list of a level that is not near.
  unsigned list_of(float level, Window window) const {
    const float bucket = window.bucket_of(level);
    return bucket - window.current < float(buckets) ? list_of_bucket(bucket, buckets) : buckets;
  }

  // Room behind the items of each list. `find_room` only reads; false if there are too few blocks.
  struct Room {
    std::vector<FarList> lists;
    std::vector<std::vector<uint64_t>> words; // words of the directory, for each list: from the block of the list's tail on
    std::vector<uint64_t> free_blocks;
  };
  bool find_room(const std::vector<uint64_t> &counts, Room *room) const;
  // Stores the items that are not near, as many in each list as `counts` said.
  void add(const std::vector<LeveledItem> &items, Window window, Room &room) const;

  // The lists after a stop. Workers had claimed the open list's chunks up to the ticket `unclaimed`, and took all of their
  // items but those of `left`. `read_lists` only reads; `close` empties those chunks, and gives the chunks that nobody claimed
  // back to the list.
  struct Lists {
    std::vector<LeveledItem> left;
    uint64_t unopened = 0; // items of all lists but the claimed chunks
    unsigned open = 0;
    uint64_t begin = 0, unclaimed = 0, end = 0;
    std::vector<FarList> lists;
    std::vector<uint64_t> words, unread, free_blocks;
  };
  void read_lists(const FarCounters &state, Lists *lists) const;
  // Takes spilled items' tickets off the ends of their lists, in `lists` alone; false if a stored item lies behind one of them.
  bool cut(const std::vector<TicketItem> &spilled, Lists *lists) const;
  void close(Lists &lists) const;

  // Appends all items of all blocks.
  void read_items(std::vector<LeveledItem> *all) const;

private:
  Backend &backend;
  unsigned char *const memory;

  std::vector<uint64_t> read(uint64_t offset, uint64_t words) const;
  void write(uint64_t offset, const std::vector<uint64_t> &words) const;
  template <class F> void for_places(unsigned list, uint64_t first_block, uint64_t n, F f) const;
  std::vector<uint64_t> read_words(unsigned list, uint64_t first_block, uint64_t n) const;
  void write_words(unsigned list, uint64_t first_block, const std::vector<uint64_t> &words) const;
  uint64_t entry_at(uint64_t word, uint64_t ticket) const { // number of the entry of a ticket, by its word of the directory
    return uint32_t(word) * kBlockItems + ticket % kBlockItems;
  }
};

} // namespace atos
