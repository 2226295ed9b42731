// The host's side of a queue: it owns the memory, keeps a copy of the counters between launches, and drives the schedule.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "backend.h"

namespace atos {

constexpr uint64_t kSpillItems = 1 << 20;
constexpr uint64_t kOldest = uint64_t(1) << 41; // more than two laps of the largest ring
constexpr uint64_t kStagedSlots = 1 << 20; // copied to the device at once

static uint64_t reciprocal_of(uint64_t size) { return ~uint64_t(0) / size; }

// Slots of `bytes`-byte items, seen from the host as raw memory.
template <unsigned bytes> struct HostSlots {
  static void write(unsigned char *slots, const unsigned char *items, uint64_t n, uint64_t lap) {
    Slot<bytes> *slot = reinterpret_cast<Slot<bytes> *>(slots);
    for (uint64_t i = 0; i < n; ++i) {
      Item<bytes> item;
      std::memcpy(&item, items + i * bytes, bytes);
      slot[i].put(item);
      slot[i].fill(item, 2 * lap);
    }
  }
  // The item in a slot if it is full, with the parity of its lap.
  static bool read(const unsigned char *slots, uint64_t i, unsigned char *item, uint64_t *turn) {
    const Slot<bytes> &slot = reinterpret_cast<const Slot<bytes> *>(slots)[i];
    typename Slot<bytes>::Seen seen{};
    if constexpr (bytes == 4) *turn = slot.word >> 32;
    else *turn = slot.turn;
    if (*turn % 2 == 0 || !slot.full(*turn - 1, seen)) return false;
    const Item<bytes> value = slot.get(seen);
    std::memcpy(item, &value, bytes);
    return true;
  }
};

} // namespace atos

using namespace atos;

struct atos_queue {
  const int32_t device;
  const uint32_t item_bytes, slot_bytes;

  atos_queue(int32_t device, uint64_t capacity, uint32_t item_bytes)
      : device(device), item_bytes(item_bytes), slot_bytes(item_bytes == 4 ? 8 : item_bytes + 8),
        backend(atos::backend(device)) {
    allocate(capacity);
  }
  ~atos_queue() { free_memory(); }

  uint64_t pending() {
    std::lock_guard<std::mutex> lock(mutex);
    return in_ring() + excess.size() / item_bytes;
  }

  void push(const void *items, uint64_t n) {
    std::lock_guard<std::mutex> lock(mutex);
    const uint64_t there = in_ring() + excess.size() / item_bytes;
    if (n > capacity || there > capacity - n)
      throw Failure(ATOS_QUEUE_FULL, text("pushing %llu items to a queue that holds %llu would exceed its capacity of %llu",
                                          (unsigned long long)n, (unsigned long long)there, (unsigned long long)capacity));
    append(static_cast<const unsigned char *>(items), n);
  }

  void read(void *items, uint64_t room, atos_queue_state *state) {
    std::lock_guard<std::mutex> lock(mutex);
    *state = {in_ring() + excess.size() / item_bytes, level, total_ran, total_pushed};
    const uint64_t n = std::min(room, state->pending);
    if (n) std::memcpy(items, peek().data(), n * item_bytes);
  }

  void restore(const unsigned char *items, const atos_queue_state &state) {
    std::lock_guard<std::mutex> lock(mutex);
    if (in_ring() || !excess.empty()) throw Failure(ATOS_INVALID, "only an empty queue can be restored");
    store(items, state.pending, state.level);
    total_ran = state.tasks_run;
    total_pushed = state.tasks_pushed;
  }

  void clear() {
    std::lock_guard<std::mutex> lock(mutex);
    reset();
    excess.clear();
  }

  void resize(uint64_t new_capacity) {
    std::lock_guard<std::mutex> lock(mutex);
    if (new_capacity == 0) throw Failure(ATOS_INVALID, "the capacity must be at least 1 (got 0)");
    const std::vector<unsigned char> all = peek();
    const uint64_t n = all.size() / item_bytes;
    if (n > new_capacity)
      throw Failure(ATOS_INVALID, text("a capacity of %llu is less than the %llu tasks pending",
                                       (unsigned long long)new_capacity, (unsigned long long)n));
    const uint64_t interrupted = level;
    allocate(new_capacity); // fails before anything is given up
    excess.clear();
    append(all.data(), n);
    level = interrupted;
  }

