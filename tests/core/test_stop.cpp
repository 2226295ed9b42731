// Launches that are stopped, by their timeout or by who is asked meanwhile, go on later as if nothing had been; those that do
// not stop are left alone.
#include <chrono>
#include <thread>
#include <unistd.h>

#include "host/stop_monitor.h"
#include "tree.h"

namespace {

// Stopped again and again, in every schedule, until all is done.
template <class T> void what_was_stopped_goes_on() {
  int stopped = 0;
  check::Random random(sizeof(T));
  const Tree tree(11, 2000, 4);
  for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
    if (fetch == 7 || blocks == 2) return; // it takes its time
    const std::string which = name(persistent, barrier, fetch, blocks);
    Work work(tree);
    work.turns = 50000;
    Launcher<T> launcher(3000);
    launcher.push(0);
    uint64_t ran = 0;
    for (;;) {
      atos_launch launch = schedule(persistent, barrier, fetch, blocks);
      launch.timeout = 1e-6 * double(1 + random.below(1000));
      atos_stats stats;
      const atos_status status = launcher.launch(work, launch, &stats);
      ran += stats.tasks_run;
      if (status == ATOS_OK) break;
      CHECK(status == ATOS_STOPPED, "%s: status %d, %s", which.c_str(), int(status), atos_message());
      ++stopped;
      uint64_t seen = 0, pushed = 1;
      for (uint64_t v = 0; v < tree.nodes; ++v)
        if (work.seen[v]) ++seen, pushed += tree.first[v + 1] - tree.first[v];
      CHECK(seen == ran, "%s: %" PRIu64 " tasks seen, %" PRIu64 " said to have run", which.c_str(), seen, ran);
      CHECK(stats.lost == 0 && stats.pending == pushed - seen && launcher.pending() == stats.pending,
            "%s: %" PRIu64 " pushed, %" PRIu64 " run, %" PRIu64 " pending", which.c_str(), pushed, seen, stats.pending);
      // What is left of a level comes first, and is known to be, unless it is all there is.
      std::vector<T> items(stats.pending);
      atos_queue_state state;
      CHECK(atos_queue_read(launcher.queue, items.data(), items.size(), &state) == ATOS_OK, "%s", atos_message());
      uint64_t left = 0;
      while (left < items.size() && tree.level[decode(items[left])] == tree.level[decode(items[0])]) ++left;
      CHECK(!barrier || state.level == left || (state.level == 0 && left == items.size()),
            "%s: %" PRIu64 " tasks of a level, %" PRIu64 " of %zu are left", which.c_str(), state.level, left, items.size());
    }
    for (uint64_t v = 0; v < tree.nodes; ++v)
      CHECK(work.seen[v] == 1, "%s: task %" PRIu64 " ran %u times", which.c_str(), v, work.seen[v].load());
    CHECK(!barrier || work.early == 0, "%s: %" PRIu64 " tasks ran early", which.c_str(), work.early.load());
  });
  CHECK(stopped > 10, "only %d launches were stopped", stopped);
}

TEST(what_was_stopped_goes_on_with_4_bytes) { what_was_stopped_goes_on<uint32_t>(); }
TEST(what_was_stopped_goes_on_with_16_bytes) { what_was_stopped_goes_on<Pair>(); }

// A task that pushes itself again and again.
void again(atos_cpu_worker *worker, const void *items, int64_t n, const void *) {
  for (int64_t k = 0; k < n; ++k) push<uint32_t>(worker, static_cast<const uint32_t *>(items)[k]);
}

void nothing(atos_cpu_worker *, const void *, int64_t, const void *) {}

// Waits in the callback until no task has run for a while: nobody else asks the workers to stop meanwhile.
std::atomic<uint64_t> times_run{0};
std::atomic<int> seen_stopped{0};
void again_counted(atos_cpu_worker *worker, const void *items, int64_t n, const void *args) {
  again(worker, items, n, args);
  times_run += uint64_t(n);
}
int32_t wait_for_the_workers(const atos_sample *) {
  for (int tries = 0; tries < 600; ++tries) {
    const uint64_t before = times_run;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (times_run == before) return ++seen_stopped, 0;
  }
  return 0;
}

