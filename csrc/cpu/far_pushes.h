// FarPushes: the far items that a CPU worker pushes to a device, stored there some at a time.
#pragma once
#include <algorithm>
#include <vector>

#include "protocol/far_items.cuh"

namespace atos {

template <unsigned bytes> class FarPushes {
public:
  FarItems<bytes> far;
  Window window{}; // as last looked at

  explicit FarPushes(const FarItems<bytes> &far) : far(far) {}

  // Reads the window. Comes before all pushes, since it reserves memory for them: workers cannot report a lack of memory.
  void look() {
    pushes.reserve(kMost);
    window = far.window();
  }
  bool is_near(float level) const { return window.is_near(level); }
  // Adds a push; whether the buffer is full now.
  bool add(const Item<bytes> &item, float level) {
    pushes.push_back({item, level});
    return pushes.size() >= kMost;
  }

  // Stores the pushes; returns how many.
  uint64_t store() {
    const uint64_t n = pushes.size();
    if (!n) return 0;
    far.count(n);
    look();
    float lowest = pushes[0].level;
    for (const Push &push : pushes) {
      lowest = std::min(lowest, push.level);
      const unsigned list = far.list_of(push.level, window);
      const uint64_t ticket = far.reserve(list, 1);
      far.begin_block(list, ticket);
      far.put(list, ticket, push.item, push.level);
    }
    pushes.clear();
    far.return_to(lowest);
    look();
    return n;
  }

private:
  static constexpr size_t kMost = 256; // pushes that are stored at once
  struct Push {
    Item<bytes> item;
    float level;
  };
  std::vector<Push> pushes;
};

} // namespace atos
