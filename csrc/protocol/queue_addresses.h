// QueueAddresses: where the memory of a queue lies on its device, and the sizes there. Every view of a queue is made of these
// addresses: the view of its own workers, of workers of other devices, and of tasks of another queue.
#pragma once
#include "protocol/counters.h"

namespace atos {

struct QueueAddresses {
  Counters *counters;
  void *slots, *more;        // slots of the first ring, and of the rings that may follow while workers run
  void *spill;               // for items that find no slot
  void *split_items;         // table of the queue's own workers
  uint64_t size, reciprocal; // slots of the first ring; (2^64 - 1) / size
  uint64_t spill_size;       // items that `spill` has space for
  uint32_t growths;          // how often the queue may grow while workers run

  // Of a queue with buckets: their number, and the memory of its far items (far_items.cuh).
  uint32_t buckets, blocks, directory;
  void *far;
};

} // namespace atos
