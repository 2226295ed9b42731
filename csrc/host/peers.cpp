// A launch over several devices: their queues are locked, provided and collected together; each queue is recovered by itself.
//
// The devices are all in this process, or each in a process of a group. In a group every process does the same for its own
// device, and the processes tell each other their outcomes.
#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <unistd.h>

#include "host/process_group.h"
#include "host/queue.h"
#include "protocol/peers.cuh"

using namespace atos;

namespace {

constexpr uint64_t kMostDevices = 1024;

void check(const atos_peers &given, const atos_launch &launch) {
  if (given.count == 0 || given.count > kMostDevices)
    throw Failure(ATOS_INVALID, format("a launch has 1 to %d devices (got %u)", int(kMostDevices), given.count));
  if (given.chunk == 0) throw Failure(ATOS_INVALID, "a device owns at least one key");
  if (given.key_bytes != 4 && given.key_bytes != 8)
    throw Failure(ATOS_INVALID, format("the key of an item has 4 or 8 bytes (got %u)", given.key_bytes));
  if (!launch.persistent || launch.idle || launch.inbox || launch.num_receivers)
    throw Failure(ATOS_INVALID, "a launch over several devices is persistent, with its tasks and nothing else");
  if (given.processes && given.processes->group->count != given.count)
    throw Failure(ATOS_INVALID, format("%u devices for a group of %u processes", given.count, given.processes->group->count));
}

// The outcome of a part of a launch in one process, as the process tells it to the others: a value, or a failure.
template <class T> struct Told {
  atos_status status;
  char message[500];
  T value;
};

template <class F> atos_status told(F part, char (&message)[500]) {
  const atos_status status = guarded(part);
  if (status != ATOS_OK) std::snprintf(message, sizeof message, "%s", atos::message().c_str());
  return status;
}

// File descriptors, which are closed at the end.
struct Descriptors {
  std::vector<int> files;
  explicit Descriptors(size_t count) : files(count, -1) {}
  ~Descriptors() {
    for (int file : files)
      if (file >= 0) close(file);
  }
  Descriptors(const Descriptors &) = delete;
  Descriptors &operator=(const Descriptors &) = delete;
};

// The addresses of a queue, moved by `by` bytes, as another process may have mapped the memory.
Peer moved(Peer peer, uintptr_t by) {
  const auto move = [by](auto &pointer) {
    if (pointer)
      pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(reinterpret_cast<uintptr_t>(pointer) + by);
  };
  move(peer.counters), move(peer.slots), move(peer.more), move(peer.spill), move(peer.far);
  return peer;
}

} // namespace

// The devices of a launch: the devices that are here, and how the other devices take part.
struct atos_queue::PeerLaunch {
  const atos_peers &given;
  const atos_launch &options;
  atos_stats *const stats; // of all devices
  atos_group *const group;
  const uint32_t count, first, here; // devices; number of the first one in this process; devices in this process
  const std::vector<atos_queue *> queues;
  const bool on_cpu;
  Runs runs; // of the devices that are here
  std::shared_ptr<std::vector<Peer>> table;
  bool agreed = false;     // whether what ends the launch is known to all processes
  StopMonitor before_runs; // asked until there are runs

  PeerLaunch(const atos_peers &given, const atos_launch &options, atos_stats *stats)
      : given(given), options(options), stats(stats), group(given.processes ? given.processes->group : nullptr),
        count(given.count), first(group ? group->own : 0), here(group ? 1 : count), queues(given.queues, given.queues + here),
        on_cpu(queues.empty() || queues[0]->device == ATOS_CPU), before_runs(options) {}

  QueueStorage &storage(uint32_t k) const { return queues[k]->storage; }
  uintptr_t memory_of(uint32_t k) const { return reinterpret_cast<uintptr_t>(given.processes->memory[k]); }
  StopMonitor &monitor() { return runs.empty() ? before_runs : runs[0]->monitor; }

  // Does a part of the launch in each process. `part` fills in a value for each device here; returns the values of all devices.
  // A failure in one process is a failure in all.
  template <class T, class F> std::vector<T> together(F part) {
    std::vector<T> values(here);
    if (!group) {
      part(values);
      return values;
    }
    Told<T> mine{};
    mine.status = told([&] { part(values); }, mine.message);
    mine.value = values[0];
    if (mine.status != ATOS_OK && group->is_closed()) throw Failure(mine.status, mine.message); // nobody waits for this process
    const std::vector<Told<T>> all = gather(mine);
    values.resize(count);
    for (uint32_t k = 0; k < count; ++k) {
      agreed = all[k].status != ATOS_OK;
      if (agreed) throw Failure(all[k].status, k == first ? all[k].message : format("in process %u: %s", k, all[k].message));
      values[k] = all[k].value;
    }
    return values;
  }

