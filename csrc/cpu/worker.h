// CpuWorker: a thread as a worker, one lane wide, over the same queue protocol as a GPU's.
#pragma once
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "cpu/program.h"
#include "cpu/thread_pool.h"
#include "protocol/consumer.cuh"
#include "protocol/producer.cuh"
#include "protocol/termination.cuh"

namespace atos {

constexpr uint64_t kNoRoundEnd = ~uint64_t(0); // as the end of a discrete launch's round: whatever is pushed meanwhile runs too

template <unsigned bytes> class CpuWorker {
public:
  CpuWorker(Run &run, unsigned number)
      : launch(run.kernel), given(run.launch), program(static_cast<const CpuProgram &>(*run.program)),
        queue{static_cast<Counters *>(launch.counters),
              static_cast<Slot<bytes> *>(launch.slots),
              static_cast<Slot<bytes> *>(launch.more),
              static_cast<Item<bytes> *>(launch.spill),
              launch.size,
              launch.reciprocal,
              launch.spill_size,
              launch.growths},
        items(launch.fetch), buffer(launch.buffer), scratch(launch.scratch + 16),
        unused_scratch(launch.scratch - (launch.unsized_scratch + 15) / 16 * 16), longest(run.longest_batch) {
    consumer.begin(queue);
    producer.begin(queue);
    view.worker.buffer = buffer.data();
    view.worker.capacity = launch.buffer;
    view.worker.flush = [](atos_cpu_worker *worker) { reinterpret_cast<View *>(worker)->owner->flush_pushes(); };
    view.worker.scratch = scratch.data();
    view.worker.scratch_bytes = launch.unsized_scratch;
    view.worker.index = number;
    view.worker.workers = launch.workers;
    view.worker.sized_scratch = [](atos_cpu_worker *worker, uint64_t place, int64_t size) -> void * {
      return reinterpret_cast<View *>(worker)->owner->sized_scratch(place, uint64_t(size));
    };
    view.owner = this;
    regions.reserve(unused_scratch / 16); // compiled tasks let no exception through
  }

  void work() {
    if (!given.persistent) {
      if (launch.idle_round) run_idle();
      else run_round(launch.round_end);
    } else if (given.barrier) {
      run_rounds();
    } else {
      run_relaxed();
    }
    fetch_add(&queue.counters->ran, ran);
    fetch_add(&queue.counters->pushed, pushed);
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

  // The region of scratch of a place in the task: those that were not met before follow each other.
  unsigned char *sized_scratch(uint64_t place, uint64_t size) {
    for (const auto &[known, begin] : regions)
      if (known == place) return scratch.data() + begin;
    const uint64_t begin = launch.scratch - unused_scratch;
    regions.emplace_back(place, begin);
    unused_scratch -= (size + 15) / 16 * 16;
    return scratch.data() + begin;
  }

  // A persistent launch without barriers.
  void run_relaxed() {
    Backoff backoff;
    while (!queue.stopped()) { // items under tickets that are not taken stay in the ring
      if (consumer.claimed == 0) consumer.claim(queue, claim_size(load(&queue.counters->head)));
      if (const unsigned got = take_ready()) {
        run_batch(got);
        backoff.reset();
        continue;
      }
      const Waiting next = end.while_waiting(queue, consumer, given.idle, launch.workers);
      if (next == Waiting::kLeave) return;
      follow_ring();
      if (next == Waiting::kIdle) end.idle_returned(queue, run_idle(), 1);
      backoff.wait();
    }
  }

  // Rounds with barriers between them. The last worker at a barrier opens the next round, or says that none follows.
  void run_rounds() {
    Counters *counters = queue.counters;
    for (uint64_t round_end = launch.round_end;;) {
      run_round(round_end);
      barrier([&] {
        store(&counters->head, round_end); // claims ran past the end of the round
        open_round();
        fetch_add(&counters->rounds, uint64_t(1));
      });
      uint64_t next = load(&counters->round_end);
      if (next == round_end && given.idle) {
        run_idle();
        barrier([&] { open_round(); });
        next = load(&counters->round_end);
      }
      if (next == round_end || next == kNever) return;
      round_end = next;
    }
  }

  void open_round() { store(&queue.counters->round_end, queue.stopped() ? kNever : tail()); }

  template <class Last> void barrier(Last last) {
    Counters *counters = queue.counters;
    const uint64_t phase = load(&counters->phase);
    if (fetch_add(&counters->arrived, uint64_t(1)) % launch.workers == launch.workers - 1) {
      last();
      store(&counters->phase, phase + 1);
      return;
    }
    for (Backoff backoff; load(&counters->phase) == phase;) backoff.wait();
  }

  void run_round(uint64_t round_end) {
    while (!queue.stopped()) {
      if (consumer.claimed == 0) {
        uint64_t *head = &queue.counters->head;
        const uint64_t size = claim_size(load(head));
        if (round_end == kNoRoundEnd) consumer.claim_below_tail(queue, size);
        else consumer.claim_of_round(launch, head, 0, round_end, 1);
        if (consumer.claimed == 0) return;
      }
      if (const unsigned got = take_ready()) {
        run_batch(got);
      } else {
        consumer.look_for_ring(queue, load(&queue.counters->tail));
        follow_ring();
      }
    }
  }

  // A fair batch of all that is pending; samples the demand.
  uint64_t claim_size(uint64_t head) {
    const uint64_t end = tail();
    producer.demand = int64_t(head - end);
    return fair_batch_size(launch, head, end);
  }

  // Takes the items of the claimed tickets, from the first one on, as far as they are there; returns how many.
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
    // A worker stops between batches: long tasks make them shorter. A look at the clock now and then is enough.
    const bool timed = (got == most && most < launch.fetch) || (got >= kShortBatch && batches++ % kBatchesPerTiming == 0);
    const auto began = timed ? StopMonitor::Clock::now() : StopMonitor::Clock::time_point{};
    if (!program.checked) program.run(&view.worker, items.data(), got, given.arguments);
    else // one by one, since a task that fails returns from all that it was given
      for (unsigned k = 0; k < got; ++k) {
        program.run(&view.worker, &items[k], 1, given.arguments);
        report_failure(&items[k]);
      }
    flush_pushes();
    if (timed) {
      const auto took = StopMonitor::Clock::now() - began;
      if (took > kLongBatch) longest = std::max(got / 2, 1u);
      else if (took < kLongBatch / 4 && got == most) longest = std::min(2 * got, launch.fetch);
    }
    end.unreported += got;
    ran += got;
    if (launch.samples) {
      const auto now = std::chrono::steady_clock::now().time_since_epoch();
      queue.trace(got, uint64_t(std::chrono::nanoseconds(now).count()), &queue.counters->head, 0,
                  static_cast<atos_sample *>(launch.samples), launch.max_samples, launch.sample_interval);
    }
  }

  // Calls idle; returns the number of its pushes.
  uint64_t run_idle() {
    const uint64_t before = pushed;
    program.idle(&view.worker, given.arguments);
    report_failure(nullptr);
    flush_pushes();
    return pushed - before;
  }

  // Reports the check that failed in the task which has just returned, if one did.
  void report_failure(const Item<bytes> *item) {
    atos_failure &failure = failure_of_thread();
    if (!failure.failed) return;
    failure.in_item = item != nullptr;
    if (item) std::memcpy(failure.item, item, bytes);
    queue.fail(failure);
    failure = atos_failure{};
  }

  void flush_pushes() {
    const uint64_t n = uint64_t(view.worker.count);
    if (!n) return;
    if (producer.above_high_water(uint32_t(n))) producer.reserve_when_space(queue, n, [] {}); // all that may be mapped is
    else producer.reserve(queue, n);
    queue.publish(producer.ring, producer.base, buffer.data(), n, 0, 1);
    producer.reserved = 0;
    view.worker.count = 0;
    pushed += n;
  }

  const Launch &launch;
  const atos_launch &given;
  const CpuProgram &program;
  QueueRef<bytes> queue;
  Consumer consumer;
  Producer producer;
  TerminationDetector end;
  std::vector<Item<bytes>> items, buffer;
  std::vector<unsigned char> scratch;
  std::vector<std::pair<uint64_t, uint64_t>> regions; // of scratch: the place in the task, and where the region begins
  uint64_t unused_scratch;
  View view;
  uint64_t ran = 0, pushed = 0;
  std::atomic<uint32_t> &longest; // batch of any worker
  unsigned most = 1, batches = 0;
};

} // namespace atos
