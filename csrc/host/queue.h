// atos_queue: the queue behind the C interface, which locks its storage for one thread at a time, and drives launches over it.
#pragma once
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "host/fork_safe_mutex.h"
#include "host/queue_storage.h"

struct atos_queue {
public:
  const int32_t device;

  atos_queue(int32_t device, uint64_t capacity, uint32_t item_bytes)
      : atos_queue(device, std::make_shared<atos::QueueStorage>(device, capacity, item_bytes)) {}
  atos_queue(int32_t device, uint64_t capacity, uint32_t item_bytes, std::unique_ptr<atos::MemorySource> shared)
      : atos_queue(device, std::make_shared<atos::QueueStorage>(device, capacity, item_bytes, std::move(shared))) {}

  uint64_t capacity() const { return storage.size; }
  uint64_t limit() const { return storage.max_size; }
  // Sets how many items the queue may grow to; 0: as many as fit into half of the memory that is free.
  void set_limit(uint64_t limit);

  uint64_t pending();
  // Items for a queue with buckets have priorities; null: all 0.
  void push(const atos::Pushed &items, const double *priorities, uint64_t n);
  void set_buckets(uint32_t buckets, double delta);
  void read_priorities(double *priorities, uint64_t most);
  void read(void *items, uint64_t most, atos_queue_state *state);
  void restore(const unsigned char *items, const atos_queue_state &state);
  void clear();
  void resize(uint64_t capacity);
  void launch(atos_program &program, const atos_launch &given, atos_stats *stats); // launch.cpp
  // One launch over the queues of several devices, with statistics of each queue (peers.cpp).
  static void launch_peers(const atos_peers &given, const atos_launch &options, atos_stats *stats);
  // Returns the queue that takes the place of this one, whose items have another size or other kinds.
  std::unique_ptr<atos_queue> convert(uint32_t item_bytes, const uint8_t *kinds); // kinds.cpp

  // Whether workers that did not stop still use memory of this queue.
  bool in_use() noexcept;

private:
  const std::shared_ptr<atos::QueueStorage> owned; // shared with the queue that takes the place of this one
  atos::QueueStorage &storage = *owned;
  atos::ForkSafeTimedMutex mutex;
  bool replaced = false;                    // another queue has taken its place
  bool forsaken = false;                    // processes did not end a launch of this queue together: some may still push
  uint64_t total_ran = 0, total_pushed = 0; // over all launches so far
  std::shared_ptr<atos::Run> abandoned;     // the launch that ended with ATOS_STUCK
  std::shared_ptr<atos::Run> pushed_by;     // another queue's launch that ended with ATOS_STUCK, whose tasks push into this one

  atos_queue(int32_t device, std::shared_ptr<atos::QueueStorage> storage) : device(device), owned(std::move(storage)) {}
  using Lock = std::unique_lock<atos::ForkSafeTimedMutex>;
  Lock enter(atos::StopMonitor *monitor = nullptr);
  std::unique_ptr<atos::Run> prepare(atos_program &program, const atos_launch &given, atos_stats *stats);
  void make_room();
  void size_grid(atos::Run &run, atos_stats *stats);
  bool run_workers(atos::Run &run, atos_stats *stats);
  void leave(const std::shared_ptr<atos::Run> &run);
  void drain_inbox(atos::Run &run);
  void finish(const atos::Run &run, bool over, atos_stats *stats);

  // Other queues that the tasks of a launch push into (receivers.cpp).
  std::vector<Lock> enter_all(const std::shared_ptr<atos::Run> &run);
  static std::vector<Lock> enter_in_order(std::vector<atos_queue *> queues, atos::StopMonitor *monitor);
  void check_receivers(const atos::Run &run, atos_stats *stats);
  void provide_receivers(atos::Run &run);
  bool collect_receivers(const atos::Run &run);
  void abandon_receivers(const std::shared_ptr<atos::Run> &run);
  void report_full_receiver(const atos::Run &run, atos_stats *stats);
  [[noreturn]] static void throw_full(const atos::Run &run, uint32_t k, atos_stats *stats);

  // A launch over several devices, the run of each by its number (peers.cpp).
  struct PeerLaunch;
  static void launch_together(PeerLaunch &all);
  static bool run_peers(PeerLaunch &all);
  bool settle(atos::Run &run, bool over, atos_stats *stats);
};
