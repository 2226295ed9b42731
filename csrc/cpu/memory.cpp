// Small blocks come from calloc, large ones are mapped. The system may take back the pages of a kept block (MADV_FREE), and so
// does not count them as used; pages that were taken back are zeros when they are used again. Huge pages are asked for in the
// largest blocks (MADV_HUGEPAGE), for fewer page faults and misses of the TLB.
#include "cpu/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "host/kept_ranges.h"

namespace atos::cpu {
namespace {

constexpr uint64_t kMapped = 1 << 20; // bytes from which on a block is mapped
constexpr uint64_t kHuge = 4 << 20;   // bytes from which on a mapped block has huge pages, of 2 MB on most processors
constexpr uint64_t kAlignment = 128;
constexpr size_t kMostKept = 16;

// In front of each block: the range that the block lies in, without bytes if the block is from the C library.
static_assert(sizeof(AddressRange) <= kAlignment);

KeptRanges &kept() {
  static KeptRanges &instance = *new KeptRanges(kMostKept); // never taken down, since arrays may outlive static objects
  return instance;
}

// A thread of the parent may have held the lock at a fork, so that a child keeps no blocks.
bool is_first_process() {
  static const pid_t first = getpid();
  return getpid() == first;
}

uint64_t page_bytes() {
  static const uint64_t bytes = uint64_t(sysconf(_SC_PAGESIZE));
  return bytes;
}

AddressRange map(uint64_t bytes, bool cleared) {
  if (is_first_process()) {
    const AddressRange found = kept().take(bytes, bytes);
    if (found.begin) {
      if (cleared) clear(found);
      return found;
    }
  }
  const auto once = [&] { return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); };
  void *begin = once();
  if (begin == MAP_FAILED) {
    release_kept();
    begin = once();
  }
  if (begin == MAP_FAILED) return {};
#ifdef MADV_HUGEPAGE
  if (bytes >= kHuge) madvise(begin, bytes, MADV_HUGEPAGE); // a system without huge pages uses small ones
#endif
  return {begin, bytes};
}

AddressRange &range_of(void *block) { return *reinterpret_cast<AddressRange *>(static_cast<char *>(block) - kAlignment); }

} // namespace

void *allocate(uint64_t bytes, bool cleared) {
  const uint64_t page = page_bytes(), all = bytes + 2 * kAlignment;
  // calloc, since the pages of a large block are touched only when they are used; aligned by hand.
  const AddressRange range =
      bytes < kMapped ? AddressRange{std::calloc(all, 1), 0} : map((all + page - 1) / page * page, cleared);
  if (!range.begin) return nullptr;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(range.begin);
  void *block = reinterpret_cast<void *>((begin + 2 * kAlignment - 1) / kAlignment * kAlignment);
  range_of(block) = range;
  return block;
}

void release(void *pointer) noexcept {
  if (!pointer) return;
  AddressRange range = range_of(pointer);
  if (!range.bytes) {
    std::free(range.begin);
    return;
  }
  if (is_first_process() && madvise(range.begin, range.bytes, MADV_FREE) == 0) range = kept().keep(range);
  if (range.begin) munmap(range.begin, range.bytes);
}

void clear(const AddressRange &range) noexcept {
  unsigned char resident[1024];
  const uint64_t page = page_bytes();
  for (uint64_t at = 0, some; at < range.bytes; at += some) {
    some = std::min(range.bytes - at, page * sizeof resident);
    char *begin = static_cast<char *>(range.begin) + at;
    const bool known = mincore(begin, some, resident) == 0;
    for (uint64_t i = 0; i < some / page; ++i)
      if (!known || resident[i] & 1) std::memset(begin + i * page, 0, page);
  }
}

void release_kept() noexcept {
  if (!is_first_process()) return;
  for (const AddressRange &range : kept().take_all()) munmap(range.begin, range.bytes);
}

} // namespace atos::cpu
