// Recovery in place (csrc/host/in_place_recovery.h) of queues that simulated workers leave at any moment: all items are there, in
// the order of their tickets, the slots are as the protocol wants them, and the queue goes on.
#include "host/host_slots.h"
#include "host/in_place_recovery.h"
#include "protocol/consumer.cuh"
#include "protocol/producer.cuh"

#include <map>
#include <memory>

#include "addresses.h"
#include "check.h"

using namespace atos;
using check::Random;

namespace {

constexpr unsigned kGrowths = 3;

template <unsigned bytes> Item<bytes> item_of(uint64_t value) {
  Item<bytes> item{};
  std::memcpy(&item, &value, std::min<size_t>(bytes, 8));
  return item;
}
uint64_t value_of(const void *item, unsigned bytes) {
  uint64_t value = 0;
  std::memcpy(&value, item, std::min(bytes, 8u));
  return value;
}

struct Hand { // one worker
  Consumer consumer;
  Producer producer;
};

template <unsigned bytes> struct World {
  uint64_t size;
  std::unique_ptr<Counters> counters{new Counters{}};
  std::vector<Slot<bytes>> slots, more;
  std::vector<SpilledItem<bytes>> spill{1 << 12};
  QueueRef<bytes> queue;
  std::vector<Hand> hands;
  std::map<uint64_t, uint64_t> pending; // items by ticket
  uint64_t next_value = 1;
  bool rounds = false; // whether workers claim no tickets beyond the end of a round
  uint64_t round_end = 0;

  World(uint64_t size, unsigned workers)
      : size(size), slots(size), more((size << (kGrowths + 1)) - 2 * size),
        queue(addresses(counters.get(), slots, more.data(), spill, kGrowths)),
        hands(workers) {
    begin();
  }

  void begin() {
    for (Hand &hand : hands) {
      hand = Hand{};
      hand.consumer.begin(queue);
      hand.producer.begin(queue);
    }
    counters->growths_granted = kGrowths;
    counters->first_left = kNever;
    counters->stop = counters->spilled = 0;
  }

  void push(Hand &hand, uint64_t n) {
    hand.producer.reserve(queue, n);
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t value = next_value++;
      pending[hand.producer.base + i] = value;
      queue.publish(hand.producer.ring, hand.producer.base + i, item_of<bytes>(value));
    }
  }

  void claim(Hand &hand, uint64_t n) {
    if (!rounds) {
      hand.consumer.claim(queue, n);
    } else if (hand.consumer.claim_part(&counters->head, 0, round_end, n) == 0) {
      for (const Hand &other : hands)
        if (other.consumer.claimed) return;
      lower_to(&counters->head, round_end);
      round_end = tickets_of(counters->tail);
    }
  }

  // Takes the claimed items that are there, at most so many; they come in the order of their tickets.
  void take(Hand &hand, uint64_t most) {
    Consumer &its = hand.consumer;
    its.look_for_ring(queue, load(&counters->tail));
    while (its.is_past_ring(its.first)) {
      its.next_ring(queue);
      its.look_for_ring(queue, load(&counters->tail));
    }
    for (; its.claimed && most; --most, ++its.first, --its.claimed) {
      if (its.is_past_ring(its.first)) return;
      const Place place = its.ring.at(its.first);
      Slot<bytes> &slot = its.ring.template slot<bytes>(place.index);
      typename Slot<bytes>::Seen seen{};
      if (!slot.is_ready(place.sequence, seen)) return;
      const Item<bytes> item = slot.get(seen);
      const auto expected = pending.find(its.first);
      CHECK(expected != pending.end() && expected->second == value_of(&item, bytes),
            "ticket %" PRIu64 " has item %" PRIu64, its.first, value_of(&item, bytes));
      slot.release(place.sequence);
      pending.erase(expected);
    }
  }

