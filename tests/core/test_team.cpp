// Teams: threads of a worker on a CPU, by the functions that compiled tasks call.
#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "tree.h"

namespace {

template <class F> F *function(const char *name) {
  for (const atos_named_function *each = atos_cpu_team(); each->name; ++each)
    if (!std::strcmp(each->name, name)) return reinterpret_cast<F *>(each->address);
  CHECK(false, "no function %s", name);
  return nullptr;
}

using Body = void(atos_cpu_worker *, const void *, const void *);
const auto run =
    function<int32_t(int32_t, uint64_t, Body *, atos_cpu_worker *, const void *, const void *, int64_t, const void *)>(
        "atos_team_run");
const auto meet = function<int32_t(int64_t, int32_t)>("atos_team_meet");
const auto pause_turn = function<void()>("atos_team_pause");
const auto rank_of = function<int32_t(void *)>("atos_rank");
const auto size_of = function<int32_t(void *)>("atos_size");
const auto group_rank = function<int32_t(int32_t)>("atos_group_rank");
const auto group_size = function<int32_t(int32_t)>("atos_group_size");

void run_by(int threads, uint64_t seed, Body *body, void *given) {
  atos_cpu_worker worker{};
  CHECK(run(threads, seed, body, &worker, given, nullptr, 0, nullptr) == 1, "not run");
}

TEST(team_runs_each_thread_once) {
  for (int threads : {1, 2, 8, 64}) {
    std::vector<int> seen(64);
    run_by(
        threads, 0,
        [](atos_cpu_worker *worker, const void *given, const void *) {
          ++(*static_cast<std::vector<int> *>(const_cast<void *>(given)))[size_t(rank_of(worker))];
          CHECK(group_rank(4) == rank_of(worker) % std::min(4, size_of(worker)), "rank %d", group_rank(4));
          CHECK(group_size(4) == std::min(4, size_of(worker)), "size %d", group_size(4));
        },
        &seen);
    for (int k = 0; k < 64; ++k) CHECK(seen[size_t(k)] == (k < threads), "thread %d ran %d times", k, seen[size_t(k)]);
  }
}

TEST(team_meets_and_combines) {
  run_by(
      8, 3,
      [](atos_cpu_worker *worker, const void *, const void *) {
        const auto sum = function<int64_t(void *, int64_t, int32_t)>("atos_reduce_i64");
        const auto least = function<double(void *, double, int32_t)>("atos_reduce_f64");
        const auto group_max = function<float(float, int32_t, int32_t)>("atos_group_reduce_f32");
        const auto shuffle = function<int64_t(int64_t, int32_t, int32_t)>("atos_group_shuffle_64");
        const auto any = function<int32_t(void *, int32_t)>("atos_any");
        const auto all = function<int32_t(void *, int32_t)>("atos_all");
        for (int turn = 0; turn < 100; ++turn) {
          const int rank = rank_of(worker);
          CHECK(meet(1, 0) == 1, "left alone");
          const int64_t found = sum(worker, rank + turn, ATOS_SUM);
          CHECK(found == 28 + 8 * turn, "%" PRId64, found);
          CHECK(meet(2, 2) == 1, "left alone"); // groups of one after the other, of several sizes
          const float most = group_max(rank % 2 ? float(rank) : NAN, ATOS_MAX, 2);
          CHECK(most == float(rank | 1), "%f", double(most)); // a NaN loses
          CHECK(meet(3, 4) == 1, "left alone");
          const int64_t next = shuffle(rank * 10, rank + 1, 4);
          CHECK(next == 10 * (rank / 4 * 4 + (rank + 1) % 4), "%" PRId64, next);
          CHECK(meet(4, 0) == 1, "left alone");
          CHECK(least(worker, -rank, ATOS_MIN) == -7, "no minimum");
          CHECK(meet(5, 0) == 1, "left alone");
          const int32_t some = any(worker, rank == turn % 9);
          CHECK(some == (turn % 9 < 8), "any: %d", some);
          CHECK(meet(6, 0) == 1, "left alone");
          const int32_t every = all(worker, rank != turn % 9);
          CHECK(every == (turn % 9 == 8), "all: %d", every);
        }
      },
      nullptr);
}

std::vector<int> order(uint64_t seed) {
  std::vector<int> turns;
  run_by(
      4, seed,
      [](atos_cpu_worker *worker, const void *given, const void *) {
        for (int k = 0; k < 50; ++k) {
          static_cast<std::vector<int> *>(const_cast<void *>(given))->push_back(rank_of(worker));
          pause_turn();
        }
      },
      &turns);
  return turns;
}

TEST(team_takes_turns_in_an_order_that_is_drawn) {
  std::set<std::vector<int>> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    seen.insert(order(seed));
    CHECK(order(seed) == order(seed), "seed %" PRIu64 " has two orders", seed);
  }
  CHECK(seen.size() == 20, "%zu orders", seen.size());
}

// A failure is reported as that of a task, which a launch would read.
TEST(team_reports_threads_that_do_not_come) {
  Launcher<uint32_t> launcher(10);
  launcher.push(5);
  const auto task = [](atos_cpu_worker *worker, const void *items, int64_t, const void *) {
    run(
        4, 0,
        [](atos_cpu_worker *its, const void *, const void *) { CHECK(rank_of(its) == 3 || meet(7, 0) == 0, "all have met"); },
        worker, nullptr, items, 4, nullptr);
  };
  atos_program *program = nullptr;
  CHECK(atos_program_native(uint64_t(uintptr_t(+task)), 0, 0, 1, &program) == ATOS_OK, "%s", atos_message());
  atos_launch launch{};
  launch.worker = ATOS_CTA, launch.persistent = 1, launch.fetch = 1, launch.blocks = 1, launch.threads = 4;
  atos_stats stats{};
  CHECK(atos_queue_launch(launcher.queue, program, &launch, &stats) == ATOS_TASK_FAILED, "%s", atos_message());
  const atos_failure &failure = stats.failure;
  CHECK(failure.site == 7 && failure.value == -1 && failure.bound == 3 && failure.array == 4, "site %" PRId64, failure.site);
  CHECK(failure.in_item == 1 && uint32_t(failure.item[0]) == 5, "another item");
  atos_program_unload(program);
}

TEST(team_without_memory_for_its_stacks_says_so) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which need memory of their own then
  atos_cpu_worker worker{};
  const auto nothing = [](atos_cpu_worker *, const void *, const void *) {};
  CHECK(run(1 << 22, 0, nothing, &worker, nullptr, nullptr, 0, nullptr) == 0, "a terabyte of stacks");
  run_by(8, 0, nothing, nullptr);
#endif
}

} // namespace
