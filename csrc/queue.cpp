// The host's side of a queue: it owns the memory, keeps a copy of the counters between launches, and drives the schedule.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <unistd.h>

#include "backend.h"
#include "host.h"

namespace atos {

// The spill area is as large as memory allows, since it costs address space only: once a stop is asked for, tasks in hand may
// push any number of items more.
constexpr uint64_t kSpillBytes = uint64_t(16) << 30, kLeastSpill = 1 << 20;
constexpr uint64_t kBesideSlots = sizeof(Counters) + kSplitItems * sizeof(SplitItem); // bytes; the spill area takes some only when used
constexpr uint64_t kStagedSlots = 1 << 20; // copied to the device at once
constexpr uint64_t kMostAddresses = uint64_t(1) << 44; // bytes that a queue may grow into
constexpr std::chrono::milliseconds kLockWait{20}; // how long a queue is waited for before the caller may look after signals

static uint64_t reciprocal_of(uint64_t size) { return ~uint64_t(0) / size; }

// Slots of `bytes`-byte items, seen from the host as raw memory.
template <unsigned bytes> struct HostSlots {
  static void write(unsigned char *slots, const unsigned char *items, uint64_t n, uint64_t generation) {
    Slot<bytes> *slot = reinterpret_cast<Slot<bytes> *>(slots);
    for (uint64_t i = 0; i < n; ++i) {
      Item<bytes> item;
      std::memcpy(&item, items + i * bytes, bytes);
      slot[i].put(item);
      slot[i].commit(item, 2 * generation);
    }
  }
  // The item in a slot if it is full, and the slot's turn.
  static bool read(const unsigned char *slots, uint64_t i, unsigned char *item, uint64_t *sequence) {
    const Slot<bytes> &slot = reinterpret_cast<const Slot<bytes> *>(slots)[i];
    typename Slot<bytes>::Seen seen{};
    if constexpr (bytes == 4) *sequence = slot.word >> 32;
    else *sequence = slot.sequence;
    if (*sequence % 2 == 0 || !slot.is_ready(*sequence - 1, seen)) return false;
    const Item<bytes> value = slot.get(seen);
    std::memcpy(item, &value, bytes);
    return true;
  }
};

// A mutex that can be waited for with a limit, as std::timed_mutex, whose waits ThreadSanitizer does not know. In a forked child
// nobody would ever open what a thread of its parent has closed.
class ForkSafeTimedMutex {
public:
  bool try_lock_for(StopMonitor::Clock::duration rest) {
    std::unique_lock<std::mutex> lock(mutex);
    if (!opened.wait_for(lock, rest, [&] { return can_enter(); })) return false;
    closed_by = getpid();
    return true;
  }
  void unlock() {
    std::lock_guard<std::mutex> lock(mutex);
    closed_by = 0;
    opened.notify_one();
  }

private:
  bool can_enter() const {
    if (closed_by && closed_by != getpid())
      throw Failure(ATOS_BUSY, "a thread of the parent process used this queue at the fork; make another one here");
    return !closed_by;
  }

  std::mutex mutex;
  std::condition_variable opened;
  pid_t closed_by = 0;
};

} // namespace atos

using namespace atos;

struct atos_queue {
  const int32_t device;
  const uint32_t item_bytes, slot_bytes;

  atos_queue(int32_t device, uint64_t capacity, uint32_t item_bytes)
      : device(device), item_bytes(item_bytes), slot_bytes(item_bytes == 4 ? 8 : item_bytes + 8),
        backend(atos::backend(device)), size(capacity), most(capacity) {
    check_size(capacity);
    try {
      slots = backend.allocate(capacity * slot_bytes);
      device_counters = backend.allocate(sizeof(Counters));
      split_items = backend.allocate(kSplitItems * sizeof(SplitItem));
      spill_bytes = std::min({kSpillBytes, host_memory_free() / 2, addresses_to_spare()});
      spill = backend.reserve(&spill_bytes, kLeastSpill * item_bytes);
    } catch (...) {
      free_memory();
      throw;
    }
  }
  ~atos_queue() { free_memory(); }

