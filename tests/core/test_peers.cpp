// Launches over several devices: each task runs once, on its owner, whatever is pushed where and however it is stopped.
#include <numeric>
#include <sys/mman.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "protocol/peers.cuh"
#include "tree.h"

namespace {

// A tree whose nodes are numbered at random, so that pushes go from any device to any other.
struct Scattered {
  Work work;
  uint32_t devices, blocks;
  uint64_t chunk;
  std::vector<uint32_t> number, node; // of a node, and the reverse
  std::atomic<uint32_t> elsewhere{0}; // tasks that ran on another device than their owner
  std::atomic<int64_t> stop_after{INT64_MAX};
  uint64_t turn = 1;           // how often the tree runs, with this time
  bool round_of_level = false; // whether the number of a task's round is its level
  uint32_t buckets = 0;        // of the queues
  bool by_level = false;       // whether the priority of a task is its level, and not any number

  Scattered(const Tree &tree, uint64_t seed, uint32_t devices, uint32_t blocks)
      : work(tree), devices(devices), blocks(blocks), chunk((tree.nodes + devices - 1) / devices), number(tree.nodes),
        node(tree.nodes) {
    check::Random random(seed);
    std::iota(number.begin(), number.end(), 0u);
    for (uint64_t v = tree.nodes; v-- > 1;) std::swap(number[v], number[random.below(v + 1)]);
    for (uint64_t v = 0; v < tree.nodes; ++v) node[number[v]] = uint32_t(v);
  }
  double priority(uint64_t v) const { return by_level ? work.tree.level[v] : double(number[v] % 50) - 10; }
  uint32_t owner(uint64_t item) const { return uint32_t(std::min<uint64_t>(item / chunk, devices - 1)); }
};

template <class T> void run_scattered(atos_cpu_worker *worker, const void *items, int64_t n, const void *args) {
  Scattered &its = **static_cast<Scattered *const *>(args);
  for (int64_t k = 0; k < n; ++k) {
    const uint64_t item = decode(static_cast<const T *>(items)[k]);
    CHECK(item < its.work.tree.nodes, "item %" PRIu64 " was never pushed", item);
    const uint64_t v = its.node[item];
    const uint32_t level = its.work.tree.level[v];
    if (level && its.work.done_of_level[level - 1] < its.turn * its.work.tree.of_level[level - 1]) ++its.work.early;
    if (its.round_of_level && uint64_t(worker->round) != level) ++its.work.early;
    if (uint64_t(worker->index) / its.blocks != its.owner(item)) ++its.elsewhere;
    ++its.work.seen[v];
    ++its.work.done_of_level[level];
    for (uint32_t turn = 0; turn < its.work.turns; ++turn) __asm__ volatile("");
    if (--its.stop_after == 0) worker->stop(worker);
    for (uint64_t child = its.work.tree.first[v]; child < its.work.tree.first[v + 1]; ++child) {
      const T value = encode<T>(its.number[child]);
      if (its.buckets) worker->push(worker, &value, its.priority(child));
      else push<T>(worker, its.number[child]);
    }
  }
}

atos_status in_turn(const std::function<atos_status()> &call) {
  atos_status status;
  while ((status = call()) == ATOS_HELD) {}
  return status;
}

// Groups of processes, which are threads here: connected by sockets, and each with the memory of all at addresses of its own.
struct Processes {
  static constexpr uint64_t kBytes = uint64_t(1) << 30;
  std::vector<std::vector<int32_t>> sockets; // of each process
  std::vector<atos_group *> groups;
  std::vector<std::vector<void *>> memory; // of each process as each has it

