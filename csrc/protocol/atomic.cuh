// The few atomic operations of the protocol, on 64-bit words of global memory, with one meaning on the GPU and the CPU.
//
// On the GPU every operation is relaxed and order comes from fence(), so that a worker pays one fence for a whole batch. The
// operations are PTX, to name the global address space: through generic addresses each atomic would come with a branch for
// shared memory. On the CPU each operation is itself an acquire, a release or both, which costs nothing on x86, little on ARM,
// and is visible to ThreadSanitizer; fence() is empty there. So a CPU whose memory order is weaker than x86's is no other case
// than a GPU.
//
// In a launch over several GPUs all operations but fence_device() are of system scope; the task's linker selects the scope by
// `has_peers`.
#pragma once
#include <cstdint>

#include "include/interface.h"
#include "protocol/link_constants.cuh"
#if !defined(__CUDACC__)
#include <thread>
#endif

#if defined(__CUDACC__)
#define ATOS_DEVICE __device__ __forceinline__
#define ATOS_FUNCTION __host__ ATOS_DEVICE
#define ATOS_NOINLINE __device__ __noinline__
#define ATOS_ROLLED _Pragma("unroll 1") // unrolling a loop of ordered memory operations only takes registers
#else
#define ATOS_DEVICE inline
#define ATOS_FUNCTION inline
#define ATOS_NOINLINE inline
#define ATOS_ROLLED
#endif

namespace atos {

#if defined(__CUDA_ARCH__)

// A PTX statement: the scope of the launch goes between the two parts of the operation.
#define ATOS_SCOPED(before, after, ...)                                                                                        \
  do {                                                                                                                         \
    if (has_peers) asm volatile(before ".sys" after __VA_ARGS__);                                                              \
    else asm volatile(before ".gpu" after __VA_ARGS__);                                                                        \
  } while (0)

ATOS_DEVICE uint64_t global(const void *p) { return __cvta_generic_to_global(p); }

ATOS_DEVICE uint64_t load(const uint64_t *p) {
  uint64_t v;
  ATOS_SCOPED("ld.relaxed", ".global.u64 %0, [%1];", : "=l"(v) : "l"(global(p)) : "memory");
  return v;
}
ATOS_DEVICE void store(uint64_t *p, uint64_t v) {
  ATOS_SCOPED("st.relaxed", ".global.u64 [%0], %1;", ::"l"(global(p)), "l"(v) : "memory");
}
// Loads and stores of two words at once, aligned to 16 bytes.
constexpr bool kHasPairs = true;
ATOS_DEVICE void load_pair(const uint64_t *p, uint64_t *first, uint64_t *second) {
  ATOS_SCOPED("{.reg .b128 pair; ld.relaxed", ".global.b128 pair, [%2]; mov.b128 {%0, %1}, pair;}", : "=l"(*first),
              "=l"(*second) : "l"(global(p)) : "memory");
}
ATOS_DEVICE void store_pair(uint64_t *p, uint64_t first, uint64_t second) {
  ATOS_SCOPED("{.reg .b128 pair; mov.b128 pair, {%1, %2}; st.relaxed", ".global.b128 [%0], pair;}", ::"l"(global(p)),
              "l"(first), "l"(second) : "memory");
}
ATOS_DEVICE uint64_t fetch_add(uint64_t *p, uint64_t v) {
  uint64_t old;
  ATOS_SCOPED("atom.relaxed", ".global.add.u64 %0, [%1], %2;", : "=l"(old) : "l"(global(p)), "l"(v) : "memory");
  return old;
}
ATOS_DEVICE bool compare_exchange(uint64_t *p, uint64_t &expected, uint64_t desired) {
  const uint64_t wanted = expected;
  ATOS_SCOPED("atom.relaxed", ".global.cas.b64 %0, [%1], %2, %3;", : "=l"(expected) : "l"(global(p)), "l"(wanted),
              "l"(desired) : "memory");
  return expected == wanted;
}
ATOS_DEVICE void set_bits(uint64_t *p, uint64_t bits) {
  ATOS_SCOPED("red.relaxed", ".global.or.b64 [%0], %1;", ::"l"(global(p)), "l"(bits) : "memory");
}
ATOS_DEVICE void lower_to(uint64_t *p, uint64_t v) {
  ATOS_SCOPED("red.relaxed", ".global.min.u64 [%0], %1;", ::"l"(global(p)), "l"(v) : "memory");
}
ATOS_DEVICE void set_bit(uint64_t *p, unsigned bit) { set_bits(p, uint64_t(1) << bit); }
ATOS_DEVICE void clear_bit(uint64_t *p, unsigned bit) {
  ATOS_SCOPED("red.relaxed", ".global.and.b64 [%0], %1;", ::"l"(global(p)), "l"(~(uint64_t(1) << bit)) : "memory");
}
ATOS_DEVICE void fence() { ATOS_SCOPED("fence.acq_rel", ";", :: : "memory"); }
// A fence between threads of one GPU, in every launch: does not wait for stores to other GPUs.
ATOS_DEVICE void fence_device() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// Loads and stores of words of the host's memory, which the host uses meanwhile.
ATOS_DEVICE uint64_t load_system(const uint64_t *p) {
  uint64_t v;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(global(p)) : "memory");
  return v;
}
ATOS_DEVICE void store_system(uint64_t *p, uint64_t v) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(global(p)), "l"(v) : "memory");
}
ATOS_DEVICE void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