  uint64_t capacity() const { return size; }
  uint64_t limit() const { return most; }

  // Up to how many items the queue may grow; 0: as many as fit into half of the memory that is free.
  void set_limit(uint64_t limit) {
    if (limit && limit < size)
      throw Failure(ATOS_INVALID, format("max_capacity must be at least the capacity, %llu (got %llu); call resize() first",
                                       (unsigned long long)size, (unsigned long long)limit));
    atos_device_info info{};
    if (limit == 0) backend.query(&info);
    most = limit ? limit : std::max(uint64_t(size), info.free_bytes / 2 / slot_bytes);
  }

  uint64_t pending() {
    const auto lock = enter();
    return there();
  }

  void push(const void *items, uint64_t n) {
    const auto lock = enter();
    if (n > UINT64_MAX - there() || !ensure_capacity(there() + n))
      throw Failure(ATOS_QUEUE_FULL, format("pushing %llu items to a queue that holds %llu would exceed its max_capacity of %llu",
                                          (unsigned long long)n, (unsigned long long)there(), (unsigned long long)most));
    append(static_cast<const unsigned char *>(items), n);
  }

  void read(void *items, uint64_t most, atos_queue_state *state) {
    const auto lock = enter();
    *state = {there(), level, total_ran, total_pushed};
    const uint64_t n = std::min(most, state->pending);
    if (n) std::memcpy(items, peek().data(), n * item_bytes);
  }

  void restore(const unsigned char *items, const atos_queue_state &state) {
    const auto lock = enter();
    if (there()) throw Failure(ATOS_INVALID, "only an empty queue can be restored");
    store(items, state.pending, state.level);
    total_ran = state.tasks_run;
    total_pushed = state.tasks_pushed;
  }

  void clear() {
    const auto lock = enter();
    reset();
    overflow.clear();
  }

  void resize(uint64_t capacity) {
    const auto lock = enter();
    if (capacity == 0) throw Failure(ATOS_INVALID, "the capacity must be at least 1 (got 0)");
    if (there() > capacity)
      throw Failure(ATOS_INVALID, format("a capacity of %llu is less than the %llu tasks pending", (unsigned long long)capacity,
                                       (unsigned long long)there()));
    const bool fixed = most == size;
    move_to(capacity);
    most = fixed ? capacity : std::max(capacity, uint64_t(most));
  }

