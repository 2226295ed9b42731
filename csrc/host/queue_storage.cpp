// Allocates the memory of a queue, fills its slots, and grows the queue.
#include "host/queue_storage.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "host/host_slots.h"
#include "host/resource_limits.h"

namespace atos {
namespace {

constexpr uint64_t kStagedSlots = 1 << 20;             // copied to the device at once
constexpr uint64_t kMostAddresses = uint64_t(1) << 44; // bytes that a queue may grow into
constexpr uint64_t kMostReserved = 1 << 18;            // items for which a launch reserves what a stop may need

uint64_t reciprocal_of(uint64_t size) { return ~uint64_t(0) / size; }

void check_size(uint64_t capacity) {
  if (capacity > (uint64_t(1) << 40))
    throw Failure(ATOS_NO_MEMORY, format("a queue of %llu items is larger than any memory", (unsigned long long)capacity));
}

} // namespace

QueueStorage::QueueStorage(int32_t device, uint64_t capacity, uint32_t item_bytes, std::unique_ptr<MemorySource> shared)
    : item_bytes(item_bytes), slot_bytes(item_bytes == 4 ? 8 : item_bytes + 8), backend(atos::backend(device)), size(capacity),
      max_size(capacity), shared(std::move(shared)), source(this->shared ? *this->shared : backend), first_size(capacity),
      spill(source, backend, staging, item_bytes) {
  check_size(capacity);
  rings.reserve(kMostGrowths + 1);
  try {
    slots = source.allocate(capacity * slot_bytes);
    device_counters = source.allocate(overhead_bytes()); // the split items too, since a GPU's driver takes time for each call
    split_items = static_cast<Counters *>(device_counters) + 1;
  } catch (...) {
    free_memory();
    throw;
  }
}

void QueueStorage::free_memory() noexcept {
  for (void *p : {device_counters, slots, far})
    if (p) source.release(p);
  if (stacks) backend.release(stacks);
}

// Without the spill area, which takes memory only when it is used.
uint64_t QueueStorage::overhead_bytes() const { return sizeof(Counters) + kSplitItems * sizeof(SplitItem); }

// Makes a new, empty ring. Fails before anything is given up.
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
  source.release(std::exchange(slots, fresh));
  begin_ring(capacity);
}

// Notes that `slots` is a new ring, without other rings behind it.
void QueueStorage::begin_ring(uint64_t capacity) {
  growable.reset();
  first_size = size = capacity;
  growths = 0;
  reset_counters();
}

// Resets the counters to those before the first launch, but for the statistics.
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
  spill.forget();
  in_lists = false;
  level = 0;
  stale = true;
}

// Leaves the first ring alone, empty; the slots below `written` are to be written.
void QueueStorage::reset(uint64_t written) {
  const uint32_t zero = 0;
  const uint64_t used = std::min(first_size, tickets_of(counters.tail));
  if (used > written) backend.fill(slots_of(0) + written * slot_bytes, &zero, 4, (used - written) * slot_bytes / 4);
  growable.reset();
  size = first_size;
  growths = 0;
  ring_used = false;
  reset_counters();
}

void QueueStorage::clear() {
  reset();
  overflow.clear();
  prioritized.clear();
}

void QueueStorage::move_to(uint64_t capacity) {
  if (has_buckets()) return bring_to_host(), make_ring(capacity);
  if (move_on_device(capacity)) return;
  const std::vector<unsigned char> all = peek();
  replace_in(capacity, all.data(), all.size() / item_bytes, level);
}

// Moves all items to a new ring, without the host. False if there are few items, or where the host has to move them.
bool QueueStorage::move_on_device(uint64_t capacity) {
  const uint64_t n = num_in_rings(), kept = spill.num_kept();
  if (!is_many(n + kept) || !overflow.empty() || n + kept > capacity || capacity == first_size) return false;
  check_size(capacity);
  const auto release = [this](void *memory) { source.release(memory); };
  std::unique_ptr<void, decltype(release)> fresh(source.allocate(capacity * slot_bytes), release);
  uint64_t moved = 0;
  for (unsigned k = 0; k <= growths_of(counters.tail); ++k) {
    const RingTickets ring = ring_of_growth(k);
    const uint64_t begin = std::max(counters.head, ring.start), end = std::max(begin, ring.end);
    void *const to = static_cast<unsigned char *>(fresh.get()) + moved * slot_bytes;
    if (end > begin && !backend.move_slots(slots_of(ring), begin, end - begin, item_bytes, to)) return false;
    moved += end - begin;
  }
  if (kept && !spill.store_kept({fresh.get(), counters.head, capacity})) return false;
  const uint64_t of_level = level;
  source.release(std::exchange(slots, fresh.release()));
  begin_ring(capacity);
  counters.tail = n + kept;
  level = of_level;
  return true;
}

