// One launch of a queue: workers run until no task is left, or until they are stopped and the items that they left are
// recovered.
#include "host/queue.h"
#include "protocol/inbox.cuh"

#include <algorithm>
#include <iterator>
#include <utility>

using namespace atos;

namespace {

// Lets the inbox of a launch accept no more items, however the launch ends.
struct InboxEnd {
  atos_inbox *inbox;
  ~InboxEnd() {
    if (inbox) inbox->end();
  }
};

// Sets the state of the inbox in the counters. An open inbox counts as an unfinished task.
void set_inbox(Counters &counters, uint64_t inbox_state) {
  counters.inbox = inbox_state;
  counters.untracked = !(inbox_state & kInboxHeld);
}

} // namespace

void atos_queue::launch(atos_program &program, const atos_launch &given, atos_stats *stats) {
  *stats = atos_stats{};
  const StopMonitor::InLaunch here;
  const InboxEnd at_last{given.inbox};
  const std::shared_ptr<Run> run = prepare(program, given, stats);
  const auto locks = enter_all(run);
  const uint64_t grown_before = storage.grown;
  stats->pending = storage.num_pending();
  make_room();
  check_receivers(*run, stats);
  size_grid(*run, stats);
  bool over;
  try {
    over = run_workers(*run, stats);
  } catch (...) {
    leave(run);
    throw;
  }
  drain_inbox(*run);
  stats->grown = storage.grown - grown_before;
  finish(*run, over, stats);
}

// After a launch that failed: the next use of the queue recovers the items left by the workers, when these have ended.
void atos_queue::leave(const std::shared_ptr<Run> &run) {
  if (run->left_behind || run->has_run) storage.note_run();
  if (storage.disordered) abandoned = run;
  abandon_receivers(run);
  if (!in_use()) drain_inbox(*run); // the caller may drop the inbox now
}

// Throws if there are more pending items than the capacity, and the queue may not grow.
void atos_queue::make_room() {
  if (storage.over_capacity() && !storage.ensure_capacity(storage.num_pending()))
    throw Failure(ATOS_QUEUE_FULL,
                  format("the queue still holds %llu tasks more than its capacity of %llu: resize it first",
                         (unsigned long long)(storage.num_pending() - storage.size), (unsigned long long)storage.size));
}

