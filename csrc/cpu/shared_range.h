// SharedRange: a range of memory that several processes have mapped, for a queue, of zeros at first.
//
// Only pages that were written take memory, so the range may be larger than the memory of the host. A part has the same
// distance from the begin of the range in every process; no part lies at 0.
#pragma once
#include "host/memory_source.h"
#include "host/taken_parts.h"

namespace atos {

class SharedRange final : public MemorySource {
public:
  SharedRange(void *begin, uint64_t bytes);
  void *allocate(uint64_t bytes) override;
  void release(void *pointer) noexcept override;
  void *reserve(uint64_t *bytes, uint64_t least) override;
  void release_reserved(void *pointer, uint64_t, uint64_t, bool) noexcept override { release(pointer); }
  void retire() noexcept override { retired = true; }
  std::unique_ptr<GrowableRange> reserve_growable(uint64_t bytes) override;

private:
  class Part;
  char *const begin;
  const uint64_t bytes, page;
  const bool removes; // whether the system takes pages back on request
  TakenParts parts;
  bool retired = false;

  bool tell_whether() const;
  void *take(uint64_t size); // null if there is no room
};

} // namespace atos
