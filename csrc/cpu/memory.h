// Memory of the host for queues and arrays, of which large blocks are kept for the next who asks: the system takes several
// times as long to provide pages as they take to clear.
#pragma once
#include <cstdint>

#include "host/kept_ranges.h"

namespace atos::cpu {

// Aligned to 128 bytes, and filled with zeros, or if not `cleared` with anything; null if there is too little memory.
void *allocate(uint64_t bytes, bool cleared = true);
void release(void *pointer) noexcept;
void release_kept() noexcept; // to the system

// Fills whole pages with zeros, of which those that are in no memory are zeros already.
void clear(const AddressRange &range) noexcept;

} // namespace atos::cpu
