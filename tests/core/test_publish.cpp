// A slot that becomes free while its next item is being stored (csrc/protocol/queue_ref.cuh), staged between the two steps of a push.
#include "protocol/atomic.cuh"

#include <functional>
#include <utility>

#include "check.h"

namespace atos {
std::function<void()> at_fence; // what another worker does meanwhile, once
inline void staged_fence() {
  if (at_fence) std::exchange(at_fence, nullptr)();
}
} // namespace atos

#define fence staged_fence
#include "protocol/queue_ref.cuh"
#undef fence

using namespace atos;

template <unsigned bytes> void a_slot_freed_meanwhile() {
  Counters counters{};
  Slot<bytes> slots[2] = {};
  SpilledItem<bytes> spill[4] = {};
  QueueAddresses at{};
  at.counters = &counters, at.slots = slots, at.size = 2, at.reciprocal = ~uint64_t(0) / 2, at.spill = spill, at.spill_size = 4;
  const QueueRef<bytes> queue(at);
  const auto item = [](uint64_t value) {
    Item<bytes> made{};
    std::memcpy(&made, &value, bytes < 8 ? bytes : 8);
    return made;
  };
  const auto value = [](const Item<bytes> &made) {
    uint64_t got = 0;
    std::memcpy(&got, &made, bytes < 8 ? bytes : 8);
    return got;
  };
  const auto take = [&](uint64_t ticket, uint64_t *got) {
    const Place place = queue.ring(0, 0).at(ticket);
    typename Slot<bytes>::Seen seen{};
    if (!slots[place.index].is_ready(place.sequence, seen)) return false;
    *got = value(slots[place.index].get(seen));
    slots[place.index].release(place.sequence);
    return true;
  };

  const Item<bytes> before[2] = {item(10), item(11)};
  queue.publish(queue.ring(0, 0), queue.reserve(2), before, 2, 0, 1);
  uint64_t got = 0;
  bool taken = false;
  at_fence = [&] { taken = take(0, &got); };
  const Item<bytes> after[1] = {item(12)};
  queue.publish(queue.ring(0, 0), queue.reserve(1), after, 1, 0, 1); // its slot holds 10, until it is taken on the way
  at_fence = nullptr;
  if (!taken) taken = take(0, &got);
  CHECK(taken && got == 10, "ticket 0 has item %" PRIu64, got);

  int times = 0;
  if (take(2, &got)) {
    CHECK(got == 12, "ticket 2 has item %" PRIu64 " instead of 12", got);
    ++times;
  }
  for (uint64_t i = 0; i < counters.spilled; ++i) times += value(spill[i].item) == 12;
  CHECK(times == 1, "item 12 is there %d times", times);
}

TEST(a_slot_freed_meanwhile_of_4_bytes) { a_slot_freed_meanwhile<4>(); }
TEST(a_slot_freed_meanwhile_of_8_bytes) { a_slot_freed_meanwhile<8>(); }
TEST(a_slot_freed_meanwhile_of_16_bytes) { a_slot_freed_meanwhile<16>(); }
TEST(a_slot_freed_meanwhile_of_32_bytes) { a_slot_freed_meanwhile<32>(); }