  void launch(atos_program &program, const atos_launch &given, atos_stats *stats) {
    std::lock_guard<std::mutex> lock(mutex);
    *stats = atos_stats{};
    stats->overhead_bytes = beside_slots + (given.samples ? given.max_samples * sizeof(atos_sample) : 0);
    if (!excess.empty())
      throw Failure(ATOS_QUEUE_FULL, text("the queue still holds %llu tasks more than its capacity of %llu: resize it first",
                                          (unsigned long long)(excess.size() / item_bytes), (unsigned long long)capacity));
    atos_launch launch = given;
    if (launch.fetch == 0) throw Failure(ATOS_INVALID, "fetch must be at least 1 (got 0)");
    if (launch.argument_words > ATOS_MAX_ARGUMENT_WORDS)
      throw Failure(ATOS_INVALID, text("%u argument words, more than %d", launch.argument_words, ATOS_MAX_ARGUMENT_WORDS));
    const uint32_t resident = backend.resident_blocks(program, launch, item_bytes);
    if (launch.blocks == 0) launch.blocks = resident;
    if (launch.persistent && launch.blocks > resident)
      throw Failure(ATOS_TOO_MANY, text("%u blocks of %u threads asked for, but only %u are resident at once", launch.blocks,
                                        launch.threads, resident));
    const uint32_t per_block = backend.workers_per_block(launch);
    stats->blocks = launch.blocks;
    stats->threads = launch.threads;
    stats->workers = launch.blocks * per_block;

    Run run{&launch, &program, item_bytes, launch.blocks, {}, &counters, stale, 0};
    run.kernel.counters = device_counters;
    run.kernel.slots = slots;
    run.kernel.spill = spill;
    run.kernel.shares = shares;
    run.kernel.size = capacity;
    run.kernel.reciprocal = reciprocal_of(capacity);
    run.kernel.spill_size = kSpillItems;
    run.kernel.fetch = launch.fetch;
    run.kernel.workers = launch.blocks * per_block;
    run.kernel.buffer = buffer_items(launch, item_bytes);
    run.kernel.scratch = launch.scratch;
    run.kernel.persistent = launch.persistent;
    run.kernel.barrier = launch.barrier;
    run.kernel.samples = launch.samples;
    run.kernel.max_samples = launch.max_samples;
    run.kernel.sample_interval = launch.sample_interval;
    if (launch.samples) { // a trace begins anew
      counters.ran_so_far = counters.next_sample = counters.sampled = 0;
      run.stale = true;
    }

    counters.ran = counters.pushed = counters.rounds = 0;
    stale = true; // until it is known what the device holds
    backend.start_clock(launch);
    for (;;) {
      run.first_end = launch.barrier && level ? counters.head + level : counters.published;
      if (launch.persistent) backend.run_persistent(run);
      else backend.run_discrete(run);
      level = 0; // only now: workers that could not start leave the queue as it was
      if (counters.stop == kRun) { // everything published was taken; claims that ran ahead of it are void
        counters.head = counters.finished = counters.published;
        counters.direct = 0;
        stale = run.stale;
        break;
      }
      // A push found its slot occupied. If what is pending fits, only the order of the ring was in the way: go on.
      stats->failure = counters.failure;
      settle(stats, launch.barrier);
      run.stale = true;
      if (stats->failure.failed || stats->lost || !excess.empty()) break;
    }
    stats->milliseconds = backend.stop_clock(launch);
    total_ran += stats->tasks_run = counters.ran;
    total_pushed += stats->tasks_pushed = counters.pushed;
    stats->rounds = counters.rounds;
    stats->samples = std::min<uint64_t>(counters.sampled, launch.max_samples);
    stats->pending = in_ring() + excess.size() / item_bytes;
    if (stats->failure.failed) throw Failure(ATOS_TASK_FAILED, "a check inside the task failed");
    if (stats->pending || stats->lost)
      throw Failure(ATOS_QUEUE_FULL,
                    text("the tasks pushed so far leave %llu unfinished, more than the queue's capacity of %llu",
                         (unsigned long long)(stats->pending + stats->lost), (unsigned long long)capacity));
  }

private:
  Backend &backend;
  std::mutex mutex;
  uint64_t capacity = 0;
  void *device_counters = nullptr, *slots = nullptr, *spill = nullptr, *shares = nullptr;
  uint64_t beside_slots = 0;         // bytes of all that but the slots
  Counters counters{};               // between launches all that is pending lies in the tickets [head, published)
  bool stale = true;                 // whether the device's copy differs
  uint64_t level = 0;                // how many of them, from the oldest on, are left of a level that a stop interrupted
  std::vector<unsigned char> excess; // pending items for which the ring has no room, after ATOS_QUEUE_FULL
  uint64_t total_ran = 0, total_pushed = 0; // over all launches so far

  uint64_t in_ring() const { return counters.published - counters.head; }

  void allocate(uint64_t new_capacity) {
    if (new_capacity > (uint64_t(1) << 40))
      throw Failure(ATOS_NO_MEMORY, text("a queue of %llu items is larger than any memory", (unsigned long long)new_capacity));
    void *fresh[4] = {};
    const uint64_t bytes[4] = {sizeof(Counters), new_capacity * slot_bytes, kSpillItems * item_bytes, kShares * sizeof(Share)};
    try {
      for (int i = 0; i < 4; ++i) fresh[i] = backend.allocate(bytes[i]);
    } catch (...) {
      for (void *p : fresh)
        if (p) backend.release(p);
      throw;
    }
    free_memory();
    capacity = new_capacity;
    device_counters = fresh[0];
    slots = fresh[1];
    spill = fresh[2];
    shares = fresh[3];
    beside_slots = bytes[0] + bytes[2] + bytes[3];
    forget();
  }

  void forget() {
    counters = Counters{};
    level = 0;
    stale = true;
  }

