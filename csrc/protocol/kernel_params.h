// The parameters of a kernel, its record of completion and the shared memory of a worker: what host and kernel must agree on.
#pragma once
#include <cstdint>

#include "include/interface.h"
#include "protocol/queue_addresses.h"
#include "protocol/tuning.h"

namespace atos {

constexpr uint32_t kStreams = 4; // discrete kernels that may run side by side, if the launch does not say

// Time limits are in ticks of 2^20 nanoseconds, so that one word holds seven weeks.
constexpr unsigned kTickShift = 20;
constexpr int64_t kMostTicks = INT32_MAX;

// Completion record, in pinned host memory: written by the last block to leave, but for `begun`. Its fields are the counters
// with their names.
struct CompletionRecord {
  uint64_t tail;
  uint64_t stop;
  uint64_t ran, pushed, rounds, sampled;
  uint64_t claims;                 // discrete: tickets claimed by the workers of the kernel; may exceed its range
  uint64_t opened;                 // chunks of far items that were opened when the kernel ended
  uint64_t ran_by[ATOS_MAX_KINDS]; // with several kinds of tasks
  atos_sharing sharing;            // if the task counts shared work
  uint64_t growths_requested;      // 1 while the kernel runs: a growth is requested
  uint64_t begun;                  // number of the kernel, written when it begins
  uint64_t sequence;               // number of the kernel, written last
};

// The first kernel parameter: the queue of the workers, and how they run. The second is the argument words of the task.
struct Launch : QueueAddresses {
  uint64_t round_begin; // discrete: the tickets that this kernel runs; persistent with barrier: the tickets of the first round
  uint64_t round_end;
  uint64_t round; // with barriers: the number of the (first) round
  void *samples;  // for the trace, or null
  uint32_t max_samples;
  uint32_t sample_interval;
  uint64_t sequence; // number of this kernel
  CompletionRecord *record;
  uint32_t stream;      // discrete: the stream that the kernel runs in
  uint32_t fetch;       // items a worker takes at once, at most
  uint32_t workers;     // of the whole grid
  uint32_t buffer;      // items that a worker's push buffer holds
  uint32_t local_items; // most items that a worker keeps after a step
  uint32_t shares;      // whether workers split long items, and donate some of their local items
  uint32_t scratch;     // bytes of a worker's scratch, of both kinds
  uint32_t persistent;
  uint32_t barrier;
  uint32_t idle_round;      // discrete: call idle once
  uint32_t unsized_scratch; // bytes of scratch before the regions that the task sizes itself
  uint32_t time_limit;      // ticks after which workers stop by their own clock; 0: no limit

  // Of a queue with buckets (far_items.cuh).
  uint32_t far_at; // offset of FarState in the shared memory of a worker
  double inverse_delta;

  void *inbox; // inbox of items that the host sends meanwhile (inbox.cuh), or null

  // Of a queue that takes the newest items first (newest_first.cuh): the stacks of all workers on a GPU, one after the other,
  // and how many items each has room for, a power of two. The state of a stack lies at `far_at`.
  void *stacks;
  uint32_t stack_room;

  // Of a launch over several GPUs: the table of all their queues, in the memory of this GPU (peers.cuh), and which of all
  // workers are this GPU's.
  const void *peer_table;
  uint64_t peer_chunk, peer_reciprocal;
  uint32_t peer_count, peer_own, key_bytes;
  uint32_t peers_at; // offset of the first PeerPush in the shared memory of a worker
  uint32_t first_worker, all_workers;
};

struct Arguments {
  uint64_t word[256];
};

// Bytes of one worker's part of the shared memory, in this order. Thread workers share one part in each warp.
struct SharedLayout {
  uint32_t reduce, kinds, items, buffer, values, lengths, scan, far, peers, scratch, bytes;
};

constexpr uint32_t kHeaderBytes = 368;
constexpr uint32_t kHeaderItemBytes = 16; // a borrowed item (work_sharing.cuh) that is larger has its place behind the header
constexpr uint32_t kReduceBytes = 32 * 8;
constexpr uint32_t kFarStateBytes = 64;
constexpr uint32_t kStackStateBytes = 32;
constexpr uint32_t kPeerPushBytes = 48;

#if defined(__CUDACC__)
__host__ __device__
#endif
constexpr SharedLayout shared_layout(bool thread, bool nested, uint32_t item_bytes, uint32_t value_words, uint32_t fetch,
                                     uint32_t buffer, uint32_t scratch, bool buckets, bool stack, bool kinds, uint32_t peers) {
  SharedLayout at{};
  uint32_t end = kHeaderBytes;
  end += thread || !nested || item_bytes <= kHeaderItemBytes ? 0 : item_bytes;
  at.reduce = end;
  end += thread ? 0 : kReduceBytes;
  at.kinds = end;
  end += kinds ? ATOS_MAX_KINDS * 8 : 0;
  at.items = end;
  end += thread ? 0 : (fetch * item_bytes + 15) / 16 * 16;
  at.buffer = end;
  end += (buffer * item_bytes + 15) / 16 * 16;
  at.values = end;
  end += thread || !nested ? 0 : fetch * value_words * 8;
  at.lengths = end;
  end += thread || !nested ? 0 : fetch * 8;
  at.scan = end;
  end += thread || !nested ? 0 : (fetch + 1) * 4;
  end = (end + 15) / 16 * 16;
  at.far = end;
  end += buckets ? kFarStateBytes + (buffer * (item_bytes + 8) + 15) / 16 * 16 : stack ? kStackStateBytes : 0;
  at.peers = end;
  end += peers * kPeerPushBytes;
  at.scratch = end;
  end += (scratch + 15) / 16 * 16 * (thread ? 32 : 1);
  at.bytes = end;
  return at;
}

} // namespace atos