  // Does a part of the launch in each process, without a value.
  template <class F> void all_do(F part) {
    together<uint32_t>([&](const auto &) { part(); });
  }

  // Whether `holds` is true in any process.
  bool anywhere(bool holds) {
    const auto all = together<uint32_t>([&](auto &values) { values[0] = holds; });
    return std::any_of(all.begin(), all.end(), [](uint32_t its) { return its != 0; });
  }

  template <class T> std::vector<T> gather(const T &mine) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= ATOS_GATHER_BYTES);
    std::vector<T> all(count);
    group->gather(&mine, sizeof mine, all.data(), monitor());
    return all;
  }

  void prepare();
  void share_memory();
  void share_workers(const std::vector<uint32_t> &workers);
  void count_for_host(Run &run, uint32_t k, bool progress);
  void provide();
  void run();
  void end(bool over, const std::vector<uint64_t> &grown_before);
};

void atos_queue::launch_peers(const atos_peers &given, const atos_launch &options, atos_stats *stats) {
  std::fill_n(stats, given.count, atos_stats{});
  PeerLaunch all(given, options, stats);
  try {
    launch_together(all);
  } catch (...) {
    if (all.group && !all.agreed) all.group->leave(); // other processes wait for what will not come
    throw;
  }
}

void atos_queue::launch_together(PeerLaunch &all) {
  const StopMonitor::InLaunch here;
  std::vector<Lock> locks;
  std::vector<uint64_t> grown_before;
  const auto workers = all.together<uint32_t>([&](auto &result) {
    check(all.given, all.options);
    all.prepare();
    locks = enter_in_order(all.queues, &all.runs[0]->monitor);
    if (locks.size() != all.queues.size()) throw Failure(ATOS_INVALID, "a queue is given twice for one launch");
    for (uint32_t k = 0; k < all.here; ++k) {
      atos_stats &its = all.stats[all.first + k];
      grown_before.push_back(all.storage(k).grown);
      its.pending = all.storage(k).num_pending();
      all.queues[k]->make_room();
      all.queues[k]->size_grid(*all.runs[k], &its);
      result[k] = all.runs[k]->kernel.workers;
    }
  });
  all.share_workers(workers);
  bool over;
  try {
    over = run_peers(all);
  } catch (...) {
    for (uint32_t k = 0; k < all.here; ++k) {
      all.queues[k]->forsaken = all.group != nullptr;
      all.runs[k]->left_behind = all.runs[0]->left_behind;
      all.queues[k]->leave(all.runs[k]);
    }
    throw;
  }
  all.end(over, grown_before);
}

void atos_queue::PeerLaunch::prepare() {
  if (options.newest) throw Failure(ATOS_INVALID, "newest first is for launches on one device");
  Runs made;
  for (uint32_t k = 0; k < here; ++k) {
    if ((queues[k]->device == ATOS_CPU) != on_cpu || storage(k).item_bytes != storage(0).item_bytes)
      throw Failure(ATOS_INVALID,
                    "the queues of a launch over several devices are all on CPU devices or all on GPUs, for items of one size");
    if (given.programs[k]->device != queues[k]->device)
      throw Failure(ATOS_INVALID, format("the program for device %d, and the queue on device %d", given.programs[k]->device,
                                         queues[k]->device));
    if (group && !on_cpu && !given.processes->shared)
      throw Failure(ATOS_INVALID, "the GPUs of several processes have queues in memory that these share");
    if (given.key_bytes > storage(k).item_bytes)
      throw Failure(ATOS_INVALID, format("a key of %u bytes in items of %u", given.key_bytes, storage(k).item_bytes));
    made.push_back(queues[k]->prepare(*given.programs[k], options, &stats[first + k]));
    Run &run = *made[k];
    for (uint32_t w = 0; w < options.num_device_words; ++w)
      run.arguments[options.device_words[w].word] += options.device_words[w].step * (first + k);
    // The blocks of each device. The devices share the cores; or a GPU, if several devices are one GPU.
    uint32_t sharing = count, place = first + k;
    if (!on_cpu) {
      const auto is_same = [&](const atos_queue *queue) { return queue->device == queues[k]->device; };
      run.sharing = sharing = uint32_t(std::count_if(queues.begin(), queues.end(), is_same));
      run.place = place = uint32_t(std::count_if(queues.begin(), queues.begin() + k, is_same));
      run.kernel.peer_count = count;
    }
    const uint32_t resident = storage(k).backend.resident_blocks(run);
    if (run.launch.blocks == 0) run.launch.blocks = std::max(resident / sharing + (on_cpu && place < resident % sharing), 1u);
  }
  runs = made;
}