void QueueStorage::gather() {
  if (growths) move_to(std::max<uint64_t>(size, num_in_rings()));
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
  if (total > std::max<uint64_t>(size, max_size)) return false;
  if (has_buckets() && num_without_slot() > free_tickets()) bring_to_host();
  const uint64_t more = total - num_pending() + num_without_slot();
  const bool fits = has_buckets() ? total <= size : more <= free_tickets() || add_rings(more);
  if (!fits) return grow(total, [&](uint64_t capacity) { move_to(capacity); });
  store_kept();
  if (!overflow.empty()) append(Pushed::of_host(overflow.data()), overflow.size() / item_bytes);
  overflow.clear();
  return true;
}

// Moves the items that the spill area keeps into the slots of their tickets, the next ones of the last ring, which are free.
void QueueStorage::store_kept() {
  const uint64_t n = spill.num_kept();
  if (!n) return;
  const RingTickets ring = last_ring();
  if (is_many(n) && spill.store_kept(slots_of(ring))) {
    note_appended(n);
  } else {
    const std::unique_ptr<unsigned char[]> items(new unsigned char[n * item_bytes]);
    spill.read_kept(items.get());
    append(Pushed::of_host(items.get()), n);
  }
  spill.forget();
}

// Adds rings behind the last one, as workers do, if the queue has grown so before: then no item has to move. False if no ring
// that may come has room for `more` items.
bool QueueStorage::add_rings(uint64_t more) {
  if (has_buckets() || !growths) return false;
  unsigned k = growths + 1;
  while (k < kMostGrowths && first_size << k < more) ++k;
  const uint64_t bytes = bytes_of_growths(first_size * slot_bytes, k), tickets = tickets_of(counters.tail);
  if (first_size << k < more || first_size << k > max_size || bytes > growable->bytes) return false;
  try {
    growable->extend(bytes);
  } catch (const Failure &) { // whatever the failure: a larger ring may still be made
    return false;
  }
  for (unsigned ring = growths + 1; ring <= k; ++ring) counters.ring_first_ticket[ring] = tickets + kGrown;
  counters.tail = tickets + k * kGrowth;
  count_growths();
  stale = true;
  return true;
}

RingTickets QueueStorage::ring_of_growth(unsigned k) const {
  const unsigned last = growths_of(counters.tail);
  const auto first_ticket = [&](unsigned of) { return of ? counters.ring_first_ticket[of] - kGrown : 0; };
  return {k, first_ticket(k), k < last ? first_ticket(k + 1) : tickets_of(counters.tail), first_size << k};
}

unsigned char *QueueStorage::slots_of(unsigned ring) const {
  if (!ring) return static_cast<unsigned char *>(slots);
  return static_cast<unsigned char *>(growable->begin) + bytes_of_growths(first_size * slot_bytes, ring - 1);
}

uint64_t QueueStorage::free_tickets() const {
  const RingTickets ring = last_ring();
  return ring.size - (ring.end - std::max(counters.head, ring.start));
}

void QueueStorage::append(const Pushed &items, uint64_t n) {
  reserve_staging(items, n);
  const RingTickets ring = last_ring();
  write_slots(slots_of(ring.number), ring, ring.end, items, n);
  note_appended(n);
}

void QueueStorage::note_appended(uint64_t n) {
  counters.tail += n;
  counters.finished = counters.head;
  stale = true;
}

void QueueStorage::reserve_staging(const Pushed &items, uint64_t n) {
  const uint64_t fetched = items.where == Pushed::kHost ? 0 : item_bytes;
  staging.reserve(std::min(n, kStagedSlots) * (slot_bytes + fetched));
}

// Fills the slots of the tickets from `ticket` on, through `staging`.
void QueueStorage::write_slots(unsigned char *memory, const RingTickets &ring, uint64_t ticket, const Pushed &given,
                               uint64_t n) {
  bool by_device = given.where != Pushed::kHost;
  for (uint64_t done = 0, some; done < n; done += some) {
    const uint64_t place = ticket + done - ring.start, index = place % ring.size, generation = place / ring.size;
    const uint64_t first = given.first + done;
    unsigned char *at = memory + index * slot_bytes;
    const unsigned char *items = given.items ? given.items + done * item_bytes : nullptr;
    some = std::min(n - done, ring.size - index);
    by_device = by_device && backend.store_items(at, items, first, some, item_bytes, generation);
    if (by_device) continue;
    some = std::min(some, kStagedSlots);
    unsigned char *fetched = staging.memory.get() + some * slot_bytes;
    if (given.where == Pushed::kDevice) backend.copy(fetched, items, some * item_bytes);
    if (given.where == Pushed::kNumbers)
      for (uint64_t i = 0, number = first; i < some; ++i, ++number) std::memcpy(fetched + i * item_bytes, &number, item_bytes);
    if (given.where != Pushed::kHost) items = fetched;
    with_slots(item_bytes, [&](auto view) {
      auto *slot = reinterpret_cast<typename decltype(view)::Any *>(staging.memory.get());
      for (uint64_t i = 0; i < some; ++i) view.put(&slot[i], items + i * item_bytes, 2 * generation);
    });
    backend.copy(at, staging.memory.get(), some * slot_bytes);
  }
}

