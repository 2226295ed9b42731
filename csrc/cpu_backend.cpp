// The CPU: workers are threads, each one lane wide, over the same queue protocol. The task is native code that runs a whole
// batch of items at a call.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend.h"
#include "host.h"
#include "crew.h"

namespace atos {
namespace {

using RunTask = void (*)(atos_cpu_worker *worker, const void *items, int64_t n, const void *args);
constexpr uint32_t kMostThreads = 1024; // of a launch, or 4 for each core if those are more
constexpr uint64_t kNoRoundEnd = ~uint64_t(0); // as the end of a round

using RunIdle = void (*)(atos_cpu_worker *worker, const void *args);

struct NativeProgram : atos_program {
  RunTask run;
  RunIdle idle;
  bool checked;
  NativeProgram(RunTask run, RunIdle idle, bool checked) : atos_program(ATOS_CPU), run(run), idle(idle), checked(checked) {}
};

// What failed in the task that this thread runs. Tasks with checks know nothing but the function they call then.
atos_failure &failure_of_thread() {
  static thread_local atos_failure failure{};
  return failure;
}

template <unsigned bytes> class CpuWorker {
public:
  CpuWorker(Run &run, const NativeProgram &program)
      : launch(run.kernel), given(run.launch), program(program),
        queue{static_cast<Counters *>(launch.counters), static_cast<Slot<bytes> *>(launch.slots),
              static_cast<Slot<bytes> *>(launch.more),  static_cast<Item<bytes> *>(launch.spill),
              launch.size, launch.reciprocal, launch.spill_size, launch.growths},
        taking(queue.ring(0, 0)), putting(taking),
        items(launch.fetch), buffer(launch.buffer), scratch(launch.scratch + 16), longest(run.longest_batch) {
    seen.worker.buffer = buffer.data();
    seen.worker.capacity = launch.buffer;
    seen.worker.flush = [](atos_cpu_worker *worker) { reinterpret_cast<Seen *>(worker)->owner->flush_pushes(); };
    seen.worker.scratch = scratch.data();
    seen.worker.scratch_bytes = launch.scratch;
    seen.owner = this;
  }

  void work(unsigned workers) {
    Counters *counters = queue.counters;
    if (!given.persistent) {
      if (launch.idle_round) run_idle();
      else round(launch.round_end);
    } else if (!given.barrier) {
      persistent();
    } else {
      for (uint64_t end = launch.round_end;;) {
        round(end);
        barrier(workers, [&] {
          store(&counters->head, end); // claims ran past the end of the round
          open_round();
          fetch_add(&counters->rounds, uint64_t(1));
        });
        uint64_t next = load(&counters->round_end);
        if (next == kStopped) break;
        if (next == end) {
          if (!given.idle) break;
          run_idle();
          barrier(workers, [&] { open_round(); });
          next = load(&counters->round_end);
          if (next == end || next == kStopped) break;
        }
        end = next;
      }
    }
    fetch_add(&counters->ran, ran);
    fetch_add(&counters->pushed, pushed);
    if (unreported) queue.finish(unreported);
  }

private:
  static constexpr uint64_t kStopped = ~uint64_t(0);
  struct Seen { // the task's view, first, so that a flush finds its owner
    atos_cpu_worker worker{};
    CpuWorker *owner = nullptr;
  };

  // The last worker at a barrier decides for all where the next round ends, or that none follows.
  void open_round() {
    store(&queue.counters->round_end, queue.stopped() ? kStopped : there());
  }

  uint64_t there() const { return tickets_of(load(&queue.counters->tail)); }

  template <class Last> void barrier(unsigned workers, Last last) {
    Counters *counters = queue.counters;
    const uint64_t phase = load(&counters->phase);
    if (fetch_add(&counters->arrived, uint64_t(1)) % workers == workers - 1) {
      last();
      store(&counters->phase, phase + 1);
      return;
    }
    for (Backoff backoff; load(&counters->phase) == phase;) backoff.wait();
  }

  // The items of our tickets, from the first one on, as far as they are there.
  unsigned take_ready() {
    unsigned got = 0;
    const unsigned limit = most = longest.load(std::memory_order_relaxed);
    while (claimed && got < limit) {
      const Place place = taking.at(first);
      Slot<bytes> &slot = taking.slot<bytes>(place.index);
      typename Slot<bytes>::Seen word;
      if (!slot.is_ready(place.sequence, word)) break;
      items[got++] = slot.get(word);
      slot.release(place.sequence);
      ++first;
      --claimed;
    }
    return got;
  }

  // When our tickets are not filled: they may be for a ring that has come since.
  void look_for_ring(uint64_t tail) {
    if (growths_of(tail) == taken) return;
    const uint64_t start = queue.first_ticket_of(taken + 1);
    if (first >= start) taking = queue.ring(++taken, start);
  }

  uint64_t fair_batch_size(uint64_t head, uint64_t end) const {
    const int64_t there = int64_t(end - head) / int64_t(launch.workers);
    return there < 1 ? 1 : there > launch.fetch ? launch.fetch : uint64_t(there);
  }

  // Of all that is published and not claimed.
  uint64_t claim_size(uint64_t head) {
    const uint64_t end = there();
    demand = int64_t(head - end);
    return fair_batch_size(head, end);
  }

  void run(unsigned got) {
    // A worker stops between batches: long tasks make them shorter. Now and then is enough for a look at the clock.
    const bool timed = (got == most && most < launch.fetch) || (got >= kFew && batches++ % kBetweenLooks == 0);
    const auto began = timed ? StopMonitor::Clock::now() : StopMonitor::Clock::time_point{};
    if (!program.checked) program.run(&seen.worker, items.data(), got, given.arguments);
    else // one by one, since a task that fails returns from all that it was given
      for (unsigned k = 0; k < got; ++k) {
        program.run(&seen.worker, &items[k], 1, given.arguments);
        report(&items[k]);
      }
    flush_pushes();
    if (timed) {
      const auto took = StopMonitor::Clock::now() - began;
      if (took > kLongBatch) longest = std::max(got / 2, 1u);
      else if (took < kLongBatch / 4 && got == most) longest = std::min(2 * got, launch.fetch);
    }
    unreported += got;
    ran += got;
    if (launch.samples) {
      const auto now = std::chrono::steady_clock::now().time_since_epoch();
      queue.trace(got, uint64_t(std::chrono::nanoseconds(now).count()), &queue.counters->head, 0,
                  static_cast<atos_sample *>(launch.samples), launch.max_samples, launch.sample_interval);
    }
  }

  // Calls idle; the number of its pushes.
  uint64_t run_idle() {
    const uint64_t before = pushed;
    program.idle(&seen.worker, given.arguments);
    report(nullptr);
    flush_pushes();
    return pushed - before;
  }

  // What failed in the task that has just returned, if anything did.
  void report(const Item<bytes> *item) {
    atos_failure &failure = failure_of_thread();
    if (!failure.failed) return;
    failure.in_item = item != nullptr;
    if (item) std::memcpy(failure.item, item, bytes);
    queue.fail(failure);
    failure = atos_failure{};
  }

  void flush_pushes() {
    const uint64_t n = uint64_t(seen.worker.count);
    if (!n) return;
    const uint64_t tail = int64_t(n) > demand + queue.headroom_of(putting)
                                   ? queue.reserve_with_space(n, [] {}) // all that may be mapped is
                                   : queue.reserve(n);
    if (growths_of(tail) != put) {
      put = growths_of(tail);
      putting = queue.ring(put, queue.first_ticket_of(put));
    }
    queue.publish(putting, tickets_of(tail), buffer.data(), n, 0, 1);
    seen.worker.count = 0;
    pushed += n;
  }

  void persistent() {
    uint64_t quiescent = ~uint64_t(0); // `published` at which this worker has registered as quiet
    Backoff backoff;
    for (;;) {
      if (queue.stopped()) return; // tickets that are not taken stay in the ring
      if (claimed == 0) {
        claimed = claim_size(load(&queue.counters->head));
        first = queue.claim(claimed);
      }
      if (const unsigned got = take_ready()) {
        run(got);
        backoff.reset();
        continue;
      }
      if (unreported) {
        queue.finish(unreported);
        unreported = 0;
      }
      if (queue.stopped()) return;
      uint64_t tail;
      const bool done = queue.ended(&tail);
      look_for_ring(tail);
      tail = tickets_of(tail);
      if (!given.idle) {
        if (done) return;
      } else if (done && quiescent == tail) {
        if (queue.all_quiescent(tail, launch.workers)) return;
      } else {
        quiescent = run_idle() == 0 && done ? tail : ~uint64_t(0);
        if (quiescent != ~uint64_t(0)) queue.register_quiescent(quiescent, 1);
      }
      backoff.wait();
    }
  }

  void round(uint64_t end) {
    for (;;) {
      if (queue.stopped()) return;
      if (claimed == 0) {
        const uint64_t head = load(&queue.counters->head);
        if (end == kNoRoundEnd) {
          claimed = queue.claim_below_tail(claim_size(head), &first);
        } else if (head < end) {
          demand = int64_t(head - there());
          const uint64_t want = fair_batch_size(head, end);
          first = queue.claim(want);
          claimed = first >= end ? 0 : end - first < want ? end - first : want;
        }
        if (claimed == 0) return;
      }
      if (const unsigned got = take_ready()) run(got);
      else look_for_ring(load(&queue.counters->tail));
    }
  }

  const Launch &launch;
  const atos_launch &given;
  const NativeProgram &program;
  QueueRef<bytes> queue;
  Ring taking, putting;         // those that our tickets are for, and our pushes,
  unsigned taken = 0, put = 0;  // and the growths before each
  std::vector<Item<bytes>> items, buffer;
  std::vector<unsigned char> scratch;
  Seen seen;
  int64_t demand = 0;           // tickets claimed beyond what was published, when we last looked
  uint64_t first = 0, claimed = 0, unreported = 0, ran = 0, pushed = 0;
  static constexpr unsigned kFew = 8, kBetweenLooks = 16; // items, batches
  static constexpr std::chrono::milliseconds kLongBatch{8};
  std::atomic<uint32_t> &longest;  // batch of any worker
  unsigned most = 1, batches = 0;
};

// The system gives memory to the addresses that are used.
class CpuGrowableRange final : public GrowableRange {
public:
  CpuGrowableRange(void *pointer, uint64_t size) {
    begin = pointer;
    bytes = mapped = size;
  }
  ~CpuGrowableRange() override { munmap(begin, bytes); }
  void extend(uint64_t) override {}
};

class CpuBackend final : public Backend {
public:
  void query(atos_device_info *info) override {
    std::strncpy(info->name, "CPU threads", sizeof info->name - 1);
    info->multiprocessor_count = int32_t(cores());
    info->total_bytes = host_memory();
    info->free_bytes = host_memory_free();
  }

