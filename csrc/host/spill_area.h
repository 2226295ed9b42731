// SpillArea: the memory for pushed items whose slots were occupied (protocol/queue_ref.cuh), with their tickets in any order.
//
// After a stop the newest pending items may all lie in the area, since their slots hold other items. The area keeps these
// items, so that a stop does not take longer where there are many, until a ring has room for them or somebody reads them.
#pragma once
#include "host/backend.h"
#include "host/in_place_recovery.h"
#include "host/staging.h"

namespace atos {

class SpillArea {
public:
  SpillArea(MemorySource &source, Backend &backend, Staging &staging, uint32_t item_bytes);
  ~SpillArea();
  SpillArea(const SpillArea &) = delete;
  SpillArea &operator=(const SpillArea &) = delete;

  void *memory() const { return area; }
  uint64_t size() const { return bytes / spilled_bytes(item_bytes); } // in items

  // After a run that spilled `count` items: reads far items and the items of tickets below `end` into `found`, and returns the
  // number of other items. `number`: the device's count of spilled items, which may change.
  uint64_t read(uint64_t count, uint64_t end, uint64_t *number, RecoveryItems *found);

  // Keeps the items of the tickets [begin, end), which lie among the first `count` spilled items and in `more`. `write` first
  // stores `more` behind the `count` items; false if there is no room.
  bool write(uint64_t count, const std::vector<TicketItem> &more) const;
  void keep(uint64_t begin, uint64_t end, uint64_t count) noexcept;
  void forget() noexcept { keep(0, 0, 0); }
  uint64_t num_kept() const { return kept.end - kept.begin; }

  void read_kept(unsigned char *items) const; // in the order of their tickets
  bool store_kept(const RingSlots &to) const; // into the slots of their tickets; false where the host has to

private:
  const uint32_t item_bytes;
  MemorySource &source;
  Backend &backend;
  Staging &staging;
  uint64_t bytes;
  void *area;
  bool written = false; // whether the pages of the area have memory

  struct Kept {
    uint64_t begin, end, count;
  } kept{};

  SpilledItems first(uint64_t count) const { return {area, item_bytes, count}; }
  template <class F> void visit(uint64_t begin, uint64_t end, F f) const;
};

} // namespace atos
