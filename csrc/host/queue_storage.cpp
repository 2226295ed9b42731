// Allocates the memory of a queue, reads and writes its slots, grows it, and recovers what a stop has left.
#include "host/queue_storage.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>

#include "host/resource_limits.h"

namespace atos {
namespace {

// The spill area is as large as memory allows, since it costs address space only: once a stop is asked for, tasks in hand may
// push any number of items more.
constexpr uint64_t kSpillBytes = uint64_t(16) << 30, kLeastSpill = 1 << 20;
constexpr uint64_t kStagedSlots = 1 << 20;             // copied to the device at once
constexpr uint64_t kMostAddresses = uint64_t(1) << 44; // bytes that a queue may grow into

uint64_t reciprocal_of(uint64_t size) { return ~uint64_t(0) / size; }

void check_size(uint64_t capacity) {
  if (capacity > (uint64_t(1) << 40))
    throw Failure(ATOS_NO_MEMORY, format("a queue of %llu items is larger than any memory", (unsigned long long)capacity));
}

// Slots of `bytes`-byte items, seen from the host as raw memory.
template <unsigned bytes> struct HostSlots {
  static void write(unsigned char *slots, const unsigned char *items, uint64_t n, uint64_t generation) {
    Slot<bytes> *slot = reinterpret_cast<Slot<bytes> *>(slots);
    for (uint64_t i = 0; i < n; ++i) {
      Item<bytes> item;
      std::memcpy(&item, items + i * bytes, bytes);
      slot[i].put(item);
      slot[i].commit(item, 2 * generation);
    }
  }
  // The item in a slot if it is ready, and the slot's sequence number.
  static bool read(const unsigned char *slots, uint64_t i, unsigned char *item, uint64_t *sequence) {
    const Slot<bytes> &slot = reinterpret_cast<const Slot<bytes> *>(slots)[i];
    typename Slot<bytes>::Seen seen{};
    if constexpr (bytes == 4) *sequence = slot.word >> 32;
    else *sequence = slot.sequence;
    if (*sequence % 2 == 0 || !slot.is_ready(*sequence - 1, seen)) return false;
    const Item<bytes> value = slot.get(seen);
    std::memcpy(item, &value, bytes);
    return true;
  }
};

template <class F> void with_slots(uint32_t item_bytes, F f) {
  if (item_bytes == 4) f(HostSlots<4>{});
  else if (item_bytes == 8) f(HostSlots<8>{});
  else if (item_bytes == 16) f(HostSlots<16>{});
  else f(HostSlots<32>{});
}

} // namespace

QueueStorage::QueueStorage(int32_t device, uint64_t capacity, uint32_t item_bytes, std::unique_ptr<MemorySource> shared)
    : item_bytes(item_bytes), slot_bytes(item_bytes == 4 ? 8 : item_bytes + 8), backend(atos::backend(device)), size(capacity),
      max_size(capacity), shared(std::move(shared)), source(this->shared ? *this->shared : backend), spill_bytes(kSpillBytes) {
  check_size(capacity);
  try {
    slots = source.allocate(capacity * slot_bytes);
    device_counters = source.allocate(overhead_bytes()); // the split items too, since a GPU's driver takes time for each
    split_items = static_cast<Counters *>(device_counters) + 1;
    spill = source.reserve(&spill_bytes, kLeastSpill * item_bytes);
  } catch (...) {
    free_memory();
    throw;
  }
}

void QueueStorage::free_memory() noexcept {
  for (void *p : {device_counters, slots, far})
    if (p) source.release(p);
  if (spill) source.release_reserved(spill, spill_bytes, kLeastSpill * item_bytes, spill_written);
}

// The spill area takes memory only when it is used.
uint64_t QueueStorage::overhead_bytes() const { return sizeof(Counters) + kSplitItems * sizeof(SplitItem); }

// A new ring, empty. Fails before anything is given up.
void QueueStorage::make_ring(uint64_t capacity) {
  check_size(capacity);
  void *fresh = source.allocate(capacity * slot_bytes);
  if (has_buckets()) {
    try {
      void *fresh_far = make_far(capacity);
      source.release(far);
      far = fresh_far;
    } catch (...) {
      source.release(fresh);
      throw;
    }
  }
  source.release(slots);
  slots = fresh;
  size = capacity;
  reset_counters();
}

// As before the first launch, but for the statistics.
void QueueStorage::reset_counters() {
  Counters fresh{};
  fresh.ran = counters.ran;
  fresh.pushed = counters.pushed;
  fresh.rounds = counters.rounds;
  fresh.mode = counters.mode;
  std::copy(std::begin(counters.ran_by), std::end(counters.ran_by), fresh.ran_by);
  fresh.sharing = counters.sharing;
  fresh.ran_so_far = counters.ran_so_far;
  fresh.sampled = counters.sampled;
  counters = fresh;
  level = 0;
  stale = true;
}

void QueueStorage::reset() {
  const uint32_t zero = 0;
  backend.fill(slots, &zero, 4, num_used() * slot_bytes / 4);
  reset_counters();
}

void QueueStorage::clear() {
  reset();
  overflow.clear();
  prioritized.clear();
}

void QueueStorage::move_to(uint64_t capacity) {
  const std::vector<unsigned char> all = has_buckets() ? std::vector<unsigned char>() : peek();
  const uint64_t interrupted = level;
  make_ring(capacity);
  overflow.clear();
  append(all.data(), all.size() / item_bytes);
  level = interrupted;
}

// Calls `make` with the new size when `total` items need a larger ring and may have it; whether they fit now.
bool QueueStorage::grow(uint64_t total, const std::function<void(uint64_t capacity)> &make) {
  if (total <= size) return true;
  if (total > max_size) return false;
  for (const uint64_t capacity : {std::min<uint64_t>(max_size, 2 * total), total}) {
    try {
      make(capacity);
      ++grown;
      return true;
    } catch (const Failure &failure) {
      if (failure.status != ATOS_NO_MEMORY) throw;
    }
  }
  return false;
}

bool QueueStorage::ensure_capacity(uint64_t total) {
  return grow(total, [&](uint64_t capacity) { move_to(capacity); });
}

void QueueStorage::append(const Pushed &given, uint64_t n) {
  std::vector<unsigned char> staged, fetched;
  bool by_device = given.where != Pushed::kHost;
  for (uint64_t done = 0, some; done < n; done += some) {
    const uint64_t index = counters.tail % size, generation = counters.tail / size, first = given.first + done;
    unsigned char *at = static_cast<unsigned char *>(slots) + index * slot_bytes;
    const unsigned char *items = given.items ? given.items + done * item_bytes : nullptr;
    some = std::min(n - done, size - index);
    by_device = by_device && backend.store_items(at, items, first, some, item_bytes, generation);
    if (!by_device) {
      some = std::min(some, kStagedSlots);
      if (given.where != Pushed::kHost) fetched.resize(some * item_bytes);
      if (given.where == Pushed::kDevice) backend.copy(fetched.data(), items, fetched.size());
      if (given.where == Pushed::kNumbers)
        for (uint64_t i = 0, number = first; i < some; ++i, ++number)
          std::memcpy(&fetched[i * item_bytes], &number, item_bytes);
      if (given.where != Pushed::kHost) items = fetched.data();
      staged.resize(some * slot_bytes);
      with_slots(item_bytes, [&](auto view) { view.write(staged.data(), items, some, generation); });
      backend.copy(at, staged.data(), some * slot_bytes);
    }
    counters.tail += some;
  }
  counters.finished = counters.head;
  stale = true;
}

void QueueStorage::append_or_keep(const std::vector<unsigned char> &items) {
  const uint64_t n = items.size() / item_bytes;
  if (n == 0) return;
  uint64_t fit = n;
  if (!ensure_capacity(num_pending() + n)) fit = overflow.empty() ? std::min(n, size - (counters.tail - counters.head)) : 0;
  append(items.data(), fit);
  overflow.insert(overflow.end(), items.begin() + fit * item_bytes, items.end());
}

void QueueStorage::store(const unsigned char *items, uint64_t n, uint64_t of_level) {
  grow(n, [&](uint64_t capacity) { make_ring(capacity); });
  const uint64_t fit = std::min<uint64_t>(n, size);
  append(items, fit);
  level = std::min(of_level, fit);
  overflow.assign(items + fit * item_bytes, items + n * item_bytes);
}

// The items of ready slots in the order of their tickets, then those that did not fit.
std::vector<unsigned char> QueueStorage::peek(uint64_t *before_head, uint64_t from) {
  std::vector<unsigned char> result;
  const unsigned growths = growths_of(counters.tail);
  const uint64_t tail = tickets_of(counters.tail);
  uint64_t earlier = peek_ring(slots, size, 0, growths ? counters.ring_first_ticket[1] - kGrown : tail, from, &result);
  for (unsigned k = 1; k <= growths; ++k) {
    const uint64_t end = k < growths ? counters.ring_first_ticket[k + 1] - kGrown : tail;
    const void *ring = static_cast<unsigned char *>(growable->begin) + bytes_of_growths(size * slot_bytes, k - 1);
    earlier += peek_ring(ring, size << k, counters.ring_first_ticket[k] - kGrown, end, from, &result);
  }
  if (before_head) *before_head = earlier;
  result.insert(result.end(), overflow.begin(), overflow.end());
  for (const Prioritized &one : in_order()) result.insert(result.end(), one.item, one.item + item_bytes);
  return result;
}

// Appends what is pending in the ring of the tickets [start, end), from a ticket on; returns how many lie before `head`.
uint64_t QueueStorage::peek_ring(const void *ring, uint64_t ring_size, uint64_t start, uint64_t end, uint64_t from,
                                 std::vector<unsigned char> *result) {
  if (from >= end) return 0;
  const uint64_t used = std::min(ring_size, end - std::max(start, from)), newest = (end - start) / ring_size;
  std::map<uint64_t, std::vector<unsigned char>, std::greater<uint64_t>> generations; // by their distance from the newest one
  uint64_t earlier = 0;
  const auto read_slots = [&](uint64_t first, uint64_t n) {
    if (n == 0) return;
    std::vector<unsigned char> memory(n * slot_bytes);
    backend.copy(memory.data(), static_cast<const unsigned char *>(ring) + first * slot_bytes, memory.size());
    with_slots(item_bytes, [&](auto view) {
      unsigned char item[kMostItemBytes];
      for (uint64_t i = 0, sequence = 0; i < n; ++i) {
        if (!view.read(memory.data(), i, item, &sequence)) continue;
        // Of the generation a packed slot has the low 31 bits.
        const uint64_t behind = item_bytes == 4 ? (newest - sequence / 2) & 0x7fffffff : newest - sequence / 2;
        std::vector<unsigned char> &generation = generations[behind];
        generation.insert(generation.end(), item, item + item_bytes);
        earlier += start + (newest - behind) * ring_size + first + i < counters.head;
      }
    });
  };
  // Those of the last tickets: up to the slot that comes next, and at the end of the ring.
  const uint64_t next = (end - start) % ring_size, before = std::min(used, next);
  read_slots(next - before, before);
  read_slots(ring_size - (used - before), used - before);
  for (const auto &generation : generations) result->insert(result->end(), generation.second.begin(), generation.second.end());
  return earlier;
}

void QueueStorage::provide(Run &run) {
  if (has_buckets()) provide_prioritized(run);
  run.kernel.counters = device_counters;
  run.kernel.slots = slots;
  run.kernel.spill = spill;
  run.kernel.split_items = split_items;
  run.kernel.size = size;
  run.kernel.reciprocal = reciprocal_of(size);
  run.kernel.spill_size = spill_bytes / item_bytes;
  if (run.launch.persistent) provide_for_growth(run); // in a discrete launch the queue grows between kernels
}

// By doubling, as far as the limit allows.
void QueueStorage::provide_for_growth(Run &run) {
  unsigned growths = 0;
  run.ring_bytes = size * slot_bytes;
  const uint64_t addresses = std::min(kMostAddresses, addresses_to_spare());
  while (growths < kMostGrowths && size <= max_size >> (growths + 1) && run.ring_bytes <= addresses >> (growths + 2)) ++growths;
  const uint64_t bytes = bytes_of_growths(run.ring_bytes, growths);
  if (growable && growable->bytes != bytes) growable.reset();
  if (growths && !growable) growable = source.reserve_growable(bytes);
  run.growable = growable.get();
  run.kernel.growths = growable ? growths : 0;
  run.kernel.more = growable ? growable->begin : nullptr;
  counters.growths_granted = growable ? std::min(growths, growths_within(run.ring_bytes, growable->mapped)) : 0;
}

void QueueStorage::collapse_rings() {
  const unsigned growths = growths_of(counters.tail);
  const uint64_t last = size << growths;
  reset();
  growable.reset();
  grown += growths;
  try {
    if (growths) make_ring(last);
  } catch (const Failure &failure) {
    if (failure.status != ATOS_NO_MEMORY) throw;
  }
}

void QueueStorage::recover_pending(bool barrier) {
  uint64_t of_level = 0;
  // Of a level that is over all items were taken, which may be many times as many as those that are left.
  const bool is_over = barrier && !has_buckets() && ran_all_below(&counters, counters.head);
  // Of a queue with buckets, none is on the host now.
  std::vector<unsigned char> all = peek(&of_level, is_over ? counters.head : 0);
  const uint64_t spilled = std::min(counters.spilled, spill_bytes / item_bytes);
  lost += counters.spilled - spilled;
  spill_written |= spilled > 0;
  const uint64_t before = all.size();
  all.resize(before + spilled * item_bytes);
  backend.copy(all.data() + before, spill, spilled * item_bytes);
  if (has_buckets()) return recover_prioritized(std::move(all));
  collapse_rings();
  store(all.data(), all.size() / item_bytes, barrier ? of_level : 0);
}

} // namespace atos
