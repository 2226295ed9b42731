// Team: the threads of a worker on a CPU device that has several of them for each worker. They take turns in the system's
// thread that runs the worker, each on a stack of its own, and are switched where a task accesses an element, or waits for
// others. Which one goes on is drawn by a generator that is seeded by the item: a task runs in one order whatever else runs.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <type_traits>
#include <ucontext.h>
#include <vector>

#include "cpu/program.h"
#include "cpu/team.h"

namespace atos {
namespace {

using TeamBody = void (*)(atos_cpu_worker *worker, const void *given, const void *args);

constexpr size_t kStackBytes = 1 << 20, kGuardBytes = 4 << 10;
constexpr unsigned kLevels = 6; // at which threads meet: the whole team, and groups of 2, 4, 8, 16 and 32
constexpr uint64_t kTurns = 8;  // one access in so many, on average, ends the turn of its thread
constexpr int64_t kNoSite = -1; // of meetings that follow one with a site, and of threads that have returned from the task

uint64_t mix(uint64_t x) { // the finalizer of SplitMix64
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

class Stack { // below which lies a page that nobody may touch
public:
  Stack() : begin(mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (begin == MAP_FAILED) throw std::bad_alloc();
    if (mprotect(begin, kGuardBytes, PROT_NONE)) {
      munmap(begin, kStackBytes);
      throw std::bad_alloc();
    }
  }
  ~Stack() { munmap(begin, kStackBytes); }
  Stack(const Stack &) = delete;
  void *const begin;
};

struct Member {
  enum State { kRuns, kWaits, kEnded };
  Stack stack;
  ucontext_t context;
  State state = kRuns;
  unsigned group = 0; // what it waits for: so many threads, or 0 for the whole team
  int64_t site = 0;
  bool met = false; // whether they have come
  uint64_t iteration = 0, words[kLevels] = {};
};

class Team {
public:
  static Team &of_thread() {
    static thread_local Team team;
    return team;
  }

  // Runs the body once by each of `size` threads. Throws std::bad_alloc if there is no memory for their stacks.
  void run(unsigned size, uint64_t seed, TeamBody task, atos_cpu_worker *its_worker, const void *its_given,
           const void *its_args) {
    while (members.size() < size) members.push_back(std::make_unique<Member>());
    threads = size, random = seed;
    body = task, worker = its_worker, given = its_given, args = its_args;
    regions.clear();
    for (unsigned k = 0; k < size; ++k) {
      Member &member = *members[k];
      getcontext(&member.context);
      member.context.uc_stack.ss_sp = member.stack.begin;
      member.context.uc_stack.ss_size = kStackBytes;
      member.context.uc_link = &scheduler;
      makecontext(&member.context, &Team::start, 0);
      member.state = Member::kRuns;
      member.iteration = 0;
    }
    while (choose()) swapcontext(&scheduler, &members[current]->context);
    threads = 0;
  }

  void release() { members.clear(); }
  unsigned size() const { return threads; }
  unsigned rank() const { return current; }
  unsigned size_of(unsigned group) const { return group && group < threads ? group : threads; }
  unsigned rank_in(unsigned group) const { return current % size_of(group); }

  // Ends the turn of the thread that runs, now and then.
  void pause() {
    if (threads && draw() % kTurns == 0) end_turn();
  }

  // Waits until all threads of the group have come to this site; false if the task has failed, and its threads have to leave.
  bool meet(unsigned group, int64_t site) {
    Member &mine = *members[current];
    mine.state = Member::kWaits, mine.group = group, mine.site = site;
    const unsigned first = current - rank_in(group), end = first + size_of(group);
    const auto is_here = [&](const auto &member) {
      return member->state == Member::kWaits && member->group == group && member->site == site;
    };
    if (std::all_of(&members[first], &members[first] + (end - first), is_here))
      for (unsigned k = first; k < end; ++k) members[k]->state = Member::kRuns, members[k]->met = true;
    end_turn();
    return mine.met;
  }

  // Begins the next iteration of a nested task, together with the threads of the group.
  bool begin_iteration(unsigned group) {
    ++members[current]->iteration;
    return meet(group, kNoSite);
  }

  // Combines a word of each thread of the group, which have met, in the order of their ranks.
  template <class F> uint64_t combine(unsigned group, uint64_t word, F f) {
    const unsigned level = group ? unsigned(__builtin_ctz(group)) : 0, first = current - rank_in(group);
    members[current]->words[level] = word;
    meet(group, kNoSite);
    uint64_t result = members[first]->words[level];
    for (unsigned k = first + 1; k < first + size_of(group); ++k) result = f(result, members[k]->words[level]);
    return result;
  }
  uint64_t word_of(unsigned group, uint64_t word, unsigned source) {
    const unsigned level = unsigned(__builtin_ctz(group)), first = current - rank_in(group);
    members[current]->words[level] = word;
    meet(group, kNoSite);
    return members[first + source % size_of(group)]->words[level];
  }

  // The region of a place that the threads of a group share, or all of the team. It holds nothing when a task or an iteration
  // begins: that shows, since the first thread to ask for the region finds it filled with ones, which are a NaN.
  unsigned char *region(uint64_t place, int64_t bytes, unsigned group) {
    place += current / size_of(group) * 0x9e3779b97f4a7c15;
    unsigned char *at = static_cast<unsigned char *>(worker->sized_scratch(worker, place, bytes));
    return begin_region(at, uint64_t(bytes));
  }
  unsigned char *begin_region(unsigned char *at, uint64_t bytes) {
    const uint64_t iteration = members[current]->iteration;
    for (auto &[known, filled] : regions) {
      if (known != at) continue;
      if (filled != iteration) std::memset(at, 0xff, bytes);
      filled = iteration;
      return at;
    }
    regions.emplace_back(at, iteration);
    std::memset(at, 0xff, bytes);
    return at;
  }

private:
  static void start() {
    Team &team = of_thread();
    team.body(team.worker, team.given, team.args);
    team.members[team.current]->state = Member::kEnded;
  }

  uint64_t draw() { return mix(random += 0x9e3779b97f4a7c15); }

  void end_turn() { swapcontext(&members[current]->context, &scheduler); }

  // Chooses who runs next; false if all have ended. Threads that wait for threads that do not come leave the task.
  bool choose() {
    for (;;) {
      unsigned running = 0, waiting = 0;
      for (unsigned k = 0; k < threads; ++k) {
        running += members[k]->state == Member::kRuns;
        waiting += members[k]->state == Member::kWaits;
      }
      if (running) {
        unsigned skip = unsigned(draw() % running);
        for (current = 0; members[current]->state != Member::kRuns || skip--; ++current) {}
        return true;
      }
      if (!waiting) return false;
      report_missing();
      for (unsigned k = 0; k < threads; ++k)
        if (members[k]->state == Member::kWaits) members[k]->state = Member::kRuns, members[k]->met = false;
    }
  }

  // Reports that threads wait for others that have returned or wait elsewhere, if no check has failed before.
  void report_missing() const {
    const auto waits = [](const auto &member) { return member->state == Member::kWaits && member->site >= 0; };
    const auto found = std::find_if(members.begin(), members.begin() + threads, waits);
    if (found == members.begin() + threads) return;
    const Member &one = **found;
    const unsigned size = size_of(one.group), first = unsigned(found - members.begin()) / size * size;
    int64_t came = 0, elsewhere = kNoSite;
    for (unsigned k = first; k < first + size; ++k) {
      const Member &other = *members[k];
      if (waits(members[k]) && other.site == one.site && other.group == one.group) ++came;
      else if (other.state == Member::kWaits) elsewhere = other.site;
    }
    atos_cpu_fail(one.site, elsewhere, came, int64_t(size));
  }

  std::vector<std::unique_ptr<Member>> members;
  std::vector<std::pair<unsigned char *, uint64_t>> regions; // of scratch, and the iteration in which each was filled
  ucontext_t scheduler;
  TeamBody body = nullptr;
  atos_cpu_worker *worker = nullptr;
  const void *given = nullptr, *args = nullptr;
  unsigned threads = 0, current = 0; // 0 threads: no task runs
  uint64_t random = 0;
};

Team &team() { return Team::of_thread(); }

template <class T> uint64_t to_word(T value) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}
template <class T> T from_word(uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

template <class T> T reduce(unsigned group, T value, int32_t op) {
  const auto combine = [=](uint64_t x, uint64_t y) {
    const T a = from_word<T>(x), b = from_word<T>(y);
    if constexpr (std::is_floating_point_v<T>)
      if (group && op != ATOS_SUM) return to_word<T>(op == ATOS_MIN ? std::fmin(a, b) : std::fmax(a, b)); // a NaN loses
    return to_word<T>(op == ATOS_SUM ? T(a + b) : op == ATOS_MIN ? (b < a ? b : a) : (a < b ? b : a));
  };
  return from_word<T>(team().combine(group, to_word(value), combine));
}
template <class T> T reduce_worker(void *, T value, int32_t op) { return reduce<T>(0, value, op); }
template <class T> T reduce_group(T value, int32_t op, int32_t size) { return reduce<T>(unsigned(size), value, op); }

int32_t vote(unsigned group, bool condition, bool all) {
  return int32_t(team().combine(group, condition, [all](uint64_t a, uint64_t b) { return all ? a & b : a | b; }));
}

// The functions that compiled tasks call by name. Those of csrc/device/task_api.cuh and task_groups.cuh do here what they do on
// a GPU, but for barriers: a meeting that a site is known of comes before each collective call.
int32_t rank_of(void *) { return int32_t(team().rank()); }
int32_t size_of(void *) { return int32_t(team().size()); }
int32_t group_rank(int32_t size) { return int32_t(team().rank_in(unsigned(size))); }
int32_t group_size(int32_t size) { return int32_t(team().size_of(unsigned(size))); }
int32_t meet(int64_t site, int32_t group) { return team().meet(unsigned(group), site); }
void sync_worker(void *) {} // all threads have met
void sync_group(int32_t) {}
int32_t any_of(void *, int32_t condition) { return vote(0, condition != 0, false); }
int32_t all_of(void *, int32_t condition) { return vote(0, condition != 0, true); }
int32_t group_any(int32_t condition, int32_t size) { return vote(unsigned(size), condition != 0, false); }
int32_t group_all(int32_t condition, int32_t size) { return vote(unsigned(size), condition != 0, true); }
template <class T> T shuffle(T value, int32_t source, int32_t size) {
  return from_word<T>(team().word_of(unsigned(size), to_word(value), unsigned(source)));
}
void pause() { team().pause(); }
int32_t begin_iteration(int32_t group) { return team().begin_iteration(unsigned(group)); }
void *region(atos_cpu_worker *, uint64_t place, int64_t bytes, int32_t group) {
  return team().region(place, bytes, unsigned(group));
}
void *unsized_region(atos_cpu_worker *worker) {
  return team().begin_region(static_cast<unsigned char *>(worker->scratch), uint64_t(worker->scratch_bytes));
}
// 0 if there is no memory for the stacks of the threads: compiled tasks let no exception through.
int32_t run(int32_t size, uint64_t seed, TeamBody body, atos_cpu_worker *worker, const void *given, const void *item,
            int64_t bytes, const void *args) {
  seed = mix(seed ^ uint64_t(worker->round));
  for (int64_t k = 0; item && k < bytes; k += 4) {
    uint32_t word;
    std::memcpy(&word, static_cast<const char *>(item) + k, sizeof word);
    seed = mix(seed + word);
  }
  try {
    team().run(unsigned(size), seed, body, worker, given, args);
  } catch (const std::bad_alloc &) {
    team().release();
    return 0;
  }
  return 1;
}

template <class F> void *address(F *function) { return reinterpret_cast<void *>(function); }

} // namespace

const atos_named_function *team_functions() {
  static const atos_named_function functions[] = {
      {"atos_rank", address(rank_of)},
      {"atos_size", address(size_of)},
      {"atos_sync", address(sync_worker)},
      {"atos_any", address(any_of)},
      {"atos_all", address(all_of)},
      {"atos_reduce_i64", address(reduce_worker<int64_t>)},
      {"atos_reduce_u64", address(reduce_worker<uint64_t>)},
      {"atos_reduce_f64", address(reduce_worker<double>)},
      {"atos_group_rank", address(group_rank)},
      {"atos_group_size", address(group_size)},
      {"atos_group_sync", address(sync_group)},
      {"atos_group_any", address(group_any)},
      {"atos_group_all", address(group_all)},
      {"atos_group_reduce_i32", address(reduce_group<int32_t>)},
      {"atos_group_reduce_u32", address(reduce_group<uint32_t>)},
      {"atos_group_reduce_f32", address(reduce_group<float>)},
      {"atos_group_reduce_i64", address(reduce_group<int64_t>)},
      {"atos_group_reduce_u64", address(reduce_group<uint64_t>)},
      {"atos_group_reduce_f64", address(reduce_group<double>)},
      {"atos_group_shuffle_32", address(shuffle<int32_t>)},
      {"atos_group_shuffle_64", address(shuffle<int64_t>)},
      {"atos_team_run", address(run)},
      {"atos_team_meet", address(meet)},
      {"atos_team_pause", address(pause)},
      {"atos_team_begin_iteration", address(begin_iteration)},
      {"atos_team_region", address(region)},
      {"atos_team_unsized_region", address(unsized_region)},
      {nullptr, nullptr},
  };
  return functions;
}

} // namespace atos