  explicit Processes(uint32_t count) : sockets(count, std::vector<int32_t>(count, -1)), groups(count), memory(count) {
    for (uint32_t k = 0; k < count; ++k)
      for (uint32_t j = 0; j < k; ++j) {
        int pair[2];
        CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0, "no sockets");
        sockets[k][j] = pair[0], sockets[j][k] = pair[1];
      }
    for (uint32_t k = 0; k < count; ++k)
      CHECK(atos_group_create(count, k, sockets[k].data(), &groups[k]) == ATOS_OK, "%s", atos_message());
    for (uint32_t j = 0; j < count; ++j) {
      const int file = memfd_create("test", MFD_CLOEXEC);
      CHECK(file >= 0 && ftruncate(file, off_t(kBytes)) == 0, "no memory to share");
      for (uint32_t k = 0; k < count; ++k) {
        memory[k].push_back(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0));
        CHECK(memory[k][j] != MAP_FAILED, "no addresses");
      }
      close(file);
    }
  }
  Processes(const Processes &) = delete;
  ~Processes() {
    for (atos_group *group : groups) atos_group_destroy(group);
    for (const auto &mapped : memory)
      for (void *pointer : mapped) munmap(pointer, kBytes);
  }
};

template <class T> struct Devices {
  Program program{run_scattered<T>, nullptr};
  std::unique_ptr<Processes> processes; // or null: all are in one
  std::vector<atos_queue *> queues;
  std::vector<atos_program *> programs; // of a launch

  Devices(uint32_t devices, uint64_t capacity, uint64_t limit, bool apart = false)
      : processes(apart ? std::make_unique<Processes>(devices) : nullptr), queues(devices) {
    for (uint32_t k = 0; k < devices; ++k) {
      const atos_status status =
          apart ? atos_queue_create_shared(processes->memory[k][k], Processes::kBytes, capacity, sizeof(T), &queues[k])
                : atos_queue_create(ATOS_CPU, capacity, sizeof(T), &queues[k]);
      CHECK(status == ATOS_OK, "%s", atos_message());
      CHECK(atos_queue_limit(queues[k], limit ? limit : apart ? uint64_t(1) << 20 : 0) == ATOS_OK, "%s", atos_message());
    }
  }
  Devices(const Devices &) = delete;
  ~Devices() {
    for (atos_queue *queue : queues) atos_queue_destroy(queue);
  }

  void give_buckets(uint32_t number, double delta) {
    for (atos_queue *queue : queues)
      CHECK(in_turn([&] { return atos_queue_set_buckets(queue, number, delta); }) == ATOS_OK, "%s", atos_message());
  }
  void push(uint32_t device, uint64_t item) {
    const T value = encode<T>(item);
    CHECK(in_turn([&] { return atos_queue_push(queues[device], &value, 1); }) == ATOS_OK, "%s", atos_message());
  }
  uint64_t pending(uint32_t device) {
    uint64_t n = 0;
    CHECK(in_turn([&] { return atos_queue_pending(queues[device], &n); }) == ATOS_OK, "%s", atos_message());
    return n;
  }
  uint64_t pending() {
    uint64_t n = 0;
    for (uint32_t k = 0; k < queues.size(); ++k) n += pending(k);
    return n;
  }
  atos_peers peers(uint64_t chunk, atos_program *runs) {
    programs.assign(queues.size(), runs);
    return {uint32_t(queues.size()), std::min<uint32_t>(sizeof(T), 8), chunk, queues.data(), programs.data(), nullptr};
  }
  atos_status launch(Scattered &its, atos_launch launch, std::vector<atos_stats> *stats) {
    Scattered *const argument = &its;
    launch.worker = ATOS_CTA;
    launch.threads = 1;
    launch.argument_words = 1;
    launch.arguments = reinterpret_cast<const uint64_t *>(&argument);
    launch.buckets = its.buckets != 0;
    stats->resize(queues.size());
    const atos_peers given = peers(its.chunk, program.handle);
    return processes ? launch_apart(given, launch, stats) : atos_peers_launch(&given, &launch, stats->data());
  }

  // The same call in each process, all of which get the same of it.
  atos_status launch_apart(const atos_peers &given, const atos_launch &launch, std::vector<atos_stats> *stats,
                           uint32_t without = UINT32_MAX) {
    std::vector<atos_status> statuses(queues.size());
    std::vector<std::vector<atos_stats>> all(queues.size(), std::vector<atos_stats>(queues.size()));
    std::vector<std::thread> threads;
    for (uint32_t k = 0; k < queues.size(); ++k)
      if (k != without)
        threads.emplace_back([&, k] {
          const atos_processes mine{processes->groups[k], processes->memory[k].data(), nullptr};
          atos_peers peers = given;
          peers.queues = &queues[k];
          peers.programs = &programs[k];
          peers.processes = &mine;
          statuses[k] = atos_peers_launch(&peers, &launch, all[k].data());
        });
    for (std::thread &thread : threads) thread.join();
    const uint32_t one = without == 0;
    for (uint32_t k = 0; k < queues.size(); ++k) {
      if (k == without) continue;
      CHECK(statuses[k] == statuses[one], "process %u: status %d, and %d in another", k, int(statuses[k]), int(statuses[one]));
      for (uint32_t j = 0; j < queues.size() && statuses[k] != ATOS_GONE; ++j)
        CHECK(all[k][j].tasks_run == all[one][j].tasks_run && all[k][j].pending == all[one][j].pending &&
                  all[k][j].workers == all[one][j].workers && all[k][j].rounds == all[one][j].rounds,
              "process %u has other statistics of device %u", k, j);
    }
    *stats = all[one];
    return statuses[one];
  }
};