  void *allocate(uint64_t bytes) override {
    // calloc, since the pages of a large queue are then touched only when they are used; aligned by hand.
    // What the host cannot hold is refused here, since a system that promises more memory than it has would not.
    char *raw = bytes > host_memory() ? nullptr : static_cast<char *>(std::calloc(bytes + 256, 1));
    if (!raw) throw no_memory(bytes);
    char *aligned = raw + 128 + (128 - reinterpret_cast<uintptr_t>(raw) % 128) % 128;
    reinterpret_cast<char **>(aligned)[-1] = raw;
    return aligned;
  }

  void *reserve(uint64_t *bytes, uint64_t least) override {
    for (;; *bytes /= 2) {
      void *pointer = addresses(std::max(*bytes, least));
      if (pointer != MAP_FAILED) {
        *bytes = std::max(*bytes, least);
        return pointer;
      }
      if (*bytes <= least)
        throw no_memory(least);
    }
  }
  void release_reserved(void *pointer, uint64_t bytes) noexcept override { munmap(pointer, bytes); }

  std::unique_ptr<GrowableRange> growable_range(uint64_t bytes) override {
    void *pointer = addresses(bytes);
    return pointer == MAP_FAILED ? nullptr : std::make_unique<CpuGrowableRange>(pointer, bytes);
  }

