// KeptRanges: ranges of addresses that were given back, kept for the next request of their size, since ranges are slow to make.
// The content of a range is as its last owner left it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace atos {

struct AddressRange {
  void *begin = nullptr;
  uint64_t bytes = 0;
};

class KeptRanges {
public:
  explicit KeptRanges(size_t most) : most(most) { ranges.reserve(most + 1); }

  // Takes the latest range of `least` to `greatest` bytes; the result has a null `begin` if there is none.
  AddressRange take(uint64_t least, uint64_t greatest) {
    std::lock_guard<std::mutex> lock(guard);
    for (size_t i = ranges.size(); i-- > 0;) {
      const AddressRange found = ranges[i];
      if (found.bytes < least || found.bytes > greatest) continue;
      ranges.erase(ranges.begin() + std::ptrdiff_t(i));
      return found;
    }
    return {};
  }

  // Returns the range that the caller has to free in exchange: the oldest, if there are too many; else one with a null `begin`.
  AddressRange keep(const AddressRange &range) noexcept {
    std::lock_guard<std::mutex> lock(guard);
    ranges.push_back(range);
    if (ranges.size() <= most) return {};
    const AddressRange oldest = ranges.front();
    ranges.erase(ranges.begin());
    return oldest;
  }

  // Takes all ranges, for the caller to free.
  std::vector<AddressRange> take_all() {
    std::lock_guard<std::mutex> lock(guard);
    const std::vector<AddressRange> all = ranges;
    ranges.clear();
    return all;
  }

private:
  const size_t most;
  std::mutex guard;
  std::vector<AddressRange> ranges;
};

} // namespace atos
