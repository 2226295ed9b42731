// CpuBackend: memory of the host, and launches whose workers are threads.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu/crash_notice.h"
#include "cpu/launch_thread.h"
#include "cpu/memory.h"
#include "cpu/peer_workers.h"
#include "cpu/worker.h"
#include "host/backend.h"
#include "host/resource_limits.h"
#include "protocol/inbox.cuh"

namespace atos {
namespace {

constexpr uint32_t kMostThreads = 1024; // of a launch, or 4 for each core if that is more

// The system maps memory where the addresses are used.
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
    info->free_bytes = memory_free();
  }

  void *allocate(uint64_t bytes) override { return allocate(bytes, true); }
  void *allocate_uncleared(uint64_t bytes) override { return allocate(bytes, false); }

  void *reserve(uint64_t *bytes, uint64_t least) override {
    for (*bytes = std::min(*bytes, host_memory_to_spare());; *bytes /= 2) {
      void *pointer = addresses(std::max(*bytes, least));
      if (pointer != MAP_FAILED) {
        *bytes = std::max(*bytes, least);
        return pointer;
      }
      if (*bytes <= least) throw no_memory(least);
    }
  }
  void release_reserved(void *pointer, uint64_t bytes, uint64_t, bool) noexcept override { munmap(pointer, bytes); }

  std::unique_ptr<GrowableRange> reserve_growable(uint64_t bytes) override {
    void *pointer = addresses(bytes);
    return pointer == MAP_FAILED ? nullptr : std::make_unique<CpuGrowableRange>(pointer, bytes);
  }

  void release(void *pointer) noexcept override { cpu::release(pointer); }
  void copy(void *to, const void *from, uint64_t bytes) override {
    if (bytes) std::memcpy(to, from, bytes);
  }

  void fill(void *to, const void *element, uint32_t element_bytes, uint64_t count) override {
    // Copies the filled part, twice as much each time, up to the size of the nearest cache.
    unsigned char *at = static_cast<unsigned char *>(to);
    if (count) std::memcpy(at, element, element_bytes);
    for (uint64_t done = 1, some; done < count; done += some) {
      some = std::min({done, count - done, uint64_t(1024)});
      std::memcpy(at + done * element_bytes, at, some * element_bytes);
    }
  }

  void wait(void *) override {} // work on the CPU has ended when its call returns
  void order(void *, void *) override {}

  InboxMemory make_inbox() override { return {static_cast<Inbox *>(allocate(inbox_bytes(kMostItemBytes))), nullptr}; }
  void release_inbox(const InboxMemory &memory) noexcept override { release(memory.ring); }

  // Threads beyond the number of cores help nobody, but a few more threads do no harm.
  uint32_t resident_blocks(const Run &run) override {
    const uint32_t blocks = std::max(run.launch.blocks, run.all_workers);
    const uint32_t most = std::max(kMostThreads, 4 * cores());
    if (blocks > most)
      throw Failure(ATOS_TOO_MANY,
                    format("%u threads asked for, but a launch on %u cores may have at most %u", blocks, cores(), most));
    return run.launch.blocks ? run.launch.blocks : cores();
  }
  uint32_t workers_per_block(const atos_launch &) override { return 1; }

  void run_persistent(Run &run) override {
    drive({&run}, [&run](ThreadPool &pool) {
      run.kernel.round_end = run.first_end;
      run_workers(run, pool);
      if (!run.launch.barrier) ++run.counters->rounds;
    });
  }

  void run_discrete(Run &run) override {
    drive({&run}, [&run](ThreadPool &pool) { rounds(run, pool); });
  }

  bool ended(Run &run) override { return run.over; }

  void provide_peers(const Runs &runs) override {
    for (const auto &run : runs) provide_counters(*run);
  }
  void collect_peers(const Runs &runs) override {
    for (const auto &run : runs) collect_counters(*run);
    if (!runs[0]->launch.barrier && runs[0]->peers.own == 0) ++runs[0]->counters->rounds;
  }