uint64_t sum(const std::vector<atos_stats> &stats, uint64_t atos_stats::*field) {
  uint64_t all = 0;
  for (const atos_stats &its : stats) all += its.*field;
  return all;
}

// Launches one tree over some devices, again while it was stopped, and counts the launches that were.
template <class T>
int run_tree(check::Random &random, uint32_t devices, bool stopped, bool barrier, bool apart, bool prioritized = false) {
  const Tree tree(random(), 1 + random.below(stopped ? 3000 : 800), 1 + random.below(6));
  const uint32_t blocks = uint32_t(1 + random.below(2));
  Scattered its(tree, random(), devices, blocks);
  its.work.turns = stopped ? 3000 : 0;
  const uint64_t capacity = random.below(2) ? 1 + random.below(20) : 2 * tree.nodes;
  // A queue that grows while workers run, or by a stop, or not at all.
  const uint64_t limits[] = {0, capacity + tree.nodes, std::max(capacity, tree.nodes)};
  Devices<T> all(devices, capacity, limits[random.below(3)], apart);
  if (prioritized) {
    its.buckets = 2u << random.below(4);
    its.by_level = barrier; // by which the rounds are in order
    all.give_buckets(its.buckets, barrier ? 1 : double(random.below(30)));
  }
  const uint32_t fetch = uint32_t(1 + random.below(40));
  const std::string which = std::to_string(devices) + " devices, " + std::to_string(blocks) + " workers each, capacity " +
                            std::to_string(capacity) + ", " + std::to_string(tree.nodes) + " tasks";
  int stops = 0;
  its.round_of_level = barrier && !stopped && !prioritized;
  for (int turn = 0; turn < 2; ++turn) { // the second one finds the slots of the first one used
    its.turn = uint64_t(turn + 1);
    all.push(its.owner(its.number[0]), its.number[0]);
    uint64_t ran = 0;
    for (;; ++stops) {
      atos_launch launch = schedule(true, barrier, fetch, blocks);
      // Longer each time, since on a busy machine two milliseconds may be too short for any progress.
      if (stopped) launch.timeout = 1e-6 * double(1 + random.below(2000)) * double(1 + stops / 10);
      std::vector<atos_stats> stats;
      const atos_status status = all.launch(its, launch, &stats);
      ran += sum(stats, &atos_stats::tasks_run);
      CHECK(sum(stats, &atos_stats::lost) == 0, "%s: %" PRIu64 " lost", which.c_str(), sum(stats, &atos_stats::lost));
      CHECK(sum(stats, &atos_stats::pending) == all.pending(), "%s: another number is pending", which.c_str());
      const uint64_t levels = tree.of_level.size();
      if (its.round_of_level) // an interrupted round goes on; behind the last one may be one of nothing
        CHECK(sum(stats, &atos_stats::rounds) - levels <= 1, "%s: %" PRIu64 " rounds of %" PRIu64 " levels", which.c_str(),
              sum(stats, &atos_stats::rounds), levels);
      if (status == ATOS_OK) break;
      CHECK(status == ATOS_STOPPED && stopped, "%s: status %d, %s", which.c_str(), int(status), atos_message());
    }
    CHECK(all.pending() == 0 && ran == tree.nodes, "%s: %" PRIu64 " ran, %" PRIu64 " pending", which.c_str(), ran,
          all.pending());
    for (uint64_t v = 0; v < tree.nodes; ++v)
      CHECK(its.work.seen[v] == uint32_t(turn + 1), "%s: task %" PRIu64 " ran %u times", which.c_str(), v,
            its.work.seen[v].load());
    CHECK(!barrier || its.work.early == 0, "%s: %" PRIu64 " tasks ran early", which.c_str(), its.work.early.load());
    CHECK(its.elsewhere == 0, "%s: %u tasks ran on another device", which.c_str(), its.elsewhere.load());
  }
  return stops;
}

