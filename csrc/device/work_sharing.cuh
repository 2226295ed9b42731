// Work sharing: the long items of a batch are split into chunks, which all workers run (protocol/split_item.cuh).
#pragma once
#include "device/load_balance.cuh"

namespace atos {

template <class Group, unsigned bytes> struct WorkSharing : LoadBalance<Group, bytes> {
  using Batch = LoadBalance<Group, bytes>;
  using Batch::Batch;
  using Batch::header;
  using Batch::items;
  using Batch::launch;
  using Batch::lengths;
  using Batch::queue;
  using Batch::values;

  // [one lane] Puts the next chunk to run into `header->chunk`, with its item and values; false if there is no chunk. First
  // this worker offers each long item of this worker's batch to all workers (`split_item`). If the entry for an item is taken,
  // or the launch shares nothing, this worker runs that item alone, as one chunk. Then this worker claims a chunk of any split
  // item. Items before `first_counted` are local.
  ATOS_DEVICE bool next_chunk() {
    while (header->next_long < header->batch) {
      const unsigned k = header->next_long++;
      if (lengths[k] < kLong) continue;
      const uint64_t *its_values = &values[k * value_words];
      // Before anybody can see the item's chunks.
      if (launch.persistent && launch.barrier && launch.shares) fetch_add(&queue().counters->arrived, kMark);
      if (launch.shares && split_item<bytes>(queue().counters, split_items(), hint() + k, items[k], its_values, value_words,
                                             lengths[k], chunk_size(), k >= header->first_counted, owner())) {
        this->count(&atos_sharing::items_split, 1);
        header->num_split += k >= header->first_counted; // whoever finishes the last chunk reports the item
        continue;
      }
      *borrowed() = items[k];
      for (int i = 0; i < value_words; ++i) header->borrowed_values[i] = its_values[i];
      header->chunk = {0, lengths[k], -1};
      return true;
    }
    return claim_chunk_of_other();
  }

  // [one lane] Claims a chunk of any split item.
  ATOS_DEVICE bool claim_chunk_of_other() {
    const bool claimed = nested && load(&queue().counters->splits_open) &&
                         claim_chunk<bytes>(queue().counters, split_items(), hint(), borrowed(), header->borrowed_values,
                                            value_words, chunk_size(), &header->chunk);
    if (has_counters && claimed)
      this->count(&atos_sharing::chunks_donated, load(&split_items()[header->chunk.split].busy) != owner());
    return claimed;
  }

  ATOS_DEVICE SplitItem *split_items() const { return static_cast<SplitItem *>(launch.split_items); }
  // Spreads workers over the table: the first bit that `claim_chunk` tests and, plus an item's place in the batch, the only
  // entry that `split_item` tries.
  ATOS_DEVICE unsigned hint() const { return block_index() + 31 * Group::index_in_block(); }
  // An item's owner in the table: a number of this worker if donated chunks are counted. A block has at most 32 workers.
  ATOS_DEVICE uint64_t owner() const { return has_counters ? 1 + uint64_t(block_index()) * 32 + Group::index_in_block() : 1; }
  ATOS_DEVICE uint64_t chunk_size() const { return kChunkPart * this->iterations_at_once(); }
  // The item of the chunk that runs, copied here, since its entry may get another item.
  ATOS_DEVICE Item<bytes> *borrowed() const {
    void *place = header->borrowed_item;
    static_assert(sizeof header->borrowed_item == kHeaderItemBytes, "what is larger lies behind the header");
    if (bytes > kHeaderItemBytes) place = reinterpret_cast<unsigned char *>(header) + kHeaderBytes;
    return static_cast<Item<bytes> *>(place);
  }

  // [all threads] Runs the task on the iterations of `header->chunk`.
  ATOS_DEVICE void run_chunk() {
    const Chunk chunk = header->chunk;
    const unsigned step = this->iterations_at_once();
#pragma unroll 1
    for (int64_t from = chunk.from, to; from < chunk.to; from = to) {
      to = this->flushes_within_step() && chunk.to - from > kStrip * step ? from + kStrip * step : chunk.to;
#pragma unroll 1
      for (int64_t i = from + Group::rank() / threads_of_iteration; i < to; i += step)
        this->run_iteration(borrowed(), i, header->borrowed_values);
      if (to < chunk.to) this->flush_within_step();
    }
  }
};

} // namespace atos