  void release(void *pointer) noexcept override {
    if (pointer) std::free(static_cast<char **>(pointer)[-1]);
  }
  void copy(void *to, const void *from, uint64_t bytes) override {
    if (bytes) std::memcpy(to, from, bytes);
  }

  void fill(void *to, const void *element, uint32_t element_bytes, uint64_t count) override {
    // Copies of what is filled already, twice as much each time, up to what the nearest cache holds.
    unsigned char *at = static_cast<unsigned char *>(to);
    if (count) std::memcpy(at, element, element_bytes);
    for (uint64_t done = 1, some; done < count; done += some) {
      some = std::min({done, count - done, uint64_t(1024)});
      std::memcpy(at + done * element_bytes, at, some * element_bytes);
    }
  }

  void wait(void *) override {} // what runs here has ended when it returns

  // Threads beyond the number of cores help nobody, but some more than that do no harm.
  uint32_t resident_blocks(atos_program &, const atos_launch &launch, uint32_t) override {
    const uint32_t most = std::max(kMostThreads, 4 * cores());
    if (launch.blocks > most)
      throw Failure(ATOS_TOO_MANY, format("%u threads asked for, but a launch on %u cores may have at most %u", launch.blocks,
                                        cores(), most));
    return launch.blocks ? launch.blocks : cores();
  }
  uint32_t workers_per_block(const atos_launch &) override { return 1; }

