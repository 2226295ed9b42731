// MemorySource: the origin of a queue's memory: a device, or a range that several processes share.
#pragma once
#include <cstdint>
#include <memory>

#include "host/growable_range.h"

namespace atos {

class MemorySource {
public:
  virtual ~MemorySource() = default;
  virtual void *allocate(uint64_t bytes) = 0; // filled with zeros
  virtual void release(void *pointer) noexcept = 0;
  // Memory for workers, up to `bytes` and what the host can spare, at least `least`; only written pages are used.
  virtual void *reserve(uint64_t *bytes, uint64_t least) = 0;
  virtual void release_reserved(void *pointer, uint64_t bytes, uint64_t least, bool written) noexcept = 0;
  virtual void retire() noexcept {} // nothing is used any more: the caller's memory may be gone already
  virtual std::unique_ptr<GrowableRange> reserve_growable(uint64_t bytes) = 0; // null if there are no such addresses
};

} // namespace atos
