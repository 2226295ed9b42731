// An explicit-state model checker for threads that are plain C++ and share words of memory: it runs them through every
// interleaving of their operations, and tells of the shortest way to a state that breaks a rule, or that has no way to the end.
//
// Between two operations a thread depends only on its own memory, as it was at its last `commit`, and on what its operations
// have returned since. Both are part of the state. To do a step, the thread runs again from the commit, is given what it was
// given before, does one operation on the shared memory, and is cut off at the next one.
//
// States are told apart by 128 bits of hash. Threads that run the same code may change places: such states are one.
#pragma once
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <utility>

#include "memory.hpp"

namespace model {

// What a model has to say.
constexpr unsigned kLocalWords = 128;
void body(unsigned thread);      // one thread, on machine.scratch, from its last commit on
void tidy_local(unsigned thread); // at a commit: clears what will not be read again
bool host();                     // when all threads are done: whether that is the end; if not, they all begin anew
void invariant(const char *in);  // before each operation
void uses_ring(unsigned k);      // by a thread that has a ticket for the ring after k growths
bool outside();                  // what may happen at any time beside the threads; false if it cannot now

struct Thread {
  bool done = false, begun = false; // begun: has committed, so that its local memory holds something
  std::vector<uint64_t> log;        // what the operations since the commit returned
  std::array<uint64_t, kLocalWords> local{};
};

struct Machine {
  Memory memory;
  Thread threads[kMostThreads];

  unsigned current = 0, cursor = 0;           // the thread that runs, and how much of its log was given to it
  unsigned chosen = 0, alternatives = 1;      // of the step
  bool stepped = false, tell = false;         // whether it has done its operation; whether to print it
  bool replayed = false;                      // what it loads will not be used: no step
  unsigned teller = 0;                        // as whose
  const uint64_t *last[3] = {};               // the words of the last operations
  alignas(16) uint64_t scratch[kLocalWords];  // the local memory of the thread that runs
  std::jmp_buf back;
  std::string failure;
};
extern Machine machine;

enum Cut { kPaused = 1, kCommitted, kFailed };

[[noreturn]] inline void cut(Cut why) { std::longjmp(machine.back, why); }
inline unsigned pick(unsigned n) {
  machine.alternatives = n;
  return machine.chosen;
}

// One operation of the running thread: given, or done, or put off to a later step.
template <class F> uint64_t step(const char *kind, const uint64_t *p, const char *in, F operation) {
  Machine &m = machine;
  if (m.replayed) return m.memory.newest(m.memory.find(p));
  Thread &thread = m.threads[m.current];
  const uint64_t *const before[] = {m.last[0], m.last[1], m.last[2]};
  m.last[0] = p, m.last[1] = before[0], m.last[2] = before[1];
  if (m.cursor < thread.log.size()) return thread.log[m.cursor++];
  const unsigned w = m.memory.find(p);
  const bool plain = m.memory.words[w].plain;
  if (m.stepped && !plain) cut(kPaused);
  m.stepped = true;
  invariant(in);
  const uint64_t result = operation(w);
  if (m.tell && !plain)
    std::printf("  worker %u  %-16.*s %-12s %-14s got %llu, is now %llu\n", m.teller, int(std::strcspn(in, "<")), in, kind, m.memory.words[w].name.c_str(),
                (unsigned long long)result, (unsigned long long)m.memory.newest(w));
  // A spin at a barrier goes on as it is, over one word, or over two in turns.
  const auto ago = [&](size_t n) { return *(thread.log.end() - n); };
  const bool again = p == before[0] && ago(1) == result;
  const bool in_turns = p == before[1] && before[0] == before[2] && ago(2) == result && ago(1) == ago(3);
  if (!std::strncmp(in, "open_or_wait", 12) && (again || in_turns)) cut(kPaused);
  thread.log.push_back(result);
  ++m.cursor;
  return result;
}
inline uint64_t load(const uint64_t *p, const char *in) {
  return step("load", p, in, [](unsigned w) { return machine.memory.load(machine.current, w); });
}
inline void store(uint64_t *p, uint64_t v, const char *in) {
  step("store", p, in, [=](unsigned w) { return machine.memory.store(machine.current, w, v), uint64_t(0); });
}
template <class F> uint64_t modify(const char *kind, uint64_t *p, const char *in, F f) {
  return step(kind, p, in, [=](unsigned w) { return machine.memory.modify(machine.current, w, f); });
}
inline void fence() {
  if (machine.cursor == machine.threads[machine.current].log.size()) machine.memory.fence(machine.current);
}

// One of n numbers, for what is left to chance; each of them is explored.
inline uint64_t chance;
inline uint64_t any(unsigned n) {
  return n == 1 ? 0 : step("any", &chance, "any", [=](unsigned) { return uint64_t(pick(n)); });
}

void commit(); // where a thread could begin anew with nothing but its local memory

// Explores everything from the present state of the machine on; the exit status.
int explore();

} // namespace model
