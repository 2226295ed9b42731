// Memory of the host for queues and arrays. Large blocks that were released are kept for the next allocation: the system takes
// several times as long to provide pages as a program takes to clear them.
#pragma once
#include <cstdint>

#include "host/kept_ranges.h"

namespace atos::cpu {

// Memory aligned to 128 bytes, filled with zeros, or if not `cleared` with anything; null if there is too little memory.
void *allocate(uint64_t bytes, bool cleared = true);
void release(void *pointer) noexcept;
void release_kept() noexcept; // gives all kept blocks back to the system

// Fills whole pages with zeros; pages without memory are zeros already.
void clear(const AddressRange &range) noexcept;

} // namespace atos::cpu