TEST(workers_stop_by_their_own_clock_while_the_host_is_held_up) {
  Program program(again_counted, nullptr);
  for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
    if (fetch == 7 || blocks != 2) return; // it takes its time
    Launcher<uint32_t> launcher(50);
    for (uint64_t v = 0; v < 20; ++v) launcher.push(v);
    atos_launch launch = schedule(persistent, barrier, fetch, blocks);
    launch.timeout = 0.1;
    launch.poll_callback = wait_for_the_workers;
    seen_stopped = 0;
    atos_stats stats;
    const atos_status status = atos_queue_launch(launcher.queue, program.handle, &launch, &stats);
    CHECK(status == ATOS_STOPPED && stats.pending == 20 && launcher.pending() == 20, "%s: status %d, %" PRIu64 " pending",
          name(persistent, barrier, fetch, blocks).c_str(), int(status), stats.pending);
    CHECK(seen_stopped == 1, "%s: the workers went on", name(persistent, barrier, fetch, blocks).c_str());
  });
}

// Pushes itself again and again, and stops the launch at the thousandth time.
std::atomic<int64_t> times_left{0};
void again_until_stopped(atos_cpu_worker *worker, const void *items, int64_t n, const void *args) {
  again(worker, items, n, args);
  for (int64_t k = 0; k < n; ++k)
    if (--times_left == 0) worker->stop(worker);
}

TEST(a_task_stops_its_launch) {
  Program program(again_until_stopped, nullptr);
  for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
    Launcher<uint32_t> launcher(50);
    for (uint64_t v = 0; v < 20; ++v) launcher.push(v);
    for (int launches = 0; launches < 2; ++launches) {
      times_left = 1000;
      const atos_launch launch = schedule(persistent, barrier, fetch, blocks);
      atos_stats stats;
      const atos_status status = atos_queue_launch(launcher.queue, program.handle, &launch, &stats);
      CHECK(status == ATOS_OK && stats.stopped == 1 && stats.tasks_run >= 1000 && stats.pending == 20,
            "%s: status %d, %" PRIu64 " run, %" PRIu64 " pending", name(persistent, barrier, fetch, blocks).c_str(),
            int(status), stats.tasks_run, stats.pending);
    }
  });
}

// A tree whose function between rounds checks that it comes after each level, whatever interrupts it. Tasks push only into
// levels of odd numbers; the function pushes the others.
struct Levels {
  const Tree &tree;
  Work work;
  uint64_t calls = 0, late = 0, modes = 0;
  explicit Levels(const Tree &tree) : tree(tree), work(tree) {}
};
Levels &levels_of(const void *args) { return **static_cast<Levels *const *>(args); }

void run_levels(atos_cpu_worker *worker, const void *items, int64_t n, const void *args) {
  Levels &levels = levels_of(args);
  for (int64_t k = 0; k < n; ++k) {
    const uint64_t v = static_cast<const uint32_t *>(items)[k];
    const uint32_t level = levels.tree.level[v];
    ++levels.work.seen[v];
    ++levels.work.done_of_level[level];
    for (uint32_t turn = 0; turn < levels.work.turns; ++turn) __asm__ volatile("");
    if (v % 40 == 39 && levels.work.turns == 0) worker->stop(worker);
    if (level % 2) continue;
    for (uint64_t child = levels.tree.first[v]; child < levels.tree.first[v + 1]; ++child) push<uint32_t>(worker, child);
  }
}

void between_levels(atos_cpu_worker *worker, const void *args) {
  Levels &levels = levels_of(args);
  const uint64_t level = levels.calls++, count = levels.tree.of_level.size();
  levels.late += levels.work.done_of_level[level] != levels.tree.of_level[level] ||
                 (level + 1 < count && levels.work.done_of_level[level + 1] != 0);
  levels.modes += worker->round > 0 && worker->mode != worker->round;
  worker->next_mode = worker->round + 1;
  if (level % 2 == 0) return;
  for (uint64_t v = 0; v < levels.tree.nodes; ++v)
    if (levels.tree.level[v] == level + 1) push<uint32_t>(worker, v);
}