  void launch(atos_program &program, const atos_launch &given, atos_stats *stats) {
    *stats = atos_stats{};
    stats->overhead_bytes = kBesideSlots + (given.samples ? given.max_samples * sizeof(atos_sample) : 0);
    if (given.fetch == 0) throw Failure(ATOS_INVALID, "fetch must be at least 1 (got 0)");
    if (given.argument_words > ATOS_MAX_ARGUMENT_WORDS)
      throw Failure(ATOS_INVALID, format("%u argument words, more than %d", given.argument_words, ATOS_MAX_ARGUMENT_WORDS));
    auto run = std::make_unique<Run>(given, &program, item_bytes, &counters);
    const auto lock = enter(&run->monitor);
    const uint64_t grown_before = grown;
    stats->pending = there();
    if (!overflow.empty() && !ensure_capacity(there()))
      throw Failure(ATOS_QUEUE_FULL, format("the queue still holds %llu tasks more than its capacity of %llu: resize it first",
                                          (unsigned long long)(overflow.size() / item_bytes), (unsigned long long)size));
    atos_launch &launch = run->launch;
    const uint32_t resident = backend.resident_blocks(program, launch, item_bytes);
    if (launch.blocks == 0) launch.blocks = resident;
    if (launch.persistent && launch.blocks > resident)
      throw Failure(ATOS_TOO_MANY, format("%u blocks of %u threads asked for, but only %u are resident at once", launch.blocks,
                                        launch.threads, resident));
    const uint32_t per_block = backend.workers_per_block(launch);
    stats->blocks = launch.blocks;
    stats->threads = launch.threads;
    stats->workers = launch.blocks * per_block;

    run->blocks = launch.blocks;
    run->stale = stale;
    run->kernel.counters = device_counters;
    run->kernel.spill = spill;
    run->kernel.split_items = split_items;
    run->kernel.spill_size = spill_bytes / item_bytes;
    run->kernel.fetch = launch.fetch;
    run->kernel.workers = launch.blocks * per_block;
    run->kernel.buffer = buffer_items(launch, item_bytes);
    run->kernel.scratch = launch.scratch;
    run->kernel.persistent = launch.persistent;
    run->kernel.barrier = launch.barrier;
    run->kernel.samples = launch.samples;
    run->kernel.max_samples = launch.max_samples;
    run->kernel.sample_interval = launch.sample_interval;
    if (launch.progress && !launch.samples) { // tasks are counted as for a trace, of which nothing is kept
      run->kernel.samples = device_counters;
      run->kernel.max_samples = 0;
      run->kernel.sample_interval = ~0u;
    }
    if (run->kernel.samples) { // counts begin anew
      counters.ran_so_far = counters.next_sample = counters.sampled = 0;
      run->stale = true;
    }

    counters.ran = counters.pushed = counters.rounds = 0;
    stale = true; // until it is known what the device holds
    bool over = false;
    backend.start_clock(launch);
    for (;;) {
      provide_for_growth(*run);
      run->kernel.slots = slots;
      run->kernel.size = size;
      run->kernel.reciprocal = reciprocal_of(size);
      run->first_end = launch.barrier && level ? counters.head + level : counters.tail;
      try {
        if (launch.persistent) backend.run_persistent(*run);
        else backend.run_discrete(*run);
      } catch (const Failure &failure) {
        if (failure.status == ATOS_STUCK) abandoned = std::move(run);
        throw;
      }
      level = 0; // only now: workers that could not start leave the queue as it was
      if (counters.stop == kRun) { // everything published was taken; claims that ran ahead of it are void
        counters.head = counters.finished = counters.tail;
        counters.untracked = 0;
        stale = run->stale;
        if (growths_of(counters.tail) || counters.growths_requested) collapse_rings();
        over = true;
        break;
      }
      // A push found its slot occupied, or the host asked. If what is pending fits, perhaps after growing, go on.
      stats->failure = counters.failure;
      {
        const ScopedTimer timed(run->copied);
        recover_pending(launch.barrier);
      }
      run->stale = true;
      if (stats->failure.failed || lost || !overflow.empty() || run->monitor.stopped()) break;
    }
    stats->milliseconds = backend.stop_clock(launch);
    stats->copy_milliseconds = run->copied;
    total_ran += stats->tasks_run = counters.ran;
    total_pushed += stats->tasks_pushed = counters.pushed;
    stats->rounds = counters.rounds;
    stats->samples = std::min<uint64_t>(counters.sampled, launch.max_samples);
    stats->pending = there();
    stats->lost = lost;
    stats->grown = grown - grown_before;
    lost = 0;
    if (stats->failure.failed) throw Failure(ATOS_TASK_FAILED, "a check inside the task failed");
    if (stats->lost || !overflow.empty())
      throw Failure(ATOS_QUEUE_FULL, format("the tasks pushed so far leave %llu unfinished, more than the queue's capacity of %llu%s",
                                          (unsigned long long)(stats->pending + stats->lost), (unsigned long long)size,
                                          size < most ? ", and there is no memory for a larger one" : ""));
    if (!over && (stats->pending || launch.idle)) // without idle, a stop that finds nothing left is an end as any other
      throw Failure(ATOS_STOPPED, format("the launch was stopped with %llu tasks unfinished", (unsigned long long)stats->pending));
  }

