// RecentNumber: a number that is slow to find out, so that an answer serves for a tenth of a second. An example is the free
// memory, where each queue asks how far it may grow.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

namespace atos {

class RecentNumber {
public:
  static constexpr int64_t kAge = 100'000'000; // nanoseconds

  // Threads that find the number old at the same time all read the number anew.
  template <class Read> uint64_t get(Read read, int64_t now = nanoseconds()) {
    if (now - at.load() > kAge) {
      value = read();
      at = now;
    }
    return value;
  }

private:
  static int64_t nanoseconds() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  std::atomic<int64_t> at{-(int64_t(1) << 62)};
  std::atomic<uint64_t> value{0}; // as of the time `at`, or newer
};

} // namespace atos