// The run, as far as the caller's options determine it.
std::unique_ptr<Run> atos_queue::prepare(atos_program &program, const atos_launch &given, atos_stats *stats) {
  stats->overhead_bytes = storage.overhead_bytes() + (given.samples ? given.max_samples * sizeof(atos_sample) : 0);
  if (given.fetch == 0) throw Failure(ATOS_INVALID, "fetch must be at least 1 (got 0)");
  if ((given.buckets != 0) != storage.has_buckets())
    throw Failure(ATOS_INVALID, "the program was made for a queue with buckets, or this queue has some and the program none");
  if (given.push_buffer > kMostPushBuffer + 1)
    throw Failure(ATOS_INVALID, format("a push buffer of %u items, more than %u", given.push_buffer - 1, kMostPushBuffer));
  if (given.streams > ATOS_MAX_STREAMS)
    throw Failure(ATOS_INVALID, format("%u streams, more than %d", given.streams, ATOS_MAX_STREAMS));
  if (given.argument_words > ATOS_MAX_ARGUMENT_WORDS)
    throw Failure(ATOS_INVALID, format("%u argument words, more than %d", given.argument_words, ATOS_MAX_ARGUMENT_WORDS));
  for (uint32_t k = 0; k < given.num_pools; ++k)
    if (k >= ATOS_MAX_POOLS || given.pool_words[k] >= given.argument_words)
      throw Failure(ATOS_INVALID, format("pool %u of a launch has no word among its arguments", k));
  for (uint32_t k = 0; k < given.num_device_words; ++k)
    if (k >= ATOS_MAX_DEVICE_WORDS || given.device_words[k].word >= given.argument_words)
      throw Failure(ATOS_INVALID, format("word %u of a launch that differs by device is none of its arguments", k));
  if (given.newest && (given.buckets || given.barrier || !given.persistent))
    throw Failure(ATOS_INVALID, "newest first is for persistent launches without barriers of a queue without buckets");
  if (given.each_round && !given.barrier)
    throw Failure(ATOS_INVALID, "a launch without barriers has no rounds to call between");
  auto run = std::make_unique<Run>(given, &program, storage.item_bytes, &storage.counters);
  Launch &kernel = run->kernel;
  kernel.fetch = given.fetch;
  kernel.buffer = buffer_items(given, storage.item_bytes);
  if (given.newest) (device == ATOS_CPU ? kernel.buffer : kernel.stack_room) = stack_items(given, storage.item_bytes);
  kernel.local_items = local_items(given, device == ATOS_CPU);
  kernel.shares = !given.unshared;
  kernel.scratch = scratch_bytes(given);
  kernel.unsized_scratch = given.scratch;
  const SharedLayout at =
      shared_layout(given.worker == ATOS_THREAD, given.nested, storage.item_bytes, given.value_words, given.fetch,
                    kernel.buffer, kernel.scratch, given.buckets, given.newest, given.kinds != 0, 0);
  kernel.far_at = at.far;
  kernel.peers_at = at.peers;
  kernel.persistent = given.persistent;
  kernel.barrier = given.barrier;
  kernel.samples = given.samples;
  kernel.max_samples = given.max_samples;
  kernel.sample_interval = given.sample_interval;
  if (const atos_inbox *inbox = given.inbox) {
    if (storage.has_buckets()) throw Failure(ATOS_INVALID, "a queue with buckets takes no items from an inbox");
    if (inbox->device != device || inbox->item_bytes != storage.item_bytes || !given.persistent || given.barrier)
      throw Failure(ATOS_INVALID, "an inbox is for a relaxed, persistent launch of a queue with its device and size of items");
    storage.reserve_for_inbox(kInboxItems * storage.item_bytes);
    storage.backend.order(given.stream, inbox->memory.stream);
    run->launch.stream = inbox->memory.stream;
    kernel.inbox = inbox->memory.ring;
  }
  return run;
}

// Resolves the number of blocks, and checks that the blocks of a persistent launch are resident at once.
void atos_queue::size_grid(Run &run, atos_stats *stats) {
  atos_launch &launch = run.launch;
  const uint32_t resident = storage.backend.resident_blocks(run) / run.sharing;
  if (launch.blocks == 0) launch.blocks = resident;
  if (launch.persistent && launch.blocks > resident)
    throw Failure(ATOS_TOO_MANY, format("%u blocks of %u threads asked for, but only %u are resident at once", launch.blocks,
                                        launch.threads, resident));
  run.blocks = launch.blocks;
  run.kernel.workers = launch.blocks * storage.backend.workers_per_block(launch);
  stats->blocks = launch.blocks;
  stats->threads = launch.threads;
  stats->workers = run.kernel.workers;
}