  // Whether workers that did not stop still use what this queue owns.
  bool in_use() noexcept {
    try {
      return abandoned && !backend.ended(*abandoned);
    } catch (...) {
      return true;
    }
  }

private:
  Backend &backend;
  ForkSafeTimedMutex mutex;
  std::atomic<uint64_t> size, most;  // of the ring, and how far it may grow
  void *device_counters = nullptr, *slots = nullptr, *spill = nullptr, *split_items = nullptr;
  uint64_t spill_bytes = 0;
  std::unique_ptr<GrowableRange> growable;        // for growth while workers run
  Counters counters{};               // between launches all that is pending lies in the tickets [head, published)
  bool stale = true;                 // whether the device's copy differs
  uint64_t level = 0;                // how many of them, from the oldest on, are left of a level that a stop interrupted
  std::vector<unsigned char> overflow; // pending items for which the ring has no room, after ATOS_QUEUE_FULL
  uint64_t total_ran = 0, total_pushed = 0; // over all launches so far
  uint64_t lost = 0, grown = 0;
  std::unique_ptr<Run> abandoned;    // the launch that ended with ATOS_STUCK

  // Every use of the queue begins here. What a launch that was abandoned has left is sorted out when its workers have ended.
  std::unique_lock<ForkSafeTimedMutex> enter(StopMonitor *monitor = nullptr) {
    if (StopMonitor::in_callback())
      throw Failure(ATOS_INVALID, "a signal handler or progress function that runs during a launch cannot use a queue");
    std::unique_lock<ForkSafeTimedMutex> lock(mutex, std::defer_lock);
    while (!lock.try_lock_for(monitor ? monitor->time_to_next_poll() : kLockWait))
      if (!monitor || monitor->poll()) throw Failure(ATOS_HELD, "another thread uses this queue");
    if (in_use())
      throw Failure(ATOS_BUSY, "a task of an earlier launch of this queue was asked to stop, and still runs");
    if (abandoned) {
      recover_pending(abandoned->launch.barrier);
      abandoned.reset();
    }
    return lock;
  }

  uint64_t there() const { return counters.tail - counters.head + overflow.size() / item_bytes; }

  static void check_size(uint64_t capacity) {
    if (capacity > (uint64_t(1) << 40))
      throw Failure(ATOS_NO_MEMORY, format("a queue of %llu items is larger than any memory", (unsigned long long)capacity));
  }

  // A new ring, empty. Fails before anything is given up.
  void make_ring(uint64_t capacity) {
    check_size(capacity);
    void *fresh = backend.allocate(capacity * slot_bytes);
    backend.release(slots);
    slots = fresh;
    size = capacity;
    reset_counters();
  }

  // Moves everything to a ring that has room for it.
  void move_to(uint64_t capacity) {
    const std::vector<unsigned char> all = peek();
    const uint64_t interrupted = level;
    make_ring(capacity);
    overflow.clear();
    append(all.data(), all.size() / item_bytes);
    level = interrupted;
  }

  // Where the queue may grow while the workers run, by doubling as far as the limit allows.
  void provide_for_growth(Run &run) {
    if (!run.launch.persistent) return; // it grows between kernels
    unsigned growths = 0;
    run.ring_bytes = size * slot_bytes;
    const uint64_t addresses = std::min(kMostAddresses, addresses_to_spare());
    while (growths < kMostGrowths && size <= most >> (growths + 1) && run.ring_bytes <= addresses >> (growths + 2)) ++growths;
    const uint64_t bytes = bytes_of_growths(run.ring_bytes, growths);
    if (growable && growable->bytes != bytes) growable.reset();
    if (growths && !growable) growable = backend.growable_range(bytes);
    run.growable_range = growable.get();
    run.kernel.growths = growable ? growths : 0;
    run.kernel.more = growable ? growable->begin : nullptr;
    counters.growths_granted = growable ? std::min(growths, growths_within(run.ring_bytes, growable->mapped)) : 0;
  }

  // After a run in which the queue grew: it is empty, and has one ring again, as large as the last one if there is memory.
  void collapse_rings() {
    const unsigned growths = growths_of(counters.tail);
    const uint64_t last = size << growths;
    reset();
    growable.reset();
    grown += growths;
    try {
      if (growths) make_ring(last);
    } catch (const Failure &failure) {
      if (failure.status != ATOS_NO_MEMORY) throw;
    }
  }

