#include "check.hpp"
#include "seen.hpp"

#include <cstdio>
#include <numeric>
#include <string_view>

namespace model {

Machine machine;

void fail(const std::string &what) {
  machine.failure = what;
  cut(kFailed);
}

void commit() {
  Machine &m = machine;
  if (!m.stepped) return;
  tidy_local(m.current);
  std::memcpy(m.threads[m.current].local.data(), m.scratch, sizeof m.scratch);
  m.threads[m.current].begun = true;
  m.threads[m.current].log.clear();
  cut(kCommitted);
}

namespace {

constexpr unsigned kAll = kMostThreads; // in place of the number of a thread

// Runs a step of a thread; false if it failed.
bool run(unsigned thread, unsigned choice) {
  Machine &m = machine;
  m.current = thread;
  m.cursor = 0;
  m.chosen = choice;
  m.alternatives = 1;
  m.stepped = false;
  std::fill(std::begin(m.last), std::end(m.last), nullptr);
  const int why = setjmp(m.back);
  if (why == 0) {
    body(m.current);
    Thread &left = m.threads[m.current];
    left = Thread{};
    left.done = true;
  }
  return why != kFailed;
}

// Explores everything from the present state of the machine on.
class Search {
public:
  // The exit status.
  int explore() {
    first = save();
    std::vector<std::string> layer{first}, next;
    std::vector<uint32_t> numbers{0}, next_numbers;
    seen.number(Hash::of(first), 0);
    from.push_back({0, 0, 0});
    for (depth = 0; !layer.empty(); ++depth) {
      for (size_t i = 0; i < layer.size(); ++i) {
        restore(layer[i]);
        const bool all_done = std::all_of(machine.threads, machine.threads + bounds.workers, [](const Thread &t) { return t.done; });
        if (all_done) ends.push_back(numbers[i]);
        for (unsigned t = 0; t <= bounds.workers; ++t)
          for (unsigned choice = 0, n = 1; choice < n; ++choice) {
            if (t || choice) restore(layer[i], moved);
            if (t < bounds.workers ? machine.threads[t].done : all_done || !outside()) break;
            if (t == bounds.workers) restore(layer[i]); // done by the step
            const bool fine = step(t, choice);
            n = machine.alternatives;
            ++steps;
            const uint32_t number = fine ? seen.number(Hash::of(save(moved)), uint32_t(from.size())) : uint32_t(from.size());
            const bool fresh = number == from.size();
            if (fresh) from.push_back({numbers[i], uint8_t(t), uint8_t(choice)});
            if (!fine) return report(machine.failure, number);
            if (number != numbers[i]) edges.push_back({number, numbers[i]});
            if (!fresh) continue;
            if (from.size() > bounds.most) return report("more states than are allowed", number), 2;
            next.push_back(saved.data);
            next_numbers.push_back(number);
          }
      }
      layer.swap(next);
      numbers.swap(next_numbers);
      next.clear();
      next_numbers.clear();
    }
    const uint32_t stuck = no_way_to_the_end();
    if (stuck != kNobody) return report("from here no way leads to the end", stuck);
    std::printf("%zu states, %zu steps, depth %zu, %zu ends\n", from.size(), steps, depth, ends.size());
    return 0;
  }

private:
  struct Origin {
    uint32_t state;
    uint8_t thread, choice;
  };

  Seen seen;
  std::vector<Origin> from; // how each state was first come to
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  std::vector<uint32_t> ends;
  std::string first;
  size_t steps = 0, depth = 0;
  unsigned moved = kAll;                 // by `step`: the one thread that is not as it was before
  std::string_view parts[kMostThreads];  // by `restore`: the threads in the bytes of the state
  Writer saved, written[kMostThreads];   // by `save`: a state, and the threads that have moved,
  unsigned order[kMostThreads];          // and the order in which the state has the threads

  // A step, and what the host does when it was the last. False if a rule was broken.
  bool step(unsigned thread, unsigned choice) {
    moved = thread == bounds.workers || bounds.weak ? kAll : thread; // in weak memory each thread has its view of all words
    if (thread == bounds.workers) return machine.chosen = choice, machine.alternatives = 1, outside();
    if (!run(thread, choice)) return false;
    for (unsigned t = 0; t < bounds.workers; ++t)
      if (!machine.threads[t].done) return true;
    if (setjmp(machine.back)) return false;
    moved = kAll;
    machine.memory.synchronize();
    if (!host())
      for (Thread &t : machine.threads) t = Thread{};
    return true;
  }

