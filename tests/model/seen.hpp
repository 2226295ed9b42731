// The states that the model checker has seen: a number for each, by 128 bits of hash.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace model {

constexpr uint32_t kNobody = ~uint32_t(0); // no state has this number

// 128 bits that stand for a state.
struct Hash {
  uint64_t a, b;
  bool operator==(const Hash &other) const { return a == other.a && b == other.b; }
  static Hash of(const std::string &state) {
    uint64_t a = 0x9e3779b97f4a7c15, b = state.size();
    const auto mix = [&](size_t at, size_t length) {
      uint64_t word = 0;
      std::memcpy(&word, state.data() + at, length);
      a = (a ^ word) * 0xff51afd7ed558ccd;
      a ^= a >> 32;
      b = (b + word) * 0xc4ceb9fe1a85ec53;
      b ^= b >> 29;
    };
    size_t at = 0;
    for (; at + 8 <= state.size(); at += 8) mix(at, 8);
    if (at < state.size()) mix(at, state.size() - at);
    return {a, b};
  }
};

// The numbers of the states that were seen: a table in which a hash lies at its place, or soon after it.
class Seen {
public:
  // The number of a state: this one, if it was not seen.
  uint32_t number(const Hash &hash, uint32_t fresh) {
    if (++count * 2 > table.size()) grow();
    Entry &entry = find(hash);
    if (entry.number == kNobody) entry = {hash, fresh};
    else --count;
    return entry.number;
  }

private:
  struct Entry {
    Hash hash{0, 0};
    uint32_t number = kNobody;
  };
  std::vector<Entry> table{1 << 16};
  size_t count = 0;

  Entry &find(const Hash &hash) {
    size_t at = hash.a & (table.size() - 1);
    while (table[at].number != kNobody && !(table[at].hash == hash)) at = (at + 1) & (table.size() - 1);
    return table[at];
  }
  void grow() {
    std::vector<Entry> before(2 * table.size());
    table.swap(before);
    for (const Entry &entry : before)
      if (entry.number != kNobody) find(entry.hash) = entry;
  }
};

} // namespace model