ATOS_DEVICE uint64_t umulhi(uint64_t a, uint64_t b) { return __umul64hi(a, b); }
ATOS_DEVICE unsigned lowest_bit(uint64_t v) { return unsigned(__ffsll((long long)v)) - 1; }

// A loop that waits for other threads: calls `again` before each new try.
struct Spin {
  ATOS_DEVICE void again() { __nanosleep(100); }
};

#else

constexpr bool kHasPairs = false; // x86 guarantees no atomic load of 16 bytes
ATOS_FUNCTION void load_pair(const uint64_t *, uint64_t *, uint64_t *) {}
ATOS_FUNCTION void store_pair(uint64_t *, uint64_t, uint64_t) {}
ATOS_FUNCTION uint64_t load(const uint64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
ATOS_FUNCTION void store(uint64_t *p, uint64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
ATOS_FUNCTION uint64_t fetch_add(uint64_t *p, uint64_t v) { return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL); }
ATOS_FUNCTION bool compare_exchange(uint64_t *p, uint64_t &expected, uint64_t desired) {
  return __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
ATOS_FUNCTION void set_bits(uint64_t *p, uint64_t bits) { __atomic_fetch_or(p, bits, __ATOMIC_ACQ_REL); }
ATOS_FUNCTION void lower_to(uint64_t *p, uint64_t v) {
  uint64_t seen = load(p);
  while (v < seen && !compare_exchange(p, seen, v)) {}
}
ATOS_FUNCTION void fence() {}
ATOS_FUNCTION void fence_device() {}
ATOS_FUNCTION unsigned lowest_bit(uint64_t v) { return unsigned(__builtin_ctzll(v)); }
ATOS_FUNCTION uint64_t load_system(const uint64_t *p) { return load(p); }
ATOS_FUNCTION void store_system(uint64_t *p, uint64_t v) { store(p, v); }
ATOS_FUNCTION void fence_system() {}
ATOS_FUNCTION uint64_t umulhi(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 wide;
  return static_cast<uint64_t>((static_cast<wide>(a) * b) >> 64);
}

struct Spin {
  ATOS_FUNCTION void again() {
#if !defined(__CUDACC__)
    std::this_thread::yield();
#endif
  }
};

#endif

// A plain store of something larger than a word, for memory that nobody reads before the workers have left.
template <class T> ATOS_FUNCTION void store_plain(T *p, const T &value) { *p = value; }

// The caller is about to use the ring after k growths, with a ticket for that ring. No code here: the model checker tests that
// the ring's memory is visible to the caller.
ATOS_FUNCTION void ring_used(unsigned) {}

} // namespace atos
