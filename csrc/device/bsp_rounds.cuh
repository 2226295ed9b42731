// Bulk-synchronous rounds: workers run the items of one round, meet at a barrier of the grid, and go on with the items that
// were pushed in this round. In a discrete launch a kernel is one round, and the host is the barrier.
#pragma once
#include "device/host_report.cuh"

namespace atos {

// The lower half of `arrived` counts the blocks that have arrived at the barrier. The upper half counts marks. A worker adds a
// mark before it splits an item, since a block may take its arrival back to run chunks of that item. With a function between
// rounds a worker also adds a mark when a stop keeps it from claiming tickets. If the last block to arrive finds no mark, no
// item was split and no stop kept a worker from claiming. If that block finds marks, it sets the top bit (kComplete): from then
// on no block takes its arrival back.
constexpr uint64_t kMark = uint64_t(1) << 32, kComplete = uint64_t(1) << 63;

// [one thread of a block] Counts the block as arrived at a barrier of `blocks` blocks. Returns whether the block is the last
// one to arrive; then `marked` says whether there are marks. The fence orders what the block wrote before its arrival.
ATOS_DEVICE bool arrive(Counters *counters, uint64_t blocks, uint32_t *marked) {
  fence_device();
  uint64_t arrived = fetch_add(&counters->arrived, uint64_t(1)) + 1;
  if (uint32_t(arrived) != blocks || arrived >= kComplete) return false; // or the barrier before has yet to be reset
  *marked = arrived >= kMark;
  // If a block has taken its arrival back meanwhile, the last block to arrive will be that one or a later one.
  if (*marked) return compare_exchange(&counters->arrived, arrived, kComplete | blocks);
  fetch_add(&counters->arrived, 0 - blocks);
  return true;
}

// [one thread of a block] Takes the block's arrival back; false if the barrier opens, or has opened.
ATOS_DEVICE bool take_back_arrival(Counters *counters, uint64_t phase) {
  const bool opens = fetch_add(&counters->arrived, ~uint64_t(0)) >= kComplete;
  if (!opens) {
    fence_device(); // the barrier opens before `arrived` begins anew
    if (load(&counters->phase) == phase) return true;
  }
  fetch_add(&counters->arrived, uint64_t(1)); // nobody misses the arrival before this block comes to the next barrier
  return false;
}

// [one thread of a block] What a block does after `arrive`: the last block runs `last` and opens the barrier, the other blocks
// wait until the barrier opens. With `helps`, returns false as soon as an item is split whose chunks the block may run; the
// block has taken its arrival back then. In a launch over several GPUs each GPU has a barrier of its own: its last block, which
// `represents` the GPU, opens that barrier when all GPUs have met (peers.cuh).
template <class Last> ATOS_DEVICE bool open_or_wait(const Launch &launch, Counters *counters, uint64_t phase, bool represents,
                                                    bool is_last, uint32_t marked, bool helps, Last last) {
  const auto open = [&] {
    fence();
    store(&counters->phase, phase + 1);
    if (!marked) return;
    fence();                                                    // see take_back_arrival
    fetch_add(&counters->arrived, 0 - (kComplete | gridDim.x)); // others may have arrived at the next barrier
  };
  // Whether another GPU has failed, whose blocks will not arrive.
  const auto is_alone = [&] { return has_peers && load(&counters->stop) & kStopGone; };
  if (is_last) {
    last();
    if (has_peers) {
      fence();
      peers_of(launch).end_meeting(phase);
    }
    open();
  } else if (has_peers && represents) {
    while (!peers_of(launch).has_met(phase) && !is_alone()) {}
    open();
  } else {
    for (;;) {
      const uint64_t chunks = helps ? load(&counters->splits_open) : 0; // both loads are issued before a value is used
      if (load(&counters->phase) != phase) break;
      if (chunks && take_back_arrival(counters, phase)) return false;
      if (is_alone()) break;
    }
  }
  fence_device();
  return true;
}

// [all threads] A barrier of all blocks. Before anybody goes on, all threads of a block call `each_round`, with true in one
// thread of the last block to come, and this thread runs `last`. Free of deadlock because a launch with barriers has no more
// blocks than are resident at once. With `helps`, false if the block has to come again, since there was work left.
template <class EachRound, class Last> ATOS_DEVICE bool grid_barrier(const Launch &launch, Counters *counters, bool helps,
                                                                     uint32_t *marked, EachRound each_round, Last last) {
  __syncthreads();
  uint64_t phase = 0;
  bool represents = false, is_last = false, comes_again = false;
  if (threadIdx.x == 0) {
    phase = load(&counters->phase);
    represents = arrive(counters, gridDim.x, marked);
    is_last = has_peers && represents ? peers_of(launch).meet(phase) : represents;
    if (is_last) fence(); // `last` reads what other blocks have counted, and the function between rounds what they wrote
    if (!has_each_round) comes_again = !open_or_wait(launch, counters, phase, represents, is_last, *marked, helps, last);
  }
  if (has_each_round) {
    each_round(is_last);
    if (threadIdx.x == 0) comes_again = !open_or_wait(launch, counters, phase, represents, is_last, *marked, helps, last);
  }
  if (helps) return !__syncthreads_or(comes_again);
  __syncthreads();
  return true;
}

template <class Group, unsigned bytes> struct BspRounds : HostReport<Group, bytes> {
  using Below = HostReport<Group, bytes>;
  using Below::Below;
  using Below::header;
  using Below::launch;
  using Below::queue;
  using Below::worker;

  // [one lane] Claims this worker's share of a small round, for each of `lanes`; returns how many tickets, or 0 if there are
  // none left, or if the worker has claimed before. Does not look for a stop: at the barrier that the worker has just left,
  // there was none.
  ATOS_DEVICE uint64_t claim_share(uint64_t lanes) {
    const uint64_t share = header->share;
    if (share == kNoShare || share == kShareClaimed) return 0;
    header->share = kShareClaimed;
    return header->consumer.claim_part(this->claims_of_kernel(), this->first_of_kernel(), header->round_end, share * lanes);
  }

  // [one lane] Claims tickets of a large round, for each of `lanes`; returns how many.
  ATOS_DEVICE uint64_t claim_of_round(uint64_t lanes) {
    if (header->share == kShareClaimed) return header->consumer.claimed = 0;
    return header->consumer.claim_of_round(launch, this->claims_of_kernel(), this->first_of_kernel(), header->round_end, lanes);
  }

  // Whether workers have to report what they ran before a function between rounds is called.
  static ATOS_DEVICE bool reports_rounds() { return has_each_round && (has_buckets || has_peers); }

  // [one lane] Marks that a stop keeps the worker from claiming tickets of the round, so that some may be left.
  ATOS_DEVICE void mark_stop() const {
    if (has_each_round) fetch_add(&queue().counters->arrived, kMark);
  }

  // [one thread of the last block] At the end of a round: whether all items of the round ran. A round opens with all of its
  // slots filled, so a worker that has claimed tickets runs their items before it arrives.
  ATOS_DEVICE bool ran_round(uint64_t end) const {
    if (has_peers) return peers_of(launch).close_round(has_buckets);
    if (has_buckets) return ran_all_below(queue().counters, end);
    return !header->marked || this->first_of_kernel() + load(this->claims_of_kernel()) >= end;
  }

  // [all threads of a block] Runs the function between rounds, by the first worker of the block in which `is_last` is true for
  // a thread: the last block to have reached the end of the round. Not if a stop interrupted the round, since the rest of the
  // round is a round of a later run. `calls`: which threads of the worker call the function.
  ATOS_DEVICE void run_each_round(bool is_last, bool calls) {
    Counters *counters = queue().counters;
    const uint64_t end = header->round_end;
    if (!__syncthreads_or(is_last && ran_round(end))) return;
    if (Group::index_in_block() == 0) {
      if (Group::rank() == 0) {
        // Claims ran past the end of the round; pushes would take them for space.
        if (launch.persistent && !has_peers) store(&counters->head, end);
        header->producer.demand = kUnseen;
        if (has_buckets) worker.far_state()->window = worker.far_items().window();
      }
      if (asks_for_pending) {
        worker.pending = int64_t(has_peers ? peers_of(launch).waiting() : tickets_of(load(&counters->tail)) - end);
        Group::sync(); // all threads have read the tail, which pushes of the function beyond the buffer move at once
      }
      if (calls) atos_task_each_round(&worker, &this->args);
      Group::sync();
      if (this->has_pushes()) {
        if (Group::rank() == 0 && header->pushes && this->above_high_water()) this->reserve_when_space();
        Group::sync();
        this->template flush_pushes<Group>(false, false, nullptr);
      }
    }
    __syncthreads();
  }

  // [one lane] After the barrier at the end of a round: kRound if another round has opened, kIdle if nothing is left to run, or
  // kLeave.
  ATOS_DEVICE Action look_at_round(uint64_t end) {
    const Counters *counters = queue().counters;
    const uint64_t next = load(&counters->round_end);
    if (asks_for_round) header->mode = int64_t(load(&counters->mode));
    if (next & kLastRound || (has_peers && load(&counters->stop) & kStopGone)) return Action::kLeave;
    if (!has_peers && next == end && !(has_buckets && load(&counters->far.opened))) return Action::kIdle;
    this->set_round(end, next);
    header->idle_called = 0;
    return Action::kRound;
  }

  // [all threads] When nothing is left of a round: kLeave, kIdle, or kRound after the next round has opened. `calls`: whether
  // this thread would call the function between rounds. `helps`: whether the worker runs chunks of split items; kRound may then
  // also mean that there are such chunks in this round.
  ATOS_DEVICE Action next_round(bool calls, bool helps) {
    Counters *counters = queue().counters;
    const bool idle_called = has_idle && header->idle_called; // what has ended is no round, but a call of idle
    bool idle = has_idle && !idle_called;
    const auto each_round = [&](bool is_last) {
      if (!idle_called) run_each_round(is_last, calls);
    };
    if (reports_rounds() && Group::rank() == 0) header->end.report(queue());
    if (has_peers && Group::rank() == 0) peers_of(launch).spread_stop(queue());
    if (launch.persistent) {
      const uint64_t end = header->round_end;
      // The last block decides for all blocks. If each block looked at `stop` itself, a slow block could see a stop that a fast
      // block has set in the next round already, and would leave the fast block waiting.
      const bool is_over = grid_barrier(launch, counters, helps, &header->marked, each_round, [&] {
        this->stop_by_clock(); // small rounds look for no stop elsewhere
        if (has_peers) {
          if (!has_each_round) peers_of(launch).close_round(has_buckets);
          peers_of(launch).open_round([&] { return has_buckets && this->open_next_bucket_of_peers(); });
          fetch_add(&peers_of(launch).meeting()->rounds, uint64_t(1));
          return;
        }
        lower_to(&counters->head, end); // claims ran past the end of the round, unless a stop interrupted it
        const uint64_t tail = tickets_of(load(&counters->tail));
        const bool stopped = queue().stopped();
        if (has_buckets) store(&counters->far.opened, stopped || tail != end ? 0 : this->open_next_bucket());
        store(&counters->round_end, stopped ? end | kLastRound : tail);
        if (!idle_called) fetch_add(&counters->rounds, uint64_t(1));
      });
      if (!is_over) return Action::kRound;
      // One thread reads for all of the worker: if thousands of threads read one word, each waits for the others.
      if (Group::rank() == 0) header->action = look_at_round(end);
      Group::sync();
      const Action action = header->action;
      if (action == Action::kRound && asks_for_round) {
        ++worker.round;
        worker.mode = header->mode;
      }
      if (action != Action::kIdle) return action;
    } else {
      if (has_each_round && !launch.idle_round) {
        __syncthreads();
        const bool is_last = threadIdx.x == 0 && arrive(counters, gridDim.x, &header->marked);
        if (is_last) {
          store(&counters->arrived, 0); // for the next kernel
          fence();
        }
        each_round(is_last);
      }
      idle = idle && launch.idle_round;
    }
    if (!idle) return Action::kLeave;
    Group::sync(); // all threads have read the header
    if (Group::rank() == 0) {
      header->idle_called = 1;
      header->step = Action::kIdle;
    }
    Group::sync();
    return Action::kIdle;
  }
};

} // namespace atos