  void run_persistent(Run &run) override {
    drive(run, [&run](ThreadPool &pool) {
      run.kernel.round_end = run.first_end;
      gather(run, pool);
      if (!run.launch.barrier) ++run.counters->rounds;
    });
  }

  void run_discrete(Run &run) override {
    drive(run, [&run](ThreadPool &pool) { rounds(run, pool); });
  }

  bool ended(Run &run) override { return run.over; }

  void start_clock(const atos_launch &) override { start_of_thread() = std::chrono::steady_clock::now(); }
  double stop_clock(const atos_launch &) override {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_of_thread()).count();
  }

private:
  static Failure no_memory(uint64_t bytes) {
    const auto asked = static_cast<unsigned long long>(bytes);
    return {ATOS_NO_MEMORY, format("%llu bytes asked for, more than the host has or than this process may take", asked)};
  }

  static void *addresses(uint64_t bytes) {
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }

  // Lets the chief do something with his crew; the caller only watches. He leaves both behind if they do not stop.
  template <class F> static void drive(Run &run, F with_pool) {
    std::unique_ptr<LaunchThread> &thread = launch_thread_of_caller();
    run.over = false;
    const auto job = [&run, &pool = thread->pool, with_pool] {
      try {
        with_pool(pool);
      } catch (...) {
        run.over = true;
        throw;
      }
      run.over = true;
    };
    try {
      thread->run(job, [&run] {
        atos_sample now{};
        if (run.monitor.poll(observe(run, &now) ? &now : nullptr)) ask_to_stop(run);
        return run.monitor.time_to_next_poll();
      });
    } catch (const Failure &failure) {
      if (failure.status == ATOS_STUCK) (void)thread.release();
      throw;
    }
  }

  // How things stand, if workers run.
  static bool observe(Run &run, atos_sample *now) {
    if (!run.launch.progress) return false;
    std::lock_guard<std::mutex> lock(run.stopping);
    if (run.live) *now = {0, load(&run.live->ran_so_far), tickets_of(load(&run.live->tail)), load(&run.live->head)};
    return run.live;
  }

  static void ask_to_stop(Run &run) {
    std::lock_guard<std::mutex> lock(run.stopping);
    run.asked = true;
    if (run.live) __atomic_fetch_or(&run.live->stop, kStopAsked, __ATOMIC_RELEASE);
  }