TEST(a_function_is_called_once_between_rounds) {
  const Tree tree(12, 1500, 4);
  Program program(run_levels, nullptr, between_levels);
  for (const uint32_t turns : {0u, 20000u}) // stopped by tasks, and by timeouts
    for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
      if (!barrier || fetch == 7) return;
      Levels levels(tree);
      levels.work.turns = turns;
      Launcher<uint32_t> launcher(3);
      CHECK(atos_queue_limit(launcher.queue, 4000) == ATOS_OK, "%s", atos_message());
      launcher.push(0);
      check::Random random(turns + fetch);
      atos_launch launch = schedule(persistent, barrier, fetch, blocks);
      const Levels *argument = &levels;
      const uint64_t word = reinterpret_cast<uint64_t>(argument);
      launch.each_round = 1;
      launch.argument_words = 1;
      launch.arguments = &word;
      int launches = 0;
      for (; launcher.pending(); ++launches) {
        launch.timeout = turns ? 1e-6 * double(1 + random.below(2000)) : 0;
        atos_stats stats;
        const atos_status status = atos_queue_launch(launcher.queue, program.handle, &launch, &stats);
        CHECK(status == (stats.stopped || !stats.pending ? ATOS_OK : ATOS_STOPPED), "status %d, %s", int(status),
              atos_message());
      }
      const std::string which = name(persistent, barrier, fetch, blocks);
      for (uint64_t v = 0; v < tree.nodes; ++v) CHECK(levels.work.seen[v] == 1, "%s: task %" PRIu64, which.c_str(), v);
      CHECK(levels.calls == tree.of_level.size() && levels.late == 0 && levels.modes == 0,
            "%s: %" PRIu64 " calls for %zu levels, %" PRIu64 " late", which.c_str(), levels.calls, tree.of_level.size(),
            levels.late);
      CHECK(turns || launches > 3, "%s: %d launches", which.c_str(), launches);
    });
}

TEST(without_barriers_there_is_nothing_between_rounds) {
  Program program(nothing, nullptr, [](atos_cpu_worker *, const void *) {});
  Launcher<uint32_t> launcher(50);
  atos_launch launch = schedule(true, false, 1, 1);
  launch.each_round = 1;
  atos_stats stats;
  CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_INVALID, "%s", atos_message());
}

TEST(a_pool_has_a_word_among_the_arguments) {
  Program program(nothing, nullptr);
  Launcher<uint32_t> launcher(50);
  atos_launch launch = schedule(true, false, 1, 1);
  uint64_t words[ATOS_MAX_POOLS] = {};
  launch.arguments = words;
  launch.argument_words = launch.num_pools = 1;
  atos_stats stats;
  for (const uint32_t word : {1u, 0u}) {
    launch.pool_words[0] = word;
    const atos_status expected = word ? ATOS_INVALID : ATOS_OK;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == expected, "word %u: %s", word, atos_message());
  }
  launch.num_pools = ATOS_MAX_POOLS + 1;
  CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_INVALID, "%s", atos_message());
}

TEST(a_word_that_differs_by_device_is_among_the_arguments) {
  Program program(nothing, nullptr);
  Launcher<uint32_t> launcher(50);
  atos_launch launch = schedule(true, false, 1, 1);
  uint64_t words[1] = {};
  launch.arguments = words;
  launch.argument_words = launch.num_device_words = 1;
  atos_stats stats;
  for (const uint32_t word : {1u, 0u}) {
    launch.device_words[0] = {word, 8};
    const atos_status expected = word ? ATOS_INVALID : ATOS_OK;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == expected, "word %u: %s", word, atos_message());
  }
  launch.num_device_words = ATOS_MAX_DEVICE_WORDS + 1;
  CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_INVALID, "%s", atos_message());
}