  // One pool has the workers of all devices. A stop is asked for on the first device, whose workers tell the others.
  void run_peers(const Runs &runs, bool collects) override {
    for (const auto &run : runs) run->over = false;
    std::vector<Run *> observed;
    for (const auto &run : runs) observed.push_back(run.get());
    drive(observed, [this, runs, collects](ThreadPool &pool) { // a copy, since workers that do not stop outlive the call
      struct Over {
        const Runs &runs;
        ~Over() {
          for (size_t k = 1; k < runs.size(); ++k) runs[k]->over = true;
        }
      } over{runs};
      work_together(runs, pool);
      if (collects) collect_peers(runs);
    });
  }

  void start_clock(const atos_launch &) override { start_of_thread() = std::chrono::steady_clock::now(); }
  double stop_clock(const atos_launch &) override {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_of_thread()).count();
  }

private:
  // Refuses more memory than the host has, since a system that overcommits would not.
  static void *allocate(uint64_t bytes, bool cleared) {
    void *pointer = bytes > host_memory() ? nullptr : cpu::allocate(bytes, cleared);
    if (!pointer) throw no_memory(bytes);
    return pointer;
  }

  static Failure no_memory(uint64_t bytes) {
    const auto asked = static_cast<unsigned long long>(bytes);
    return {ATOS_NO_MEMORY, format("%llu bytes asked for, more than the host has or than this process may take", asked)};
  }

  static void *addresses(uint64_t bytes) {
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }

  // Runs `with_pool` in a launch thread, while the caller polls: the caller stops the first run, and samples all runs. A launch
  // thread whose workers do not stop is left behind.
  template <class F> static void drive(const std::vector<Run *> &runs, F with_pool) {
    Run &run = *runs[0];
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
      if (failure.status == ATOS_STUCK) {
        run.left_behind = true;
        (void)thread.release();
      }
      throw;
    }
    for (const Run *each : runs) run.monitor.workers_stopped(each->counters->stop);
  }

  // Samples the counters of all devices, also of other processes, if workers run.
  static bool observe(Run &run, atos_sample *now) {
    if (!run.launch.progress) return false;
    std::lock_guard<std::mutex> lock(run.stopping);
    if (!run.live) return false;
    const uint32_t devices = std::max(run.peers.count, 1u);
    for (uint32_t k = 0; k < devices; ++k) {
      const Counters &its = run.peers.count ? *run.peers.peer[k].counters : *run.live;
      const uint64_t tail = tickets_of(load(&its.tail)), head = load(&its.head);
      now->ran += load(&its.ran_so_far);
      now->tail += tail;
      now->claimed += devices > 1 ? std::min(head, tail) : head; // claims beyond a tail make up for no other device's item
    }
    return true;
  }

  static void ask_to_stop(Run &run) {
    std::lock_guard<std::mutex> lock(run.stopping);
    run.asked = true;
    const uint64_t why = kStopAsked | (run.monitor.lost() ? kStopGone : 0);
    if (run.live) __atomic_fetch_or(&run.live->stop, why, __ATOMIC_RELEASE);
  }

  // The discrete schedule: threads run pending items, and leave when there are none; with a barrier, only items that were
  // pending when the round began.
  static void rounds(Run &run, ThreadPool &pool) {
    Counters &counters = *run.counters;
    pool.start(run.launch.blocks); // all threads before the first task runs, since a start may fail
    while (counters.stop == kRun) {
      const uint64_t tail = counters.tail, far = counters.far.stored, pending = tail - counters.head;
      const uint64_t end = counters.head < run.first_end ? run.first_end : tail;
      const uint64_t opened = pending == 0 && run.launch.buckets ? open_next(run) : 0; // chunks of far items
      // A queue that is empty from the start has one empty round, so that the function between rounds can push.
      const bool empty_round = pending == 0 && opened == 0 && run.launch.each_round && counters.rounds == 0;
      run.kernel.idle_round = pending == 0 && opened == 0 && !empty_round;
      if (run.kernel.idle_round && !run.launch.idle) return;
      // A thread that gets less than a batch costs more than it helps; an idle round has all threads.
      const uint64_t useful = opened ? opened : empty_round ? 1 : (pending + run.launch.fetch - 1) / run.launch.fetch;
      run.blocks = !run.kernel.idle_round && useful < run.launch.blocks ? uint32_t(useful) : run.launch.blocks;
      run.kernel.workers = run.blocks;
      run.kernel.round_end = run.launch.barrier ? end : kNoRoundEnd;
      const bool is_round = !(run.launch.barrier && run.kernel.idle_round);
      run.kernel.round = counters.rounds - (!is_round && counters.rounds); // idle is called in the round that has ended
      run_workers(run, pool);
      counters.rounds += is_round;
      // A whole round of idle calls pushed nothing.
      if (run.kernel.idle_round && counters.tail == tail && counters.far.stored == far) return;
      if (!run.launch.barrier) continue;
      counters.head = std::min(counters.head, end); // claims ran past the end of the round, unless a stop interrupted it
      counters.round_end = end;
    }
  }

  // Opens the next bucket; returns the number of its chunks, which no worker has yet.
  static uint64_t open_next(Run &run) {
    const Launch &kernel = run.kernel;
    const auto open = [&](auto far) {
      far.queue.counters = run.counters;
      return far.open(kBetweenRounds, run.launch.blocks, kFarChunk);
    };
    switch (run.item_bytes) {
    case 4: return open(FarItems<4>(kernel));
    case 8: return open(FarItems<8>(kernel));
    case 16: return open(FarItems<16>(kernel));
    default: return open(FarItems<32>(kernel));
    }
  }

  // Runs the workers once, each in a thread.
  static void run_workers(Run &run, ThreadPool &pool) {
    provide_counters(run);
    if (run.item_bytes == 4) work<4>(run, pool);
    else if (run.item_bytes == 8) work<8>(run, pool);
    else if (run.item_bytes == 16) work<16>(run, pool);
    else work<32>(run, pool);
    collect_counters(run);
  }

  static void provide_counters(Run &run) {
    run.counters->arrived = run.counters->phase = 0;
    run.counters->quiescent = QueueRef<4>::none_quiescent(tickets_of(run.counters->tail));
    std::lock_guard<std::mutex> lock(run.stopping);
    if (run.asked) run.counters->stop |= kStopAsked;
    std::memcpy(run.kernel.counters, static_cast<void *>(run.counters), sizeof(Counters));
    run.live = run.kernel.counters;
  }

  static void collect_counters(Run &run) {
    std::lock_guard<std::mutex> lock(run.stopping);
    run.live = nullptr;
    std::memcpy(static_cast<void *>(run.counters), run.kernel.counters, sizeof(Counters));
    run.has_run = true;
  }

  // The workers are made here, where running out of memory can be reported.
  template <unsigned bytes> static void work(Run &run, ThreadPool &pool) {
    std::vector<std::unique_ptr<CpuWorker<bytes>>> workers(run.blocks);
    for (unsigned k = 0; k < run.blocks; ++k) workers[k] = std::make_unique<CpuWorker<bytes>>(run, k);
    pool.run(run.blocks, [&](unsigned number) {
      const CrashNotice notice(static_cast<const CpuProgram &>(*run.program).checked);
      workers[number]->work();
    });
  }

  static std::chrono::steady_clock::time_point &start_of_thread() {
    static thread_local std::chrono::steady_clock::time_point start;
    return start;
  }

  // Each thread that launches has a launch thread of its own. A forked child has none of its parent's threads: the child
  // forgets their launch thread, and starts another.
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

uint64_t host_memory_to_spare() { return std::min(cpu_backend().free_bytes() / 2, addresses_to_spare()); }

Backend &cpu_backend() {
  static CpuBackend instance;
  return instance;
}

} // namespace atos