void QueueStorage::replace(const unsigned char *items, uint64_t n, uint64_t of_level) {
  if (n > size && grow(n, [&](uint64_t capacity) { replace_in(capacity, items, n, of_level); })) return;
  try {
    replace_in(size, items, n, of_level);
  } catch (const Failure &failure) {
    if (failure.status != ATOS_NO_MEMORY || size == first_size) throw;
    replace_in(first_size, items, n, of_level);
  }
}

// Replaces all items, in a new ring of this capacity, or in the first ring if it has this capacity. Items that do not fit are
// kept in `overflow`. Memory is asked for before anything is given up; what follows cannot fail but for the device.
void QueueStorage::replace_in(uint64_t capacity, const unsigned char *items, uint64_t n, uint64_t of_level) {
  const uint64_t fit = std::min(n, capacity);
  const Pushed first = Pushed::of_host(items);
  std::vector<unsigned char> rest;
  rest.reserve((n - fit) * item_bytes + bytes_for_inbox);
  rest.insert(rest.end(), items + fit * item_bytes, items + n * item_bytes);
  reserve_staging(first, fit);
  if (capacity == first_size) reset(fit);
  else make_ring(capacity);
  write_slots(static_cast<unsigned char *>(slots), {0, 0, fit, capacity}, 0, first, fit);
  counters.tail = fit;
  level = std::min(of_level, fit);
  overflow.swap(rest);
}

void QueueStorage::reserve_for_inbox(uint64_t bytes) {
  overflow.reserve(overflow.size() + bytes);
  bytes_for_inbox = bytes;
}

// The addresses of the queue, without rings that may follow the first one.
QueueAddresses QueueStorage::addresses() const {
  QueueAddresses at{};
  at.counters = static_cast<Counters *>(device_counters);
  at.slots = slots;
  at.spill = spill.memory();
  at.split_items = split_items;
  at.spill_size = spill.size();
  at.size = first_size;
  at.reciprocal = reciprocal_of(first_size);
  at.buckets = buckets;
  at.blocks = blocks;
  at.directory = directory;
  at.far = far;
  return at;
}

void QueueStorage::provide(Run &run) {
  if (!run.launch.persistent) gather(); // in a discrete launch the queue grows between kernels
  if (has_buckets()) provide_prioritized(run);
  const uint64_t claimed = std::min(uint64_t(run.kernel.workers) * run.kernel.fetch, kMostReserved);
  found.left.reserve(claimed);
  found.spilled.reserve(claimed);
  staging.reserve(kVisitedSlots * slot_bytes);
  counters.first_left = kNever;
  if (run.kernel.stack_room) provide_stacks(run);
  static_cast<QueueAddresses &>(run.kernel) = addresses();
  if (run.launch.persistent) provide_for_growth(run);
}

// Provides a stack for each worker, or for the 32 thread workers of a warp. At a stop the spill area has room for them all.
void QueueStorage::provide_stacks(Run &run) {
  Launch &kernel = run.kernel;
  const uint64_t number = run.launch.worker == ATOS_THREAD ? kernel.workers / 32 : kernel.workers;
  while (kernel.stack_room > 1 && number * kernel.stack_room > spill.size() / 2) kernel.stack_room /= 2;
  const uint64_t bytes = number * kernel.stack_room * item_bytes;
  if (bytes > stack_bytes) {
    if (stacks) backend.release(std::exchange(stacks, nullptr));
    stack_bytes = 0;
    stacks = backend.allocate_uncleared(bytes);
    stack_bytes = bytes;
  }
  kernel.stacks = stacks;
}

// Lets the queue grow by doubling, as far as the limit allows, and the addresses reserved if the queue has grown before.
void QueueStorage::provide_for_growth(Run &run) {
  unsigned most = 0;
  run.ring_bytes = first_size * slot_bytes;
  const uint64_t addresses = std::min(kMostAddresses, addresses_to_spare());
  while (most < kMostGrowths && first_size <= max_size >> (most + 1) && run.ring_bytes <= addresses >> (most + 2)) ++most;
  if (growths) {
    most = std::max(growths, std::min(most, growths_within(run.ring_bytes, growable->bytes)));
  } else {
    const uint64_t bytes = bytes_of_growths(run.ring_bytes, most);
    if (growable && growable->bytes != bytes) growable.reset();
    if (most && !growable) growable = source.reserve_growable(bytes);
  }
  run.growable = growable.get();
  run.kernel.growths = growable ? most : 0;
  run.kernel.more = growable ? growable->begin : nullptr;
  counters.growths_granted = growable ? std::min(most, growths_within(run.ring_bytes, growable->mapped)) : 0;
}

} // namespace atos
