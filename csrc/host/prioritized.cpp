// The items of a queue with buckets between launches, and the memory that workers keep far items in (protocol/far_items.cuh).
#include <algorithm>
#include <cstring>
#include <utility>

#include "host/queue_storage.h"

namespace atos {
namespace {

constexpr uint64_t kCopiedEntries = 1 << 15; // to the device or from it at once

uint32_t power_of_two(uint64_t least) {
  uint32_t power = 1;
  while (power < least) power *= 2;
  return power;
}

// The entries of far items, seen from the host as raw memory.
template <class F> void with_far_items(uint32_t item_bytes, F f) {
  if (item_bytes == 4) f(FarItem<4>{});
  else if (item_bytes == 8) f(FarItem<8>{});
  else if (item_bytes == 16) f(FarItem<16>{});
  else f(FarItem<32>{});
}

} // namespace

void QueueStorage::set_buckets(uint32_t number, double delta) {
  source.release(std::exchange(far, nullptr));
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
  far_used = true;
  return fresh;
}

// All lists empty, all blocks free.
void QueueStorage::empty_far() {
  unsigned char *memory = static_cast<unsigned char *>(far);
  const FarLayout at = far_at();
  const uint64_t zero = 0, ones = ~uint64_t(0), all = kBlockItems;
  backend.fill(memory, &zero, 8, at.free_at / 8);
  backend.fill(memory + at.free_at, &ones, 8, blocks / 64);
  if (blocks % 64) {
    const uint64_t last = (uint64_t(1) << blocks % 64) - 1;
    backend.copy(memory + at.free_at + blocks / 64 * 8, &last, 8);
  }
  backend.fill(memory + at.unread_at, &all, 8, blocks);
  backend.fill(memory + at.items_at, &ones, 8, (at.bytes - at.items_at) / 8);
  far_used = false;
}

void QueueStorage::add_prioritized(std::vector<Prioritized> *all, const unsigned char *items, const double *priorities,
                                   uint64_t n) const {
  if (n > all->capacity() - all->size()) all->reserve(std::max<uint64_t>(all->size() + n, 2 * all->size()));
  for (uint64_t i = 0; i < n; ++i) {
    Prioritized one{};
    std::memcpy(one.item, items + i * item_bytes, item_bytes);
    one.level = level_of(priorities ? priorities[i] : 0, inverse_delta);
    all->push_back(one);
  }
}

void QueueStorage::append_prioritized(const unsigned char *items, const double *priorities, uint64_t n) {
  add_prioritized(&prioritized, items, priorities, n);
}

void QueueStorage::replace_prioritized(const unsigned char *items, const double *priorities, uint64_t n) {
  std::vector<Prioritized> all;
  add_prioritized(&all, items, priorities, n);
  prioritized.swap(all);
}

std::vector<QueueStorage::Prioritized> QueueStorage::in_order() const {
  std::vector<Prioritized> sorted = prioritized;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) { return a.level < b.level; });
  return sorted;
}

void QueueStorage::read_priorities(double *priorities, uint64_t most) const {
  const std::vector<Prioritized> sorted = in_order();
  for (uint64_t i = 0; i < most; ++i) priorities[i] = i < sorted.size() ? sorted[i].level / inverse_delta : 0;
}

float QueueStorage::lowest_level() const {
  float lowest = INFINITY;
  for (const Prioritized &each : prioritized) lowest = std::min(lowest, each.level);
  return lowest;
}

