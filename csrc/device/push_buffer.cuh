// Pushed items: gathered in a buffer while a step runs, and flushed after the step. Some stay with the worker as local items,
// which the worker runs next and which never get a ticket (an index into the queue: counters.h). All other items are stored in
// the queue.
#pragma once
#include "device/far_work.cuh"
#include "device/peer_pushes.cuh"

namespace atos {

// [any lanes] Appends an item to the buffer. Lanes that push together share one atomic. If the buffer is full, the item goes to
// the queue at once, and lanes again share one atomic, since all workers add to one counter.
template <unsigned bytes> ATOS_DEVICE void Worker<bytes>::push(const Item<bytes> &item) {
  if (has_stack) return push_on_stack(item);
  const unsigned active = __activemask();
  const unsigned leader = __ffs(active) - 1, before = __popc(active & ((1u << lane_id()) - 1));
  uint32_t at = 0;
  if (lane_id() == leader) at = atomicAdd(&header->pushes, __popc(active));
  at = __shfl_sync(active, at, leader) + before;
  if (at < launch->buffer) {
    buffer[at] = item;
  } else {
    limit_count(&header->pushes, at);
    if (has_peers) return publish_to_owner(peers_of(*launch), item, launch->barrier);
    fence();
    publish_together(queue(), __activemask(), item);
  }
}

template <class Group, unsigned bytes> struct PushBuffer : FarWork<Group, bytes> {
  using State = FarWork<Group, bytes>;
  using State::header;
  using State::launch;
  using State::queue;
  using State::State;
  using State::worker;

  // The pushes in the buffer, or of this step on the stack, which are yet to be flushed.
  ATOS_DEVICE uint32_t buffered() const {
    if (has_stack) return min(header->pushes, launch.stack_room - worker.stack().count());
    return header->pushes < launch.buffer ? header->pushes : launch.buffer;
  }

  // Whether the flush may exceed the ring's high-water mark, and has to wait for space in `reserve_when_space`.
  // In a launch over several GPUs the flush itself waits.
  ATOS_DEVICE bool above_high_water() const { return !has_peers && header->producer.above_high_water(buffered()); }

  // [one lane] Between steps: reserves tickets for all buffered items, once the ring has space.
  ATOS_DEVICE void reserve_when_space() {
    const auto ask = [&] { static_cast<volatile CompletionRecord *>(launch.record)->growths_requested = 1; };
    header->producer.reserve_when_space(queue(), has_stack ? worker.stack().leaving : buffered(), ask);
  }

  // [team] After a barrier of the worker: flushes the pushes of the last step. If `may_keep`, as many as fit become the next
  // batch of this worker, `items`, except for some that are donated if workers wait for items (demand > 0, producer.cuh). If
  // many items wait for workers (a large negative demand), all pushes go to the end of the queue, to keep the order.
  //
  // With buckets, items wait for workers in their buckets, and the ring takes only items that workers wait for: a worker keeps
  // some near items even where many others wait; if `limited`, the other near items go to the buckets.
  template <class Team> ATOS_DEVICE void flush_pushes(bool may_keep, bool limited, BatchArray<Item<bytes>> items) {
    if (has_peers) return flush_to_owners<Team>(may_keep, limited, items);
    const uint32_t far = has_buckets ? this->far_buffered() : 0;
    const uint32_t pushes = header->pushes + (has_buckets ? worker.far_state()->pushes : 0), n = buffered();
    Producer &producer = header->producer;
    // The items of a chunk follow the items that the worker has kept before.
    const uint32_t kept = has_buckets ? worker.far_state()->kept : 0;
    const bool local = may_keep && !producer.reserved && producer.demand >= least_demand();
    // A fence has to come between the task's writes and the commits in `publish`. Here the fence overlaps with the reservation.
    // A worker that keeps items mostly has none to publish; if it has some, it fences below.
    if (!local) fence();
    if (Team::rank() == 0) {
      uint32_t given = n;
      if (local) given = items_to_give(n, kept);
      header->local_items = kept + n - given;
      if (has_buckets) {
        const uint32_t surplus = limited && !producer.reserved ? surplus_of(given) : 0;
        worker.far_state()->surplus = surplus;
        given -= surplus;
        this->count_far(far + surplus);
      }
      if (given && !producer.reserved) producer.reserve(queue(), given);
      header->pushed += pushes;
      header->flushed = pushes;
    }
    Team::sync();
    const uint32_t local_items = header->local_items - kept;
    const uint32_t surplus = has_buckets ? worker.far_state()->surplus : 0;
    if (n > local_items + surplus) {
      if (local) fence();
      queue().publish(Ring(producer.ring), producer.base, worker.buffer + local_items, n - local_items - surplus, Team::rank(),
                      Team::size());
    }
    if (has_buckets) {
      this->template store_far<Team>(worker.buffer + (n - surplus), worker.levels() + (n - surplus), surplus);
      this->template store_far<Team>(worker.far_buffer(), worker.far_levels(), far);
    }
    for (uint32_t k = Team::rank(); k < local_items; k += Team::size()) items[kept + k] = worker.buffer[k];
    if (Team::rank() == 0) {
      header->pushes = producer.reserved = 0;
      if (has_buckets) worker.far_state()->pushes = 0;
    }
  }

  // [team] Flushes the pushes in a launch over several GPUs: each item goes to the queue of its owner, or stays local if the
  // owner is this GPU. With buckets, near items that find no room in this GPU's ring go to the buckets of their owners, as on
  // one GPU: if a ring took these items, workers would open the next bucket while the items wait.
  template <class Team> ATOS_DEVICE void flush_to_owners(bool may_keep, bool limited, BatchArray<Item<bytes>> items) {
    const bool local = !has_each_round && may_keep && header->producer.demand >= least_demand(); // none in rounds
    uint32_t n = buffered();
    if (has_buckets) {
      const uint32_t most = local ? launch.local_items - worker.far_state()->kept : 0; // items that may stay local
      const uint32_t surplus = limited && n > most ? surplus_of(n - most) : 0, far = this->far_buffered();
      n -= surplus;
#pragma unroll 1
      for (unsigned is_far = 0; is_far < 2; ++is_far) {
        const PushArray<Item<bytes>> stored = is_far ? worker.far_buffer() : PushArray<Item<bytes>>(worker.buffer + n);
        const PushArray<float> levels = is_far ? worker.far_levels() : PushArray<float>(worker.levels() + n);
        const uint32_t count = is_far ? far : surplus;
        this->template count_far_of_owners<Team>(stored, count);
        this->template store_far<Team>(stored, levels, count);
      }
    }
    if (local) n = keep_own<Team>(items, n);
    if (n || !local) publish_to_owners<Team, bytes>(peers_of(launch), worker.peer_pushes(), worker.buffer, n, launch.barrier);
    if (Team::rank() == 0) { // behind a barrier, so that all threads have read the header
      if (has_buckets) {
        header->pushes += worker.far_state()->pushes;
        worker.far_state()->pushes = 0;
      }
      header->end_flush();
    }
  }

  // [team] Of the first n items in the buffer, makes items of this GPU local, and moves the others to the front; returns the
  // number of the others.
  template <class Team> ATOS_DEVICE uint32_t keep_own(BatchArray<Item<bytes>> items, uint32_t n) {
    const Peers peers = peers_of(launch);
    PeerPush *const own = &worker.peer_pushes()[launch.peer_own];
    const uint32_t kept = has_buckets ? worker.far_state()->kept : 0;
    count_own<Team, bytes>(peers, own, worker.buffer, n);
    if (Team::rank() == 0) {
      header->local_items = kept + own->count - items_to_give(own->count, kept);
      own->count = own->next = 0;
    }
    Team::sync();
    return move_own<Team, bytes>(launch, own, worker.buffer, n, items + kept, header->local_items - kept);
  }

  // Whether anything was pushed in the last step.
  ATOS_DEVICE bool has_pushes() const { return header->pushes || (has_buckets && worker.far_state()->pushes); }

  // With buckets: whether one of the two buffers is half full.
  ATOS_DEVICE bool is_half_full() const { return max(header->pushes, worker.far_state()->pushes) > launch.buffer / 2; }

  // Whether the pushes are too many for one warp.
  ATOS_DEVICE bool has_many_pushes() const {
    return header->pushes > kFew || (has_buckets && worker.far_state()->pushes > kFew);
  }

  // The least demand at which pushes may stay local.
  ATOS_DEVICE int64_t least_demand() const { return has_buckets ? kUnseen / 2 : -int64_t(launch.workers) * kBacklogPerWorker; }

  // [one lane] Of n items that may stay local, the number that goes to the queue: items that do not fit behind the `kept` ones,
  // or items that the worker donates.
  ATOS_DEVICE uint32_t items_to_give(uint32_t n, uint32_t kept) const {
    const uint32_t most = launch.local_items - kept;
    const bool shares = n <= most && n > 1 && launch.shares && header->producer.demand > 0;
    const uint32_t given = n > most ? n - most : shares ? items_to_donate(n / 2) : 0;
    this->count(&atos_sharing::local_items, n - given);
    this->count(&atos_sharing::items_donated, shares ? given : 0);
    return given;
  }

  // [one lane] Of `given` near items, the number that finds no room in the ring of a queue with buckets: the ring takes the
  // items that workers wait for, and one more for each worker.
  ATOS_DEVICE uint32_t surplus_of(uint32_t given) const {
    const int64_t room = header->producer.demand + int64_t(launch.workers);
    return room <= 0 ? given : room < int64_t(given) ? given - uint32_t(room) : 0;
  }

  // [one lane] Number of local items, at most n, to donate to idle workers: the quotient (idle workers) / (active workers),
  // rounded up or down at random so that the number is right on average (stochastic rounding). If each active worker donated
  // one item for every idle worker, most items would end up in the queue.
  ATOS_DEVICE uint32_t items_to_donate(uint32_t n) const {
    const int32_t demand = int32_t(header->producer.demand); // 64 bits are slow
    const int32_t active = max(int32_t(launch.workers) - demand, 1);
    return quotient_rounded_by_chance(demand, active, n);
  }

  // Whether the worker keeps no items now: before the first sample, after a stop, and when other items have their turn.
  ATOS_DEVICE bool gives_way() const { return header->producer.demand == kUnseen; }

  // [one lane] Samples the demand (producer.cuh), while the step runs. After kMostLocalSteps without a ticket the sample is
  // kUnseen, so that the worker gives its pushes away and takes tickets: items that wait in the queue have their turn, also if
  // local items push themselves again until those have run. The sample is kUnseen, too, after kMostStalledSteps in which items
  // waited for workers and nobody claimed any.
  ATOS_DEVICE void sample_demand() {
    const Counters *counters = queue().counters;
    const uint64_t last_head = header->head;
    const uint32_t steps = header->steps + 1, stalled = header->stalled_steps + 1;
    // All loads are issued before the first value is used: together they take as long as one.
    const uint64_t head = load(&counters->head), tail = load(&counters->tail), stop = load(&counters->stop);
    const int64_t demand = int64_t(head - tickets_of(tail));
    const uint32_t same = head == last_head ? stalled : 0;
    const bool turn = !has_stack && steps >= kMostLocalSteps;
    const bool waiting = !has_stack && !has_buckets && demand < 0 && same >= kMostStalledSteps;
    header->producer.demand = stop != kRun || turn || waiting ? kUnseen : demand;
    header->head = head;
    header->steps = steps;
    header->stalled_steps = same;
    if (has_buckets) this->sample_far();
  }
};

} // namespace atos
