// GrowableRange: a reserved range of virtual addresses, of which the first `mapped` bytes have zeroed memory. More can be
// mapped while workers run, so that a queue grows without a stop.
#pragma once
#include "protocol/counters.h"

namespace atos {

class GrowableRange {
public:
  virtual ~GrowableRange() = default;
  virtual void extend(uint64_t bytes) = 0; // maps memory up to so many bytes in all; throws ATOS_NO_MEMORY
  void *begin = nullptr;
  uint64_t bytes = 0, mapped = 0; // bytes of addresses; bytes that have memory
};

// Bytes of the rings of `growths` growths of a first ring, each twice as large as the one before.
inline uint64_t bytes_of_growths(uint64_t ring_bytes, unsigned growths) {
  return (ring_bytes << (growths + 1)) - 2 * ring_bytes;
}

// The number of growths that fit into so many bytes.
inline unsigned growths_within(uint64_t ring_bytes, uint64_t bytes) {
  unsigned growths = 0;
  while (growths < kMostGrowths && bytes_of_growths(ring_bytes, growths + 1) <= bytes) ++growths;
  return growths;
}

} // namespace atos