  void free_memory() noexcept {
    for (void **p : {&device_counters, &slots, &spill, &shares}) {
      if (*p) backend.release(*p);
      *p = nullptr;
    }
  }

  void reset() {
    const uint32_t zero = 0;
    backend.fill(slots, &zero, 4, capacity * slot_bytes / 4);
    forget();
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
      const uint64_t index = counters.published % capacity, lap = counters.published / capacity;
      const uint64_t some = std::min({n, capacity - index, kStagedSlots});
      staged.resize(some * slot_bytes);
      with_slots([&](auto view) { view.write(staged.data(), items, some, lap); });
      backend.copy(static_cast<unsigned char *>(slots) + index * slot_bytes, staged.data(), some * slot_bytes);
      counters.published += some;
      items += some * item_bytes;
      n -= some;
    }
    counters.finished = counters.head;
    stale = true;
  }

  // Fills an empty queue; the first `of_level` items are left of a level that a stop interrupted.
  void store(const unsigned char *items, uint64_t n, uint64_t of_level) {
    const uint64_t fit = std::min(n, capacity);
    append(items, fit);
    level = std::min(of_level, fit);
    excess.assign(items + fit * item_bytes, items + n * item_bytes);
  }

  // What is pending, oldest first: the items of full slots in the order of their tickets, then what did not fit.
  std::vector<unsigned char> peek(uint64_t *before_head = nullptr) {
    std::vector<unsigned char> memory(capacity * slot_bytes), found;
    backend.copy(memory.data(), slots, memory.size());
    std::vector<std::pair<uint64_t, uint64_t>> order; // age, position in found
    const uint64_t newest = counters.published / capacity;
    with_slots([&](auto view) {
      unsigned char item[16];
      for (uint64_t i = 0, turn = 0; i < capacity; ++i) {
        if (!view.read(memory.data(), i, item, &turn)) continue;
        // The lap, of which a packed slot knows the low 31 bits, as distance from the newest one.
        const uint64_t behind = item_bytes == 4 ? (newest - turn / 2) & 0x7fffffff : newest - turn / 2;
        order.emplace_back(kOldest - behind * capacity + i, found.size());
        found.insert(found.end(), item, item + item_bytes);
      }
    });
    std::sort(order.begin(), order.end());
    if (before_head) {
      const uint64_t age = kOldest + counters.head - newest * capacity;
      *before_head = uint64_t(std::count_if(order.begin(), order.end(), [&](const auto &entry) { return entry.first < age; }));
    }
    std::vector<unsigned char> result;
    result.reserve(found.size() + excess.size());
    for (const auto &entry : order)
      result.insert(result.end(), found.begin() + entry.second, found.begin() + entry.second + item_bytes);
    result.insert(result.end(), excess.begin(), excess.end());
    return result;
  }

  // After a stop: gathers what is pending from the ring and the spill area, and puts it back in order. With barriers, `head` is
  // the end of the level that was interrupted, and what is left of that level has to run before what it pushed.
  void settle(atos_stats *stats, bool barrier) {
    const uint64_t ran = counters.ran, pushed = counters.pushed, rounds = counters.rounds;
    const uint64_t ran_so_far = counters.ran_so_far, sampled = counters.sampled;
    uint64_t of_level = 0;
    std::vector<unsigned char> all = peek(&of_level);
    const uint64_t kept = std::min(counters.spilled, kSpillItems);
    stats->lost += counters.spilled - kept;
    const uint64_t before = all.size();
    all.resize(before + kept * item_bytes);
    backend.copy(all.data() + before, spill, kept * item_bytes);
    reset();
    counters.ran = ran;
    counters.pushed = pushed;
    counters.rounds = rounds;
    counters.ran_so_far = ran_so_far;
    counters.sampled = sampled;
    store(all.data(), all.size() / item_bytes, barrier ? of_level : 0);
  }
};

extern "C" {

atos_status atos_queue_create(int32_t device, uint64_t capacity, uint32_t item_bytes, atos_queue **queue) {
  return guarded([&] {
    if (item_bytes != 4 && item_bytes != 8 && item_bytes != 16)
      throw Failure(ATOS_INVALID, text("items must have 4, 8 or 16 bytes (got %u)", item_bytes));
    if (capacity == 0) throw Failure(ATOS_INVALID, "the capacity must be at least 1 (got 0)");
    *queue = new atos_queue(device, capacity, item_bytes);
  });
}

void atos_queue_destroy(atos_queue *queue) { delete queue; }

atos_status atos_queue_push(atos_queue *queue, const void *items, uint64_t count) {
  return guarded([&] { queue->push(items, count); });
}

atos_status atos_queue_pending(atos_queue *queue, uint64_t *count) {
  return guarded([&] { *count = queue->pending(); });
}

atos_status atos_queue_read(atos_queue *queue, void *items, uint64_t room, atos_queue_state *state) {
  return guarded([&] { queue->read(items, room, state); });
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
      throw Failure(ATOS_INVALID, text("the program is for device %d, the queue on device %d", program->device, queue->device));
    queue->launch(*program, *launch, stats);
  });
}
}
