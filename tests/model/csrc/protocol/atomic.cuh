// In place of csrc/protocol/atomic.cuh: each operation is one step of the model checker, under the name of the function it is in.
#pragma once
#include "check.hpp"
#include "link_constants.cuh"

#define ATOS_DEVICE inline
#define ATOS_FUNCTION inline
#define ATOS_NOINLINE inline
#define ATOS_ROLLED

namespace atos {

inline uint64_t load(const uint64_t *p, const char *in = __builtin_FUNCTION()) { return model::load(p, in); }
constexpr bool kHasPairs = false; // an item of 4 bytes and its level are such a pair, in one word
inline void load_pair(const uint64_t *, uint64_t *, uint64_t *) {}
inline void store_pair(uint64_t *, uint64_t, uint64_t) {}
inline void store(uint64_t *p, uint64_t v, const char *in = __builtin_FUNCTION()) { model::store(p, v, in); }
inline uint64_t fetch_add(uint64_t *p, uint64_t v, const char *in = __builtin_FUNCTION()) {
  return model::modify("add", p, in, [=](uint64_t *word) { return *word += v, true; });
}
inline bool compare_exchange(uint64_t *p, uint64_t &expected, uint64_t desired, const char *in = __builtin_FUNCTION()) {
  const uint64_t wanted = expected;
  expected = model::modify("compare_exchange", p, in, [=](uint64_t *word) { return *word == wanted && (*word = desired, true); });
  return expected == wanted;
}
inline void set_bits(uint64_t *p, uint64_t bits, const char *in = __builtin_FUNCTION()) {
  model::modify("set_bits", p, in, [=](uint64_t *word) { return *word |= bits, true; });
}
inline void lower_to(uint64_t *p, uint64_t v, const char *in = __builtin_FUNCTION()) {
  model::modify("lower_to", p, in, [=](uint64_t *word) { return v < *word && (*word = v, true); });
}
inline void set_bit(uint64_t *p, unsigned bit, const char *in = __builtin_FUNCTION()) {
  model::modify("set_bit", p, in, [=](uint64_t *word) { return *word |= uint64_t(1) << bit, true; });
}
inline void clear_bit(uint64_t *p, unsigned bit, const char *in = __builtin_FUNCTION()) {
  model::modify("clear_bit", p, in, [=](uint64_t *word) { return *word &= ~(uint64_t(1) << bit), true; });
}
// The first word tells one item or failure of a model from another.
template <class T> void store_plain(T *p, const T &value, const char *in = __builtin_FUNCTION()) {
  uint64_t v = 0;
  std::memcpy(&v, &value, std::min(sizeof v, sizeof value));
  model::store(reinterpret_cast<uint64_t *>(p), v, in);
}
inline void ring_used(unsigned k) { model::uses_ring(k); }
inline void fence() { model::fence(); }
// The model's memory has one scope. A device with one worker needs no such fence, so that those between devices are seen to suffice.
inline void fence_device() {
  if (model::bounds.workers > model::bounds.devices) model::fence();
}
inline unsigned lowest_bit(uint64_t v) { return unsigned(__builtin_ctzll(v)); }
inline uint64_t load_system(const uint64_t *p, const char *in = __builtin_FUNCTION()) { return model::load(p, in); }
inline void store_system(uint64_t *p, uint64_t v, const char *in = __builtin_FUNCTION()) { model::store(p, v, in); }
inline void fence_system() { model::fence(); }
// A try that came to nothing is forgotten: the thread does it again, with what it knows now.
class Spin {
public:
  Spin() : begin(model::machine.cursor) {}
  void again() {
    model::machine.threads[model::machine.current].log.resize(begin);
    model::cut(model::kPaused);
  }

private:
  const size_t begin;
};
inline uint64_t umulhi(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 wide;
  return uint64_t((wide(a) * b) >> 64);
}

} // namespace atos
