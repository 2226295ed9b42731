// What tests of launches share: trees of tasks whose totals are known, and programs in C++ that run them on the CPU backend.
#pragma once
#include "host/status.h"

#include <algorithm>
#include <atomic>
#include <functional>

#include "check.h"

// An item is a node, by its number. Every node is counted.
struct Tree {
  uint64_t nodes;
  std::vector<uint64_t> first; // children of v: [first[v], first[v + 1])
  std::vector<uint32_t> level;
  std::vector<uint64_t> of_level;

  // Children lie behind their parents, so that every node but 0 is the child of exactly one.
  Tree(uint64_t seed, uint64_t nodes, uint64_t most) : nodes(nodes), first(nodes + 1), level(nodes) {
    check::Random random(seed);
    uint64_t end = 1;
    for (uint64_t v = 0; v < nodes; ++v) {
      first[v] = end;
      uint64_t children = random.below(most + 1);
      if (end == v + 1 && children == 0) children = 1; // otherwise the tree would end here
      end = std::min(nodes, end + children);
      for (uint64_t child = first[v]; child < end; ++child) level[child] = level[v] + 1;
    }
    first[nodes] = end;
    of_level.resize(*std::max_element(level.begin(), level.end()) + 1);
    for (const uint32_t l : level) ++of_level[l];
  }
};

template <class T> T encode(uint64_t v) { return T(v); }
struct Pair {
  uint64_t v, check;
};
template <> inline Pair encode<Pair>(uint64_t v) { return {v, ~v}; }
template <class T> uint64_t decode(T item) { return item; }
template <> inline uint64_t decode<Pair>(Pair item) {
  CHECK(item.check == ~item.v, "an item of 16 bytes was torn: %" PRIx64 " %" PRIx64, item.v, item.check);
  return item.v;
}

struct Large {
  uint64_t v[4];
};
template <> inline Large encode<Large>(uint64_t v) { return {{v, ~v, v + 1, v + 2}}; }
template <> inline uint64_t decode<Large>(Large item) {
  const uint64_t *v = item.v;
  CHECK(v[1] == ~v[0] && v[2] == v[0] + 1 && v[3] == v[0] + 2, "an item of 32 bytes was torn: %" PRIx64, v[0]);
  return v[0];
}

template <class T> void push(atos_cpu_worker *worker, uint64_t v) {
  if (worker->count == worker->capacity) worker->flush(worker);
  static_cast<T *>(worker->buffer)[worker->count++] = encode<T>(v);
}

struct Work {
  const Tree &tree;
  std::vector<std::atomic<uint32_t>> seen;
  std::vector<std::atomic<uint64_t>> done_of_level;
  std::atomic<uint64_t> early{0}; // nodes that ran before the level above was over
  std::atomic<int64_t> idle_pushes{0}, idle_calls{0};
  uint32_t turns = 0; // of a loop that makes tasks last

  explicit Work(const Tree &tree) : tree(tree), seen(tree.nodes), done_of_level(tree.of_level.size()) {}
};

inline const Work &work_of(const void *args) { return **static_cast<Work *const *>(args); }

template <class T> void run(atos_cpu_worker *worker, const void *items, int64_t n, const void *args) {
  Work &work = const_cast<Work &>(work_of(args));
  for (int64_t k = 0; k < n; ++k) {
    const uint64_t v = decode(static_cast<const T *>(items)[k]);
    CHECK(v < work.tree.nodes, "item %" PRIu64 " was never pushed", v);
    const uint32_t level = work.tree.level[v];
    if (level && work.done_of_level[level - 1] != work.tree.of_level[level - 1]) ++work.early;
    ++work.seen[v];
    ++work.done_of_level[level];
    for (uint32_t sequence = 0; sequence < work.turns; ++sequence) __asm__ volatile("");
    for (uint64_t child = work.tree.first[v]; child < work.tree.first[v + 1]; ++child) push<T>(worker, child);
  }
}

// Pushes the root again and again, as often as it may.
template <class T> void idle(atos_cpu_worker *worker, const void *args) {
  Work &work = const_cast<Work &>(work_of(args));
  ++work.idle_calls;
  if (--work.idle_pushes >= 0) push<T>(worker, 0);
}

struct Program {
  atos_program *handle = nullptr;
  template <class Run, class Idle> Program(Run run, Idle idle, void (*each_round)(atos_cpu_worker *, const void *) = nullptr) {
    const atos_status status = atos_program_native(reinterpret_cast<uint64_t>(run), reinterpret_cast<uint64_t>(idle),
                                                   reinterpret_cast<uint64_t>(each_round), 0, &handle);
    CHECK(status == ATOS_OK, "%s", atos_message());
  }
  Program(const Program &) = delete;
  ~Program() { atos_program_unload(handle); }
};

template <class T> struct Launcher {
  Program program{run<T>, nullptr}, with_idle{run<T>, idle<T>};
  atos_queue *queue = nullptr;

  explicit Launcher(uint64_t capacity) {
    CHECK(atos_queue_create(ATOS_CPU, capacity, sizeof(T), &queue) == ATOS_OK, "%s", atos_message());
  }
  Launcher(const Launcher &) = delete;
  ~Launcher() { atos_queue_destroy(queue); }

  void push(uint64_t v) {
    const T item = encode<T>(v);
    atos_status status;
    while ((status = atos_queue_push(queue, &item, 1)) == ATOS_HELD) {}
    CHECK(status == ATOS_OK, "%s", atos_message());
  }
  uint64_t pending() {
    uint64_t n = 0;
    atos_status status;
    while ((status = atos_queue_pending(queue, &n)) == ATOS_HELD) {}
    CHECK(status == ATOS_OK, "%s", atos_message());
    return n;
  }
  atos_status launch(Work &work, atos_launch launch, atos_stats *stats) {
    const uint64_t argument = reinterpret_cast<uint64_t>(&work);
    launch.worker = ATOS_CTA;
    launch.threads = 1;
    launch.argument_words = 1;
    launch.arguments = &argument;
    return atos_queue_launch(queue, launch.idle ? with_idle.handle : program.handle, &launch, stats);
  }
};

inline atos_launch schedule(bool persistent, bool barrier, uint32_t fetch, uint32_t blocks, bool idle = false) {
  atos_launch launch{};
  launch.persistent = persistent;
  launch.barrier = barrier;
  launch.fetch = fetch;
  launch.blocks = blocks;
  launch.idle = idle;
  return launch;
}

inline void for_all_schedules(const std::function<void(bool, bool, uint32_t, uint32_t)> &f) {
  for (const bool persistent : {true, false})
    for (const bool barrier : {true, false})
      for (const uint32_t fetch : {1u, 7u, 128u})
        for (const uint32_t blocks : {1u, 2u, 5u}) f(persistent, barrier, fetch, blocks);
}

inline std::string name(bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
  return std::string(persistent ? "persistent" : "discrete") + (barrier ? ", barrier" : ", relaxed") + ", fetch " +
         std::to_string(fetch) + ", " + std::to_string(blocks) + " workers";
}
