// A launch over several devices: their queues are locked, provided and collected together; each recovers what it has by itself.
#include <algorithm>
#include <functional>

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
  if (!launch.persistent || launch.idle || launch.each_round || launch.buckets || launch.kinds || launch.mailbox ||
      launch.num_receivers || launch.samples || launch.progress)
    throw Failure(ATOS_INVALID, "a launch over several devices is persistent, with one task and nothing else");
}

} // namespace

void atos_queue::launch_peers(const atos_peers &given, const atos_launch &options, atos_stats *stats) {
  std::fill_n(stats, given.count, atos_stats{});
  check(given, options);
  const std::vector<atos_queue *> queues(given.queues, given.queues + given.count);
  Runs runs;
  if (given.program->device != ATOS_CPU) throw Failure(ATOS_INVALID, "a launch over several devices has a program for the CPU");
  for (uint32_t k = 0; k < given.count; ++k) {
    const QueueStorage &its = queues[k]->storage;
    if (queues[k]->device != ATOS_CPU || its.item_bytes != queues[0]->storage.item_bytes)
      throw Failure(ATOS_INVALID, "the queues of a launch over several devices are on CPU devices, for items of one size");
    if (given.key_bytes > its.item_bytes)
      throw Failure(ATOS_INVALID, format("a key of %u bytes in items of %u", given.key_bytes, its.item_bytes));
    runs.push_back(queues[k]->prepare(*given.program, options, &stats[k]));
  }
  const auto locks = enter_in_order(queues, &runs[0]->monitor);
  if (locks.size() != queues.size()) throw Failure(ATOS_INVALID, "a queue is given twice for one launch");
  std::vector<uint64_t> grown_before;
  for (uint32_t k = 0; k < given.count; ++k) {
    grown_before.push_back(queues[k]->storage.grown);
    stats[k].pending = queues[k]->storage.num_pending();
  }
  for (atos_queue *queue : queues) queue->make_room();
  share_workers(queues, runs, stats);
  bool over;
  try {
    over = run_peers(given, queues, runs, stats);
  } catch (const Failure &failure) {
    if (failure.status == ATOS_STUCK)
      for (uint32_t k = 0; k < given.count; ++k) queues[k]->abandoned = runs[k];
    throw;
  }
  std::exception_ptr failed;
  int most_urgent = 0;
  for (uint32_t k = 0; k < given.count; ++k) {
    stats[k].grown = queues[k]->storage.grown - grown_before[k];
    try {
      queues[k]->finish(*runs[k], over, &stats[k]);
    } catch (const Failure &failure) {
      // As on one device: a failed check comes before a full queue, and that before a stop.
      const int urgency = failure.status == ATOS_TASK_FAILED ? 3 : failure.status == ATOS_QUEUE_FULL ? 2 : 1;
      if (urgency > most_urgent) failed = std::current_exception(), most_urgent = urgency;
    }
  }
  const bool called = std::any_of(stats, stats + given.count, [](const atos_stats &its) { return its.stopped; });
  if (failed && !(called && most_urgent == 1)) std::rethrow_exception(failed); // a task's own stop is no error
}

// The blocks of each device, which CPU devices share, and the numbers of its workers among all.
void atos_queue::share_workers(const std::vector<atos_queue *> &queues, const Runs &runs, atos_stats *stats) {
  const uint32_t n = uint32_t(queues.size());
  uint32_t all = 0;
  for (uint32_t k = 0; k < n; ++k) {
    atos_launch &launch = runs[k]->launch;
    const uint32_t resident = queues[k]->storage.backend.resident_blocks(*runs[k]->program, launch, runs[k]->item_bytes);
    if (launch.blocks == 0) launch.blocks = std::max(resident / n + (k < resident % n), 1u);
    queues[k]->size_grid(*runs[k], &stats[k]);
    runs[k]->first_worker = all;
    all += runs[k]->kernel.workers;
  }
  for (const auto &run : runs) run->all_workers = all;
  atos_launch together = runs[0]->launch;
  together.blocks = all;
  queues[0]->storage.backend.resident_blocks(*runs[0]->program, together, runs[0]->item_bytes); // throws if these are too many
}

// Runs the workers of all devices, again after each stop from which the launch can go on; whether they have run everything.
bool atos_queue::run_peers(const atos_peers &given, const std::vector<atos_queue *> &queues, const Runs &runs,
                           atos_stats *stats) {
  Backend &backend = queues[0]->storage.backend;
  const uint32_t n = uint32_t(queues.size());
  for (uint32_t k = 0; k < n; ++k) {
    Counters &counters = queues[k]->storage.counters;
    counters.ran = counters.pushed = counters.rounds = 0;
    queues[k]->storage.stale = true;
  }
  const bool barrier = runs[0]->launch.barrier;
  uint64_t &rounds = queues[0]->storage.counters.rounds;
  bool over = false, goes_on = true;
  backend.start_clock(runs[0]->launch);
  while (!over && goes_on) {
    const auto table = std::make_shared<std::vector<Peer>>();
    for (uint32_t k = 0; k < n; ++k) {
      queues[k]->storage.provide(*runs[k]);
      const Launch &at = runs[k]->kernel;
      table->push_back({static_cast<Counters *>(at.counters), at.slots, at.more, at.spill, at.size, at.reciprocal,
                        at.spill_size, at.growths});
    }
    // The rest of an interrupted level runs first, on all devices: those that have nothing left wait.
    const bool of_level = std::any_of(queues.begin(), queues.end(), [](atos_queue *queue) { return queue->storage.level; });
    for (uint32_t k = 0; k < n; ++k) {
      const QueueStorage &its = queues[k]->storage;
      runs[k]->first_end = barrier && of_level ? its.counters.head + its.level : its.counters.tail;
      runs[k]->kernel.round = rounds;
      runs[k]->peer_table = table;
      runs[k]->peers = {table->data(), n, k, given.key_bytes, given.chunk, ~uint64_t(0) / given.chunk};
    }
    backend.run_peers(runs);
    over = true;
    bool interrupted = false;
    for (const atos_queue *queue : queues) {
      const Counters &counters = queue->storage.counters;
      over &= counters.stop == (barrier ? kRun : kEnded);
      interrupted |= barrier && !ran_all_below(&counters, counters.head);
    }
    for (uint32_t k = 0; k < n; ++k) goes_on &= queues[k]->settle(*runs[k], over, &stats[k]);
    goes_on &= !runs[0]->monitor.stopped();
    if (!over && goes_on && interrupted) --rounds; // the round that was interrupted goes on
  }
  for (uint32_t k = 0; k < n; ++k) stats[k].milliseconds = k ? stats[0].milliseconds : backend.stop_clock(runs[0]->launch);
  return over;
}

// After the workers of all devices have left: brings this queue in order; whether the launch may go on.
bool atos_queue::settle(Run &run, bool over, atos_stats *stats) {
  Counters &counters = storage.counters;
  storage.level = 0;
  if (over) {
    counters.stop = kRun;
    counters.head = counters.finished = counters.tail;
    counters.untracked = 0;
    if (growths_of(counters.tail) || counters.growths_requested) storage.collapse_rings();
    return false;
  }
  stats->failure = counters.failure;
  stats->stopped = (counters.stop & kStopCalled) != 0;
  {
    const ScopedTimer timer(run.copied);
    storage.recover_pending(run.launch.barrier);
  }
  return !(stats->failure.failed || storage.lost || storage.over_capacity() || stats->stopped);
}
