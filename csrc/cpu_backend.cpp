// The CPU: workers are threads, each one lane wide, over the same queue protocol. The task is native code that runs a whole
// batch of items at a call.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <sched.h>
#include <unistd.h>
#include <vector>

#include "backend.h"

namespace atos {
namespace {

using RunTask = void (*)(atos_cpu_worker *worker, const void *items, int64_t n, const void *args);
constexpr uint64_t kWhateverIsPublished = ~uint64_t(0); // as the end of a round

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

// Threads that wait for work, so that a discrete launch does not start new ones for each round. The caller is number 0.
class Crew {
public:
  ~Crew() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      closing = true;
    }
    wake.notify_all();
    for (std::thread &thread : threads) thread.join();
  }

  void run(unsigned count, const std::function<void(unsigned)> &f) {
    if (count > 1) {
      std::lock_guard<std::mutex> lock(mutex);
      while (threads.size() + 1 < count) {
        const unsigned number = unsigned(threads.size()) + 1;
        threads.emplace_back([this, number, seen = generation] { serve(number, seen); });
      }
      work = &f;
      wanted = count;
      left = count - 1;
      ++generation;
      wake.notify_all();
    }
    f(0);
    if (count > 1) {
      std::unique_lock<std::mutex> lock(mutex);
      done.wait(lock, [&] { return left == 0; });
    }
  }

private:
  void serve(unsigned number, uint64_t seen) {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return closing || generation != seen; });
      if (closing) return;
      seen = generation;
      if (number >= wanted) continue;
      const std::function<void(unsigned)> *f = work;
      lock.unlock();
      (*f)(number);
      lock.lock();
      if (--left == 0) done.notify_one();
    }
  }

  std::mutex mutex;
  std::condition_variable wake, done;
  std::vector<std::thread> threads;
  const std::function<void(unsigned)> *work = nullptr;
  unsigned wanted = 0, left = 0;
  uint64_t generation = 0;
  bool closing = false;
};

