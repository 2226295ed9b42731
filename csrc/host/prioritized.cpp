// The items of a queue with buckets between launches: on the host, with their levels (`prioritized`), or after a stop still on
// the device, in the ring and in the lists of far items (host/far_memory.h).
#include <algorithm>
#include <cstring>
#include <utility>

#include "host/queue_storage.h"

namespace atos {
namespace {

uint32_t power_of_two(uint64_t least) {
  uint32_t power = 1;
  while (power < least) power *= 2;
  return power;
}

} // namespace

void QueueStorage::set_buckets(uint32_t number, double delta) {
  source.release(std::exchange(far, nullptr));
  in_lists = false;
  buckets = number;
  adapts = delta == 0;
  inverse_delta = adapts ? 1 : 1 / delta;
  try {
    far = make_far(size);
  } catch (...) {
    buckets = 0;
    throw;
  }
}

void QueueStorage::set_buckets_as(const QueueStorage &other) {
  set_buckets(other.buckets, other.adapts ? 0 : 1);
  inverse_delta = other.inverse_delta;
  inverse_width = other.inverse_width;
}

// Memory for as many far items as the ring has slots, in blocks; the lists may each have a block at their head and one at their
// tail that are used in part. Fails before anything is given up.
void *QueueStorage::make_far(uint64_t capacity) {
  const uint64_t needed = (capacity + kBlockItems - 1) / kBlockItems + 2 * (uint64_t(buckets) + 1);
  const uint32_t number = uint32_t(std::min<uint64_t>(needed, UINT32_MAX / 2)), places = power_of_two(number);
  void *fresh = source.allocate(far_layout(buckets, number, places, item_bytes).bytes);
  blocks = number;
  directory = places;
  return fresh;
}

void QueueStorage::add_prioritized(std::vector<LeveledItem> *all, const unsigned char *items, const double *priorities,
                                   uint64_t n) const {
  if (n > all->capacity() - all->size()) all->reserve(std::max<uint64_t>(all->size() + n, 2 * all->size()));
  for (uint64_t i = 0; i < n; ++i) {
    LeveledItem one{};
    std::memcpy(one.item, items + i * item_bytes, item_bytes);
    one.level = level_of(priorities ? priorities[i] : 0, inverse_delta);
    all->push_back(one);
  }
}

void QueueStorage::append_prioritized(const unsigned char *items, const double *priorities, uint64_t n) {
  add_prioritized(&prioritized, items, priorities, n);
}

void QueueStorage::replace_prioritized(const unsigned char *items, const double *priorities, uint64_t n) {
  std::vector<LeveledItem> all;
  add_prioritized(&all, items, priorities, n);
  if (in_lists) clear();
  prioritized.swap(all);
}

std::vector<LeveledItem> QueueStorage::in_order() const {
  std::vector<LeveledItem> sorted = prioritized;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) { return a.level < b.level; });
  return sorted;
}

void QueueStorage::read_priorities(double *priorities, uint64_t most) {
  bring_to_host();
  const std::vector<LeveledItem> sorted = in_order();
  for (uint64_t i = 0; i < most; ++i) priorities[i] = i < sorted.size() ? sorted[i].level / inverse_delta : 0;
}

float QueueStorage::lowest_level() {
  bring_to_host();
  return lowest_on_host();
}
float QueueStorage::lowest_on_host() const {
  float lowest = INFINITY;
  for (const LeveledItem &each : prioritized) lowest = std::min(lowest, each.level);
  return lowest;
}

// After a stop far items and the ring stay on the device, if no more items were pushed since and these find room behind them.
void QueueStorage::provide_prioritized(Run &run) {
  if (in_lists && prioritized.size() <= num_in_rings() + counters.untracked && add_to_device()) {
    prioritized.clear();
  } else {
    bring_to_host();
    begin_lists(run.lowest_level);
    add_to_device();
    ring_used = true;
  }
  run.kernel.inverse_delta = inverse_delta;
}

// Empties the lists, and sets the window to the lowest bucket that has an item, here or on another device of the launch.
void QueueStorage::begin_lists(float lowest_elsewhere) {
  if (ring_used) reset(); // a launch that could not start left its items there
  const float lowest = std::min(lowest_on_host(), lowest_elsewhere);
  Window window{0, inverse_width};
  if (!prioritized.empty() || lowest < INFINITY) window.current = window.bucket_of(lowest);
  far_memory().empty();
  counters.far = FarCounters{};
  counters.far.window = window.pack();
  counters.far.next = bits_of(window.current / window.inverse_width);
  counters.far.adapts = adapts;
  counters.far.least = kEmpty;
  counters.untracked = 0;
}