// Items of the lowest bucket, which may be that of another device of the launch, go to the ring, the others to the list of
// those beyond the window.
void QueueStorage::provide_prioritized(Run &run) {
  if (ring_used) reset(); // a launch that could not start left its items there
  const float lowest = std::min(lowest_level(), run.lowest_level);
  Window window{0, inverse_width};
  if (!prioritized.empty() || lowest < INFINITY) window.current = window.bucket_of(lowest);
  uint64_t num_far = 0;
  float least_far = INFINITY;
  for (const Prioritized &each : prioritized)
    if (!window.is_near(each.level)) ++num_far, least_far = std::min(least_far, each.level);
  const uint64_t near = prioritized.size() - num_far;
  std::vector<unsigned char> items(near * item_bytes);
  unsigned char *at = items.data();
  for (const Prioritized &each : prioritized)
    if (window.is_near(each.level)) std::memcpy(at, each.item, item_bytes), at += item_bytes;
  counters.far = FarCounters{};
  counters.far.window = window.pack();
  counters.far.next = bits_of(window.current / window.inverse_width);
  counters.far.adapts = adapts;
  counters.far.stored = num_far;
  counters.far.least = kEmpty;
  if (num_far) counters.far.least = FarItems<4>::ordered(least_far);
  if (far_used || num_far) empty_far();
  far_used = ring_used = true;
  if (num_far) put_far(window, num_far);
  append(Pushed::of_host(items.data()), near);
  counters.untracked = num_far;
  run.kernel.far = far;
  run.kernel.buckets = buckets;
  run.kernel.blocks = blocks;
  run.kernel.directory = directory;
  run.kernel.inverse_delta = inverse_delta;
}

// Stores the items that are not near, of which there are n.
void QueueStorage::put_far(Window window, uint64_t n) {
  unsigned char *memory = static_cast<unsigned char *>(far);
  const FarLayout at = far_at();
  const uint64_t used = (n + kBlockItems - 1) / kBlockItems;
  std::vector<uint64_t> directories(used), free(blocks / 64 + 1);
  for (uint64_t block = 0; block < used; ++block) directories[block] = (block + 1) << 32 | block;
  for (uint64_t block = used; block < blocks; ++block) free[block / 64] |= uint64_t(1) << block % 64;
  const FarList list{n, 0};
  backend.copy(memory + buckets * sizeof list, &list, sizeof list);
  backend.copy(memory + at.directory_at + uint64_t(buckets) * directory * 8, directories.data(), used * 8);
  backend.copy(memory + at.free_at, free.data(), (used + 63) / 64 * 8);
  with_far_items(item_bytes, [&](auto entry) {
    std::vector<decltype(entry)> entries(std::min(n, kCopiedEntries));
    uint64_t done = 0, some = 0;
    const auto copy = [&] {
      backend.copy(memory + at.items_at + done * sizeof entry, entries.data(), some * sizeof entry);
      done += std::exchange(some, 0);
    };
    for (const Prioritized &each : prioritized) {
      if (window.is_near(each.level)) continue;
      auto value = entry.none();
      std::memcpy(&value, each.item, sizeof value);
      entries[some++].put(value, each.level);
      if (some == entries.size()) copy();
    }
    copy();
  });
}

// After a stop: those in the rings and the spill area count as items of the current bucket.
void QueueStorage::recover_prioritized(const std::vector<unsigned char> &ring_items) {
  const Window window = Window::unpack(counters.far.window);
  const bool spilled = counters.spilled != 0;
  const uint64_t in_ring = ring_items.size() / item_bytes, in_lists = counters.far.stored - counters.far.taken_out;
  std::vector<Prioritized> all;
  all.reserve(in_ring + std::min(in_lists, blocks * kBlockItems)); // and perhaps some of the list that was open
  for (uint64_t i = 0; i < ring_items.size(); i += item_bytes) {
    Prioritized one{};
    std::memcpy(one.item, &ring_items[i], item_bytes);
    one.level = window.current / window.inverse_width;
    all.push_back(one);
  }
  with_far_items(item_bytes, [&](auto entry) {
    const unsigned char *at = static_cast<unsigned char *>(far) + far_at().items_at;
    std::vector<decltype(entry)> entries(std::min(blocks * kBlockItems, kCopiedEntries));
    auto value = entry.none();
    for (uint64_t left = blocks * kBlockItems, some; left; left -= some, at += some * sizeof entry) {
      some = std::min<uint64_t>(left, entries.size());
      backend.copy(entries.data(), at, some * sizeof entry);
      for (uint64_t i = 0; i < some; ++i) {
        Prioritized one{};
        if (!entries[i].take(&value, &one.level)) continue;
        std::memcpy(one.item, &value, sizeof value);
        all.push_back(one);
      }
    }
  });
  prioritized.swap(all);
  disordered = false; // all items are here, whatever else fails
  far_used = ring_used = true;
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