// Spins a little, then lets others have the core.
struct Patience {
  unsigned tries = 0;
  void wait() {
    if (++tries < 64) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else if (tries < 1024) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  void reset() { tries = 0; }
};

template <unsigned bytes> class CpuWorker {
public:
  CpuWorker(const Run &run, const NativeProgram &program)
      : launch(run.kernel), given(*run.launch), program(program),
        queue{static_cast<Counters *>(launch.counters), static_cast<Slot<bytes> *>(launch.slots),
              static_cast<Item<bytes> *>(launch.spill), launch.size, launch.reciprocal, launch.spill_size},
        items(launch.fetch), buffer(launch.buffer), scratch(launch.scratch + 16) {
    seen.worker.buffer = buffer.data();
    seen.worker.capacity = launch.buffer;
    seen.worker.flush = [](atos_cpu_worker *worker) { reinterpret_cast<Seen *>(worker)->owner->hand_on(); };
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
          add(&counters->rounds, uint64_t(1));
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
    add(&counters->ran, ran);
    add(&counters->pushed, pushed);
    if (owed) queue.finish(owed);
  }

private:
  static constexpr uint64_t kStopped = ~uint64_t(0);
  struct Seen { // the task's view, first, so that a flush finds its owner
    atos_cpu_worker worker{};
    CpuWorker *owner = nullptr;
  };

  // The last worker at a barrier decides for all where the next round ends, or that none follows.
  void open_round() {
    store(&queue.counters->round_end, queue.stopped() ? kStopped : load(&queue.counters->published));
  }

  template <class Last> void barrier(unsigned workers, Last last) {
    Counters *counters = queue.counters;
    const uint64_t phase = load(&counters->phase);
    if (add(&counters->arrived, uint64_t(1)) % workers == workers - 1) {
      last();
      store(&counters->phase, phase + 1);
      return;
    }
    for (Patience patience; load(&counters->phase) == phase;) patience.wait();
  }

  // The items of our tickets, from the first one on, as far as they are there.
  unsigned take_ready() {
    unsigned got = 0;
    while (claimed) {
      const Place place = queue.at(first);
      Slot<bytes> &slot = queue.slots[place.index];
      typename Slot<bytes>::Seen word;
      if (!slot.full(place.turn, word)) break;
      items[got++] = slot.get(word);
      slot.retire(place.turn);
      ++first;
      --claimed;
    }
    return got;
  }

  uint64_t share(uint64_t head, uint64_t end) const {
    const int64_t there = int64_t(end - head) / int64_t(launch.workers);
    return there < 1 ? 1 : there > launch.fetch ? launch.fetch : uint64_t(there);
  }

  void run(unsigned got) {
    if (!program.checked) program.run(&seen.worker, items.data(), got, given.arguments);
    else // one by one, since a task that fails returns from all that it was given
      for (unsigned k = 0; k < got; ++k) {
        program.run(&seen.worker, &items[k], 1, given.arguments);
        report(&items[k]);
      }
    hand_on();
    owed += got;
    ran += got;
    if (launch.samples) {
      const auto now = std::chrono::steady_clock::now().time_since_epoch();
      queue.trace(got, uint64_t(std::chrono::nanoseconds(now).count()), static_cast<atos_sample *>(launch.samples),
                  launch.max_samples, launch.sample_interval);
    }
  }

  // Calls idle; the number of its pushes.
  uint64_t run_idle() {
    const uint64_t before = pushed;
    program.idle(&seen.worker, given.arguments);
    report(nullptr);
    hand_on();
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

  void hand_on() {
    const uint64_t n = uint64_t(seen.worker.count);
    if (!n) return;
    queue.publish(queue.reserve(n), buffer.data(), n, 0, 1);
    seen.worker.count = 0;
    pushed += n;
  }

  void persistent() {
    uint64_t quiet = ~uint64_t(0); // `published` at which this worker has registered as quiet
    Patience patience;
    for (;;) {
      if (claimed == 0) {
        if (queue.stopped()) return;
        claimed = share(load(&queue.counters->head), load(&queue.counters->published));
        first = queue.claim(claimed);
      }
      if (const unsigned got = take_ready()) {
        run(got);
        patience.reset();
        continue;
      }
      if (owed) {
        queue.finish(owed);
        owed = 0;
      }
      if (queue.stopped()) return;
      uint64_t published;
      const bool done = queue.ended(&published);
      if (!given.idle) {
        if (done) return;
      } else if (done && quiet == published) {
        if (queue.all_quiet(published, launch.workers)) return;
      } else {
        quiet = run_idle() == 0 && done ? published : ~uint64_t(0);
        if (quiet != ~uint64_t(0)) queue.register_quiet(quiet, 1);
      }
      patience.wait();
    }
  }

  void round(uint64_t end) {
    for (;;) {
      if (claimed == 0) {
        if (queue.stopped()) return;
        const uint64_t head = load(&queue.counters->head);
        if (end == kWhateverIsPublished) {
          claimed = queue.claim_published(share(head, load(&queue.counters->published)), &first);
        } else if (head < end) {
          const uint64_t want = share(head, end);
          first = queue.claim(want);
          claimed = first >= end ? 0 : end - first < want ? end - first : want;
        }
        if (claimed == 0) return;
      }
      if (const unsigned got = take_ready()) run(got);
      else if (queue.stopped()) return; // a ticket that was spilled is never filled
    }
  }

  const Launch &launch;
  const atos_launch &given;
  const NativeProgram &program;
  QueueRef<bytes> queue;
  std::vector<Item<bytes>> items, buffer;
  std::vector<unsigned char> scratch;
  Seen seen;
  uint64_t first = 0, claimed = 0, owed = 0, ran = 0, pushed = 0;
};

class CpuBackend final : public Backend {
public:
  void query(atos_device_info *info) override {
    std::strncpy(info->name, "CPU threads", sizeof info->name - 1);
    info->processors = int32_t(cores());
    info->total_bytes = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGE_SIZE));
    info->free_bytes = uint64_t(sysconf(_SC_AVPHYS_PAGES)) * uint64_t(sysconf(_SC_PAGE_SIZE));
  }