template <class T> void each_task_runs_once_on_its_owner() {
  check::Random random(40 + sizeof(T));
  for (int k = 0; k < 60; ++k) run_tree<T>(random, uint32_t(1 + random.below(8)), false, k % 2, k % 3 == 2);
}

template <class T> void each_prioritized_task_runs_once_on_its_owner() {
  check::Random random(70 + sizeof(T));
  for (int k = 0; k < 40; ++k) run_tree<T>(random, uint32_t(1 + random.below(6)), false, k % 2, k % 3 == 2, true);
}

} // namespace

TEST(each_prioritized_task_of_4_bytes_runs_once_on_its_owner) { each_prioritized_task_runs_once_on_its_owner<uint32_t>(); }
TEST(each_prioritized_task_of_8_bytes_runs_once_on_its_owner) { each_prioritized_task_runs_once_on_its_owner<uint64_t>(); }
TEST(each_prioritized_task_of_16_bytes_runs_once_on_its_owner) { each_prioritized_task_runs_once_on_its_owner<Pair>(); }

TEST(each_task_of_4_bytes_runs_once_on_its_owner) { each_task_runs_once_on_its_owner<uint32_t>(); }
TEST(each_task_of_8_bytes_runs_once_on_its_owner) { each_task_runs_once_on_its_owner<uint64_t>(); }
TEST(each_task_of_16_bytes_runs_once_on_its_owner) { each_task_runs_once_on_its_owner<Pair>(); }

TEST(the_owner_of_an_item_is_a_division) {
  check::Random random(3);
  for (int k = 0; k < 20000; ++k) {
    const auto any = [&] { return random() >> random.below(64); };
    const uint64_t chunk = std::max<uint64_t>(any(), 1),
                   key = random.below(2) ? any() : chunk * random.below(9) - random.below(2);
    const uint32_t devices = uint32_t(1 + random.below(8));
    const atos::Peers peers{nullptr, devices, 0, random.below(2) ? 4u : 8u, chunk, ~uint64_t(0) / chunk};
    const uint64_t wanted = (peers.key_bytes == 4 ? uint32_t(key) : key) / chunk;
    const uint32_t owner = peers.owner(atos::Item<16>{{key, random()}}), of_4 = peers.owner(atos::Item<4>{uint32_t(key)});
    CHECK(owner == std::min<uint64_t>(wanted, devices - 1), "key %" PRIu64 ", chunk %" PRIu64 ": %u", key, chunk, owner);
    CHECK(of_4 == std::min<uint64_t>(uint32_t(key) / chunk, devices - 1), "key %u, chunk %" PRIu64 ": %u", uint32_t(key), chunk,
          of_4);
  }
}