// What is left of a level that was stopped counts in the next launch alone: the round after it ends where the queue does.
TEST(a_level_that_went_on_is_forgotten) {
  alarm(30); // a launch of more would wait for ever
  Program program(nothing, nullptr);
  for (const bool persistent : {true, false}) {
    Launcher<uint32_t> launcher(50);
    const uint32_t items[8] = {};
    const atos_queue_state stopped{8, 5, 0, 0};
    CHECK(atos_queue_restore(launcher.queue, items, &stopped) == ATOS_OK, "%s", atos_message());
    for (const uint64_t there : {8, 1}) {
      const atos_launch launch = schedule(persistent, true, 1, 2);
      atos_stats stats;
      CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
      CHECK(stats.tasks_run == there && stats.rounds == (there == 8 ? 2 : 1), "%" PRIu64 " tasks in %" PRIu64 " rounds",
            stats.tasks_run, stats.rounds);
      launcher.push(0);
    }
  }
}

// The first task makes its queue grow, and fails, which stops the launch: what is pending lies in two rings.
void grows_and_fails(atos_cpu_worker *worker, const void *items, int64_t, const void *) {
  if (*static_cast<const uint32_t *>(items) != 0) return;
  for (uint32_t v = 4; v < 14; ++v) push<uint32_t>(worker, v);
  worker->flush(worker);
  atos_cpu_fail(1, 0, 0, 0);
}

TEST(what_lies_in_several_rings_is_pending_in_order) {
  atos_program *program = nullptr;
  CHECK(atos_program_native(reinterpret_cast<uint64_t>(grows_and_fails), 0, 0, 1, &program) == ATOS_OK, "%s", atos_message());
  for (const uint64_t limit : {16, 32}) { // one growth, or two
    Launcher<uint32_t> launcher(8);
    CHECK(atos_queue_limit(launcher.queue, limit) == ATOS_OK, "%s", atos_message());
    for (uint64_t v = 0; v < 4; ++v) launcher.push(v);
    const atos_launch launch = schedule(true, false, 1, 1);
    atos_stats stats;
    CHECK(atos_queue_launch(launcher.queue, program, &launch, &stats) == ATOS_TASK_FAILED, "%s", atos_message());
    CHECK(stats.tasks_run == 1 && stats.pending == 13 && stats.grown == limit / 16, "%" PRIu64 " pending", stats.pending);
    uint32_t items[13] = {};
    atos_queue_state state;
    CHECK(atos_queue_read(launcher.queue, items, 13, &state) == ATOS_OK, "%s", atos_message());
    for (uint32_t i = 0; i < 13; ++i) CHECK(items[i] == i + 1, "item %u is %u", i, items[i]);
    CHECK(atos_queue_launch(launcher.queue, program, &launch, &stats) == ATOS_OK && stats.tasks_run == 13, "%s",
          atos_message());
  }
  atos_program_unload(program);
}

// An idle function that always pushes.
void always(atos_cpu_worker *worker, const void *) { push<uint32_t>(worker, 7); }

void short_sleep(atos_cpu_worker *, const void *, int64_t n, const void *) {
  std::this_thread::sleep_for(std::chrono::milliseconds(5 * n));
}

TEST(a_timeout_beyond_the_clock_is_none) {
  Program program(short_sleep, nullptr);
  for (const double timeout : {0.0, 1e10, 1e20, 1e300}) {
    Launcher<uint32_t> launcher(50);
    for (uint64_t v = 0; v < 20; ++v) launcher.push(v);
    atos_launch launch = schedule(true, false, 1, 1);
    launch.timeout = timeout;
    atos_stats stats;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK, "%g s: %s", timeout, atos_message());
  }
}

int questions = 0;

TEST(what_is_asked_stops_a_launch) {
  Program program(again, nullptr);
  for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
    if (fetch == 7) return; // it takes its time
    Launcher<uint32_t> launcher(50);
    for (uint64_t v = 0; v < 20; ++v) launcher.push(v);
    atos_launch launch = schedule(persistent, barrier, fetch, blocks);
    questions = 0;
    launch.poll_callback = [](const atos_sample *) { return int32_t(++questions == 2); };
    atos_stats stats;
    const atos_status status = atos_queue_launch(launcher.queue, program.handle, &launch, &stats);
    CHECK(status == ATOS_STOPPED && questions == 2, "status %d after %d questions: %s", int(status), questions, atos_message());
    std::vector<uint32_t> items(20);
    atos_queue_state state;
    CHECK(stats.pending == 20 && atos_queue_read(launcher.queue, items.data(), 20, &state) == ATOS_OK, "%s", atos_message());
    std::sort(items.begin(), items.end());
    for (uint32_t v = 0; v < 20; ++v) CHECK(items[v] == v, "item %u is %u", v, items[v]);
  });
}

