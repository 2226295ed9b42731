// QueueStorage: the memory of a queue on its device, and the host's copy of its counters.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "host/backend.h"
#include "protocol/far_items.cuh"

namespace atos {

struct Receiver;

// Items of a push: in the memory of the host, in that of the queue's device, or numbers from `first` on.
struct Pushed {
  enum Where { kHost, kDevice, kNumbers } where;
  const unsigned char *items;
  uint64_t first;

  static Pushed of_host(const void *items) { return {kHost, static_cast<const unsigned char *>(items), 0}; }
  static Pushed of_device(const void *items) { return {kDevice, static_cast<const unsigned char *>(items), 0}; }
  static Pushed from(uint64_t first) { return {kNumbers, nullptr, first}; }
};

// Between launches all pending items lie under the tickets [head, tail) of one ring, but for those of `overflow`. While workers
// run, larger rings may follow (protocol/growth.cuh), and items may go to the spill area; `recover_pending` brings all of them
// back into one ring.
class QueueStorage {
public:
  // The memory is that of the device, or of a range that other processes share.
  QueueStorage(int32_t device, uint64_t capacity, uint32_t item_bytes, std::unique_ptr<MemorySource> shared = nullptr);
  ~QueueStorage() {
    source.retire();
    free_memory();
  }
  QueueStorage(const QueueStorage &) = delete;
  QueueStorage &operator=(const QueueStorage &) = delete;

  const uint32_t item_bytes, slot_bytes;
  Backend &backend;
  std::atomic<uint64_t> size, max_size; // of the ring, and how far it may grow
  Counters counters{};
  bool stale = true;  // whether the device's copy of the counters differs
  uint64_t level = 0; // how many pending items, from the oldest on, are left of a level that a stop interrupted
  std::vector<unsigned char> overflow; // pending items that do not fit into the ring, after ATOS_QUEUE_FULL
  uint64_t lost = 0, grown = 0;        // items dropped for want of memory; times that the queue grew

  uint64_t num_pending() const { return counters.tail - counters.head + overflow.size() / item_bytes + prioritized.size(); }
  // Whether there are more items than the capacity, which ends a launch.
  bool over_capacity() const { return !overflow.empty() || num_pending() > size; }
  uint64_t overhead_bytes() const; // of the device's memory beside the slots

  // Reads what is pending, oldest first; *before_head: how many of them lie before `head`. Nothing does before ticket `from`.
  std::vector<unsigned char> peek(uint64_t *before_head = nullptr, uint64_t from = 0);

  // Stores items behind those pending, for which the ring has to have space.
  void append(const Pushed &items, uint64_t n);
  void append(const unsigned char *items, uint64_t n) { append(Pushed::of_host(items), n); }
  // The same without that condition: what does not fit is kept in `overflow`.
  void append_or_keep(const std::vector<unsigned char> &items);
  // Stores items into an empty queue, which grows if it may; the first `of_level` of them are left of an interrupted level.
  void store(const unsigned char *items, uint64_t n, uint64_t of_level);
  void clear();

  // Buckets (prioritized.cpp). Between launches all items of a queue that has them are on the host, with their levels.
  bool has_buckets() const { return buckets != 0; }
  void set_buckets(uint32_t number, double delta);
  void set_buckets_as(const QueueStorage &other);
  void append_prioritized(const unsigned char *items, const double *priorities, uint64_t n);
  void read_priorities(double *priorities, uint64_t most) const;
  float lowest_level() const; // of all items; infinity if there are none

  // Grows to hold `total` items if it has to and may; whether they fit now.
  bool ensure_capacity(uint64_t total);
  // Moves all items to a ring of this capacity, which has to hold them.
  void move_to(uint64_t capacity);

  // Before a run of the workers: writes where the memory is, and how often the queue may grow meanwhile, into the parameters.
  void provide(Run &run);
  // After a run in which the queue grew, and which left nothing: makes one ring of all, as large as the last if there is
  // memory.
  void collapse_rings();
  // After a stop: brings what is pending in the rings and the spill area back into one ring, in order. With barriers, `head` is
  // the end of the level that was interrupted, and what is left of that level has to run before what it pushed.
  void recover_pending(bool barrier);

  // For a launch of another queue whose tasks push into this one (receivers.cpp): before and after each run of its workers.
  void provide_to(const Counters *own, Receiver *receiver);
  void collect();

private:
  // A pending item of a queue with buckets, in order of push.
  struct Prioritized {
    unsigned char item[32];
    float level;
  };
  std::vector<Prioritized> prioritized;
  uint32_t buckets = 0, blocks = 0, directory = 0; // as in FarItems
  double inverse_delta = 1;
  bool adapts = false;
  float inverse_width = 1; // of a bucket, in levels: where the last launch was stopped, or 1
  void *far = nullptr;
  bool far_used = false; // whether the memory for far items has to be made empty

  std::vector<Prioritized> in_order() const;
  FarLayout far_at() const { return far_layout(buckets, blocks, directory, item_bytes); }
  void *make_far(uint64_t capacity);
  void empty_far();
  void provide_prioritized(Run &run);
  void put_far(const Prioritized *items, uint64_t n);
  void recover_prioritized(std::vector<unsigned char> ring_items);

  const std::unique_ptr<MemorySource> shared; // or null
  MemorySource &source;
  void *device_counters = nullptr, *slots = nullptr, *spill = nullptr, *split_items = nullptr;
  uint64_t spill_bytes;
  bool spill_written = false;              // its pages have memory
  std::unique_ptr<GrowableRange> growable; // for growth while workers run

  void free_memory() noexcept;
  void make_ring(uint64_t capacity);
  void reset_counters();
  void reset();
  bool grow(uint64_t total, const std::function<void(uint64_t capacity)> &make);
  void provide_for_growth(Run &run);
  uint64_t peek_ring(const void *ring, uint64_t ring_size, uint64_t start, uint64_t end, uint64_t from,
                     std::vector<unsigned char> *result);
  uint64_t num_used() const { return std::min<uint64_t>(size, tickets_of(counters.tail)); } // slots of the ring ever used
};

} // namespace atos