// Runs the workers, again after each stop from which the launch can go on; whether they have run everything.
bool atos_queue::run_workers(Run &run, atos_stats *stats) {
  Counters &counters = storage.counters;
  Backend &backend = storage.backend;
  const atos_launch &launch = run.launch;
  storage.provide(run);
  run.stale = storage.stale;
  if (launch.progress && !launch.samples) { // tasks are counted as for a trace, of which nothing is kept
    run.kernel.samples = run.kernel.counters;
    run.kernel.max_samples = 0;
    run.kernel.sample_interval = ~0u;
  }
  if (run.kernel.samples) { // counts begin anew
    counters.ran_so_far = counters.next_sample = counters.sampled = 0;
    run.stale = true;
  }
  counters.ran = counters.pushed = counters.rounds = counters.mode = 0;
  std::fill(std::begin(counters.ran_by), std::end(counters.ran_by), 0);
  counters.sharing = {};
  uint64_t inbox_state = 0;
  if (launch.inbox) {
    run.stale = true;
    launch.inbox->begin();
  }
  storage.stale = true; // until the device's counters are known
  bool over = false;
  backend.start_clock(launch);
  for (;; storage.provide(run)) {
    if (launch.inbox) set_inbox(counters, inbox_state); // each time: a queue that has moved has new counters
    run.first_end = launch.barrier && storage.level ? counters.head + storage.level : tickets_of(counters.tail);
    counters.round_end = run.first_end;
    run.kernel.round = counters.rounds;
    provide_receivers(run);
    for (uint32_t k = 0; k < launch.num_pools; ++k)
      run.arguments[launch.pool_words[k]] = reinterpret_cast<uint64_t>(&run.kernel.counters->stop);
    if (launch.persistent) backend.run_persistent(run);
    else backend.run_discrete(run);
    storage.note_run(); // only now: workers that could not start leave the queue as it was
    run.has_run = false;
    const bool room = collect_receivers(run);
    if (counters.stop == kRun) { // every item was taken; claims that ran ahead of the tail are void
      storage.stale = run.stale;
      storage.finish_run();
      over = true;
      break;
    }
    // A push found its slot occupied, or a task or the host asked for a stop. If the pending items fit, perhaps after growing,
    // go on.
    stats->failure = counters.failure;
    stats->stopped = (counters.stop & kStopCalled) != 0;
    const bool interrupted = launch.barrier && !ran_all_below(&counters, tickets_of(counters.round_end));
    inbox_state = counters.inbox;
    {
      const ScopedTimer timer(run.copied);
      storage.recover_pending(run);
    }
    run.stale = true;
    const bool ends = !room || stats->failure.failed || storage.lost || stats->stopped || run.monitor.stopped();
    run.full = storage.over_limit() || (!ends && storage.over_capacity() && !storage.ensure_capacity(storage.num_pending()));
    if (ends || run.full) break;
    if (interrupted) --counters.rounds; // the round that was interrupted goes on
  }
  stats->milliseconds = backend.stop_clock(launch);
  stats->copy_milliseconds = run.copied;
  return over;
}

// Moves the items that no worker has taken from the inbox into the queue, behind its pending items.
void atos_queue::drain_inbox(Run &run) {
  atos_inbox *const inbox = std::exchange(run.launch.inbox, nullptr);
  if (!inbox) return;
  inbox->end();
  storage.counters.untracked = 0;
  inbox->take_rest(&storage.overflow);
  if (storage.overflow.empty() || storage.disordered) return;
  try {
    storage.ensure_capacity(storage.num_pending());
  } catch (const std::bad_alloc &) { // the next launch tries again
  }
}

// Fills in the statistics, and throws the failure that the launch ended with, if it was stopped.
void atos_queue::finish(const Run &run, bool over, atos_stats *stats) {
  const Counters &counters = storage.counters;
  total_ran += stats->tasks_run = counters.ran;
  total_pushed += stats->tasks_pushed = counters.pushed;
  std::copy(std::begin(counters.ran_by), std::end(counters.ran_by), stats->tasks_run_by);
  stats->sharing = counters.sharing;
  stats->rounds = counters.rounds;
  stats->samples = std::min<uint64_t>(counters.sampled, run.launch.max_samples);
  stats->overhead_bytes += storage.stack_bytes;
  stats->pending = storage.num_pending();
  stats->lost = storage.lost;
  storage.lost = 0;
  if (stats->failure.failed) throw Failure(ATOS_TASK_FAILED, "a check inside the task failed");
  report_full_receiver(run, stats);
  if (stats->lost || run.full || storage.over_limit())
    throw Failure(ATOS_QUEUE_FULL,
                  format("the tasks pushed so far leave %llu unfinished, more than the queue's capacity of %llu%s",
                         (unsigned long long)(stats->pending + stats->lost), (unsigned long long)storage.size,
                         storage.size < storage.max_size ? ", and there is no memory for a larger one" : ""));
  if (stats->stopped) return;                       // a task's own stop is no error, also where the host asked as well
  if (!over && (stats->pending || run.launch.idle)) // without idle, a stop that finds nothing left is an end as any other
    throw Failure(ATOS_STOPPED,
                  format("the launch was stopped with %llu tasks unfinished", (unsigned long long)stats->pending));
}
