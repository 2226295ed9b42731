// KeptRanges: ranges of addresses that were given back, kept for whoever asks for one of their size again, since they are slow
// to make. What lies in them is as their last owner left it.
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

  // The latest that has from `least` to `greatest` bytes; one that begins nowhere if there is none.
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

  // Returns the range that the caller has to free in exchange: the oldest, if there are too many; else one that begins nowhere.
  AddressRange keep(const AddressRange &range) noexcept {
    std::lock_guard<std::mutex> lock(guard);
    ranges.push_back(range);
    if (ranges.size() <= most) return {};
    const AddressRange oldest = ranges.front();
    ranges.erase(ranges.begin());
    return oldest;
  }

  // All of them, for the caller to free.
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
