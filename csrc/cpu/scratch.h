// Scratch: the memory that a CPU worker lends its tasks. Regions whose size the task gives follow the unsized region.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace atos {

class Scratch {
public:
  Scratch(uint64_t bytes, uint64_t unsized_bytes) : memory(bytes + 16), begin((unsized_bytes + 15) / 16 * 16) {
    regions.reserve((bytes - begin) / 16); // compiled tasks let no exception through
  }

  unsigned char *unsized() { return memory.data(); }

  // The region of a place in the task. When a place is met for the first time, its region begins behind all others.
  unsigned char *region(uint64_t place, uint64_t bytes) {
    for (const auto &[known, known_begin] : regions)
      if (known == place) return memory.data() + known_begin;
    regions.emplace_back(place, begin);
    begin += (bytes + 15) / 16 * 16;
    return memory.data() + regions.back().second;
  }

private:
  std::vector<unsigned char> memory;
  uint64_t begin;                                     // begin of the bytes that no region has
  std::vector<std::pair<uint64_t, uint64_t>> regions; // a place, and where its region begins
};

} // namespace atos
