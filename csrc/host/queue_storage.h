// QueueStorage: the memory of a queue on its device, and the host's copy of its counters.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "host/backend.h"
#include "host/far_memory.h"
#include "host/in_place_recovery.h"
#include "host/spill_area.h"

namespace atos {

struct Receiver;

// Items of a push: in the memory of the host, in the memory of the queue's device, or numbers from `first` on.
struct Pushed {
  enum Where { kHost, kDevice, kNumbers } where;
  const unsigned char *items;
  uint64_t first;

  static Pushed of_host(const void *items) { return {kHost, static_cast<const unsigned char *>(items), 0}; }
  static Pushed of_device(const void *items) { return {kDevice, static_cast<const unsigned char *>(items), 0}; }
  static Pushed from(uint64_t first) { return {kNumbers, nullptr, first}; }
};

// Between launches all pending items lie under the tickets [head, tail), but for newer items that the spill area keeps after a
// stop, and for the items of `overflow`, the newest. While workers run, larger rings may follow the first one
// (protocol/growth.cuh), and items may go to the spill area. After a stop
// `recover_pending` brings the pending items in order again, and leaves the rings where they are if possible; `gather` makes
// one ring of all rings.
//
// All functions ask for memory before they change anything: if there is none, the queue is as it was.
class QueueStorage {
public:
  // The memory is from the device, or from a range that other processes share.
  QueueStorage(int32_t device, uint64_t capacity, uint32_t item_bytes, std::unique_ptr<MemorySource> shared = nullptr);
  ~QueueStorage() {
    source.retire();
    free_memory();
  }
  QueueStorage(const QueueStorage &) = delete;
  QueueStorage &operator=(const QueueStorage &) = delete;

  const uint32_t item_bytes, slot_bytes;
  Backend &backend;
  std::atomic<uint64_t> size, max_size; // size of the last ring, and how far the queue may grow
  Counters counters{};
  bool stale = true;  // whether the device's copy of the counters differs
  uint64_t level = 0; // how many pending items, from the oldest on, are left of a level that a stop interrupted
  std::vector<unsigned char> overflow; // the newest pending items, if not all pending items fit into the ring
  uint64_t lost = 0, grown = 0;        // items dropped for want of memory; times that the queue grew
  bool disordered = false;             // workers have run, and the items that they left are not in order yet

  uint64_t num_pending() const {
    return num_in_rings() + num_without_slot() + prioritized.size() + (in_lists ? counters.untracked : 0);
  }
  // Whether there are more items than the capacity, for which the queue has to grow before a launch.
  bool over_capacity() const { return num_without_slot() || (num_pending() > size && (!growths || over_limit())); }
  // Whether there are more items than the queue may have, which ends a launch.
  bool over_limit() const { return num_pending() > std::max<uint64_t>(size, max_size); }
  uint64_t overhead_bytes() const; // of the device's memory beside the slots
  uint64_t stack_bytes = 0;        // and of the workers' stacks, from the first launch that takes the newest items first

  // Reads the pending items, oldest first.
  std::vector<unsigned char> peek();

  // Stores items behind the pending ones, for which the ring has to have space.
  void append(const Pushed &items, uint64_t n);
  // Makes these the only pending items; the queue grows if it has to and may. The first `of_level` items are left of an
  // interrupted level.
  void replace(const unsigned char *items, uint64_t n, uint64_t of_level);
  void clear();

  // Buckets (prioritized.cpp). Between launches all items of a queue with buckets are on the host, with their levels. After a
  // stop they stay on the device until something else than a launch asks for them.
  bool has_buckets() const { return buckets != 0; }
  void set_buckets(uint32_t number, double delta);
  void set_buckets_as(const QueueStorage &other);
  void append_prioritized(const unsigned char *items, const double *priorities, uint64_t n);
  void replace_prioritized(const unsigned char *items, const double *priorities, uint64_t n);
  void read_priorities(double *priorities, uint64_t most);
  float lowest_level(); // of all items; infinity if there are none

  // Grows to hold `total` items if the queue has to and may; whether they fit now.
  bool ensure_capacity(uint64_t total);
  // Moves all items to one ring of this capacity, which has to hold them.
  void move_to(uint64_t capacity);
  // Moves all items to one ring, if there are several.
  void gather();

  // Before a run of the workers: writes into its parameters where the memory is, and how often the queue may grow meanwhile.
  void provide(Run &run);
  // After a run, before anything else: notes that the items left by workers are not in order.
  void note_run();
  // After a run which left nothing, if the queue grew: makes one ring of all rings, as large as the last if there is memory.
  void finish_run();
  // After a stop: brings the pending items of the rings and the spill area in order. With barriers, `round_end` is the end of
  // the interrupted round, whose remaining items have to run before the items that the round pushed.
  void recover_pending(const Run &run);

