// Backend: the interface to a device, which holds memory and runs the workers of a launch.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "host/inbox.h"
#include "host/memory_source.h"
#include "host/recent_number.h"
#include "host/run.h"
#include "host/shared_memory.h"
#include "protocol/queue_ref.cuh"
#include "protocol/split_item.cuh"

namespace atos {

// Spilled items (SpilledItem) in the memory of a device.
struct SpilledItems {
  void *begin;
  uint32_t item_bytes;
  uint64_t count;
};

// The slots of a ring in the memory of a device; ticket `start` had the first slot.
struct RingSlots {
  void *begin;
  uint64_t start, size;
};

class Backend : public MemorySource {
public:
  virtual void query(atos_device_info *info) = 0;
  virtual void *allocate_uncleared(uint64_t bytes) = 0;
  virtual void copy(void *to, const void *from, uint64_t bytes) = 0;
  virtual void fill(void *to, const void *element, uint32_t element_bytes, uint64_t count) = 0;
  // Makes ready slots of one generation from items of 4 or 8 bytes that lie in the memory of a GPU,
  // or, if `items` is null, from the numbers `first`, `first` + 1, ... False where the host has to make the slots: on the CPU,
  // and beside a run that waits for the host.
  virtual bool store_items(void * /* slots */, const void * /* items */, uint64_t /* first */, uint64_t /* count */,
                           uint32_t /* item_bytes */, uint64_t /* generation */) {
    return false;
  }
  // The next three return false where the host has to do that: on the CPU, and beside any run.
  // Copies, of the spilled items, far items and the items of tickets below `end` behind all spilled items, and adds their
  // number to `*number`; what lies beyond `size` items is counted and not copied.
  virtual bool gather_spilled(const SpilledItems &, uint64_t /* end */, uint64_t * /* number */, uint64_t /* size */) {
    return false;
  }
  // Fills the slots of `n` tickets from `first` on with those of the spilled items that have these tickets.
  virtual bool store_spilled(const SpilledItems &, uint64_t /* first */, uint64_t /* n */, const RingSlots & /* to */) {
    return false;
  }
  // Copies the items of `n` tickets from `first` on, which are ready, into slots that have their first generation.
  virtual bool move_slots(const RingSlots & /* from */, uint64_t /* first */, uint64_t /* n */, uint32_t /* item_bytes */,
                          void * /* to */) {
    return false;
  }
  virtual void wait(void *stream) = 0;                // for all work in a stream of the device
  virtual void order(void *earlier, void *later) = 0; // lets a stream wait for what is in another one now
  virtual InboxMemory make_inbox() = 0;               // for items of any size
  virtual void release_inbox(const InboxMemory &memory) noexcept = 0;
  virtual uint32_t resident_blocks(const Run &run) = 0; // of the kernel of a run, which has the device to itself
  virtual uint32_t workers_per_block(const atos_launch &launch) = 0;

  // Run the tasks of the queue until none is left or a stop is asked for, by a worker or by run.monitor: one persistent run, or
  // rounds that the host starts while there is something to run. Rounds are counted in counters->rounds. Workers that do not
  // stop are left running, with ATOS_STUCK; `ended` says whether these workers have ended since, and then fills in the
  // counters.
  virtual void run_persistent(Run &run) = 0;
  virtual void run_discrete(Run &run) = 0;
  virtual bool ended(Run &run) = 0;
  // `run_peers` is `run_persistent` for several devices of this kind at once, each with a run of its own; the monitor of the
  // first run is asked. `provide_peers` brings the counters of each queue to its device before the first worker of any device
  // begins. They come back after the last worker has left, since other devices may push until then: if all workers are in this
  // process, by `run_peers`.
  virtual void provide_peers(const Runs &) {
    throw Failure(ATOS_INVALID, "these devices have no launches over several of them");
  }
  virtual void run_peers(const Runs &, bool /* collects */) {}
  virtual void collect_peers(const Runs &) {}

  virtual void start_clock(const atos_launch &launch) = 0;
  virtual double stop_clock(const atos_launch &launch) = 0; // milliseconds

  // The number of free bytes, roughly, for limits that need not be exact.
  uint64_t free_bytes() {
    return recent_free_bytes.get([this] {
      atos_device_info info{};
      query(&info);
      return info.free_bytes;
    });
  }

private:
  RecentNumber recent_free_bytes;
};

// The backend of a device, made on first use and kept; throws ATOS_NO_DEVICE.
Backend &backend(int32_t device);

Backend &cpu_backend();
uint64_t host_memory_to_spare(); // bytes that may be reserved for memory that is only written in need
Backend &cuda_backend(int32_t device);
int32_t cuda_device_count(std::string *why_none);
std::unique_ptr<atos_program> cuda_program(int32_t device, const void *cubin, const char *symbol);
int32_t cuda_pointer_device(const void *pointer); // ATOS_CPU for memory of the host
void cuda_release_memory();                       // all memory that is kept on GPUs and that no queue or array uses
void cuda_connect(const std::vector<int32_t> &devices);
void *cuda_allocate_over(const std::vector<int32_t> &devices, const std::vector<uint64_t> &borders);
void cuda_release_over(void *pointer) noexcept;
std::unique_ptr<atos_shared> cuda_share(int32_t device, uint64_t bytes);

// Bytes of a worker's scratch: the part that the launch sizes, and after it the part that the task sizes.
inline uint32_t scratch_bytes(const atos_launch &launch) { return (launch.scratch + 15) / 16 * 16 + launch.sized_scratch; }

// Bytes of shared memory of a block.
inline uint32_t shared_bytes(const atos_launch &launch, uint32_t item_bytes, uint32_t buffer, uint32_t peers) {
  const bool thread = launch.worker == ATOS_THREAD;
  const SharedLayout at = shared_layout(thread, launch.nested, item_bytes, launch.value_words, launch.fetch, buffer,
                                        scratch_bytes(launch), launch.buckets, launch.newest, launch.kinds != 0, peers);
  return at.bytes * (launch.worker == ATOS_CTA ? 1 : launch.threads / 32);
}

constexpr uint32_t kMostPushBuffer = 1 << 16; // items

inline uint32_t buffer_items(const atos_launch &launch, uint32_t item_bytes) {
  // With buckets at least one: thread workers push far items again to run them, and an item without room would be far for ever.
  if (launch.newest) return 0; // pushes go on the worker's stack
  if (launch.push_buffer) return std::max(launch.push_buffer - 1, uint32_t(launch.buckets != 0));
  // With buckets each item has a level, and a buffer of as many far items lies beside the buffer.
  const uint32_t bytes = launch.worker == ATOS_CTA ? kCtaBuffer : kWarpBuffer;
  return launch.buckets ? bytes / (item_bytes + 4) : bytes / item_bytes;
}

// Items that the stack of a worker has room for, in a queue that takes the newest items first: a power of two.
inline uint32_t stack_items(const atos_launch &launch, uint32_t item_bytes) {
  const uint32_t least = launch.push_buffer ? launch.push_buffer - 1 : kStackBytes / item_bytes;
  uint32_t items = 1;
  while (items < least) items *= 2;
  return items;
}

// Most pushes that a worker keeps. On a GPU they are its next batch: half a batch as a rule, since a long batch is hard to
// share. On the CPU they stay in the push buffer.
inline uint32_t local_items(const atos_launch &launch, bool on_cpu) {
  const uint32_t usual = on_cpu ? kMostPushBuffer : launch.fetch / 2 + 1, most = on_cpu ? kMostPushBuffer : launch.fetch;
  return launch.local_items ? std::min(launch.local_items - 1, most) : usual;
}

} // namespace atos
