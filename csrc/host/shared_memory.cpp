// The memory of a queue in a range that several processes share, each with a GPU.
#include "host/shared_memory.h"

#include <algorithm>

#include "host/backend.h"
#include "host/taken_parts.h"

namespace atos {
namespace {

constexpr uint64_t kLine = 256; // bytes; a part is a multiple of kLine, and nothing lies at 0
// Memory for items that find no room once a launch is to stop. This memory is created with the queue, since workers of other
// processes cannot reach memory that is created later.
constexpr uint64_t kSpill = uint64_t(256) << 20;

class SharedSource final : public MemorySource {
public:
  explicit SharedSource(atos_shared &shared) : shared(shared), backend(atos::backend(shared.device)), parts(kLine) {}

  void *allocate(uint64_t size) override {
    void *pointer = take(size);
    const uint8_t zero = 0;
    backend.fill(pointer, &zero, 1, size); // the memory may be that of a queue that is gone
    return pointer;
  }
  void release(void *pointer) noexcept override {
    if (!retired) parts.give(uint64_t(static_cast<char *>(pointer) - shared.begin));
  }
  void retire() noexcept override { retired = true; }
  void *reserve(uint64_t *size, uint64_t least) override {
    *size = std::max(std::min(*size, kSpill), least);
    return take(*size);
  }
  void release_reserved(void *pointer, uint64_t, uint64_t, bool) noexcept override { release(pointer); }
  std::unique_ptr<GrowableRange> reserve_growable(uint64_t) override { return nullptr; } // a launch stops to grow

private:
  atos_shared &shared;
  Backend &backend;
  TakenParts parts;
  bool retired = false;

  void *take(uint64_t size) {
    const uint64_t asked = std::max(size + kLine - 1, kLine) / kLine * kLine;
    const uint64_t at = asked < size ? TakenParts::kNone : parts.take(asked, shared.bytes);
    if (at == TakenParts::kNone)
      throw Failure(ATOS_NO_MEMORY, format("%llu bytes asked for, more than the addresses that the processes share have left",
                                           static_cast<unsigned long long>(size)));
    try {
      const uint64_t created = shared.created.empty() ? 0 : shared.created.back().at + shared.created.back().size;
      if (at + asked > created)
        shared.create(
            {created, (at + asked - created + atos_shared::kGranule - 1) / atos_shared::kGranule * atos_shared::kGranule});
    } catch (...) {
      parts.give(at);
      throw;
    }
    return shared.begin + at;
  }
};

} // namespace

std::unique_ptr<MemorySource> source_in(atos_shared &shared) { return std::make_unique<SharedSource>(shared); }

} // namespace atos