std::atomic<bool> asked{false};

void until_asked(atos_cpu_worker *, const void *, int64_t, const void *) {
  while (!asked) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20)); // by when the stop that is the answer has been asked for
}

TEST(a_stop_that_finds_nothing_left_is_an_end_as_any_other) {
  Program program(until_asked, nullptr);
  for (const bool persistent : {true, false}) {
    Launcher<uint32_t> launcher(4);
    launcher.push(0);
    asked = false;
    atos_launch launch = schedule(persistent, false, 1, 1);
    launch.poll_callback = [](const atos_sample *) { return int32_t(asked = true); };
    atos_stats stats;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK && stats.tasks_run == 1, "%s",
          atos_message());
  }
}

std::atomic<uint64_t> told, most_run, most_waiting;

TEST(who_is_asked_is_told_how_things_stand) {
  Program program(again, nullptr);
  for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
    if (fetch == 7) return; // it takes its time
    Launcher<uint32_t> launcher(50);
    for (uint64_t v = 0; v < 20; ++v) launcher.push(v);
    atos_launch launch = schedule(persistent, barrier, fetch, blocks);
    told = most_run = most_waiting = 0;
    launch.progress = 1;
    launch.poll_callback = [](const atos_sample *now) {
      if (!now) return 0;
      most_run = std::max<uint64_t>(most_run, now->ran);
      if (now->tail > now->claimed) most_waiting = std::max<uint64_t>(most_waiting, now->tail - now->claimed);
      return int32_t(++told == 3);
    };
    atos_stats stats;
    const atos_status status = atos_queue_launch(launcher.queue, program.handle, &launch, &stats);
    CHECK(status == ATOS_STOPPED && told == 3, "status %d, told %d times: %s", int(status), int(told), atos_message());
    CHECK(most_run > 0 && most_run <= stats.tasks_run && most_waiting <= 20, "ran %d of %d, %d waited", int(most_run),
          int(stats.tasks_run), int(most_waiting));
    CHECK(stats.samples == 0 && stats.copy_milliseconds > 0, "%d samples kept", int(stats.samples));
  });
}

TEST(idle_that_always_pushes_is_stopped) {
  Program program(nothing, always);
  for (const bool persistent : {true, false})
    for (const bool barrier : {true, false}) {
      Launcher<uint32_t> launcher(1 << 16); // whoever pushes may have the only core for a while
      atos_launch launch = schedule(persistent, barrier, 4, 2, true);
      launch.timeout = 0.01;
      atos_stats stats;
      const atos_status status = atos_queue_launch(launcher.queue, program.handle, &launch, &stats);
      CHECK(status == ATOS_STOPPED, "status %d: %s", int(status), atos_message());
      CHECK(atos_queue_clear(launcher.queue) == ATOS_OK && launcher.pending() == 0, "%s", atos_message());
    }
}

std::atomic<bool> released{false};

void until_released(atos_cpu_worker *, const void *, int64_t n, const void *) {
  while (n && !released) std::this_thread::yield();
}

