// Addresses of a queue whose memory a test provides.
#pragma once
#include "protocol/queue_addresses.h"

template <class Slots, class Spill>
atos::QueueAddresses addresses(atos::Counters *counters, Slots &slots, void *more, Spill &spill, unsigned growths = 0) {
  atos::QueueAddresses at{};
  at.counters = counters;
  at.slots = slots.data(), at.more = more;
  at.spill = spill.data(), at.spill_size = spill.size();
  at.size = slots.size(), at.reciprocal = ~uint64_t(0) / at.size;
  at.growths = growths;
  return at;
}