  void *allocate(uint64_t bytes) override {
    // calloc, since the pages of a large queue are then touched only when they are used; aligned by hand.
    char *raw = bytes > UINT64_MAX - 256 ? nullptr : static_cast<char *>(std::calloc(bytes + 256, 1));
    if (!raw) throw Failure(ATOS_NO_MEMORY, text("%llu bytes asked for, more than the host has", (unsigned long long)bytes));
    char *aligned = raw + 128 + (128 - reinterpret_cast<uintptr_t>(raw) % 128) % 128;
    reinterpret_cast<char **>(aligned)[-1] = raw;
    return aligned;
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

  // Any number of threads is resident, sooner or later; as many as there are cores is what helps.
  void wait(void *) override {} // what runs here has ended when it returns

  uint32_t resident_blocks(atos_program &, const atos_launch &launch, uint32_t) override {
    return launch.blocks ? launch.blocks : cores();
  }
  uint32_t workers_per_block(const atos_launch &) override { return 1; }

  void run_persistent(Run &run) override {
    run.kernel.round_end = run.first_end;
    gather(run);
    if (!run.launch->barrier) ++run.counters->rounds;
  }

  // Threads run what is there, and leave when nothing is: with a barrier only what was there when they came.
  void run_discrete(Run &run) override {
    Counters &counters = *run.counters;
    while (counters.stop == kRun) {
      const uint64_t published = counters.published, pending = published - counters.head;
      const uint64_t end = counters.head < run.first_end ? run.first_end : published;
      run.kernel.idle_round = pending == 0;
      if (pending == 0 && !run.launch->idle) return;
      // A thread that gets less than a batch costs more than it helps; an idle round has all of them.
      const uint64_t useful = (pending + run.launch->fetch - 1) / run.launch->fetch;
      run.blocks = pending && useful < run.launch->blocks ? uint32_t(useful) : run.launch->blocks;
      run.kernel.workers = run.blocks;
      run.kernel.round_end = run.launch->barrier ? end : kWhateverIsPublished;
      gather(run);
      ++counters.rounds;
      if (run.kernel.idle_round && counters.published == published) return; // a whole round of idle calls pushed nothing
      if (run.launch->barrier) counters.head = end; // claims ran past the end of the round
    }
  }

  void start_clock(const atos_launch &) override { start_of_thread() = std::chrono::steady_clock::now(); }
  double stop_clock(const atos_launch &) override {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_of_thread()).count();
  }

private:
  // Runs the workers once, each in a thread.
  void gather(const Run &run) {
    run.counters->arrived = run.counters->phase = 0;
    run.counters->quiet = QueueRef<4>::nobody_quiet(run.counters->published);
    std::memcpy(run.kernel.counters, static_cast<void *>(run.counters), sizeof(Counters));
    if (run.item_bytes == 4) work<4>(run);
    else if (run.item_bytes == 8) work<8>(run);
    else work<16>(run);
    std::memcpy(static_cast<void *>(run.counters), run.kernel.counters, sizeof(Counters));
  }

  // The workers are made here, where running out of memory can be reported.
  template <unsigned bytes> static void work(const Run &run) {
    std::vector<std::unique_ptr<CpuWorker<bytes>>> workers(run.blocks);
    for (auto &worker : workers)
      worker = std::make_unique<CpuWorker<bytes>>(run, static_cast<const NativeProgram &>(*run.program));
    crew_of_thread().run(run.blocks, [&](unsigned number) { workers[number]->work(run.blocks); });
  }

  static std::chrono::steady_clock::time_point &start_of_thread() {
    static thread_local std::chrono::steady_clock::time_point start;
    return start;
  }

  // Threads that launch side by side have crews of their own. A forked child has none of its parent's threads: it forgets
  // their crew and starts another.
  static Crew &crew_of_thread() {
    struct Holder {
      std::unique_ptr<Crew> crew;
      pid_t owner = 0;
      void forget_others() {
        if (owner != getpid()) (void)crew.release();
      }
      ~Holder() { forget_others(); }
    };
    static thread_local Holder holder;
    holder.forget_others();
    if (!holder.crew) holder.crew = std::make_unique<Crew>();
    holder.owner = getpid();
    return *holder.crew;
  }

  // The cores that this process may use, which can be fewer than the machine has.
  static uint32_t cores() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return uint32_t(CPU_COUNT(&set));
    return std::max(1u, std::thread::hardware_concurrency());
  }
};

} // namespace

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