  // Threads run what is there, and leave when nothing is: with a barrier only what was there when they came.
  static void rounds(Run &run, ThreadPool &pool) {
    Counters &counters = *run.counters;
    pool.start(run.launch.blocks); // all of them before the first task runs, since it may fail
    while (counters.stop == kRun) {
      const uint64_t tail = counters.tail, pending = tail - counters.head;
      const uint64_t end = counters.head < run.first_end ? run.first_end : tail;
      run.kernel.idle_round = pending == 0;
      if (pending == 0 && !run.launch.idle) return;
      // A thread that gets less than a batch costs more than it helps; an idle round has all of them.
      const uint64_t useful = (pending + run.launch.fetch - 1) / run.launch.fetch;
      run.blocks = pending && useful < run.launch.blocks ? uint32_t(useful) : run.launch.blocks;
      run.kernel.workers = run.blocks;
      run.kernel.round_end = run.launch.barrier ? end : kNoRoundEnd;
      gather(run, pool);
      ++counters.rounds;
      if (run.kernel.idle_round && counters.tail == tail) return; // a whole round of idle calls pushed nothing
      if (run.launch.barrier) counters.head = end; // claims ran past the end of the round
    }
  }

  // Runs the workers once, each in a thread.
  static void gather(Run &run, ThreadPool &pool) {
    run.counters->arrived = run.counters->phase = 0;
    run.counters->quiescent = QueueRef<4>::none_quiescent(run.counters->tail);
    {
      std::lock_guard<std::mutex> lock(run.stopping);
      if (run.asked) run.counters->stop |= kStopAsked;
      std::memcpy(run.kernel.counters, static_cast<void *>(run.counters), sizeof(Counters));
      run.live = static_cast<Counters *>(run.kernel.counters);
    }
    if (run.item_bytes == 4) work<4>(run, pool);
    else if (run.item_bytes == 8) work<8>(run, pool);
    else work<16>(run, pool);
    std::lock_guard<std::mutex> lock(run.stopping);
    run.live = nullptr;
    std::memcpy(static_cast<void *>(run.counters), run.kernel.counters, sizeof(Counters));
  }

  // The workers are made here, where running out of memory can be reported.
  template <unsigned bytes> static void work(Run &run, ThreadPool &pool) {
    std::vector<std::unique_ptr<CpuWorker<bytes>>> workers(run.blocks);
    for (auto &worker : workers)
      worker = std::make_unique<CpuWorker<bytes>>(run, static_cast<const NativeProgram &>(*run.program));
    pool.run(run.blocks, [&](unsigned number) { workers[number]->work(run.blocks); });
  }

  static std::chrono::steady_clock::time_point &start_of_thread() {
    static thread_local std::chrono::steady_clock::time_point start;
    return start;
  }

  // Threads that launch side by side have chiefs of their own. A forked child has none of its parent's threads: it forgets
  // their chief and starts another.
  static std::unique_ptr<LaunchThread> &launch_thread_of_caller() {
    struct Holder {
      std::unique_ptr<LaunchThread> thread;
      pid_t owner = 0;
      void forget_others() {
        if (owner != getpid()) (void)thread.release();
      }
      ~Holder() { forget_others(); }
    };
    static thread_local Holder holder;
    holder.forget_others();
    if (!holder.thread) holder.thread = std::make_unique<LaunchThread>();
    holder.owner = getpid();
    return holder.thread;
  }

  static uint64_t host_memory() { return uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGE_SIZE)); }
};

} // namespace

uint64_t host_memory_free() { return memory_free(); }

Backend &cpu_backend() {
  static CpuBackend instance;
  return instance;
}

} // namespace atos

extern "C" {

atos_status atos_program_native(uint64_t run, uint64_t idle, int32_t checked, atos_program **program) {
  return atos::guarded([&] {
    *program = new atos::NativeProgram(reinterpret_cast<atos::RunTask>(run), reinterpret_cast<atos::RunIdle>(idle), checked);
  });
}

void atos_cpu_fail(int64_t site, int64_t value, int64_t bound, int64_t array) {
  atos_failure &failure = atos::failure_of_thread();
  if (!failure.failed) failure = {1, site, value, bound, array, 0, {0, 0}};
}
}