  // Calls f with the new size when `total` items need a larger ring and may have it; whether there is room now.
  template <class F> bool grow(uint64_t total, F f) {
    if (total <= size) return true;
    if (total > most) return false;
    for (const uint64_t capacity : {std::min<uint64_t>(most, 2 * total), total}) {
      try {
        f(capacity);
        ++grown;
        return true;
      } catch (const Failure &failure) {
        if (failure.status != ATOS_NO_MEMORY) throw;
      }
    }
    return false;
  }

  bool ensure_capacity(uint64_t total) {
    return grow(total, [&](uint64_t capacity) { move_to(capacity); });
  }

  // As before the first launch, but for the statistics.
  void reset_counters() {
    Counters fresh{};
    fresh.ran = counters.ran;
    fresh.pushed = counters.pushed;
    fresh.rounds = counters.rounds;
    fresh.ran_so_far = counters.ran_so_far;
    fresh.sampled = counters.sampled;
    counters = fresh;
    level = 0;
    stale = true;
  }

  void free_memory() noexcept {
    for (void *p : {device_counters, slots, split_items})
      if (p) backend.release(p);
    if (spill) backend.release_reserved(spill, spill_bytes);
  }

  // Slots of the first ring that were ever used.
  uint64_t used() const { return std::min<uint64_t>(size, tickets_of(counters.tail)); }

  void reset() {
    const uint32_t zero = 0;
    backend.fill(slots, &zero, 4, used() * slot_bytes / 4);
    reset_counters();
  }

  template <class F> void with_slots(F f) const {
    if (item_bytes == 4) f(HostSlots<4>{});
    else if (item_bytes == 8) f(HostSlots<8>{});
    else f(HostSlots<16>{});
  }

  // Stores items behind what is pending; there is room.
  void append(const unsigned char *items, uint64_t n) {
    std::vector<unsigned char> staged;
    while (n) {
      const uint64_t index = counters.tail % size, generation = counters.tail / size;
      const uint64_t some = std::min({n, size - index, kStagedSlots});
      staged.resize(some * slot_bytes);
      with_slots([&](auto view) { view.write(staged.data(), items, some, generation); });
      backend.copy(static_cast<unsigned char *>(slots) + index * slot_bytes, staged.data(), some * slot_bytes);
      counters.tail += some;
      items += some * item_bytes;
      n -= some;
    }
    counters.finished = counters.head;
    stale = true;
  }

  // Fills an empty queue, or a larger one if need be and may be; the first `of_level` items are left of an interrupted level.
  void store(const unsigned char *items, uint64_t n, uint64_t of_level) {
    grow(n, [&](uint64_t capacity) { make_ring(capacity); });
    const uint64_t fit = std::min<uint64_t>(n, size);
    append(items, fit);
    level = std::min(of_level, fit);
    overflow.assign(items + fit * item_bytes, items + n * item_bytes);
  }

  // What is pending, oldest first: the items of full slots in the order of their tickets, then what did not fit.
  std::vector<unsigned char> peek(uint64_t *before_head = nullptr) {
    std::vector<unsigned char> result;
    const unsigned growths = growths_of(counters.tail);
    uint64_t earlier = peek_ring(slots, size, 0, growths ? counters.ring_first_ticket[1] - kGrown : tickets_of(counters.tail), &result);
    for (unsigned k = 1; k <= growths; ++k) {
      const uint64_t end = k < growths ? counters.ring_first_ticket[k + 1] - kGrown : tickets_of(counters.tail);
      const void *ring = static_cast<unsigned char *>(growable->begin) + bytes_of_growths(size * slot_bytes, k - 1);
      earlier += peek_ring(ring, size << k, counters.ring_first_ticket[k] - kGrown, end, &result);
    }
    if (before_head) *before_head = earlier;
    result.insert(result.end(), overflow.begin(), overflow.end());
    return result;
  }