  // Reserves memory in `overflow` for items that a launch may leave in its inbox, so that a stop need not ask for memory.
  void reserve_for_inbox(uint64_t bytes);

  // For a launch of another queue whose tasks push into this one (receivers.cpp): before and after each run of its workers.
  void provide_to(const Counters *own, Receiver *receiver);
  void collect();
  bool receiving = false; // between `provide_to` and `collect`

private:
  static constexpr uint64_t kVisitedSlots = 1 << 15; // copied from the device at once after a stop

  std::vector<LeveledItem> prioritized; // pending items of a queue with buckets that are on the host, in order of push
  bool in_lists = false;                // whether other items are on the device, in the ring and in lists
  uint32_t buckets = 0, blocks = 0, directory = 0; // as in FarItems
  double inverse_delta = 1;
  bool adapts = false;
  float inverse_width = 1; // 1 / width of a bucket, in levels, where the last launch was stopped, or 1
  void *far = nullptr;
  bool ring_used = false; // whether the ring has items that are in `prioritized` too

  FarMemory far_memory() const { return {backend, far, buckets, blocks, directory, item_bytes}; }
  std::vector<LeveledItem> in_order() const;
  float lowest_on_host() const;
  void add_prioritized(std::vector<LeveledItem> *all, const unsigned char *items, const double *priorities, uint64_t n) const;
  void *make_far(uint64_t capacity);
  void provide_prioritized(Run &run);
  void begin_lists(float lowest_elsewhere);
  bool add_to_device();
  bool recover_lists_in_place(uint64_t level_end);
  void add_spilled_far(std::vector<LeveledItem> *all) const;
  void bring_to_host();
  void recover_prioritized(const std::vector<unsigned char> &ring_items);

  const std::unique_ptr<MemorySource> shared; // or null
  MemorySource &source;
  void *device_counters = nullptr, *slots = nullptr, *split_items = nullptr, *stacks = nullptr;
  uint64_t first_size;  // of the first ring
  unsigned growths = 0; // growths of the first ring, as far as `size` and `grown` count them
  Staging staging;
  SpillArea spill;
  std::unique_ptr<GrowableRange> growable; // for growth while workers run
  std::vector<RingTickets> rings;          // rings at the last recovery
  RecoveryItems found;                     // items of the last recovery
  uint64_t bytes_for_inbox = 0;

  void free_memory() noexcept;
  void make_ring(uint64_t capacity);
  void begin_ring(uint64_t capacity);
  void reset_counters();
  void reset(uint64_t written = 0);
  bool add_rings(uint64_t more);
  bool grow(uint64_t total, const std::function<void(uint64_t capacity)> &make);
  void replace_in(uint64_t capacity, const unsigned char *items, uint64_t n, uint64_t of_level);
  QueueAddresses addresses() const;
  void provide_for_growth(Run &run);
  void provide_stacks(Run &run);
  uint64_t num_in_rings() const { return has_buckets() && !in_lists ? 0 : tickets_of(counters.tail) - counters.head; }
  bool is_many(uint64_t items) const { return items > kVisitedSlots; } // for the host, which moves some items sooner
  uint64_t num_without_slot() const { return spill.num_kept() + overflow.size() / item_bytes; }

  // The rings and their slots.
  struct StagedSlots;
  RingTickets ring_of_growth(unsigned k) const;
  RingTickets last_ring() const { return ring_of_growth(growths_of(counters.tail)); }
  unsigned char *slots_of(unsigned ring) const;
  uint64_t free_tickets() const; // of the last ring, behind the tail
  void reserve_staging(const Pushed &items, uint64_t n);
  RingSlots slots_of(const RingTickets &ring) const { return {slots_of(ring.number), ring.start, ring.size}; }
  bool move_on_device(uint64_t capacity);
  void store_kept();
  void note_appended(uint64_t n);
  void write_slots(unsigned char *memory, const RingTickets &ring, uint64_t ticket, const Pushed &items, uint64_t n);

  // Recovery of the items that a run has left (recovery.cpp).
  void count_growths();
  void collapse_rings();
  uint64_t read_spilled(uint64_t end);
  void recover(uint64_t level_end, bool claimed_in_order);
  bool recover_in_place(uint64_t level_end, const std::function<bool()> &lists_stay);
  void recover_aside(uint64_t level_end);
  std::vector<unsigned char> peek_from(uint64_t ticket, uint64_t level_end, uint64_t *of_level);
  uint64_t peek_ring(const RingTickets &ring, uint64_t from, uint64_t level_end, std::vector<unsigned char> *result);
};

} // namespace atos
