// The uses of a queue between launches.
#include "host/queue.h"

#include <algorithm>
#include <cstring>

using namespace atos;

// While another thread uses the queue, a caller waits so long before it may handle signals.
constexpr std::chrono::milliseconds kLockWait{20};

// Every use of the queue begins here. Items left by an abandoned launch are recovered when its workers have ended.
atos_queue::Lock atos_queue::enter(StopMonitor *monitor) {
  StopMonitor::refuse_in_callback("use a queue");
  Lock lock(mutex, std::defer_lock);
  while (!lock.try_lock_for(monitor ? monitor->time_to_next_poll() : kLockWait))
    if (!monitor || monitor->poll()) throw Failure(ATOS_HELD, "another thread uses this queue");
  if (forsaken) throw Failure(ATOS_GONE, "the processes did not end a launch of this queue together: make another one");
  if (replaced) throw Failure(ATOS_REPLACED, "another queue has taken the place of this one");
  if (in_use())
    throw Failure(ATOS_BUSY,
                  "an earlier launch of this queue was asked to stop, and has not ended: one of its tasks still runs, "
                  "or, on a GPU, the launch has not begun, since others hold the GPU");
  if (abandoned) {
    if (storage.disordered) storage.recover_pending(*abandoned);
    drain_inbox(*abandoned);
    abandoned.reset();
  }
  if (pushed_by) {
    storage.collect();
    pushed_by.reset();
  }
  return lock;
}

bool atos_queue::in_use() noexcept {
  try {
    const auto runs_on = [&](const auto &run) { return run && run->left_behind && !storage.backend.ended(*run); };
    return runs_on(abandoned) || runs_on(pushed_by);
  } catch (...) {
    return true;
  }
}

void atos_queue::set_limit(uint64_t limit) {
  if (limit && limit < storage.size)
    throw Failure(ATOS_INVALID, format("max_capacity must be at least the capacity, %llu (got %llu); call resize() first",
                                       (unsigned long long)storage.size, (unsigned long long)limit));
  const uint64_t fitting = limit ? 0 : storage.backend.free_bytes() / 2 / storage.slot_bytes;
  storage.max_size = limit ? limit : std::max(uint64_t(storage.size), fitting);
}

uint64_t atos_queue::pending() {
  const auto lock = enter();
  return storage.num_pending();
}

void atos_queue::set_buckets(uint32_t buckets, double delta) {
  const auto lock = enter();
  if (buckets < 2 || buckets > 1 << 10 || buckets & (buckets - 1))
    throw Failure(ATOS_INVALID, format("the number of buckets must be a power of two from 2 to 1024 (got %u)", buckets));
  if (!(delta >= 0)) throw Failure(ATOS_INVALID, format("delta must be more than 0, or 0 to adapt (got %g)", delta));
  if (storage.num_pending()) throw Failure(ATOS_INVALID, "only an empty queue can be given buckets");
  storage.set_buckets(buckets, delta);
}

void atos_queue::read_priorities(double *priorities, uint64_t most) {
  const auto lock = enter();
  storage.read_priorities(priorities, most);
}

void atos_queue::push(const Pushed &items, const double *priorities, uint64_t n) {
  const auto lock = enter();
  if (items.where != Pushed::kHost && (storage.has_buckets() || (storage.item_bytes != 4 && storage.item_bytes != 8)))
    throw Failure(ATOS_INVALID, "items of more than 8 bytes, or with priorities, are pushed from the host");
  if (priorities && !storage.has_buckets()) throw Failure(ATOS_INVALID, "the queue has no buckets for priorities");
  const uint64_t pending = storage.num_pending();
  if (n > UINT64_MAX - pending || !storage.ensure_capacity(pending + n))
    throw Failure(ATOS_QUEUE_FULL,
                  format("pushing %llu items to a queue that holds %llu would exceed its max_capacity of %llu",
                         (unsigned long long)n, (unsigned long long)pending, (unsigned long long)storage.max_size));
  if (storage.has_buckets()) storage.append_prioritized(items.items, priorities, n);
  else if (n) storage.append(items, n);
}

void atos_queue::read(void *items, uint64_t most, atos_queue_state *state) {
  const auto lock = enter();
  *state = {storage.num_pending(), storage.level, total_ran, total_pushed};
  const uint64_t n = std::min(most, state->pending);
  if (n) std::memcpy(items, storage.peek().data(), n * storage.item_bytes);
}

void atos_queue::restore(const unsigned char *items, const atos_queue_state &state) {
  const auto lock = enter();
  if (storage.num_pending()) throw Failure(ATOS_INVALID, "only an empty queue can be restored");
  storage.replace(items, state.pending, state.level);
  total_ran = state.tasks_run;
  total_pushed = state.tasks_pushed;
}

void atos_queue::clear() {
  const auto lock = enter();
  storage.clear();
}

void atos_queue::resize(uint64_t capacity) {
  const auto lock = enter();
  if (capacity == 0) throw Failure(ATOS_INVALID, "the capacity must be at least 1 (got 0)");
  if (storage.num_pending() > capacity)
    throw Failure(ATOS_INVALID, format("a capacity of %llu is less than the %llu tasks pending", (unsigned long long)capacity,
                                       (unsigned long long)storage.num_pending()));
  const bool fixed = storage.max_size == storage.size;
  storage.move_to(capacity);
  storage.max_size = fixed ? capacity : std::max(capacity, uint64_t(storage.max_size));
}
