// Parts of a range of memory that several processes share.
#include "cpu/shared_range.h"

#include <algorithm>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu/memory.h"
#include "host/status.h"

namespace atos {

// The system takes memory where the addresses are used.
class SharedRange::Part final : public GrowableRange {
public:
  Part(SharedRange &range, void *pointer, uint64_t size) : range(range) {
    begin = pointer;
    bytes = mapped = size;
  }
  ~Part() override { range.release(begin); }
  void extend(uint64_t) override {}

private:
  SharedRange &range;
};

SharedRange::SharedRange(void *begin, uint64_t bytes)
    : begin(static_cast<char *>(begin)), bytes(bytes), page(uint64_t(sysconf(_SC_PAGESIZE))), removes(tell_whether()),
      parts(page) {}

// Tries with the first page whether the system takes pages back: an emulated system may take the request for a hint.
bool SharedRange::tell_whether() const {
  *begin = 1;
  const bool told = madvise(begin, page, MADV_REMOVE) == 0 && *static_cast<volatile char *>(begin) == 0;
  *begin = 0;
  return told;
}

void *SharedRange::take(uint64_t size) {
  if (size > bytes) return nullptr;
  const uint64_t at = parts.take(std::max(size + page - 1, page) / page * page, bytes);
  return at == TakenParts::kNone ? nullptr : begin + at;
}

void *SharedRange::allocate(uint64_t size) {
  void *pointer = take(size);
  if (!pointer)
    throw Failure(ATOS_NO_MEMORY, format("%llu bytes asked for, more than the memory that the processes share has left",
                                         static_cast<unsigned long long>(size)));
  return pointer;
}

// Gives the pages back to the system, in every process: the pages are zeros from then on.
void SharedRange::release(void *pointer) noexcept {
  if (retired) return;
  const uint64_t at = uint64_t(static_cast<char *>(pointer) - begin), size = parts.size_of(at);
  if (size == 0) return;
  if (!removes || madvise(pointer, size, MADV_REMOVE) != 0) cpu::clear({pointer, size});
  parts.give(at);
}

void *SharedRange::reserve(uint64_t *size, uint64_t least) {
  *size = std::max(std::min(*size, bytes / 4), least); // most of the range is for rings
  return allocate(*size);
}

std::unique_ptr<GrowableRange> SharedRange::reserve_growable(uint64_t size) {
  void *pointer = take(size);
  return pointer ? std::make_unique<Part>(*this, pointer, size) : nullptr;
}

} // namespace atos
