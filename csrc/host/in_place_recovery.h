// Recovery in place: the items that a stop has left in the rings of a queue become a queue in order again, without a move of
// unclaimed items, so that a stop takes as long as there are workers, not as long as there are items.
//
// When the workers of a relaxed, persistent launch have left, the item of every ticket below the tail is in its slot, or was
// taken, or was spilled. The items of tickets that nobody has claimed are in order already, but for spilled ones: each spilled
// item goes into its own slot, if the item that occupied that slot is gone. Items of claimed tickets that were not taken
// (`left`) go right before the unclaimed ones, whether they lie in slots or were spilled. Items that find no slot then are the
// newest: spilled items from the new tail on, which stay where they are, and items whose slots `left` takes (`displaced`).
//
//   ticket:      first_left            unclaimed                 end        tail
//     before     .  .  L  .  S  .  .  | i  i  s  i  i  i  i  i  i | s  s  s |      i, L: in a slot; s, S: spilled; .: taken
//     after      .  .  .  .  .  L  S  | i  i  s  i  i  i  i  i  i | s  s  s |
//                               head                             tail        the other end
//
// `plan` only reads. False if a recovery in place is impossible; then, and if `plan` throws, the rings are as they were.
// `carry_out` cannot fail but for the device. Both look at each slot a bounded number of times, in a window of about as many
// tickets as workers claim and push at once.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "protocol/counters.h"
#include "protocol/slot.cuh"

namespace atos {

// An item and its ticket.
struct TicketItem {
  uint64_t ticket;
  unsigned char item[kMostItemBytes];
};

// The tickets [start, end) of a ring.
struct RingTickets {
  unsigned number;
  uint64_t start, end, size;

  uint64_t sequence_of(uint64_t ticket) const { return 2 * ((ticket - start) / size); }
};

// Room for the items that a recovery finds, which a launch reserves, so that a stop seldom has to ask for memory.
struct RecoveryItems {
  std::vector<TicketItem> left, spilled, displaced, far; // `far`: spilled far items

  void clear() { left.clear(), spilled.clear(), displaced.clear(), far.clear(); }
};

// `Slots` visits slots of the tickets [begin, end) of a ring, no more of them than the ring has slots, in ascending order:
//   visit(ring, begin, end, f)   f(ticket, slot); `slot` has the functions below, and is written back if it was changed
//   slot.distance()              of its sequence number from that of a slot which is free for the ticket
//   slot.get(item), slot.put(item)    the item of the ticket; slot.free_next(): frees the slot for its next ticket
template <class Slots> class InPlaceRecovery {
public:
  // The rings in the order of their tickets; `items.spilled`: the spilled items.
  InPlaceRecovery(Slots &slots, const std::vector<RingTickets> &rings, uint64_t head, uint64_t first_left, RecoveryItems &items)
      : slots(slots), rings(rings), last(rings.back()), unclaimed(std::min(head, last.end)), first_left(first_left),
        items(items) {}

  // The tickets that are pending afterwards. The items of the tickets from `tail` on were spilled or displaced.
  uint64_t head = 0, tail = 0;

  bool plan() {
    sort(items.spilled);
    for (const TicketItem &its : items.spilled)
      if (!finds_its_slot(its.ticket)) return false;
    for (const RingTickets &ring : rings)
      visit_claimed(ring, [&](uint64_t ticket, const auto &slot) {
        const int64_t distance = slot.distance();
        if (distance > 1 || distance % 2 == 0) return;
        items.left.push_back({ticket - ring.size * uint64_t((1 - distance) / 2), {}});
        slot.get(items.left.back().item);
      });
    items.left.insert(items.left.end(), items.spilled.begin(), spilled_from(unclaimed));
    sort(items.left);
    head = unclaimed - items.left.size();
    tail = slots_end();
    for (const RingTickets &ring : rings) {
      const uint64_t first = std::max(head, ring.start);
      if (first >= std::min(unclaimed, ring.end)) continue; // no item of `left` goes there
      if (ring.number == last.number) tail = std::min(tail, first + ring.size);
      else if (first + ring.size < ring.end) return false;
    }
    if (tail < unclaimed) return false;
    const auto displace = [&](uint64_t ticket, const auto &slot) { // items whose slots `left` takes
      if (slot.distance() != 1) return;
      items.displaced.push_back({ticket, {}});
      slot.get(items.displaced.back().item);
    };
    if (tail < slots_end()) slots.visit(last, tail, slots_end(), displace);
    return true;
  }

  void carry_out() {
    for (const RingTickets &ring : rings)
      visit_claimed(ring, [](uint64_t, auto &slot) {
        if (slot.distance() < 2) slot.free_next(); // else the slot is the next ticket's already
      });
    put(spilled_from(unclaimed), spilled_from(tail));
    for (uint64_t k = 0; k < items.left.size(); ++k) items.left[k].ticket = head + k;
    put(items.left.begin(), items.left.end());
  }

private:
  using Iterator = std::vector<TicketItem>::iterator;
  static constexpr uint64_t kMostGap = 64; // slots between two items that are visited together

  Slots &slots;
  const std::vector<RingTickets> &rings;
  const RingTickets &last;
  const uint64_t unclaimed, first_left;
  RecoveryItems &items;

  static bool is_before(const TicketItem &a, const TicketItem &b) { return a.ticket < b.ticket; }
  static void sort(std::vector<TicketItem> &its) { std::sort(its.begin(), its.end(), is_before); }

  Iterator spilled_from(uint64_t ticket) {
    return std::lower_bound(items.spilled.begin(), items.spilled.end(), TicketItem{ticket, {}}, is_before);
  }
  const RingTickets &ring_of(uint64_t ticket) const {
    auto ring = rings.end() - 1;
    while (ticket < ring->start) --ring;
    return *ring;
  }

  // From this ticket on, the slots of a ring still hold the items of unclaimed tickets.
  uint64_t occupied_from(const RingTickets &ring) const { return std::max(unclaimed, ring.start) + ring.size; }
  uint64_t slots_end() const { return std::min(last.end, occupied_from(last)); }

  // Whether an item finds its slot free of unclaimed items. In the last ring an item displaces the newest of them.
  bool finds_its_slot(uint64_t ticket) const {
    const RingTickets &ring = ring_of(ticket);
    return ring.number == last.number || ticket < occupied_from(ring);
  }

  // The slots of claimed tickets of a ring, each once.
  template <class F> void visit_claimed(const RingTickets &ring, F f) {
    const uint64_t end = std::min(unclaimed, ring.end), newest = end > ring.size ? end - ring.size : 0;
    const uint64_t begin = std::max({first_left, ring.start, newest});
    if (begin < end) slots.visit(ring, begin, end, f);
  }

  // Puts items into the slots of their tickets.
  void put(Iterator begin, Iterator end) {
    for (Iterator next = begin; begin != end; begin = next) {
      const RingTickets &ring = ring_of(begin->ticket);
      const auto is_near = [&](Iterator at) { return at->ticket < ring.end && at->ticket - (at - 1)->ticket <= kMostGap; };
      for (next = begin + 1; next != end && is_near(next); ++next) {}
      slots.visit(ring, begin->ticket, (next - 1)->ticket + 1, [&](uint64_t ticket, auto &slot) {
        if (begin->ticket != ticket) return;
        slot.put(begin->item);
        ++begin;
      });
    }
  }
};

} // namespace atos