// Numbers the workers of each device among all workers.
void atos_queue::PeerLaunch::share_workers(const std::vector<uint32_t> &workers) {
  const uint32_t all = std::accumulate(workers.begin(), workers.end(), 0u);
  for (uint32_t k = 0; k < here; ++k) {
    runs[k]->first_worker = std::accumulate(workers.begin(), workers.begin() + first + k, 0u);
    runs[k]->all_workers = all;
    runs[k]->kernel.first_worker = runs[k]->first_worker;
    runs[k]->kernel.all_workers = all;
  }
  agreed = true;
  storage(0).backend.resident_blocks(*runs[0]); // throws if there are too many blocks
  agreed = false;
}

// Each device has samples of its own, one after another. For the progress alone, which another process may show, tasks are
// counted, and no sample is kept.
void atos_queue::PeerLaunch::count_for_host(Run &run, uint32_t k, bool progress) {
  if (options.samples) {
    run.kernel.samples = options.samples + uint64_t(k) * options.max_samples;
  } else if (progress) {
    run.kernel.samples = run.kernel.counters;
    run.kernel.max_samples = 0;
    run.kernel.sample_interval = ~0u;
  }
}

// Lets the GPUs of all processes reach the memory that each process has created for its queue since the last time.
void atos_queue::PeerLaunch::share_memory() {
  atos_shared *const *ranges = given.processes->shared;
  atos_shared &own = *ranges[first];
  const auto numbers = together<uint64_t>([&](auto &result) { result[0] = own.created.size() - own.handed_out; });
  for (uint64_t left = *std::max_element(numbers.begin(), numbers.end()); left; --left) {
    atos_shared::Part mine{};
    Descriptors sent(1), received(count);
    if (own.handed_out < own.created.size()) {
      mine = own.created[own.handed_out];
      sent.files[0] = own.descriptor(own.handed_out++);
    }
    std::vector<atos_shared::Part> parts(count);
    group->gather_files(&mine, sizeof mine, parts.data(), sent.files[0], received.files.data(), monitor());
    all_do([&] {
      for (uint32_t k = 0; k < count; ++k)
        if (received.files[k] >= 0) ranges[k]->attach(parts[k], received.files[k]);
    });
  }
}

// Fills the table of queues, when the memory of all queues is there. No worker begins before that.
void atos_queue::PeerLaunch::provide() {
  // The rest of an interrupted level runs first, on all devices: devices that have nothing left wait.
  const bool barrier = options.barrier;
  struct Stand {
    uint64_t level, rounds;
    float lowest; // level of its items, by priority
    bool progress;
  };
  const auto stands = together<Stand>([&](auto &result) {
    for (uint32_t k = 0; k < here; ++k)
      result[k] = {storage(k).level, storage(k).counters.rounds, storage(k).lowest_level(), options.progress != 0};
  });
  const bool progress = std::any_of(stands.begin(), stands.end(), [](const Stand &its) { return its.progress; });
  const auto by_level = [](const Stand &a, const Stand &b) { return a.lowest < b.lowest; };
  const float lowest = std::min_element(stands.begin(), stands.end(), by_level)->lowest;
  const bool of_level = std::any_of(stands.begin(), stands.end(), [](const Stand &its) { return its.level != 0; });
  const uint64_t round = stands[0].rounds; // the first device counts the rounds
  table = std::make_shared<std::vector<Peer>>(together<Peer>([&](auto &result) {
    for (uint32_t k = 0; k < here; ++k) {
      Run &run = *runs[k];
      run.lowest_level = lowest;
      storage(k).gather();
      storage(k).provide(run);
      count_for_host(run, k, progress);
      const Counters &counters = storage(k).counters;
      run.first_end = barrier && of_level ? counters.head + storage(k).level : tickets_of(counters.tail);
      run.kernel.round_end = run.counters->round_end = run.first_end;
      run.kernel.round = round;
    }
    storage(0).backend.provide_peers(runs);
    for (uint32_t k = 0; k < here; ++k) {
      const Launch &at = runs[k]->kernel;
      const Peer its{at, at.record};
      result[k] = group ? moved(its, -memory_of(first)) : its;
    }
  }));
  for (uint32_t k = 0; group && k < count; ++k) (*table)[k] = moved((*table)[k], memory_of(k));
  for (uint32_t k = 0; k < here; ++k) {
    runs[k]->peer_table = table;
    Run &run = *runs[k];
    run.peers = {table->data(), count, first + k, given.key_bytes, given.chunk, ~uint64_t(0) / given.chunk};
    run.kernel.peer_own = run.peers.own;
    run.kernel.key_bytes = run.peers.key_bytes;
    run.kernel.peer_chunk = run.peers.chunk;
    run.kernel.peer_reciprocal = run.peers.reciprocal;
  }
}

