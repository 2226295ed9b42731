// TakenParts: which parts of a range of memory are in use, by their distance from its begin.
#pragma once
#include <cstdint>
#include <map>

namespace atos {

class TakenParts {
public:
  static constexpr uint64_t kNone = ~uint64_t(0);

  explicit TakenParts(uint64_t first) { used[0] = first; } // nothing lies before `first`

  // The first gap of so many bytes that ends before `end`; kNone if there is none.
  uint64_t take(uint64_t size, uint64_t end) {
    if (size > end) return kNone;
    for (auto at = used.begin(); at != used.end(); ++at) {
      const auto next = std::next(at);
      const uint64_t from = at->second, to = next == used.end() ? end : next->first;
      if (to < from || to - from < size) continue;
      used[from] = from + size;
      return from;
    }
    return kNone;
  }

  // Bytes of the part that begins at `at`; 0 if there is none.
  uint64_t size_of(uint64_t at) const {
    const auto part = used.find(at);
    return part == used.end() ? 0 : part->second - at;
  }
  void give(uint64_t at) { used.erase(at); }

private:
  std::map<uint64_t, uint64_t> used; // where parts begin, and where each ends
};

} // namespace atos