TEST(a_launch_that_does_not_stop_is_left_and_may_end_later) {
  Program program(until_released, nullptr);
  for (const bool barrier : {false, true}) {
    released = false;
    Launcher<uint32_t> launcher(50), other(50);
    for (uint64_t v = 0; v < 10; ++v) launcher.push(v), other.push(v);
    atos_launch launch = schedule(!barrier, barrier, 1, 2);
    launch.timeout = 0.5; // by when a task has begun, on a busy machine too
    atos_stats stats;
    atos_status status = atos_queue_launch(launcher.queue, program.handle, &launch, &stats);
    CHECK(status == ATOS_STUCK, "status %d: %s", int(status), atos_message());
    uint64_t count = 0;
    uint32_t item = 0;
    atos_queue_state state;
    for (int call = 0; call < 6; ++call) {
      status = call == 0   ? atos_queue_pending(launcher.queue, &count)
               : call == 1 ? atos_queue_push(launcher.queue, &item, 1)
               : call == 2 ? atos_queue_clear(launcher.queue)
               : call == 3 ? atos_queue_resize(launcher.queue, 100)
               : call == 4 ? atos_queue_read(launcher.queue, &item, 1, &state)
                           : atos_queue_launch(launcher.queue, program.handle, &launch, &stats);
      CHECK(status == ATOS_BUSY, "call %d: status %d: %s", call, int(status), atos_message());
    }
    launch.timeout = 0;
    Program harmless(nothing, nullptr);
    CHECK(atos_queue_launch(other.queue, harmless.handle, &launch, &stats) == ATOS_OK && stats.tasks_run == 10, "%s",
          atos_message());
    released = true;
    while ((status = atos_queue_pending(launcher.queue, &count)) == ATOS_BUSY) std::this_thread::yield();
    CHECK(status == ATOS_OK && count >= 8 && count < 10, "status %d, %" PRIu64 " pending", int(status), count);
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK && stats.tasks_run == count, "%s",
          atos_message());
  }
}

// The time of grace is that of looks that follow each other; a process that was suspended comes late to one.
TEST(only_time_in_which_the_host_runs_is_taken_for_grace) {
  const auto stuck = [](atos::StopMonitor &monitor) {
    try {
      return !monitor.poll();
    } catch (const atos::Failure &failure) {
      return failure.status == ATOS_STUCK;
    }
  };
  atos_launch launch{};
  launch.timeout = 1e-9;
  atos::StopMonitor late(launch);
  for (int look = 0; look < 3; ++look) {
    CHECK(!stuck(late), "at look %d", look);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  }
  atos::StopMonitor monitor(launch);
  int looks = 0;
  while (!stuck(monitor)) {
    CHECK(++looks < 10000, "it never is");
    std::this_thread::sleep_for(monitor.time_to_next_poll());
  }
  CHECK(looks >= 50, "%d looks of 20 ms at most", looks);
}

TEST(a_queue_is_waited_for_no_longer_than_agreed) {
  released = false;
  Program program(until_released, nullptr);
  Launcher<uint32_t> launcher(50);
  launcher.push(1);
  std::atomic<bool> begun{false};
  std::thread thread([&] {
    begun = true;
    atos_launch launch = schedule(true, false, 1, 1);
    atos_stats stats;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
  });
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  atos_launch launch = schedule(true, false, 1, 1);
  launch.timeout = 0.01;
  atos_stats stats;
  uint64_t count = 0;
  uint32_t item = 2;
  atos_queue_state state;
  const atos_status statuses[] = {atos_queue_launch(launcher.queue, program.handle, &launch, &stats),
                                  atos_queue_pending(launcher.queue, &count),
                                  atos_queue_push(launcher.queue, &item, 1),
                                  atos_queue_read(launcher.queue, &item, 1, &state),
                                  atos_queue_restore(launcher.queue, &item, &state),
                                  atos_queue_clear(launcher.queue),
                                  atos_queue_resize(launcher.queue, 100)};
  released = true;
  thread.join();
  for (const atos_status status : statuses) CHECK(status == ATOS_HELD, "status %d", int(status));
  CHECK(stats.tasks_run == 0 && launcher.pending() == 0, "%" PRIu64 " tasks ran", stats.tasks_run);
}

Launcher<uint32_t> *asked_queue = nullptr;
atos_status answer = ATOS_OK;

TEST(who_is_asked_cannot_use_a_queue) {
  Program program(again, nullptr);
  Launcher<uint32_t> launcher(50);
  launcher.push(1);
  asked_queue = &launcher;
  atos_launch launch = schedule(true, false, 1, 1);
  launch.poll_callback = [](const atos_sample *) {
    uint64_t count = 0;
    answer = atos_queue_pending(asked_queue->queue, &count);
    return int32_t(1);
  };
  atos_stats stats;
  CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_STOPPED, "%s", atos_message());
  CHECK(answer == ATOS_INVALID && launcher.pending() == 1, "status %d", int(answer));
}

} // namespace
