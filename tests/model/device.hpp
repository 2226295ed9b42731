// What csrc/device needs of CUDA, for workers of one thread each: a barrier of one thread does nothing.
#pragma once
#include <algorithm>
#include <cstdint>

#define __CUDACC__
#define __host__
#define __device__
#define __global__

struct Index {
  unsigned x;
};
constexpr Index threadIdx{0}, blockIdx{0}, blockDim{1};
inline const Index gridDim() { return {model::bounds.workers}; }
#define gridDim gridDim()

using std::max, std::min;
inline void __syncthreads() {}
inline void __syncwarp(unsigned = ~0u) {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}
inline unsigned __activemask() { return 1; }
inline bool __syncthreads_or(bool p) { return p; }
inline bool __any_sync(unsigned, bool p) { return p; }
inline bool __all_sync(unsigned, bool p) { return p; }
inline unsigned __ballot_sync(unsigned, bool p) { return p; }
template <class T> unsigned __match_any_sync(unsigned, T) { return 1; }
template <class T> T __shfl_sync(unsigned, T x, unsigned) { return x; }
template <class T> T __shfl_up_sync(unsigned, T x, unsigned) { return x; }
inline unsigned __popc(unsigned x) { return unsigned(__builtin_popcount(x)); }
inline int __ffs(unsigned x) { return __builtin_ffs(int(x)); }
inline int __ffsll(uint64_t x) { return __builtin_ffsll(static_cast<long long>(x)); }
template <class T, class V> T atomicAdd(T *p, V v) { return (*p += T(v)) - T(v); } // of a worker's own memory
