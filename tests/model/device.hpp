// What csrc/worker.cuh needs of CUDA, for workers of one thread each: a barrier of one thread does nothing.
#pragma once
#include <cstdint>

#define __CUDACC__
#define __host__
#define __device__
#define __global__
#define __forceinline__ inline

struct Index {
  unsigned x;
};
constexpr Index threadIdx{0}, blockDim{1}, blockIdx{0}; // which block it is only chooses where to begin looking
inline const Index gridDim() { return {model::bounds.workers}; }
#define gridDim gridDim()

inline void __syncthreads() {}
inline void __syncwarp() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}
inline unsigned __activemask() { return 1; }
inline bool __syncthreads_or(bool p) { return p; }
inline bool __any_sync(unsigned, bool p) { return p; }
inline unsigned __ballot_sync(unsigned, bool p) { return p; }
template <class T> T __shfl_sync(unsigned, T x, unsigned) { return x; }
template <class T> T __shfl_up_sync(unsigned, T x, unsigned) { return x; }
inline unsigned __popc(unsigned x) { return unsigned(__builtin_popcount(x)); }
inline int __ffs(unsigned x) { return __builtin_ffs(int(x)); }
inline int __ffsll(uint64_t x) { return __builtin_ffsll(static_cast<long long>(x)); }
inline uint32_t atomicAdd(uint32_t *p, uint32_t v) { return (*p += v) - v; } // of a worker's own memory

namespace model {

// An array in a worker's memory: nothing is written or read beyond its end.
template <class T, unsigned Bounds::*length> struct Bounded {
  T *begin;
  Bounded(T *begin) : begin(begin) {}
  template <class Index> T &operator[](Index i) const {
    if (unsigned(i) >= bounds.*length) fail("a worker goes beyond the end of an array");
    return begin[i];
  }
  operator T *() const { return begin; }
};

void uses_ring(unsigned k); // whoever has a ticket for the ring after k growths

} // namespace model

// Where a worker could begin anew, and its last step is over.
template <class Header> void begin_anew(Header *header) {
  header->step = -1; // kLeave: none
  model::commit();
}
