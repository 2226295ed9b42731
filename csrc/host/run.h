// Run: a launch as the backend of a device gets it, and the program that it runs.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "host/growable_range.h"
#include "host/stop_monitor.h"
#include "protocol/counters.h"
#include "protocol/kernel_params.h"
#include "protocol/peers.cuh"

struct atos_program {
  int32_t device;
  explicit atos_program(int32_t device) : device(device) {}
  virtual ~atos_program() = default;
};

namespace atos {

// ScopedTimer: adds the time from its construction to its destruction to a sum of milliseconds.
class ScopedTimer {
public:
  explicit ScopedTimer(double &sum) : sum(sum), begin(StopMonitor::Clock::now()) {}
  ~ScopedTimer() { sum += std::chrono::duration<double, std::milli>(StopMonitor::Clock::now() - begin).count(); }

private:
  double &sum;
  const StopMonitor::Clock::time_point begin;
};

// A launch, prepared by the queue. A Run owns all that workers use and that the caller of the launch gave, since workers that
// do not stop outlive the call.
struct Run {
  Run(const atos_launch &given, atos_program *program, uint32_t item_bytes, Counters *counters)
      : launch(given), arguments(given.arguments, given.arguments + given.argument_words), program(program),
        item_bytes(item_bytes), counters(counters), monitor(given) {
    launch.arguments = arguments.data();
  }

  atos_launch launch;
  std::vector<uint64_t> arguments;
  atos_program *program;
  uint32_t item_bytes;
  uint32_t blocks = 0;
  Launch kernel{};                   // the kernel's parameters; counters, memory and sizes are filled in
  GrowableRange *growable = nullptr; // behind kernel.more
  uint64_t ring_bytes = 0;           // of the first ring
  Counters *counters;     // the host's copy, written to the device before the run if `stale`, and read back after the run
  bool stale = true;      // whether the device's counters differ from the host's
  uint64_t first_end = 0; // end of the first round: the tail, or less where a level was interrupted
  StopMonitor monitor;
  double copied = 0; // milliseconds

  // Of a launch over several devices (peers.cpp): their queues, and the numbers of this device's workers among all workers.
  std::shared_ptr<const std::vector<Peer>> peer_table;
  Peers peers{};
  uint32_t first_worker = 0, all_workers = 0;
  float lowest_level = INFINITY;   // of the items of all devices, if their queues have buckets
  uint32_t sharing = 1, place = 0; // how many of the launch's devices are this GPU, and the place of this device among them
  bool left_behind = false;        // whether the run failed while workers ran; its queue is recovered when they have ended
  bool has_run = false; // whether workers have run since the queue was in order, so that `counters` say what the workers left
  bool full = false;    // whether its queue had no room for all pending items

  // The CPU's workers: `live` are the counters that the workers use, while they run.
  std::atomic<uint32_t> longest_batch{1};
  std::mutex stopping;
  bool asked = false;
  Counters *live = nullptr;
  std::atomic<bool> over{false};

  // Whether a copy of the GPU's counters, for the poll callback, is under way.
  bool observing = false;

  // Discrete, on a GPU: the tickets of the kernel that each stream had last.
  struct Range {
    uint64_t begin, end;
  } ranges[ATOS_MAX_STREAMS] = {};
  // After a stop: whether workers have claimed exactly the tickets below `head`; not so where kernels ran side by side.
  bool claimed_in_order = true;

  // The GPU's kernels that have not completed: their completion records, and the sequence numbers that the records will have.
  std::vector<std::pair<const CompletionRecord *, uint64_t>> pending_kernels;
};

// The runs of a launch over several devices, by the numbers of the devices.
using Runs = std::vector<std::shared_ptr<Run>>;

} // namespace atos
