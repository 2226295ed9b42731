// Thread workers: the 32 workers of a warp step together, so that they share the atomics on the queue's counters. Each lane has
// tickets of its own and runs one item at a time.
#pragma once
#include "device/bsp_rounds.cuh"
#include "device/inbox.cuh"

namespace atos {

template <unsigned bytes> struct ThreadWorkers : BspRounds<Warp, bytes> {
  using Below = BspRounds<Warp, bytes>;
  using Below::args;
  using Below::header;
  using Below::launch;
  using Below::queue;
  using Below::worker;

  uint64_t first = 0; // tickets [first, first + claimed) are this lane's, and their items not yet taken
  uint32_t claimed = 0;

  static ATOS_DEVICE SharedLayout layout(const Launch &launch) {
    return shared_layout(true, nested, bytes, value_words, launch.fetch, launch.buffer, launch.scratch, has_buckets, has_stack,
                         num_kinds != 0, has_peers ? launch.peer_count : 0);
  }

  // [all threads]
  ATOS_DEVICE ThreadWorkers(const Launch &launch, const Arguments &args, unsigned char *shared)
      : Below(launch, args, shared + Warp::index_in_block() * layout(launch).bytes, layout(launch)) {
    worker.scratch += lane_id() * ((launch.scratch + 15) / 16 * 16);
  }

  // [all threads] Claims tickets for each lane without tickets, all by one atomic; only `below_tail`, if their items have to be
  // there or to come soon. False: no lane has tickets, or the worker is to leave.
  template <bool below_tail = false> ATOS_DEVICE bool claim() {
    const unsigned empty = __ballot_sync(kAll, claimed == 0);
    if (!empty) return true;
    if (lane_id() == 0) {
      if (has_buckets) worker.far_state()->window = worker.far_items().window();
      const uint64_t lanes = __popc(empty);
      uint64_t total = 0;
      const Counters *counters = queue().counters;
      const bool relaxed = this->relaxed();
      const uint64_t asked = load(&counters->stop); // all loads are issued before the first value is used
      const uint64_t head = relaxed ? load(&counters->head) : 0;
      const uint64_t tail = relaxed ? tickets_of(load(&counters->tail)) : 0;
      const uint64_t stop = asked | this->stop_by_clock();
      if (stop == kRun && relaxed) {
        header->producer.demand = int64_t(head - tail);
        if constexpr (below_tail)
          total = header->consumer.claim_below_tail(queue(), fair_batch_size(launch, head, tail) * lanes);
        else total = header->consumer.claim(queue(), fair_batch_size(launch, head, tail) * lanes); // for all lanes
      } else if (stop == kRun && (total = this->claim_share(lanes)) == 0) {
        total = this->claim_of_round(lanes);
      } else if (stop != kRun && !relaxed) {
        this->mark_stop();
      }
      header->consumer.claimed = total;
      header->each = uint32_t((total + lanes - 1) / lanes);
    }
    __syncwarp();
    if (claimed == 0) {
      const uint64_t total = header->consumer.claimed, want = header->each;
      const uint64_t before = __popc(empty & ((1u << lane_id()) - 1)) * want;
      if (before < total) {
        first = header->consumer.first + before;
        claimed = uint32_t(total - before < want ? total - before : want);
      }
    }
    __syncwarp();
    return __any_sync(kAll, claimed != 0);
  }

  // [all threads] Takes one item for each lane whose next ticket's slot is filled; returns these lanes.
  ATOS_DEVICE unsigned take(Item<bytes> *item) {
    const Ring ring = header->consumer.ring;
    typename Slot<bytes>::Seen seen{};
    Place place{};
    bool filled = false;
    if (claimed) {
      place = ring.at(first);
      filled = ring.template slot<bytes>(place.index).is_ready(place.sequence, seen);
    }
    const unsigned lanes = __ballot_sync(kAll, filled);
    if (lanes == 0) return 0;
    this->fence_of_items();
    if (filled) {
      *item = ring.template slot<bytes>(place.index).get(seen);
      if (!Slot<bytes>::packed) fence(); // also before the next item of the slot, which another GPU may store in this round
      ring.template slot<bytes>(place.index).release(place.sequence);
      ++first;
      --claimed;
    }
    return lanes;
  }

  // [all threads] The lanes that have an item to run; 0 with *action kIdle or kLeave.
  ATOS_DEVICE unsigned next(Item<bytes> *item, Action *action) {
    for (;;) {
      *action = Action::kWait;
      for (unsigned polls = 0; *action == Action::kWait; ++polls) {
        if (has_stack && worker.stack().count()) return next_of_stack(item);
        if (has_buckets && find_far_chunk_of_warp(polls)) {
          *action = Action::kFar;
          return 0;
        }
        if (!claim()) {
          *action = Action::kLeave;
          break;
        }
        if (const unsigned lanes = take(item)) return lanes;
        if (polls % kPollsBeforeEndTest != kPollsBeforeEndTest - 1) continue;
        if (has_inbox) take_from_inbox(queue(), launch.inbox);
        if (lane_id() == 0) *action = this->relaxed() ? this->while_waiting() : this->while_round_fills();
        *action = action->of_first_lane();
        follow_ring();
        if (*action == Action::kWait) {
          __nanosleep(kPollNanoseconds);
          restart_point();
        }
      }
      if (this->relaxed()) return 0;
      *action = this->next_round(lane_id() == 0, false);
      if (*action != Action::kRound) return 0;
    }
  }

  // [all threads] While some lane has tickets: goes on to the next ring, if that is known. Lanes whose tickets belong to the
  // next ring wait for lanes with older tickets, whose slots are about to be filled.
  ATOS_DEVICE void follow_ring() {
    __syncwarp();
    const bool all_past = __all_sync(kAll, !claimed || header->consumer.is_past_ring(first));
    if (all_past && lane_id() == 0) header->consumer.next_ring(queue());
    __syncwarp();
  }

  // [all threads] While the warp's stack has items: one for each lane, as far as they go, but for lanes whose next ticket's
  // slot is filled. Tickets are claimed in between, as GroupWorker::next_of_stack does.
  ATOS_DEVICE unsigned next_of_stack(Item<bytes> *item) {
    Turn turn = Turn::kNewest;
    if (lane_id() == 0) turn = this->next_turn();
    turn = Turn(__shfl_sync(kAll, uint32_t(turn), 0));
    if (turn == Turn::kWaiting) claim<true>();
    unsigned taken = 0;
    if (__any_sync(kAll, claimed != 0)) {
      taken = take(item);
      if (taken == 0) {
        if (lane_id() == 0) this->look_for_ring();
        follow_ring();
      }
    }
    const unsigned others = __ballot_sync(kAll, !(taken >> lane_id() & 1)), rank = __popc(others & ((1u << lane_id()) - 1));
    const uint32_t n = min(worker.stack().count(), uint32_t(__popc(others)));
    const bool pops = (others >> lane_id() & 1) && rank < n;
    this->pop(n, turn == Turn::kOldest, pops ? rank : n, kWarpSize, [&](uint32_t, const Item<bytes> &its) { *item = its; });
    return taken | __ballot_sync(kAll, pops);
  }

  // [all threads] Claims a chunk of far items that are to be pushed again: of the open list; after some polls of any list.
  ATOS_DEVICE bool find_far_chunk_of_warp(unsigned polls) {
    const bool waits = polls % kPollsBeforeEndTest == kPollsBeforeEndTest - 1;
    bool found = false;
    if (lane_id() == 0 && (polls == 0 || waits)) found = waits ? this->find_far_chunk() : this->claim_far_chunk();
    return __shfl_sync(kAll, found, 0);
  }

  // [all threads] The main loop.
  ATOS_DEVICE void work() {
    for (;;) {
      restart_point();
      Item<bytes> item;
      Action action;
      if (has_stack && lane_id() == 0) worker.stack().popped = 0;
      const unsigned lanes = next(&item, &action);
      if (has_stack && lane_id() == 0) this->sample_demand();
      if (lanes == 0 && action == Action::kLeave) break;
      this->count_kinds(lanes >> lane_id() & 1, item);
      if (lanes >> lane_id() & 1) {
        if (is_flat(item)) {
          atos_task_flat(&worker, &item, 0, nullptr, &args);
        } else if (nested) {
          uint64_t values[kValueWords];
          const int64_t length = atos_task_workload(&worker, &item, values, &args);
#pragma unroll 1
          for (int64_t i = 0; i < length; ++i) atos_task_body(&worker, &item, i, values, &args);
        } else {
          atos_task_body(&worker, &item, 0, nullptr, &args);
        }
      }
      const bool is_far = has_buckets && lanes == 0 && action == Action::kFar;
      if (is_far) this->run_far();
      if (has_idle && lanes == 0 && !is_far) atos_task_idle(&worker, &args);
      __syncwarp();
      const bool pushes = this->has_pushes();
      const bool waits = has_stack ? this->waits_for_space(lanes) : pushes && this->above_high_water();
      if (waits) {
        if (lane_id() == 0) this->reserve_when_space();
        __syncwarp();
      }
      if (has_stack) this->settle_pushes();
      else if (pushes) this->template flush_pushes<Warp>(false, this->relaxed() && !is_far, nullptr);
      if (has_inbox && lanes) take_from_inbox_at_times(queue(), launch.inbox);
      if (lane_id() == 0) {
        header->end.unreported += __popc(lanes) - (has_stack ? worker.stack().popped : 0);
        header->ran += __popc(lanes);
        this->trace(__popc(lanes));
        if (is_far) this->account_far();
        else if (has_idle && lanes == 0) this->idle_returned(pushes, kWarpSize);
      }
      __syncwarp();
    }
    if (claimed && (has_peers || queue().stopped())) queue().leave_tickets(first);
    this->leave();
  }
};

} // namespace atos
