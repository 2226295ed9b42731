// CpuWorker: a thread as a worker, one lane wide, over the same queue protocol as a GPU's.
#pragma once
#include <cstring>
#include <vector>

#include "cpu/far_pushes.h"
#include "cpu/peer_pushes.h"
#include "cpu/program.h"
#include "cpu/scratch.h"
#include "cpu/thread_pool.h"
#include "cpu/time_limit.h"
#include "protocol/consumer.cuh"
#include "protocol/inbox.cuh"
#include "protocol/producer.cuh"
#include "protocol/termination.cuh"

namespace atos {

constexpr uint64_t kNoRoundEnd = ~uint64_t(0); // end of a discrete launch's round: items pushed meanwhile run too

// `several`: of a launch over several devices, which is persistent.
template <unsigned bytes, bool several = false> class CpuWorker {
public:
  CpuWorker(Run &run, unsigned number)
      : launch(run.kernel), given(run.launch), program(static_cast<const CpuProgram &>(*run.program)), queue(launch),
        far_pushes(FarItems<bytes>(launch)), items(launch.fetch), buffer(std::max(launch.buffer, 1u)),
        levels(given.buckets ? buffer.size() : 0), to_peers(run.peers, buffer.size()),
        scratch(launch.scratch, launch.unsized_scratch), longest(run.longest_batch), limit(run.monitor) {
    consumer.begin(queue);
    producer.begin(queue);
    view.worker.buffer = buffer.data();
    view.worker.capacity = int64_t(buffer.size());
    view.worker.flush = [](atos_cpu_worker *worker) { reinterpret_cast<View *>(worker)->owner->flush_pushes(); };
    view.worker.push = [](atos_cpu_worker *worker, const void *item, double priority) {
      CpuWorker *owner = reinterpret_cast<View *>(worker)->owner;
      Item<bytes> value;
      std::memcpy(&value, item, bytes);
      owner->push(value, level_of(priority, owner->launch.inverse_delta));
    };
    if (given.buckets) far_pushes.look(), to_peers.look();
    view.worker.scratch = scratch.unsized();
    view.worker.scratch_bytes = launch.unsized_scratch;
    view.worker.index = run.first_worker + number;
    view.worker.workers = several ? run.all_workers : launch.workers;
    view.worker.sized_scratch = [](atos_cpu_worker *worker, uint64_t place, int64_t size) -> void * {
      return reinterpret_cast<View *>(worker)->owner->scratch.region(place, uint64_t(size));
    };
    view.worker.stop = [](atos_cpu_worker *worker) { reinterpret_cast<View *>(worker)->owner->queue.stop(); };
    view.worker.round = int64_t(launch.round);
    view.worker.mode = int64_t(load(&queue.counters->mode));
    view.worker.ran_by = ran_by;
    view.owner = this;
  }

  void work() {
    if (!given.persistent) {
      if (launch.idle_round) run_idle();
      else run_round(launch.round_end);
      if (program.each_round && !launch.idle_round) {
        end.report(queue);
        if (arrive_last() && ran_all_below(queue.counters, launch.round_end)) call_each_round(launch.round_end);
      }
    } else if (given.barrier) {
      run_rounds();
    } else {
      run_relaxed();
    }
    if constexpr (several) to_peers.peers.spread_stop(queue);
    if (keeps_pushes()) flush_all();
    if (consumer.claimed) queue.leave_tickets(consumer.first);
    fetch_add(&queue.counters->ran, ran);
    fetch_add(&queue.counters->pushed, pushed);
    for (unsigned k = 0; k < given.kinds; ++k) fetch_add(&queue.counters->ran_by[k], ran_by[k]);
    fetch_add(&queue.counters->sharing.local_items, local_items);
    fetch_add(&queue.counters->sharing.items_donated, items_donated);
    end.report(queue);
  }

private:
  static constexpr unsigned kShortBatch = 8, kBatchesPerTiming = 16; // items, batches
  static constexpr std::chrono::milliseconds kLongBatch{8};

  struct View { // the task's view of its worker comes first, so that a flush finds the owner
    atos_cpu_worker worker{};
    CpuWorker *owner = nullptr;
  };

  uint64_t tail() const { return tickets_of(load(&queue.counters->tail)); }

  // A persistent launch without barriers.
  void run_relaxed() {
    Backoff backoff;
    while (!limit.stops(queue, most == 1)) { // items under tickets that are not taken stay in the ring
      if (view.worker.count && run_local()) continue;
      if (consumer.claimed == 0) consumer.claim(queue, claim_size(load(&queue.counters->head)));
      if (const unsigned got = take_ready()) {
        end.unreported += got;
        run_batch(got);
        backoff.reset();
        if (launch.inbox && ++steps % kStepsBetweenLooks == 0) take_from_inbox();
        continue;
      }
      if (given.buckets && move_far_chunk(true)) {
        backoff.reset();
        continue;
      }
      if (launch.inbox) take_from_inbox();
      Waiting next;
      if constexpr (several) next = to_peers.peers.while_waiting(queue, consumer, end);
      else next = end.while_waiting(queue, consumer, given.idle, launch.workers);
      if (next == Waiting::kLeave) return;
      follow_ring();
      if (next == Waiting::kIdle) end.idle_returned(queue, run_idle(), 1);
      backoff.wait();
    }
  }

  void take_from_inbox() {
    Inbox *inbox = static_cast<Inbox *>(launch.inbox);
    const Delivery delivery = begin_delivery(queue, inbox);
    if (delivery.count == 0) return;
    deliver(queue, inbox, delivery, 0, 1);
    end_delivery(queue, inbox, delivery);
  }

  // Rounds with barriers between them. The last worker at a barrier opens the next round, or says that none follows.
  void run_rounds() {
    Counters *counters = queue.counters;
    for (uint64_t round_end = launch.round_end;;) {
      run_round(round_end);
      if (program.each_round) end.report(queue);
      if constexpr (several) to_peers.peers.spread_stop(queue);
      const bool opens = barrier([&] {
        const bool ran = close_round(round_end);
        if (program.each_round && ran) call_each_round(round_end);
        open_round(round_end);
        fetch_add(&meeting()->rounds, uint64_t(1));
      });
      uint64_t next = opens ? load(&counters->round_end) : kLastRound;
      bool opened = load(&counters->far.opened);
      if (next == round_end && !opened && given.idle) {
        run_idle();
        barrier([&] { open_round(round_end); });
        next = load(&counters->round_end);
        opened = load(&counters->far.opened);
      }
      if ((!several && next == round_end && !opened) || next & kLastRound) return;
      round_end = next;
      ++view.worker.round;
      view.worker.mode = int64_t(load(&queue.counters->mode));
    }
  }

  // Ends a round; whether all of its items ran, if the workers have reported what they ran. Claims ran past the end of the
  // round, unless a stop interrupted the round.
  bool close_round(uint64_t round_end) {
    if constexpr (several) return to_peers.peers.close_round(given.buckets);
    lower_to(&queue.counters->head, round_end);
    return ran_all_below(queue.counters, round_end);
  }

  // Opens the next round. If the last one pushed only far items, the next one moves the items of the next bucket.
  void open_round(uint64_t round_end) {
    if constexpr (several)
      return to_peers.peers.open_round(
          [&] { return given.buckets && to_peers.peers.template open_far<bytes>(launch.workers, kFarChunk); });
    const bool stopped = queue.stopped();
    const uint64_t next = tail();
    if (given.buckets)
      store(&queue.counters->far.opened,
            stopped || next != round_end ? 0 : far.open(kBetweenRounds, launch.workers, kFarChunk));
    store(&queue.counters->round_end, stopped ? round_end | kLastRound : next);
  }

  // The last worker at the end of a round runs the function between rounds, when all workers have reported what they ran; not
  // if a stop interrupted the round, whose rest is a round of a later run.
  void call_each_round(uint64_t round_end) {
    if (given.buckets) far_pushes.look(), to_peers.look();
    view.worker.next_mode = view.worker.mode;
    if constexpr (several) view.worker.pending = int64_t(to_peers.peers.waiting());
    else view.worker.pending = int64_t(tail() - round_end);
    producer.demand = kUnseen;
    run_between(program.each_round);
    if constexpr (several) to_peers.peers.set_mode(uint64_t(view.worker.next_mode));
    else store(&queue.counters->mode, uint64_t(view.worker.next_mode));
  }

  Counters *meeting() const { // counters of the device where workers meet at a barrier
    if constexpr (several) return to_peers.peers.meeting();
    else return queue.counters;
  }

  bool arrive_last() { return (fetch_add(&meeting()->arrived, uint64_t(1)) + 1) % uint64_t(view.worker.workers) == 0; }

  // False if the barrier does not open, since a process is gone whose workers will not arrive.
  template <class Last> bool barrier(Last last) {
    Counters *counters = meeting();
    const uint64_t phase = load(&counters->phase);
    if (arrive_last()) {
      last();
      store(&counters->phase, phase + 1);
    }
    for (Backoff backoff; load(&counters->phase) == phase; backoff.wait())
      if (several && load(&queue.counters->stop) & kStopGone) return false;
    return true;
  }

  void run_round(uint64_t round_end) {
    while (!limit.stops(queue, most == 1)) {
      if (given.buckets && move_far_chunk(false)) continue;
      if (consumer.claimed == 0) {
        uint64_t *head = &queue.counters->head;
        const uint64_t size = claim_size(load(head));
        if (round_end == kNoRoundEnd) consumer.claim_below_tail(queue, size);
        else consumer.claim_of_round(launch, head, 0, round_end, 1);
        if (consumer.claimed == 0) return;
      }
      if (const unsigned got = take_ready()) {
        end.unreported += got;
        run_batch(got);
      } else {
        consumer.look_for_ring(queue, load(&queue.counters->tail));
        follow_ring();
      }
    }
  }

  // A fair batch of all pending items; samples the demand.
  uint64_t claim_size(uint64_t head) {
    const uint64_t end = tail();
    producer.demand = int64_t(head - end);
    return fair_batch_size(launch, head, end);
  }

  // Takes the items of the claimed tickets, in order, up to the first slot that is not filled; returns how many.
  unsigned take_ready() {
    unsigned got = 0;
    const unsigned limit = most = longest.load(std::memory_order_relaxed);
    while (consumer.claimed && got < limit) {
      const Place place = consumer.ring.at(consumer.first);
      Slot<bytes> &slot = consumer.ring.template slot<bytes>(place.index);
      typename Slot<bytes>::Seen seen;
      if (!slot.is_ready(place.sequence, seen)) break;
      items[got++] = slot.get(seen);
      slot.release(place.sequence);
      ++consumer.first;
      --consumer.claimed;
    }
    return got;
  }

  void follow_ring() {
    if (consumer.is_past_ring(consumer.first)) consumer.next_ring(queue);
  }

  void run_batch(unsigned got) {
    // A worker stops between batches: long tasks make batches shorter. A look at the clock now and then is enough.
    const bool timed = (got == most && most < launch.fetch) || (got >= kShortBatch && batches++ % kBatchesPerTiming == 0);
    const auto began = timed ? StopMonitor::Clock::now() : StopMonitor::Clock::time_point{};
    if (!program.checked) program.run(&view.worker, items.data(), got, given.arguments);
    else // one by one, since a task that fails returns from all of its items
      for (unsigned k = 0; k < got; ++k) {
        program.run(&view.worker, &items[k], 1, given.arguments);
        report_failure(queue, &items[k]);
      }
    if (keeps_pushes()) settle_pushes();
    else flush_pushes();
    if (timed) {
      const auto took = StopMonitor::Clock::now() - began;
      if (took > kLongBatch) longest = std::max(got / 2, 1u);
      else if (took < kLongBatch / 4 && got == most) longest = std::min(2 * got, launch.fetch);
    }
    ran += got;
    if (launch.samples) {
      const auto now = std::chrono::steady_clock::now().time_since_epoch();
      queue.trace(got, uint64_t(std::chrono::nanoseconds(now).count()), &queue.counters->head, 0,
                  static_cast<atos_sample *>(launch.samples), launch.max_samples, launch.sample_interval);
    }
  }

  // Calls idle, or another function that has no item; returns the number of its pushes.
  uint64_t run_idle() { return run_between(program.idle); }
  uint64_t run_between(RunIdle function) {
    const uint64_t before = pushed;
    function(&view.worker, given.arguments);
    report_failure<bytes>(queue, nullptr);
    keeps_pushes() ? flush_all() : flush_pushes();
    return pushed - before;
  }

  // Gives the pushes away, or where the newest come first and the buffer is full the oldest half of them.
  void flush_pushes() {
    const uint64_t n = count_pushes();
    give(given.newest ? (n + 1) / 2 : n);
  }

  // Stores the first n items of the buffer in the ring.
  void publish_first(uint64_t n) {
    if constexpr (several) return to_peers.publish(buffer.data(), n);
    if (producer.above_high_water(uint32_t(n))) producer.reserve_when_space(queue, n, [] {}); // all rings are mapped
    else producer.reserve(queue, n);
    queue.publish(producer.ring, producer.base, buffer.data(), n, 0, 1);
    producer.reserved = 0;
  }

  // The rest is for queues with buckets or newest items first. A worker without rounds keeps its pushes in the buffer; with
  // buckets these are near items, with their levels.
  bool keeps_pushes() const { return given.buckets || given.newest; }

  void push(const Item<bytes> &item, float level) {
    if (to_peers.push(item, level, &pushed)) return;
    if (!far_pushes.is_near(level)) {
      if (far_pushes.add(item, level)) store_far();
      return;
    }
    if (view.worker.count == view.worker.capacity) make_far(uint64_t(view.worker.count + 1) / 2);
    buffer[size_t(view.worker.count)] = item;
    levels[size_t(view.worker.count++)] = level;
  }

  // After a batch: stores far items and items of other devices, and gives the near items to the ring: all of them, or the
  // oldest ones, as far as workers wait for items, or as the worker may not keep so many.
  void settle_pushes() {
    if (given.buckets) store_far(), pushed += to_peers.store();
    const uint64_t n = count_pushes();
    if (!given.persistent || given.barrier || queue.stopped()) return give(n);
    const int64_t demand = launch.shares ? int64_t(load(&queue.counters->head) - tail()) : 0;
    const uint64_t surplus = n - std::min<uint64_t>(n, launch.local_items);
    const uint64_t given_away = std::max(surplus, demand > 0 ? std::min(uint64_t(demand), n / 2) : 0);
    items_donated += given_away - surplus;
    give(given_away);
  }

  // Counts the items in the buffer as pushed; returns how many there are.
  uint64_t count_pushes() {
    pushed += uint64_t(view.worker.count) - kept;
    return kept = uint64_t(view.worker.count);
  }

  // Gives all pushes away.
  void flush_all() {
    settle_pushes();
    give(kept);
  }

  void give(uint64_t n) {
    if (!n) return;
    publish_first(n);
    drop_first(n);
  }

  void drop_first(uint64_t n) {
    const size_t left = size_t(view.worker.count) - n;
    std::copy_n(buffer.begin() + std::ptrdiff_t(n), left, buffer.begin());
    if (given.buckets) std::copy_n(levels.begin() + std::ptrdiff_t(n), left, levels.begin());
    view.worker.count = int64_t(left);
    kept -= std::min(kept, n);
  }

  // Stores the oldest n near items as far ones, for want of space in the buffer.
  void make_far(uint64_t n) {
    for (uint64_t i = 0; i < n; ++i)
      if (far_pushes.add(buffer[i], levels[i])) store_far();
    pushed -= std::min(kept, n); // these items were counted as pushed
    drop_first(n);
    store_far();
  }

  void store_far() { pushed += far_pushes.store(); }

  // Runs the newest items that the worker has kept; false if it must look for other items first. Now and then the oldest items
  // and items that wait in the ring have their turn, also if the newest items push themselves again until those have run.
  bool run_local() {
    const bool oldest = ++local_steps % (given.newest ? kMostStackSteps : kMostLocalSteps) == 0;
    if (oldest && !consumer.claimed) consumer.claim_below_tail(queue, claim_size(load(&queue.counters->head)));
    if (consumer.claimed) {
      if (is_filled()) return false; // an older ticket of this worker's was filled
      consumer.look_for_ring(queue, load(&queue.counters->tail));
      follow_ring();
    }
    const uint64_t n = std::min<uint64_t>({uint64_t(view.worker.count), launch.fetch, longest.load(std::memory_order_relaxed)});
    most = longest.load(std::memory_order_relaxed);
    const size_t first = oldest ? 0 : size_t(view.worker.count) - n;
    std::copy_n(buffer.begin() + std::ptrdiff_t(first), n, items.begin());
    if (oldest) {
      drop_first(n);
    } else {
      view.worker.count = int64_t(first);
      kept = first;
    }
    local_items += n;
    run_batch(unsigned(n));
    return true;
  }

  bool is_filled() const {
    const Place place = consumer.ring.at(consumer.first);
    typename Slot<bytes>::Seen seen;
    return consumer.ring.template slot<bytes>(place.index).is_ready(place.sequence, seen);
  }

  // Pushes the items of a chunk of the open list again; if `opens`, opens a list if none is open. False if there is no chunk.
  bool move_far_chunk(bool opens) {
    FarChunk chunk;
    if (!far.claim_chunk(&chunk)) {
      if (!opens) return false;
      const uint64_t batches = uint64_t(launch.workers) * kOpenedByThread;
      const auto may_open = [&] { return to_peers.may_open(); };
      if (!far.can_open() || !far.open(std::min(batches, launch.size / 4 + 1), launch.workers, kFarChunk, may_open) ||
          !far.claim_chunk(&chunk))
        return false;
    }
    far_pushes.look(), to_peers.look();
    uint64_t taken = 0;
    FarItem<bytes> *const entries = far.entries(chunk);
    for (const uint64_t n = chunk.to - chunk.from; entries && taken < n; ++taken) {
      Item<bytes> item;
      float level;
      if (!far.take(&entries[taken], &item, &level)) break;
      push(item, level);
    }
    settle_pushes();
    pushed -= taken;
    end.unreported += taken; // the far items were unfinished tasks that pushed themselves
    if (taken == chunk.to - chunk.from) far.finish_chunk(chunk);
    return true;
  }

  const Launch &launch;
  const atos_launch &given;
  const CpuProgram &program;
  QueueRef<bytes> queue;
  FarPushes<bytes> far_pushes;
  FarItems<bytes> &far = far_pushes.far;
  Consumer consumer;
  Producer producer;
  TerminationDetector end;
  std::vector<Item<bytes>> items, buffer;
  std::vector<float> levels; // of the items in the buffer
  std::conditional_t<several, PeerPushes<bytes>, NoPeers<bytes>> to_peers;
  uint64_t kept = 0; // items in the buffer that have been counted as pushed
  Scratch scratch;
  View view;
  uint64_t ran = 0, pushed = 0, local_items = 0, items_donated = 0, ran_by[ATOS_MAX_KINDS] = {};
  std::atomic<uint32_t> &longest; // longest batch of any worker
  unsigned most = 1, batches = 0, steps = 0, local_steps = 0;
  TimeLimit limit;
};

} // namespace atos