// Runs the workers of the devices that are here, until the workers of all devices have left.
void atos_queue::PeerLaunch::run() {
  all_do([&] {
    try {
      monitor().watch(group);
      storage(0).backend.run_peers(runs, !group);
    } catch (...) {                         // so that other workers leave too
      if (group && !on_cpu) group->leave(); // the GPU of this process may reach nothing any more
      else
        for (uint32_t k = 0; group && k < count; ++k) set_bits(&(*table)[k].counters->stop, kStopElsewhere);
      throw;
    }
  });
  if (group) storage(0).backend.collect_peers(runs);
}

// Runs the workers of all devices, again after each stop from which the launch can go on; whether they have run everything.
bool atos_queue::run_peers(PeerLaunch &all) {
  Backend &backend = all.storage(0).backend;
  for (uint32_t k = 0; k < all.here; ++k) {
    Counters &counters = all.storage(k).counters;
    counters.ran = counters.pushed = counters.rounds = counters.mode = 0;
    std::fill(std::begin(counters.ran_by), std::end(counters.ran_by), 0);
    counters.sharing = {};
    counters.ran_so_far = counters.next_sample = counters.sampled = 0;
    all.storage(k).stale = true;
  }
  const bool barrier = all.options.barrier;
  const Runs &runs = all.runs;
  uint64_t &rounds = all.storage(0).counters.rounds;
  bool over = false, goes_on = true;
  if (all.group && !all.on_cpu) all.share_memory();
  backend.start_clock(runs[0]->launch);
  while (!over && goes_on) {
    all.provide();
    all.run();
    for (uint32_t k = 0; k < all.here; ++k) all.storage(k).note_run(), runs[k]->has_run = false;
    bool unfinished = false, interrupted = false;
    for (uint32_t k = 0; k < all.here; ++k) {
      const Counters &counters = all.storage(k).counters;
      unfinished |= counters.stop != (barrier ? kRun : kEnded);
      interrupted |= barrier && !ran_all_below(&counters, tickets_of(counters.round_end));
    }
    over = !all.anywhere(unfinished);
    bool stays = runs[0]->monitor.stopped();
    all.all_do([&] {
      for (uint32_t k = 0; k < all.here; ++k) stays |= !all.queues[k]->settle(*runs[k], over, &all.stats[all.first + k]);
    });
    if (over) break;
    goes_on = !all.anywhere(stays);
    if (goes_on && all.group && !all.on_cpu) all.share_memory();          // a queue may have grown
    if (goes_on && all.anywhere(interrupted) && all.first == 0) --rounds; // the round that was interrupted goes on
  }
  for (uint32_t k = 0; k < all.here; ++k) {
    atos_stats &its = all.stats[all.first + k];
    its.milliseconds = k ? all.stats[all.first].milliseconds : backend.stop_clock(runs[0]->launch);
  }
  return over;
}

// Fills in the statistics of all devices, and throws the most urgent failure of any device.
void atos_queue::PeerLaunch::end(bool over, const std::vector<uint64_t> &grown_before) {
  std::vector<Told<atos_stats>> all(here);
  for (uint32_t k = 0; k < here; ++k) {
    atos_stats &its = stats[first + k];
    its.grown = storage(k).grown - grown_before[k];
    all[k].status = told([&] { queues[k]->finish(*runs[k], over, &its); }, all[k].message);
    all[k].value = its;
  }
  if (group) all = gather(all[0]);
  const Told<atos_stats> *failed = nullptr;
  int most_urgent = 0;
  bool called = false;
  for (uint32_t k = 0; k < count; ++k) {
    stats[k] = all[k].value;
    called |= stats[k].stopped != 0;
    // As on one device: a failed check comes before a full queue, and a full queue before a stop.
    const atos_status status = all[k].status;
    const int urgency = status == ATOS_OK ? 0 : status == ATOS_TASK_FAILED ? 3 : status == ATOS_QUEUE_FULL ? 2 : 1;
    if (urgency > most_urgent) failed = &all[k], most_urgent = urgency;
  }
  agreed = true;
  if (failed && !(called && most_urgent == 1)) throw Failure(failed->status, failed->message); // a task's stop is no error
}

// After the workers of all devices have left: brings this queue in order; returns whether the launch may go on.
bool atos_queue::settle(Run &run, bool over, atos_stats *stats) {
  Counters &counters = storage.counters;
  if (over) {
    counters.stop = kRun;
    storage.finish_run();
    return false;
  }
  stats->failure = counters.failure;
  stats->stopped = (counters.stop & kStopCalled) != 0;
  {
    const ScopedTimer timer(run.copied);
    storage.recover_pending(run);
  }
  const bool ends = stats->failure.failed || storage.lost || stats->stopped;
  run.full = storage.over_limit() || (!ends && storage.over_capacity() && !storage.ensure_capacity(storage.num_pending()));
  return !ends && !run.full;
}