TEST(what_was_stopped_on_several_devices_goes_on) {
  check::Random random(7);
  int stops = 0;
  for (int k = 0; k < 6; ++k) stops += run_tree<uint32_t>(random, uint32_t(2 + random.below(3)), true, k % 2, k % 3 == 2);
  for (int k = 0; k < 6; ++k) stops += run_tree<uint32_t>(random, uint32_t(2 + random.below(3)), true, k % 2, k % 3 == 2, true);
  CHECK(stops > 2, "only %d launches were stopped", stops);
}

namespace {

void let_a_task_stop(bool apart) {
  const Tree tree(5, 4000, 4);
  Scattered its(tree, 6, 3, 1);
  Devices<uint32_t> all(3, 100, 0, apart);
  all.push(its.owner(its.number[0]), its.number[0]);
  uint64_t ran = 0;
  int stops = 0;
  for (;; ++stops) {
    its.stop_after = 700;
    std::vector<atos_stats> stats;
    const atos_status status = all.launch(its, schedule(true, false, 4, 1), &stats);
    CHECK(status == ATOS_OK, "status %d, %s", int(status), atos_message());
    ran += sum(stats, &atos_stats::tasks_run);
    if (its.stop_after > 0) break;
    CHECK(sum(stats, &atos_stats::stopped) >= 1, "a stop goes unnoticed");
  }
  CHECK(ran == tree.nodes && stops >= 3 && stops <= 5, "%" PRIu64 " ran in %d launches", ran, stops + 1);
}

void fill_a_queue(bool apart) {
  const Tree tree(9, 3000, 6);
  Scattered its(tree, 10, 4, 1);
  Devices<uint32_t> all(4, 30, 30, apart);
  all.push(its.owner(its.number[0]), its.number[0]);
  uint64_t ran = 0;
  int full = 0;
  for (;; ++full) {
    std::vector<atos_stats> stats;
    const atos_status status = all.launch(its, schedule(true, false, 8, 1), &stats);
    ran += sum(stats, &atos_stats::tasks_run);
    if (status == ATOS_OK) break;
    CHECK(status == ATOS_QUEUE_FULL, "status %d, %s", int(status), atos_message());
    CHECK(sum(stats, &atos_stats::lost) == 0 && sum(stats, &atos_stats::pending) == all.pending(), "items were lost");
    for (uint32_t k = 0; k < 4; ++k) { // as the message says: the limit of those that are over it is raised
      uint64_t capacity = 0, limit = 0;
      atos_queue_capacity(all.queues[k], &capacity, &limit);
      if (all.pending(k) > capacity)
        CHECK(atos_queue_limit(all.queues[k], 2 * all.pending(k)) == ATOS_OK, "%s", atos_message());
    }
  }
  CHECK(full > 0 && ran == tree.nodes, "%" PRIu64 " ran, after %d times that a queue was full", ran, full);
}

std::atomic<bool> released{false};
void wait_for_release(atos_cpu_worker *, const void *, int64_t, const void *) {
  while (!released) std::this_thread::yield();
}

void fail_at_7(atos_cpu_worker *worker, const void *items, int64_t n, const void *) {
  for (int64_t k = 0; k < n; ++k) {
    const uint32_t item = static_cast<const uint32_t *>(items)[k];
    if (item == 7) return atos_cpu_fail(3, 7, 0, 0);
    push<uint32_t>(worker, (item + 1) % 16);
  }
}

void push_two(atos_cpu_worker *worker, const void *items, int64_t n, const void *) {
  for (int64_t k = 0; k < n; ++k) {
    const uint32_t item = static_cast<const uint32_t *>(items)[k];
    CHECK(uint64_t(worker->round) == (item % 100 >= 10), "item %u ran in round %d", item, int(worker->round));
    if (item % 100 >= 2) continue;
    for (uint32_t child = 0; child < 2; ++child) push<uint32_t>(worker, item / 100 * 100 + 10 + 2 * (item % 100) + child);
  }
}

atos_program *native(void (*run)(atos_cpu_worker *, const void *, int64_t, const void *), bool checked) {
  atos_program *program = nullptr;
  CHECK(atos_program_native(reinterpret_cast<uint64_t>(run), 0, 0, checked, &program) == ATOS_OK, "%s", atos_message());
  return program;
}

} // namespace

