// Runs litmus programs on GPUs: many instances of a program at a time, under stress, and counts how they ended.
// kernel_text.py writes the programs, each as a struct with the functions `run`, `met` and `holds`.
//
// A block of the program has blocks of threads of its own; the threads of a block of the program are different warps. A group
// is as many blocks of threads as the program has blocks: in each round, it runs an instance for each of its slots. The blocks
// of a group meet at a gate before a round, so that the threads of an instance run at about the same time. No wait is without
// a bound: an instance whose threads did not meet is a right one, in which less can be seen.
#pragma once

#include <cstddef>
#include <vector>

#define LITMUS static __device__ __forceinline__
#define LITMUS_LD(into, how, word) asm volatile(how " %0, [%1];" : "=r"(into) : "l"(word) : "memory")
#define LITMUS_ST(how, word, value) asm volatile(how " [%0], %1;" : : "l"(word), "r"(value) : "memory")
#define LITMUS_ATOM(into, how, word, value) asm volatile(how " %0, [%1], %2;" : "=r"(into) : "l"(word), "r"(value) : "memory")
#define LITMUS_CAS(into, how, word, expected, desired)                                                                         \
  asm volatile(how " %0, [%1], %2, %3;" : "=r"(into) : "l"(word), "r"(expected), "r"(desired) : "memory")
#define LITMUS_FENCE(how) asm volatile(how ";" : : : "memory")
// As bar.sync, but lanes need not come together: a lane may have ended before.
#define LITMUS_BAR(number, threads) asm volatile("barrier.sync " #number ", " #threads ";" : : : "memory")

namespace litmus {

constexpr unsigned kBlockSize = 256, kMostBlocks = 4, kMostThreads = 4, kMostWords = 16, kMostGpus = 2;
constexpr unsigned kMostSpins = 4096, kMostSteps = 1u << 16, kScratchLines = 1u << 19, kLine = 32; // words in a line

// What a launch is: where its memory is, how many instances run, and how they are stressed.
struct Launch {
  int *words;           // of each place, a word for each instance, 1 << shift words apart
  int *registers;       // of each register, one for each instance
  unsigned *ended;      // of each thread, at which instruction it has ended in each instance
  unsigned *gates;      // how many blocks have come to the gate of each group
  unsigned *running;    // how many blocks run instances
  int *scratch;         // what only stress reads and writes
  const unsigned *role; // of each block of threads: a permutation, so that neighbors change from launch to launch
  unsigned gpu, groups, rounds, instances;
  unsigned words_of_program, blocks, blocks_here, slots;
  signed char thread[kMostBlocks][kMostThreads]; // which thread of the program runs in a block of it; -1: stress
  unsigned seed, shift;
  unsigned delay;   // the most clocks that a thread waits behind the gate
  unsigned warm;    // of 256 words, how many a thread has read before the gate
  unsigned mixed;   // whether neighbors run other instances than neighbors in other threads of the program
  unsigned spread;  // a mask of the lines of the scratch that are used
  unsigned pattern; // what stress does
};

// Where a thread of an instance finds words, and what it leaves.
struct Instance {
  const Launch &launch;
  unsigned number;