  // What `InPlaceRecovery` visits.
  template <class F> void visit(const RingTickets &ring, uint64_t begin, uint64_t end, F f) {
    CHECK(begin < end && end - begin <= ring.size && begin >= ring.start && end <= ring.end,
          "visits [%" PRIu64 ", %" PRIu64 ") of a ring of %" PRIu64 " for [%" PRIu64 ", %" PRIu64 ")", begin, end, ring.size, ring.start, ring.end);
    Slot<bytes> *its = ring.number ? more.data() + ((size << ring.number) - 2 * size) : slots.data();
    bool changed = false;
    for (uint64_t ticket = begin; ticket < end; ++ticket) {
      VisitedSlot<HostSlots<bytes>> slot{&its[(ticket - ring.start) % ring.size], ring.sequence_of(ticket), &changed};
      f(ticket, slot);
    }
  }

  std::vector<RingTickets> rings() const {
    std::vector<RingTickets> all;
    const unsigned last = growths_of(counters->tail);
    const auto start = [&](unsigned k) { return k ? counters->ring_first_ticket[k] - kGrown : 0; };
    for (unsigned k = 0; k <= last; ++k)
      all.push_back({k, start(k), k < last ? start(k + 1) : tickets_of(counters->tail), size << k});
    return all;
  }

  // The workers leave, and what they left is recovered; false if that cannot be done in place.
  bool stop() {
    for (Hand &hand : hands)
      if (hand.consumer.claimed) queue.leave_tickets(hand.consumer.first);
    if (rounds) lower_to(&counters->head, round_end);
    const uint64_t of_round = uint64_t(std::distance(pending.begin(), pending.lower_bound(round_end)));
    RecoveryItems items;
    for (uint64_t k = 0; k < counters->spilled; ++k) {
      TicketItem one{spill[k].ticket, {}};
      std::memcpy(one.item, &spill[k].item, bytes);
      items.spilled.push_back(one);
    }
    const std::vector<RingTickets> before = rings();
    InPlaceRecovery<World> recovery(*this, before, counters->head, counters->first_left, items);
    const std::vector<Slot<bytes>> first = slots, others = more;
    const bool possible = recovery.plan();
    CHECK(std::memcmp(first.data(), slots.data(), slots.size() * sizeof first[0]) == 0 &&
              std::memcmp(others.data(), more.data(), more.size() * sizeof first[0]) == 0,
          "a plan of %" PRIu64 " items changed something", uint64_t(pending.size()));
    if (!possible) return false;
    recovery.carry_out();
    const unsigned growths = growths_of(counters->tail);
    counters->head = counters->finished = recovery.head;
    counters->tail = recovery.tail + growths * kGrowth;
    // The order is that of the tickets, and items that find no room are the newest.
    std::vector<TicketItem> behind = items.displaced;
    for (const TicketItem &its : items.spilled)
      if (its.ticket >= recovery.tail) behind.push_back(its);
    std::sort(behind.begin(), behind.end(), [](const TicketItem &a, const TicketItem &b) { return a.ticket < b.ticket; });
    std::map<uint64_t, uint64_t> now;
    uint64_t ticket = recovery.head;
    CHECK(pending.size() == recovery.tail - recovery.head + behind.size(),
          "%zu items pending: tickets [%" PRIu64 ", %" PRIu64 ") and %zu behind", pending.size(), recovery.head, recovery.tail, behind.size());
    for (const auto &[old_ticket, value] : pending) {
      if (ticket < recovery.tail) now[ticket++] = value;
      else {
        const TicketItem &its = behind[ticket++ - recovery.tail];
        CHECK(value_of(its.item, bytes) == value && its.ticket == old_ticket && its.ticket == ticket - 1, "item %" PRIu64 " is behind in place of %" PRIu64, value_of(its.item, bytes), value);
      }
    }
    pending = now;
    CHECK(!rounds || of_round == round_end - recovery.head, "%" PRIu64 " items are left of the round that ends with %" PRIu64 ", from %" PRIu64 " on",
          of_round, round_end, recovery.head);
    check_slots();
    begin();
    return true;
  }