TEST(a_task_stops_all_devices) { let_a_task_stop(false); }
TEST(a_task_stops_all_processes) { let_a_task_stop(true); }
TEST(a_full_queue_of_one_device_keeps_all_of_them) { fill_a_queue(false); }
TEST(a_full_queue_of_one_process_keeps_all_of_them) { fill_a_queue(true); }

TEST(an_interrupted_round_goes_on) {
  // Two of four items on each device push two more, for which a ring of four has no room before the other items are taken; it
  // grows by a stop, since it may not double.
  Devices<uint32_t> all(2, 4, 7);
  for (uint32_t k = 0; k < 8; ++k) all.push(k / 4, 100 * (k / 4) + k % 4);
  atos_program *const program = native(push_two, false);
  const atos_peers peers = all.peers(100, program);
  const atos_launch launch = schedule(true, true, 1, 1);
  std::vector<atos_stats> stats(2);
  const atos_status status = atos_peers_launch(&peers, &launch, stats.data());
  CHECK(status == ATOS_OK, "status %d, %s", int(status), atos_message());
  CHECK(sum(stats, &atos_stats::tasks_run) == 16, "%" PRIu64 " tasks ran", sum(stats, &atos_stats::tasks_run));
  CHECK(sum(stats, &atos_stats::grown) >= 1, "no ring was full");
  CHECK(stats[0].rounds == 2 && stats[1].rounds == 0, "%" PRIu64 " rounds", stats[0].rounds);
  atos_program_unload(program);
}

TEST(a_failed_check_ends_all_devices) {
  Devices<uint32_t> all(4, 10, 10);
  all.push(2, 8);
  atos_program *const program = native(fail_at_7, true);
  const atos_peers peers = all.peers(4, program);
  const atos_launch launch = schedule(true, false, 1, 1);
  std::vector<atos_stats> stats(4);
  const atos_status status = atos_peers_launch(&peers, &launch, stats.data());
  CHECK(status == ATOS_TASK_FAILED, "status %d, %s", int(status), atos_message());
  CHECK(stats[1].failure.failed && stats[1].failure.site == 3 && stats[1].failure.item[0] == 7, "another check failed");
  CHECK(!stats[0].failure.failed && !stats[2].failure.failed && !stats[3].failure.failed, "a check failed on another device");
  CHECK(sum(stats, &atos_stats::tasks_run) == 16, "%" PRIu64 " tasks ran", sum(stats, &atos_stats::tasks_run));
  atos_program_unload(program);
}

TEST(queues_of_a_stuck_launch_are_refused_until_it_ends) {
  Devices<uint32_t> all(3, 10, 10);
  all.push(1, 5);
  atos_program *const program = native(wait_for_release, false);
  const atos_peers peers = all.peers(4, program);
  atos_launch launch = schedule(true, false, 1, 1);
  launch.timeout = 0.01;
  std::vector<atos_stats> stats(3);
  atos_status status;
  do status = atos_peers_launch(&peers, &launch, stats.data());
  while (status == ATOS_STOPPED); // before a worker has taken the item, on a busy machine
  CHECK(status == ATOS_STUCK, "status %d, %s", int(status), atos_message());
  uint64_t n;
  for (atos_queue *queue : all.queues)
    CHECK(atos_queue_pending(queue, &n) == ATOS_BUSY, "a queue can be used while others push into it");
  released = true;
  for (atos_queue *queue : all.queues)
    while (in_turn([&] { return atos_queue_pending(queue, &n); }) == ATOS_BUSY) std::this_thread::yield();
  CHECK(all.pending() == 0, "%" PRIu64 " tasks are left", all.pending());
  all.push(0, 1);
  launch.timeout = 0;
  status = atos_peers_launch(&peers, &launch, stats.data());
  CHECK(status == ATOS_OK && sum(stats, &atos_stats::tasks_run) == 1, "status %d, %s", int(status), atos_message());
  atos_program_unload(program);
}