  __device__ __forceinline__ int *word(unsigned place) const {
    return launch.words + ((size_t(place) * launch.instances + number) << launch.shift);
  }
  __device__ __forceinline__ void put(unsigned place, int value) const {
    launch.registers[size_t(place) * launch.instances + number] = value;
  }
  __device__ __forceinline__ void end(unsigned thread, unsigned at) const {
    launch.ended[size_t(thread) * launch.instances + number] = at;
  }
};

static __device__ __forceinline__ unsigned mix(unsigned a, unsigned b) {
  unsigned x = a * 0x9e3779b9u ^ (b + 0x7f4a7c15u);
  x = (x ^ x >> 16) * 0x85ebca6bu;
  x = (x ^ x >> 13) * 0xc2b2ae35u;
  return x ^ x >> 16;
}

static __device__ __forceinline__ unsigned look(const unsigned *word) {
  unsigned value;
  LITMUS_LD(value, "ld.relaxed.sys.u32", word);
  return value;
}

static __device__ __forceinline__ void add(unsigned *word, unsigned value) {
  LITMUS_ST("red.relaxed.sys.add.u32", word, value);
}

// Reads and writes the scratch for some steps.
static __device__ __noinline__ void stress(const Launch &launch, unsigned &state, unsigned steps) {
  int sum = 0;
  for (unsigned i = 0; i < steps; ++i) {
    state = state * 1664525u + 1013904223u;
    int *word = launch.scratch + size_t(state >> 8 & launch.spread) * kLine + (state >> 3 & (kLine - 1));
    const unsigned step = launch.pattern >> (2 * (i & 3)) & 3;
    int value = 0;
    if (step == 0) LITMUS_LD(value, "ld.weak.s32", word);
    if (step == 1) LITMUS_ST("st.weak.s32", word, sum);
    if (step == 2) LITMUS_ATOM(value, "atom.relaxed.gpu.add.s32", word, 1);
    if (step == 3) LITMUS_LD(value, "ld.relaxed.gpu.s32", word);
    sum += value;
  }
  state += sum == 0x5eed; // or nobody would need what was read
}

// Brings words into the cache of this SM before they are written.
static __device__ __noinline__ void warm(const Instance &its, unsigned chance) {
  int sum = 0;
  for (unsigned place = 0; place < its.launch.words_of_program; ++place) {
    if ((mix(chance, place) & 255) >= its.launch.warm) continue;
    int value;
    LITMUS_LD(value, "ld.weak.s32", its.word(place));
    sum += value;
  }
  if (sum == 0x5eed) its.launch.scratch[0] = sum; // no program has such words
}

// Waits until the other blocks of the group have come, or for some turns, and then for a while by chance.
static __device__ __noinline__ void gate(const Launch &launch, unsigned group, unsigned round, unsigned chance) {
  unsigned *gate = launch.gates + size_t(group) * kLine;
  __syncthreads();
  if (threadIdx.x == 0) add(gate, 1);
  if (threadIdx.x % 32 == 0) {
    for (unsigned i = 0; i < kMostSpins && look(gate) < (round + 1) * launch.blocks; ++i) {}
    const long long begin = clock64(), wait = chance % (launch.delay + 1);
    while (clock64() - begin < wait) {}
  }
  __syncwarp();
}

template <class Program> __global__ void __launch_bounds__(kBlockSize) run(const __grid_constant__ Launch launch) {
  const unsigned role = launch.role[blockIdx.x];
  unsigned state = mix(launch.seed, (blockIdx.x * kBlockSize + threadIdx.x) * 2 + launch.gpu);
  if (role >= launch.groups * launch.blocks_here) {
    for (unsigned i = 0; i < kMostSteps && look(launch.running) != 0; ++i) stress(launch, state, 16);
    return;
  }
  const unsigned group = role / launch.blocks_here, block = role % launch.blocks_here;
  const unsigned slot = threadIdx.x & (launch.slots - 1);
  const int thread = launch.thread[block][threadIdx.x / launch.slots];
  for (unsigned round = 0; round < launch.rounds; ++round) {
    const unsigned chance = mix(launch.seed ^ round, (group * kMostThreads + unsigned(thread)) * kMostGpus + launch.gpu);
    const unsigned by = launch.mixed ? chance : 0; // an odd factor and a sum permute the slots
    const unsigned mine = (slot * (by << 1 | 1) + (by >> 16)) & (launch.slots - 1);
    const Instance its{launch, (round * launch.groups + group) * launch.slots + mine};
    if (thread >= 0) warm(its, mix(chance, threadIdx.x / 32));
    gate(launch, group, round, mix(chance, ~(threadIdx.x / 32)));
    if (thread >= 0) {
      Program::run(unsigned(thread), its);
    } else {
      stress(launch, state, 8);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) add(launch.running, ~0u);
}

struct Counts {
  unsigned long long met, seen; // instances in which no thread has ended before its end; which end as must never be
};

template <class Program> __global__ void count(const __grid_constant__ Launch launch, Counts *counts) {
  unsigned met = 0, seen = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < launch.instances; i += gridDim.x * blockDim.x) {
    int registers[Program::kRegisters + 1], last[Program::kWords];
    unsigned ended[Program::kThreads];
    for (unsigned k = 0; k < Program::kRegisters; ++k) registers[k] = launch.registers[size_t(k) * launch.instances + i];
    for (unsigned k = 0; k < Program::kThreads; ++k) ended[k] = launch.ended[size_t(k) * launch.instances + i];
    for (unsigned k = 0; k < Program::kWords; ++k) last[k] = *Instance{launch, i}.word(k);
    met += Program::met(ended);
    seen += Program::holds(registers, ended, last);
  }
  for (int other = 16; other > 0; other /= 2) {
    met += __shfl_xor_sync(~0u, met, other);
    seen += __shfl_xor_sync(~0u, seen, other);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&counts->met, met);
    atomicAdd(&counts->seen, seen);
  }
}

// A program as the host knows it.
struct Description {
  unsigned number; // in the list of all programs
  unsigned threads, registers, words, slots, gpus;
  unsigned blocks[kMostGpus];
  signed char thread[kMostGpus][kMostBlocks][kMostThreads];
  int begin[kMostWords];
  void (*run)(const Launch);
  void (*count)(const Launch, Counts *);
};

std::vector<Description> &programs();
bool add_programs(const std::vector<Description> &more); // each file of programs adds its own before main begins

} // namespace litmus