// Moves the items of `prioritized` to the device: near items into the ring, far items into lists. An item of a lower bucket
// moves the window down. False if there is no room for all items; then nothing has changed.
bool QueueStorage::add_to_device() {
  if (prioritized.empty()) return true;
  const FarMemory memory = far_memory();
  Window window = Window::unpack(counters.far.window);
  window.current = std::min(window.current, window.bucket_of(lowest_on_host()));
  std::vector<unsigned char> near;
  std::vector<uint64_t> counts(buckets + 1);
  uint64_t least = counters.far.least, num_far = 0;
  for (const LeveledItem &each : prioritized) {
    if (window.is_near(each.level)) {
      near.insert(near.end(), each.item, each.item + item_bytes);
      continue;
    }
    const unsigned list = memory.list_of(each.level, window);
    ++counts[list], ++num_far;
    if (list == buckets) least = std::min(least, ordered(each.level));
  }
  const uint64_t num_near = near.size() / item_bytes;
  const Pushed items = Pushed::of_host(near.data());
  FarMemory::Room room;
  if (num_near > free_tickets() || (num_far && !memory.find_room(counts, &room))) return false;
  reserve_staging(items, num_near);
  if (num_far) memory.add(prioritized, window, room);
  append(items, num_near);
  counters.far.window = window.pack();
  counters.far.least = least;
  counters.far.stored += num_far;
  counters.untracked += num_far;
  return true;
}

// After a stop: brings the ring in order in place, and leaves the lists on the device. Unclaimed chunks of the open list go
// back to the list; items that were claimed and not taken, and items that found no block, come to the host. False if the ring
// cannot be brought in order in place, or if the queue may get more blocks.
bool QueueStorage::recover_lists_in_place(uint64_t level_end) {
  const FarMemory memory = far_memory();
  FarMemory::Lists lists;
  FarCounters state = counters.far;
  memory.read_lists(state, &lists);
  const auto stay = [&] {
    if (found.far.empty()) return true;
    add_spilled_far(&lists.left);
    return size == max_size && memory.cut(found.far, &lists);
  };
  if (!recover_in_place(level_end, stay)) return false;
  memory.close(lists);
  const Window window = Window::unpack(state.window);
  if (state.again && lists.unclaimed < lists.end) { // items that go back are, or may be, in the wrong list
    if (lists.open == buckets) state.least = std::min(state.least, ordered(window.current / window.inverse_width));
    else state.misplaced = std::max<uint64_t>(state.misplaced, lists.open + 1);
  }
  state.begin = state.end = lists.unclaimed;
  state.chunks = state.left = state.busy = state.opened = state.taken_out = 0;
  state.stored = lists.unopened;
  counters.far = state;
  counters.untracked = lists.unopened;
  inverse_width = window.inverse_width;
  prioritized.swap(lists.left);
  in_lists = true;
  return true;
}

// Appends the far items that found no block, as items of the bucket of their list, or of the first bucket beyond the window.
void QueueStorage::add_spilled_far(std::vector<LeveledItem> *all) const {
  const Window window = Window::unpack(counters.far.window);
  const unsigned first = list_of_bucket(window.current, buckets);
  for (const TicketItem &its : found.far) {
    const unsigned list = list_of_ticket(its.ticket), ahead = list == buckets ? buckets : (list - first) & (buckets - 1);
    LeveledItem one{};
    std::memcpy(one.item, its.item, item_bytes);
    one.level = (window.current + float(ahead)) / window.inverse_width;
    all->push_back(one);
  }
}

// Brings all items from the device to the host, the ring's items as items of the current bucket.
void QueueStorage::bring_to_host() {
  if (in_lists) recover_prioritized(peek_from(counters.head, 0, nullptr));
}

// After a stop: brings all items to the host. Items of the rings and of the spill area count as items of the current bucket.
void QueueStorage::recover_prioritized(const std::vector<unsigned char> &ring_items) {
  const Window window = Window::unpack(counters.far.window);
  const bool spilled = counters.spilled != 0;
  const uint64_t in_ring = ring_items.size() / item_bytes, unopened = counters.far.unopened();
  std::vector<LeveledItem> all;
  all.reserve(in_ring + std::min(unopened, blocks * kBlockItems) + prioritized.size()); // and some of the list that was open
  for (uint64_t i = 0; i < ring_items.size(); i += item_bytes) {
    LeveledItem one{};
    std::memcpy(one.item, &ring_items[i], item_bytes);
    one.level = window.current / window.inverse_width;
    all.push_back(one);
  }
  far_memory().read_items(&all);
  if (spilled) add_spilled_far(&all);
  all.insert(all.end(), prioritized.begin(), prioritized.end()); // pushed after the stop
  prioritized.swap(all);
  spill.forget();
  overflow.clear();
  in_lists = disordered = false; // all items are here, whatever else fails
  ring_used = true;
  inverse_width = window.inverse_width;
  count_growths();
  if (growths) collapse_rings();
  else reset();
  ring_used = false;
  // A stop for want of blocks comes before there are as many items as the capacity.
  const uint64_t total = prioritized.size();
  grow(spilled && size < max_size ? std::max<uint64_t>(total, size + 1) : total,
       [&](uint64_t capacity) { make_ring(capacity); });
}

} // namespace atos