TEST(launches_over_the_same_queues_wait_for_each_other) {
  const Tree tree(2, 300, 3);
  Devices<uint32_t> all(3, 1000, 0);
  std::vector<std::thread> threads;
  for (int turn = 0; turn < 2; ++turn)
    threads.emplace_back([&, turn] {
      Devices<uint32_t> own(0, 1, 0);
      own.queues = all.queues;
      if (turn) std::swap(own.queues[0], own.queues[2]); // locked in another order by who would take them as they come
      for (int k = 0; k < 30; ++k) {
        Scattered its(tree, uint64_t(k), 3, 1);
        std::vector<atos_stats> stats;
        const atos_status status = in_turn([&] { return own.launch(its, schedule(true, false, 4, 1), &stats); });
        CHECK(status == ATOS_OK, "status %d, %s", int(status), atos_message());
      }
      own.queues.clear();
    });
  for (std::thread &thread : threads) thread.join();
}

TEST(what_several_devices_cannot_do_is_refused) {
  Devices<uint32_t> all(2, 10, 10);
  atos_queue *large = nullptr, *twice[] = {all.queues[0], all.queues[0]};
  CHECK(atos_queue_create(ATOS_CPU, 10, 8, &large) == ATOS_OK, "%s", atos_message());
  atos_queue *mixed[] = {all.queues[0], large};
  const atos_peers good = all.peers(4, all.program.handle);
  const atos_launch plain = schedule(true, false, 1, 1);
  const auto refused = [](const atos_peers &peers, const atos_launch &launch, const char *what) {
    std::vector<atos_stats> stats(2);
    const atos_status status = atos_peers_launch(&peers, &launch, stats.data());
    CHECK(status == ATOS_INVALID, "%s: status %d, %s", what, int(status), atos_message());
  };
  atos_peers peers = good;
  peers.count = 0, refused(peers, plain, "no device");
  atos_launch newest = plain;
  newest.newest = 1, refused(good, newest, "newest first");
  peers = good, peers.chunk = 0, refused(peers, plain, "a chunk of nothing");
  peers = good, peers.key_bytes = 3, refused(peers, plain, "a key of 3 bytes");
  peers = good, peers.key_bytes = 8, refused(peers, plain, "a key larger than the item");
  peers = good, peers.queues = twice, refused(peers, plain, "a queue twice");
  peers = good, peers.queues = mixed, refused(peers, plain, "items of two sizes");
  refused(good, schedule(false, false, 1, 1), "discrete");
  refused(good, schedule(true, false, 1, 1, true), "with an idle function");
  std::vector<atos_stats> stats(2);
  const atos_status status = atos_peers_launch(&good, &plain, stats.data());
  CHECK(status == ATOS_OK, "status %d, %s", int(status), atos_message());
  atos_queue_destroy(large);
}

namespace {

std::atomic<const std::vector<int32_t> *> to_leave{nullptr}; // the sockets of a process

// Of processes that wait for each other: in the middle of the launch one of them is gone.
void leave_in_a_task(atos_cpu_worker *worker, const void *items, int64_t n, const void *) {
  for (int64_t k = 0; k < n; ++k) {
    const uint32_t item = static_cast<const uint32_t *>(items)[k];
    if (item == 5)
      if (const auto *sockets = to_leave.exchange(nullptr))
        for (const int32_t socket : *sockets) shutdown(socket, SHUT_RDWR);
    push<uint32_t>(worker, (item + 1) % 16);
  }
}

} // namespace

