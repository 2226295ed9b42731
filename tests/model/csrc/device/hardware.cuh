// In place of csrc/device/hardware.cuh: warps of one lane, a clock that the host sets, every outcome of chance, and arrays whose
// ends are tested.
#pragma once
#include "protocol/atomic.cuh"

namespace atos {

constexpr unsigned kWarpSize = 1;

inline unsigned lane_id() { return 0; }
inline unsigned block_index() { return 0; } // it only chooses where to begin looking
inline uint64_t global_nanoseconds() { return 0; }
inline uint32_t clock_ticks() { return 0; }
inline uint64_t late = 0; // 1: the time limit of the launch is over
inline bool is_past(uint32_t) { return load(&late); }
inline uint32_t quotient_rounded_by_chance(int32_t, int32_t, uint32_t most) { return uint32_t(model::any(most + 1)); }

// An array in a worker's memory: nothing is written or read beyond its end.
template <class T, unsigned model::Bounds::*length> struct Bounded {
  T *begin;
  Bounded(T *begin) : begin(begin) {}
  template <class Index> T &operator[](Index i) const {
    if (unsigned(i) >= model::bounds.*length) model::fail("a worker goes beyond the end of an array");
    return begin[i];
  }
  operator T *() const { return begin; }
};
template <class T> using BatchArray = Bounded<T, &model::Bounds::fetch>;
template <class T> using PushArray = Bounded<T, &model::Bounds::buffer>;

// Clears a step that has been accounted for, so that accounting for it again would show.
inline void restart_point() { model::commit(); }
template <class Step> void restart_point(Step &step) {
  step = Step::kLeave; // none
  model::commit();
}

} // namespace atos