  // The slots of pending tickets have their items; those of the next tickets of the last ring are free.
  void check_slots() {
    const std::vector<RingTickets> all = rings();
    const auto slot_of = [&](uint64_t ticket) {
      const RingTickets *ring = &all.back();
      while (ticket < ring->start) --ring;
      Slot<bytes> *its = ring->number ? more.data() + ((size << ring->number) - 2 * size) : slots.data();
      bool *ignored = nullptr;
      return VisitedSlot<HostSlots<bytes>>{&its[(ticket - ring->start) % ring->size], ring->sequence_of(ticket), ignored};
    };
    for (const auto &[ticket, value] : pending) {
      unsigned char item[bytes];
      const auto slot = slot_of(ticket);
      slot.get(item);
      CHECK(slot.distance() == 1 && value_of(item, bytes) == value, "ticket %" PRIu64 ": %" PRId64 " from free, item %" PRIu64 " in place of %" PRIu64,
            ticket, slot.distance(), value_of(item, bytes), value);
    }
    const RingTickets &last = all.back();
    const uint64_t end = std::max(counters->head, last.start) + last.size;
    for (uint64_t ticket = last.end; ticket < end; ++ticket)
      CHECK(slot_of(ticket).distance() == 0, "the slot of the next ticket, %" PRIu64 ", is %" PRId64 " from free", ticket, slot_of(ticket).distance());
  }
};

template <unsigned bytes> void any_moment() {
  uint64_t in_place = 0, behind = 0, grown = 0, refused = 0, left = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    Random random(seed * 4 + bytes);
    const uint64_t size = 1 + random.below(12);
    World<bytes> world(size, 1 + unsigned(random.below(5)));
    // In half of the worlds workers wait for items, but for a slow one, and the ring does not grow. In others they have rounds.
    const bool idle = seed % 2;
    world.rounds = seed % 4 == 2;
    const uint64_t claims = 1 + idle, takes = claims + 1 + idle, all = takes + 1 + (idle ? 0 : random.below(4));
    for (int stops = 0; stops < 6; ++stops) {
      const uint64_t steps = random.below(60);
      for (uint64_t step = 0; step < steps; ++step) {
        Hand &hand = world.hands[random.below(world.hands.size())];
        const uint64_t what = random.below(all);
        if (what < claims) {
          if (!hand.consumer.claimed && !world.queue.stopped()) world.claim(hand, 1 + random.below(4));
        } else if (what < takes) {
          if (!idle || &hand != world.hands.data() || random.below(20) == 0) world.take(hand, 1 + random.below(4));
        } else {
          world.push(hand, 1 + random.below(3));
          if (!idle && random.below(12) == 0 && growths_of(world.counters->tail) < kGrowths)
            world.queue.grow(growths_of(world.counters->tail), kGrowths, [] {});
        }
        if (world.queue.stopped() && random.below(12) == 0) break;
      }
      const uint64_t before = world.pending.size();
      grown += growths_of(world.counters->tail);
      left += world.counters->head > 0;
      if (!world.stop()) {
        ++refused;
        break;
      }
      behind += before - world.pending.size();
      ++in_place;
    }
  }
  CHECK(in_place > 50000 && behind > 20000 && grown > 10000 && refused > 0 && left > 50000,
        "%" PRIu64 " in place, %" PRIu64 " items behind, %" PRIu64 " growths, %" PRIu64 " refused, %" PRIu64 " with claims", in_place, behind, grown, refused, left);
}

} // namespace

TEST(any_moment_with_items_of_4_bytes) { any_moment<4>(); }
TEST(any_moment_with_items_of_8_bytes) { any_moment<8>(); }
TEST(any_moment_with_items_of_32_bytes) { any_moment<32>(); }