  // What is pending in the ring of the tickets [start, end); how many of them lie before `head`.
  uint64_t peek_ring(const void *ring, uint64_t ring_size, uint64_t start, uint64_t end, std::vector<unsigned char> *result) {
    const uint64_t used = std::min(ring_size, end - start), newest = (end - start) / ring_size;
    std::vector<unsigned char> memory(used * slot_bytes);
    backend.copy(memory.data(), ring, memory.size());
    std::map<uint64_t, std::vector<unsigned char>, std::greater<uint64_t>> generations; // by their distance from the newest one
    uint64_t earlier = 0;
    with_slots([&](auto view) {
      unsigned char item[16];
      for (uint64_t i = 0, sequence = 0; i < used; ++i) {
        if (!view.read(memory.data(), i, item, &sequence)) continue;
        // Of the lap a packed slot knows the low 31 bits.
        const uint64_t behind = item_bytes == 4 ? (newest - sequence / 2) & 0x7fffffff : newest - sequence / 2;
        std::vector<unsigned char> &generation = generations[behind];
        generation.insert(generation.end(), item, item + item_bytes);
        earlier += start + (newest - behind) * ring_size + i < counters.head;
      }
    });
    for (const auto &generation : generations) result->insert(result->end(), generation.second.begin(), generation.second.end());
    return earlier;
  }

  // After a stop: gathers what is pending from the ring and the spill area, and puts it back in order, into a larger ring if need
  // be. With barriers, `head` is the end of the level that was interrupted, and what is left of that level has to run before
  // what it pushed.
  void recover_pending(bool barrier) {
    uint64_t of_level = 0;
    std::vector<unsigned char> all = peek(&of_level);
    const uint64_t kept = std::min(counters.spilled, spill_bytes / item_bytes);
    lost += counters.spilled - kept;
    const uint64_t before = all.size();
    all.resize(before + kept * item_bytes);
    backend.copy(all.data() + before, spill, kept * item_bytes);
    collapse_rings();
    store(all.data(), all.size() / item_bytes, barrier ? of_level : 0);
  }
};

extern "C" {

atos_status atos_queue_create(int32_t device, uint64_t capacity, uint32_t item_bytes, atos_queue **queue) {
  return guarded([&] {
    if (item_bytes != 4 && item_bytes != 8 && item_bytes != 16)
      throw Failure(ATOS_INVALID, format("items must have 4, 8 or 16 bytes (got %u)", item_bytes));
    if (capacity == 0) throw Failure(ATOS_INVALID, "the capacity must be at least 1 (got 0)");
    *queue = new atos_queue(device, capacity, item_bytes);
  });
}

void atos_queue_destroy(atos_queue *queue) {
  if (queue && !queue->in_use()) delete queue;
}

void atos_queue_capacity(atos_queue *queue, uint64_t *capacity, uint64_t *limit) {
  *capacity = queue->capacity();
  *limit = queue->limit();
}

atos_status atos_queue_limit(atos_queue *queue, uint64_t limit) {
  return guarded([&] { queue->set_limit(limit); });
}

atos_status atos_queue_push(atos_queue *queue, const void *items, uint64_t count) {
  return guarded([&] { queue->push(items, count); });
}

atos_status atos_queue_pending(atos_queue *queue, uint64_t *count) {
  return guarded([&] { *count = queue->pending(); });
}

atos_status atos_queue_read(atos_queue *queue, void *items, uint64_t capacity, atos_queue_state *state) {
  return guarded([&] { queue->read(items, capacity, state); });
}

atos_status atos_queue_restore(atos_queue *queue, const void *items, const atos_queue_state *state) {
  return guarded([&] { queue->restore(static_cast<const unsigned char *>(items), *state); });
}

atos_status atos_queue_clear(atos_queue *queue) {
  return guarded([&] { queue->clear(); });
}

atos_status atos_queue_resize(atos_queue *queue, uint64_t capacity) {
  return guarded([&] { queue->resize(capacity); });
}

atos_status atos_queue_launch(atos_queue *queue, atos_program *program, const atos_launch *launch, atos_stats *stats) {
  return guarded([&] {
    if (program->device != queue->device)
      throw Failure(ATOS_INVALID, format("the program is for device %d, the queue on device %d", program->device, queue->device));
    queue->launch(*program, *launch, stats);
  });
}
}
