// Queues that the tasks of a launch push into: locked with the launch's own queue, and provided and collected with its memory.
#include "host/queue.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "protocol/receiver.cuh"

using namespace atos;

namespace {

template <unsigned bytes> void push_item(const Receiver *receiver, const void *item) {
  Item<bytes> value;
  std::memcpy(&value, item, bytes);
  push_into(*receiver, value);
}

auto push_of(uint32_t item_bytes) {
  return item_bytes == 4 ? push_item<4> : item_bytes == 8 ? push_item<8> : item_bytes == 16 ? push_item<16> : push_item<32>;
}

} // namespace

namespace atos {

void QueueStorage::provide_to(const Counters *own, Receiver *receiver) {
  gather();
  counters.stop = kRun;
  counters.first_left = kNever; // nobody takes anything
  backend.copy(device_counters, &counters, sizeof counters);
  *receiver = {addresses(), const_cast<Counters *>(own), push_of(item_bytes)};
  receiving = true;
}

void QueueStorage::collect() {
  backend.copy(&counters, device_counters, sizeof counters);
  stale = true;
  if (counters.spilled) recover(level ? counters.head + level : 0, true);
  receiving = false;
}

} // namespace atos

// All queues of a launch, locked in the order of their addresses, so that no two launches wait for each other.
std::vector<atos_queue::Lock> atos_queue::enter_all(const std::shared_ptr<Run> &run) {
  std::vector<atos_queue *> queues{this};
  for (uint32_t k = 0; k < run->launch.num_receivers; ++k) queues.push_back(run->launch.receivers[k].queue);
  return enter_in_order(std::move(queues), &run->monitor);
}

std::vector<atos_queue::Lock> atos_queue::enter_in_order(std::vector<atos_queue *> queues, StopMonitor *monitor) {
  std::sort(queues.begin(), queues.end(), std::less<atos_queue *>());
  queues.erase(std::unique(queues.begin(), queues.end()), queues.end());
  std::vector<Lock> locks;
  for (atos_queue *queue : queues) locks.push_back(queue->enter(monitor));
  return locks;
}

void atos_queue::throw_full(const Run &run, uint32_t k, atos_stats *stats) {
  QueueStorage &its = run.launch.receivers[k].queue->storage;
  stats->full_receiver = k + 1;
  stats->lost = its.lost;
  its.lost = 0;
  throw Failure(ATOS_QUEUE_FULL,
                format("the tasks pushed into another queue, which holds %llu items now, more than its capacity of %llu%s",
                       (unsigned long long)(its.num_pending() + stats->lost), (unsigned long long)its.size,
                       its.size < its.max_size ? ", and there is no memory for a larger one" : ""));
}

void atos_queue::check_receivers(const Run &run, atos_stats *stats) {
  for (uint32_t k = 0; k < run.launch.num_receivers; ++k) {
    const atos_receiver &given = run.launch.receivers[k];
    QueueStorage &its = given.queue->storage;
    if (given.queue == this || given.queue->device != device || its.has_buckets() ||
        uint64_t(given.word) + ATOS_RECEIVER_WORDS > run.arguments.size())
      throw Failure(ATOS_INVALID, "a task pushes into another queue, of the same device, without buckets");
    if (its.over_capacity() && !its.ensure_capacity(its.num_pending())) throw_full(run, k, stats);
  }
}

void atos_queue::provide_receivers(Run &run) {
  for (uint32_t k = 0; k < run.launch.num_receivers; ++k) {
    Receiver receiver;
    run.launch.receivers[k].queue->storage.provide_to(run.kernel.counters, &receiver);
    std::memcpy(&run.arguments[run.launch.receivers[k].word], &receiver, sizeof receiver);
  }
}

// Whether all items that were pushed into other queues have room there.
bool atos_queue::collect_receivers(const Run &run) {
  bool room = true;
  for (uint32_t k = 0; k < run.launch.num_receivers; ++k) {
    QueueStorage &its = run.launch.receivers[k].queue->storage;
    its.collect();
    room &= !its.lost && (!its.over_capacity() || its.ensure_capacity(its.num_pending()));
  }
  return room;
}

// After a launch that failed: receivers that were not collected are collected when its workers, which may push, have ended.
void atos_queue::abandon_receivers(const std::shared_ptr<Run> &run) {
  for (uint32_t k = 0; k < run->launch.num_receivers; ++k) {
    atos_queue &its = *run->launch.receivers[k].queue;
    if (its.storage.receiving) its.pushed_by = run;
  }
}

void atos_queue::report_full_receiver(const Run &run, atos_stats *stats) {
  for (uint32_t k = 0; k < run.launch.num_receivers; ++k) {
    const QueueStorage &its = run.launch.receivers[k].queue->storage;
    if (its.lost || its.over_capacity()) throw_full(run, k, stats);
  }
}
