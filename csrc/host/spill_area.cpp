// The spill area of a queue, as the host reads and writes it while no workers run.
#include "host/spill_area.h"

#include <algorithm>
#include <cstring>

#include "host/host_slots.h"

namespace atos {
namespace {

// As large as memory allows, since the area costs addresses only: once a stop is asked for, running tasks may push any number
// of items more.
constexpr uint64_t kBytes = uint64_t(16) << 30, kLeast = 1 << 20;

} // namespace

SpillArea::SpillArea(MemorySource &source, Backend &backend, Staging &staging, uint32_t item_bytes)
    : item_bytes(item_bytes), source(source), backend(backend), staging(staging), bytes(kBytes),
      area(source.reserve(&bytes, kLeast * spilled_bytes(item_bytes))) {}

SpillArea::~SpillArea() { source.release_reserved(area, bytes, kLeast * spilled_bytes(item_bytes), written); }

// Calls f(item) with the spilled items [begin, end), through `staging`.
template <class F> void SpillArea::visit(uint64_t begin, uint64_t end, F f) const {
  const uint64_t each = spilled_bytes(item_bytes), most = staging.bytes / each;
  for (uint64_t some; begin < end; begin += some) {
    some = std::min(end - begin, most);
    backend.copy(staging.memory.get(), static_cast<unsigned char *>(area) + begin * each, some * each);
    with_slots(item_bytes, [&](auto view) {
      const auto *items = reinterpret_cast<const SpilledItem<decltype(view)::kBytes> *>(staging.memory.get());
      for (uint64_t i = 0; i < some; ++i) f(items[i]);
    });
  }
}

uint64_t SpillArea::read(uint64_t count, uint64_t end, uint64_t *number, RecoveryItems *found) {
  written |= count > 0;
  found->clear();
  uint64_t begin = 0, last = count;
  if (count * spilled_bytes(item_bytes) > staging.bytes && end <= INT64_MAX) { // copies of the few behind the many
    backend.copy(number, &count, sizeof count);
    if (backend.gather_spilled(first(count), end, number, size())) {
      uint64_t gathered;
      backend.copy(&gathered, number, sizeof gathered);
      if (gathered <= size()) begin = count, last = gathered;
    }
  }
  uint64_t few = 0;
  visit(begin, last, [&](const auto &spilled) {
    const bool is_far = is_far_ticket(spilled.ticket);
    if (spilled.ticket >= end && !is_far) return;
    TicketItem one{spilled.ticket, {}};
    std::memcpy(one.item, &spilled.item, sizeof spilled.item);
    (is_far ? found->far : found->spilled).push_back(one);
    ++few;
  });
  return count - few;
}

bool SpillArea::write(uint64_t count, const std::vector<TicketItem> &more) const {
  if (more.size() > size() - count) return false;
  const uint64_t each = spilled_bytes(item_bytes), most = staging.bytes / each;
  for (uint64_t done = 0, some; done < more.size(); done += some) {
    some = std::min<uint64_t>(more.size() - done, most);
    with_slots(item_bytes, [&](auto view) {
      auto *items = reinterpret_cast<SpilledItem<decltype(view)::kBytes> *>(staging.memory.get());
      for (uint64_t i = 0; i < some; ++i) {
        items[i].ticket = more[done + i].ticket;
        std::memcpy(&items[i].item, more[done + i].item, sizeof items[i].item);
      }
    });
    backend.copy(static_cast<unsigned char *>(area) + (count + done) * each, staging.memory.get(), some * each);
  }
  return true;
}

void SpillArea::keep(uint64_t begin, uint64_t end, uint64_t count) noexcept {
  kept = {begin, end, count};
  written |= count > 0;
}

void SpillArea::read_kept(unsigned char *items) const {
  visit(0, kept.count, [&](const auto &spilled) { // a far item's ticket lies beyond all others
    const uint64_t place = spilled.ticket - kept.begin;
    if (place < num_kept()) std::memcpy(items + place * sizeof spilled.item, &spilled.item, sizeof spilled.item);
  });
}

bool SpillArea::store_kept(const RingSlots &to) const {
  return backend.store_spilled(first(kept.count), kept.begin, num_kept(), to);
}

} // namespace atos