  // The state of the machine, with the threads in an order of their own. Only one thread has moved since `restore`, or all may have.
  const std::string &save(unsigned which = kAll) {
    Machine &m = machine;
    bool gone[kMostThreads];
    for (unsigned t = 0; t < bounds.workers; ++t) gone[t] = m.threads[t].done;
    m.memory.tidy(gone);
    std::string_view now[kMostThreads];
    for (unsigned t = 0; t < bounds.workers; ++t) now[t] = which == t || which == kAll ? write(t) : parts[t];
    std::iota(order, order + bounds.workers, 0u);
    std::sort(order, order + bounds.workers, [&](unsigned a, unsigned b) {
      const int compared = now[a].compare(now[b]);
      return compared ? compared < 0 : a < b;
    });
    saved.data.clear();
    m.memory.write(saved);
    for (unsigned t = 0; t < bounds.workers; ++t) saved.data += now[order[t]];
    return saved.data;
  }

  std::string_view write(unsigned t) {
    const Thread &thread = machine.threads[t];
    Writer &bytes = written[t];
    bytes.data.clear();
    bytes.put(thread.done + 2 * thread.begun);
    if (!thread.done) {
      bytes.put(thread.log.size());
      for (uint64_t value : thread.log) bytes.put(value);
      if (thread.begun)
        for (unsigned i = 0; i < kLocalWords; ++i)
          if (thread.local[i]) bytes.put(i + 1), bytes.put(thread.local[i]);
      bytes.put(0);
      if (bounds.weak)
        for (const View *view : {&machine.memory.views[t].seen, &machine.memory.views[t].pending, &machine.memory.views[t].released})
          machine.memory.write(bytes, *view);
    }
    return bytes.data;
  }

  // Makes the machine what a state says; if only one thread has moved since the state was there, the other threads stay.
  void restore(const std::string &state, unsigned which = kAll) {
    Reader bytes{state.data()};
    machine.memory.read(bytes);
    if (which != kAll) return read(Reader{parts[which].data()}, which), void();
    for (unsigned t = 0; t < bounds.workers; ++t) {
      const char *const begin = bytes.at;
      bytes = read(bytes, t);
      parts[t] = {begin, size_t(bytes.at - begin)};
    }
  }

  // Reads a thread; returns the reader behind the thread's bytes.
  static Reader read(Reader bytes, unsigned t) {
    Thread &thread = machine.threads[t];
    const uint64_t flags = bytes.get();
    thread.done = flags & 1;
    thread.begun = flags & 2;
    thread.log.clear();
    thread.local = {};
    if (thread.done) return bytes;
    thread.log.resize(bytes.get());
    for (uint64_t &value : thread.log) value = bytes.get();
    while (const uint64_t i = bytes.get()) thread.local[i - 1] = bytes.get();
    if (bounds.weak)
      for (View *view : {&machine.memory.views[t].seen, &machine.memory.views[t].pending, &machine.memory.views[t].released})
        machine.memory.read(bytes, *view);
    return bytes;
  }

  // The first state from which no end can be reached, however the threads go on.
  uint32_t no_way_to_the_end() {
    std::sort(edges.begin(), edges.end());
    std::vector<bool> good(from.size());
    std::vector<uint32_t> open = ends;
    for (uint32_t end : ends) good[end] = true;
    while (!open.empty()) {
      const uint32_t state = open.back();
      open.pop_back();
      for (auto e = std::lower_bound(edges.begin(), edges.end(), std::make_pair(state, 0u)); e != edges.end() && e->first == state; ++e)
        if (!good[e->second]) {
          good[e->second] = true;
          open.push_back(e->second);
        }
    }
    const auto bad = std::find(good.begin(), good.end(), false);
    return bad == good.end() ? kNobody : uint32_t(bad - good.begin());
  }

  // Prints the steps to a state.
  int report(std::string what, uint32_t state) {
    std::vector<Origin> way;
    for (; state; state = from[state].state) way.push_back(from[state]);
    restore(first);
    unsigned names[kMostThreads];
    std::iota(names, names + bounds.workers, 0u);
    machine.tell = true;
    for (auto at = way.rbegin(); at != way.rend(); ++at) {
      if (at->thread < bounds.workers) machine.teller = names[at->thread];
      else std::printf("  somebody outside\n");
      if (!step(at->thread, at->choice)) break;
      restore(save());
      unsigned moved[kMostThreads];
      for (unsigned t = 0; t < bounds.workers; ++t) moved[t] = names[order[t]];
      std::copy(moved, moved + bounds.workers, names);
    }
    std::printf("%s (%zu states seen)\n", what.c_str(), from.size());
    return 1;
  }
};

} // namespace

int explore() { return Search().explore(); }

} // namespace model
