// Warp and CTA workers: a group of threads that takes a batch of items at a time. The group goes from step to step: its first
// warp determines the next step, all threads run it. `next_action` is the only place that knows the schedules.
#pragma once
#include "device/inbox.cuh"
#include "device/work_sharing.cuh"

namespace atos {

template <class Group, unsigned bytes> struct GroupWorker : WorkSharing<Group, bytes> {
  using Below = WorkSharing<Group, bytes>;
  using Below::args;
  using Below::header;
  using Below::items;
  using Below::launch;
  using Below::queue;
  using Below::worker;

  static constexpr unsigned kPolls = 4; // slots that a lane polls at once

  static ATOS_DEVICE SharedLayout layout(const Launch &launch) {
    return shared_layout(false, nested, bytes, value_words, launch.fetch, launch.buffer, launch.scratch, has_buckets, has_stack,
                         num_kinds != 0, has_peers ? launch.peer_count : 0);
  }

  // [all threads]
  ATOS_DEVICE GroupWorker(const Launch &launch, const Arguments &args, unsigned char *shared)
      : Below(launch, args, shared + Group::index_in_block() * layout(launch).bytes, layout(launch)) {}

  // [first warp] Takes the items of the claimed tickets, in order, up to the first slot that is not filled; returns how many.
  ATOS_DEVICE unsigned take_ready() {
    Consumer &consumer = header->consumer;
    const Ring ring = consumer.ring;
    const uint64_t first = consumer.first;
    const unsigned claimed = unsigned(consumer.claimed);
    unsigned got = 0;
    for (bool more = true; more && got < claimed;) {
      typename Slot<bytes>::Seen seen[kPolls];
      unsigned ready[kPolls];
#pragma unroll
      for (unsigned u = 0; u < kPolls; ++u) {
        const unsigned k = got + u * kWarpSize + lane_id();
        bool filled = false;
        if (k < claimed) {
          const Place place = ring.at(first + k);
          filled = ring.template slot<bytes>(place.index).is_ready(place.sequence, seen[u]);
        }
        ready[u] = __ballot_sync(kAll, filled);
      }
#pragma unroll
      for (unsigned u = 0; u < kPolls; ++u) {
        if (!more) continue;
        const unsigned prefix = ready[u] == kAll ? kWarpSize : __ffs(~ready[u]) - 1;
        if (Slot<bytes>::packed && lane_id() < prefix) items[got + lane_id()] = ring.template slot<bytes>(0).get(seen[u]);
        got += prefix;
        more = prefix == kWarpSize;
      }
    }
    if (got == 0) return 0;
    this->fence_of_items();
    if (!Slot<bytes>::packed) {
#pragma unroll 1
      for (unsigned k = lane_id(); k < got; k += kWarpSize)
        items[k] = ring.template slot<bytes>(ring.at(first + k).index).get({});
      fence(); // also before the next item of the slot, which another GPU may store in this round
    }
#pragma unroll 1
    for (unsigned k = lane_id(); k < got; k += kWarpSize) {
      const Place place = ring.at(first + k);
      ring.template slot<bytes>(place.index).release(place.sequence);
    }
    if (lane_id() == 0) {
      consumer.first = first + got;
      consumer.claimed = claimed - got;
    }
    return got;
  }

  // [first warp] Claims tickets, if the worker has none: kWait for their items, or kChunk, kFar or kLeave.
  ATOS_DEVICE Action claim() {
    Action action = Action::kWait;
    if (lane_id() == 0 && header->consumer.claimed == 0 && !this->claim_share(1)) {
      const Counters *counters = queue().counters;
      const bool relaxed = this->relaxed();
      // All loads are issued before the first value is used: together they take as long as one.
      const uint64_t open = nested ? load(&counters->splits_open) : 0, asked = load(&counters->stop);
      const uint64_t head = relaxed ? load(&counters->head) : 0, tail = relaxed ? load(&counters->tail) : 0;
      const uint64_t stop = asked | this->stop_by_clock();
      if (open && this->claim_chunk_of_other()) {
        action = Action::kChunk; // split items are older than waiting items
      } else if (stop != kRun) {
        if (!relaxed) this->mark_stop();
        action = Action::kLeave;
      } else if (!relaxed && this->claim_far_chunk()) {
        action = Action::kFar;
      } else if (relaxed) {
        header->consumer.claim(queue(), fair_batch_size(launch, head, tickets_of(tail)));
      } else if (this->claim_of_round(1) == 0) {
        action = Action::kLeave;
      }
    }
    return action.of_first_lane();
  }

  // [first warp] Takes items: kItems, or what to do without items.
  ATOS_DEVICE Action fetch() {
    restart_point(header->step);
    Action action = claim();
    __syncwarp(); // the first lane wrote into the header
    if (has_buckets && action == Action::kFar) return take_far_chunk(0);
    if (action != Action::kWait) return action;
    restart_point(header->step);
    for (unsigned polls = 0;; ++polls) {
      if (const unsigned got = take_ready()) return Action::items(got);
      if (polls % kPollsBeforeEndTest != kPollsBeforeEndTest - 1) continue;
      if (has_inbox) take_from_inbox(queue(), launch.inbox);
      if (lane_id() == 0) {
        action = this->claim_chunk_of_other() ? Action(Action::kChunk)
                 : this->find_far_chunk()     ? Action(Action::kFar)
                 : this->relaxed()            ? this->while_waiting()
                                              : this->while_round_fills();
        if (header->consumer.is_past_ring(header->consumer.first)) header->consumer.next_ring(queue());
      }
      action = action.of_first_lane();
      if (has_buckets && action == Action::kFar) return take_far_chunk(0);
      if (action != Action::kWait) return action;
      __nanosleep(kPollNanoseconds);
      restart_point(header->step);
    }
  }

  // [first warp] Makes the items of the claimed chunk the next batch of the worker, behind the items that it has kept. A chunk
  // that is to be pushed `again` becomes kFar instead.
  ATOS_DEVICE Action take_far_chunk(uint32_t kept) {
    __syncwarp(); // the first lane wrote the chunk
    FarState &state = *worker.far_state();
    const FarChunk chunk = state.chunk;
    const FarItems<bytes> far = worker.far_items();
    uint32_t got = kept;
    const bool pushes_again = chunk.again;
    const uint32_t there = uint32_t(chunk.to - chunk.from);
    FarItem<bytes> *const entries = pushes_again ? nullptr : far.entries(chunk);
#pragma unroll 1
    for (uint32_t from = 0; from < there && entries; from += kWarpSize) {
      Item<bytes> item;
      float level;
      const bool taken = from + lane_id() < there && far.take(&entries[from + lane_id()], &item, &level);
      const unsigned lanes = __ballot_sync(kAll, taken);
      if (taken) items[got + __popc(lanes & ((1u << lane_id()) - 1))] = item;
      got += __popc(lanes);
    }
    fence(); // what was written before the items were pushed
    __syncwarp();
    if (lane_id() == 0) {
      state.taken = got - kept;
      if (pushes_again) header->local_items = state.kept = kept; // the chunk's items will follow
    }
    return pushes_again ? Action(Action::kFar) : got ? Action::items(got) : Action(Action::kLeave);
  }

  // [first warp] The next batch of a worker that has kept few items or none: kItems or kFar, or kWait if there are no far
  // items.
  ATOS_DEVICE Action fill_up(uint32_t local_items) {
    bool found = false;
    // Before the first step (kLeave) the items of the ring come first: the host has pushed them, from the lowest bucket.
    if (lane_id() == 0 && header->step != Action::kLeave && local_items <= launch.fetch / kThinPart &&
        !this->has_filled_ticket() && (worker.far_state()->open || local_items == 0))
      found = this->find_far_chunk();
    return __shfl_sync(kAll, found, 0) ? take_far_chunk(local_items) : Action(Action::kWait);
  }

  // [first warp] The next batch of a queue that takes the newest items first: of the stack, or if that is empty what `fetch`
  // finds. Tickets that the worker claims in between are below the tail, so that their items are there or come soon; until then
  // it goes on with the stack.
  ATOS_DEVICE Action next_of_stack() {
    __syncwarp();
    Consumer &consumer = header->consumer;
    Turn turn = Turn::kNewest;
    StackState &stack = worker.stack();
    const uint32_t stacked = stack.count();
    if (lane_id() == 0) {
      stack.popped = 0;
      if (!stacked) header->steps = 0;
      else turn = this->next_turn();
      if (turn == Turn::kWaiting && !consumer.claimed) {
        const Counters *counters = queue().counters;
        consumer.claim_below_tail(queue(), fair_batch_size(launch, load(&counters->head), tickets_of(load(&counters->tail))));
      }
    }
    turn = Turn(__shfl_sync(kAll, uint32_t(turn), 0));
    __syncwarp();
    if (!stacked) return fetch();
    if (consumer.claimed) {
      if (const unsigned got = take_ready()) return Action::items(got);
      if (lane_id() == 0) {
        this->look_for_ring();
        if (consumer.is_past_ring(consumer.first)) consumer.next_ring(queue());
      }
    }
    const uint32_t got = min(stacked, launch.fetch);
    this->pop(got, turn == Turn::kOldest, lane_id(), kWarpSize, [&](uint32_t k, const Item<bytes> &item) { items[k] = item; });
    return Action::items(got);
  }

  // [first warp] After each step: flushes the pushes, accounts for the step, and returns what comes next. Many pushes are
  // flushed by all threads, after which `next_action` is called again.
  ATOS_DEVICE Action next_action() {
    __syncwarp();
    if (has_stack) {
      if (this->waits_for_space(header->step == Action::kItems && !header->any_long)) return Action::kWaitForSpace;
      this->settle_pushes();
    } else if (this->has_pushes()) {
      if (this->above_high_water()) return Action::kWaitForSpace;
      if (this->has_many_pushes() && Group::has_more_warps()) return Action::kFlush;
      flush_pushes<Warp>();
    }
    restart_point();
    __syncwarp();
    if (has_inbox && header->step == Action::kItems) take_from_inbox_at_times(queue(), launch.inbox);
    const uint32_t local_items = header->local_items;
    const bool takes_ticket = has_buckets && this->gives_way();
    bool goes_on = false, drained = false;
    __syncwarp(); // all lanes have read `local_items`
    if (lane_id() == 0) {
      // The worker has run its share of a small round.
      drained = header->share == kShareClaimed && header->step == Action::kItems && header->consumer.claimed == 0;
      goes_on = account_step();
      header->local_items = 0;
      if (has_buckets) worker.far_state()->kept = 0;
    }
    Action action = Action::items(local_items);
    if (nested && __shfl_sync(kAll, goes_on, 0)) {
      action = Action::kChunk;
    } else if (has_stack) {
      action = next_of_stack();
    } else {
      const Action filled = has_buckets && this->relaxed() && !takes_ticket ? fill_up(local_items) : Action(Action::kWait);
      if (filled != Action::kWait) action = filled;
      else if (local_items == 0) {
        if (lane_id() == 0) header->steps = 0;
        action = __shfl_sync(kAll, drained, 0) ? Action(Action::kLeave) : fetch();
      }
    }
    const bool is_work = action == Action::kItems || action == Action::kChunk || (has_buckets && action == Action::kFar);
    if (!is_work && !this->relaxed()) action = Action::kRound;
    if (lane_id() == 0) {
      header->step = action;
      header->any_long = 0;
      // A chunk belongs to the batch before.
      if (action == Action::kItems) header->first_counted = has_stack ? worker.stack().popped : local_items;
    }
    __syncwarp();
    if (nested && action == Action::kItems && action.count() <= kFew) {
      const uint32_t total = this->template measure<Warp>(action.count());
      if (lane_id() == 0) header->total = total;
    }
    return action;
  }

  // [team] Flushes the pushes of the last step. Only pushes of a whole batch may stay local; pushes of idle never do, since
  // other workers' idle rounds have to see them.
  template <class Team> ATOS_DEVICE void flush_pushes() {
    const bool is_batch = header->step == Action::kItems || (has_buckets && header->step == Action::kFar);
    const bool may_keep =
        kKeepsLocalItems && this->relaxed() && is_batch && !header->any_long && !(has_buckets && this->has_filled_ticket());
    const bool limited = this->relaxed() && header->step != Action::kFar;
    Below::template flush_pushes<Team>(may_keep, limited, items);
  }

  // [one lane] Accounts for the last step, whose pushes have been flushed. True if a chunk comes next.
  ATOS_DEVICE bool account_step() {
    const Action step = header->step;
    if (step == Action::kItems) {
      header->ran += step.count();
      if (nested && header->any_long) {
        header->batch = step.count();
        header->next_long = header->num_split = 0;
      } else {
        header->end.unreported += step.count() - header->first_counted;
      }
    } else if (has_buckets && step == Action::kFar) {
      this->account_far();
    } else if (has_idle && step == Action::kIdle) {
      this->idle_returned(header->flushed, 1);
    }
    header->flushed = 0;
    if (!nested || (step != Action::kChunk && !header->batch)) return false;
    if (header->chunk.split >= 0 && finish_chunk(static_cast<SplitItem *>(launch.split_items), header->chunk.split))
      ++header->end.unreported;
    header->chunk.split = -1;
    if (this->next_chunk()) return true;
    if (header->batch) header->end.unreported += header->batch - header->first_counted - header->num_split;
    header->batch = 0;
    return false;
  }

  // [all threads] The main loop.
  ATOS_DEVICE void work() {
    for (;;) {
      if (Group::rank() < 32) {
        const Action action = next_action();
        if (lane_id() == 0) header->action = action;
      }
      Group::sync();
      Action action = header->action;
      // With buckets, to help at a barrier would take 8 registers more, even without barriers; with barriers buckets are rare.
      if (action == Action::kRound) action = this->next_round(true, nested && !has_buckets);
      if (action == Action::kLeave) break;
      if (action == Action::kItems) {
        if (has_buckets && Group::rank() == Group::size() - 1) this->finish_taken_chunk();
        this->run(action.count());
        if (Group::rank() == Group::size() - 1) this->trace(action.count());
      } else if (action == Action::kFlush) {
        flush_pushes<Group>();
      } else if (action == Action::kWaitForSpace) {
        if (Group::rank() == 0) this->reserve_when_space();
      } else if (nested && action == Action::kChunk) {
        this->run_chunk();
      } else if (has_buckets && action == Action::kFar) {
        if (Group::rank() == Group::size() - 1) this->sample_demand();
        this->run_far();
      } else if (has_idle && action == Action::kIdle) {
        atos_task_idle(&worker, &args);
      }
      Group::sync();
    }
    this->leave();
  }
};

} // namespace atos