TEST(a_process_that_is_gone_ends_the_launch_of_the_others) {
  for (const bool barrier : {false, true}) {
    Devices<uint32_t> all(3, 100, 100, true);
    all.push(0, 0);
    atos_program *const program = native(leave_in_a_task, false);
    to_leave = &all.processes->sockets[2];
    std::vector<atos_stats> stats;
    const atos_status status = all.launch_apart(all.peers(6, program), schedule(true, barrier, 1, 1), &stats);
    CHECK(status == ATOS_GONE, "status %d, %s", int(status), atos_message());
    for (uint32_t k = 0; k < 2; ++k) {
      CHECK(atos_group_has_left(all.processes->groups[k], 2), "process %u does not know who is gone", k);
      uint64_t n;
      CHECK(atos_queue_pending(all.queues[k], &n) == ATOS_GONE, "a queue can be used that others may push into");
    }
    atos_program_unload(program);
  }
}

TEST(a_process_that_does_not_come_ends_the_launch_of_the_others) {
  Devices<uint32_t> all(3, 100, 100, true);
  atos_group_leave(all.processes->groups[0]);
  std::vector<atos_stats> stats;
  const atos_status status = all.launch_apart(all.peers(6, all.program.handle), schedule(true, false, 1, 1), &stats, 0);
  CHECK(status == ATOS_GONE, "status %d, %s", int(status), atos_message());
}

TEST(processes_gather_what_each_has) {
  Processes processes(4);
  std::vector<std::thread> threads;
  for (uint32_t k = 0; k < 4; ++k)
    threads.emplace_back([&, k] {
      for (uint32_t turn = 0; turn < 200; ++turn) {
        const uint32_t mine[2] = {k, turn};
        uint32_t all[8] = {};
        const atos_status status = in_turn([&] { return atos_group_gather(processes.groups[k], mine, sizeof mine, all); });
        CHECK(status == ATOS_OK, "status %d, %s", int(status), atos_message());
        for (uint32_t j = 0; j < 4; ++j)
          CHECK(all[2 * j] == j && all[2 * j + 1] == turn, "turn %u: %u of process %u", turn, all[2 * j + 1], j);
      }
    });
  for (std::thread &thread : threads) thread.join();
}

TEST(a_shared_range_gives_zeros_and_takes_them_back) {
  Processes processes(1);
  atos_queue *queue = nullptr;
  CHECK(atos_queue_create_shared(processes.memory[0][0], 1 << 26, 1000, 8, &queue) == ATOS_OK, "%s", atos_message());
  std::vector<uint64_t> items(1 << 16, ~uint64_t(0));
  for (int turn = 0; turn < 40; ++turn) { // its rings would not fit in all
    CHECK(atos_queue_limit(queue, 1 << 20) == ATOS_OK, "%s", atos_message());
    for (uint64_t more = 0; more < 4; ++more)
      CHECK(atos_queue_push(queue, items.data(), items.size()) == ATOS_OK, "turn %d: %s", turn, atos_message());
    uint64_t n = 0;
    CHECK(atos_queue_pending(queue, &n) == ATOS_OK && n == 4 * items.size(), "%" PRIu64 " pending", n);
    CHECK(atos_queue_clear(queue) == ATOS_OK, "%s", atos_message());
    CHECK(atos_queue_resize(queue, 1000) == ATOS_OK, "%s", atos_message());
    CHECK(atos_queue_pending(queue, &n) == ATOS_OK && n == 0, "%" PRIu64 " left", n);
  }
  CHECK(atos_queue_resize(queue, uint64_t(1) << 30) == ATOS_NO_MEMORY, "more than the range has");
  atos_queue_destroy(queue);
}
