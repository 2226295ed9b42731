// What the host needs of a device: memory, and one run of the workers over a queue.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "protocol/kernel_params.h"
#include "protocol/queue_ref.cuh"
#include "protocol/split_item.cuh"
#include "status.h"
#include "watch.h"

struct atos_program {
  int32_t device;
  explicit atos_program(int32_t device) : device(device) {}
  virtual ~atos_program() = default;
};

namespace atos {

// Adds the time that it lives to a sum of milliseconds.
class ScopedTimer {
public:
  explicit ScopedTimer(double &sum) : sum(sum), begin(StopMonitor::Clock::now()) {}
  ~ScopedTimer() { sum += std::chrono::duration<double, std::milli>(StopMonitor::Clock::now() - begin).count(); }

private:
  double &sum;
  const StopMonitor::Clock::time_point begin;
};

// Where a queue may grow while workers use it: addresses, with memory, filled with zeros, behind the first of them.
class GrowableRange {
public:
  virtual ~GrowableRange() = default;
  virtual void extend(uint64_t bytes) = 0; // memory for so many in all; throws ATOS_NO_MEMORY
  void *begin = nullptr;
  uint64_t bytes = 0, mapped = 0; // addresses; those of them with memory
};

// A launch, prepared by the queue. It owns all that workers use and the caller of the launch gave, since workers that do not stop
// outlive the call.
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
  Launch kernel{};        // what the workers see; counters, memory and sizes are filled in
  GrowableRange *growable_range = nullptr;   // behind kernel.more
  uint64_t ring_bytes = 0; // of the first ring
  Counters *counters;     // the host's copy, written to the device before if `stale`, and read back after
  bool stale = true;      // whether the device's counters differ from the host's
  uint64_t first_end = 0; // end of the first round: what is published, or less where a level was interrupted
  StopMonitor monitor;
  double copied = 0; // milliseconds

  // The CPU's workers: `live` are the counters that they use, while they run.
  std::atomic<uint32_t> longest_batch{1};
  std::mutex stopping;
  bool asked = false;
  Counters *live = nullptr;
  std::atomic<bool> over{false};

  // Whether a copy of the GPU's counters is under way, for the user to be told.
  bool observing = false;

  // The GPU's kernels that did not stop: the reports that they owe, and their sequence numbers.
  std::vector<std::pair<const CompletionRecord *, uint64_t>> pending_kernels;
};

class Backend {
public:
  virtual ~Backend() = default;
  virtual void query(atos_device_info *info) = 0;
  virtual void *allocate(uint64_t bytes) = 0; // filled with zeros
  virtual void release(void *pointer) noexcept = 0;
  // Memory for workers, up to `bytes`, which takes room only where it is written; at least `least`.
  virtual void *reserve(uint64_t *bytes, uint64_t least) = 0;
  virtual void release_reserved(void *pointer, uint64_t bytes) noexcept = 0;
  virtual std::unique_ptr<GrowableRange> growable_range(uint64_t bytes) = 0; // null if there are no such addresses
  virtual void copy(void *to, const void *from, uint64_t bytes) = 0;
  virtual void fill(void *to, const void *element, uint32_t element_bytes, uint64_t count) = 0;
  virtual void wait(void *stream) = 0; // for what is in a stream of the device
  virtual uint32_t resident_blocks(atos_program &program, const atos_launch &launch, uint32_t item_bytes) = 0;
  virtual uint32_t workers_per_block(const atos_launch &launch) = 0;

  // Run the tasks of the queue until none is left or a stop is asked for, by a worker or by run.watch: one persistent run, or
  // rounds that the host starts while there is something to run. Rounds are counted in counters->rounds. Workers that do not
  // stop are left running, with ATOS_STUCK; whether they have come to an end since is asked with `ended`, which then fills in
  // the counters.
  virtual void run_persistent(Run &run) = 0;
  virtual void run_discrete(Run &run) = 0;
  virtual bool ended(Run &run) = 0;

  virtual void start_clock(const atos_launch &launch) = 0;
  virtual double stop_clock(const atos_launch &launch) = 0; // milliseconds
};

// The backend of a device, made on first use and kept; throws ATOS_NO_DEVICE.
Backend &backend(int32_t device);

Backend &cpu_backend();
uint64_t host_memory_free(); // bytes
Backend &cuda_backend(int32_t device);
int32_t cuda_device_count(std::string *why_none);
std::unique_ptr<atos_program> cuda_program(int32_t device, const void *cubin, const char *symbol);
int32_t cuda_pointer_device(const void *pointer); // ATOS_CPU for memory of the host

// What the rings take that come with the growths after a first ring, each twice as large as the one before; and how many
// growths there is room for.
inline uint64_t bytes_of_growths(uint64_t ring_bytes, unsigned growths) { return (ring_bytes << (growths + 1)) - 2 * ring_bytes; }
inline unsigned growths_within(uint64_t ring_bytes, uint64_t bytes) {
  unsigned growths = 0;
  while (growths < kMostGrowths && bytes_of_growths(ring_bytes, growths + 1) <= bytes) ++growths;
  return growths;
}

// Bytes of shared memory of a block.
inline uint32_t shared_bytes(const atos_launch &launch, uint32_t item_bytes, uint32_t buffer) {
  const bool thread = launch.worker == ATOS_THREAD;
  const SharedLayout at = shared_layout(thread, launch.nested, item_bytes, launch.value_words, launch.fetch, buffer,
                                        launch.scratch);
  return at.bytes * (launch.worker == ATOS_CTA ? 1 : launch.threads / 32);
}

inline uint32_t buffer_items(const atos_launch &launch, uint32_t item_bytes) {
  return (launch.worker == ATOS_CTA ? kCtaBuffer : kWarpBuffer) / item_bytes;
}

} // namespace atos
