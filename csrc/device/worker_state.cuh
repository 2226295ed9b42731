// State of a worker in shared memory, and a task's view of its worker.
//
// The state lies in shared memory and not in registers, of which a task needs as many as it can get. The functions of a worker
// are in layers over the state, one class and file each:
//
//   WorkerState <- FarWork <- PushBuffer <- NewestFirst <- Termination <- HostReport <- BspRounds
//
//   BspRounds <- ThreadWorkers
//   BspRounds <- LoadBalance <- WorkSharing <- GroupWorker
//
// `Group` is the class of the threads that share the state (Warp or Cta; compare cooperative groups): the threads of one warp
// or CTA worker, or of 32 thread workers. The comment of a function begins with its callers: [one lane], [first warp], [all
// threads] of the group; [team]: all threads of `Team`, a template parameter, which is the first warp or the whole group. A
// function without such a tag only reads, and any thread may call it.
//
// A ticket is an index into the queue (protocol/counters.h). A local item has no ticket: the worker that pushed the item runs
// it without storing it in the queue.
#pragma once
#include "device/action.cuh"
#include "protocol/consumer.cuh"
#include "protocol/far_items.cuh"
#include "protocol/kernel_params.h"
#include "protocol/peers.cuh"
#include "protocol/producer.cuh"
#include "protocol/split_item.cuh"
#include "protocol/termination.cuh"

// The task, compiled from Python and linked in. `args` and `values` are 64-bit words. Where some kinds of tasks are flat and
// others nested, atos_task_flat runs the flat ones, atos_task_workload and atos_task_body the nested ones. All return a word,
// as Numba's functions do; that of a workload is its number of iterations, the others' mean nothing.
extern "C" {
__device__ int64_t atos_task_workload(void *worker, const void *item, void *values, const void *args);
__device__ int64_t atos_task_body(void *worker, const void *item, int64_t i, const void *values, const void *args);
__device__ int64_t atos_task_flat(void *worker, const void *item, int64_t i, const void *values, const void *args);
__device__ int64_t atos_task_idle(void *worker, const void *args);
__device__ int64_t atos_task_each_round(void *worker, const void *args);
__device__ void atos_left(void *worker); // debug_rendezvous.cuh
}

namespace atos {

// The kind of an item is its last byte.
template <unsigned bytes> ATOS_DEVICE unsigned kind_of(const Item<bytes> &item) {
  if constexpr (bytes == 4) return item.word >> 24;
  else return unsigned(item.word[bytes / 8 - 1] >> 56);
}
template <unsigned bytes> ATOS_DEVICE bool is_flat(const Item<bytes> &item) { return flat_kinds >> kind_of(item) & 1; }

// The state of a worker, at the start of its shared memory, written by the worker's first lane.
struct Header {
  Consumer consumer; // claimed tickets of the worker, or, with thread workers, the tickets that the lanes got last
  Producer producer;
  TerminationDetector end;
  uint64_t ran;              // statistics
  unsigned long long pushed; // statistics, which all lanes add to
  uint64_t head;             // head of the queue, as last sampled
  uint64_t round_end;        // tickets below this run in the current round
  int64_t mode;              // mode of the current round
  uint64_t borrowed_item[2]; // the item of the chunk that runs, from the table or this worker's batch; see `borrowed`
  uint64_t borrowed_values[kValueWords];
  Chunk chunk;
  uint32_t pushes;        // items pushed in this step, up to kMostCounted; items beyond the buffer are in the queue already
  uint32_t flushed;       // pushes of the last step that have been flushed
  Action action;          // the next step
  Action step;            // the last step, not counting flushes and waits for space
  uint32_t local_items;   // local items: pushed, and the next to run, without a ticket
  uint32_t steps;         // samples since the worker last took a ticket
  uint32_t stalled_steps; // samples in a row of the same head
  uint32_t first_counted; // of the items that run, the first that counts as an unfinished task: items before this one are local
  uint32_t total;         // iterations of the batch, without those of long items
  uint32_t any_long;      // whether the batch has long items
  uint32_t batch;         // items of a batch whose long ones are being split, or 0
  uint32_t next_long;     // first item of this batch that has not been looked at for splitting
  uint32_t num_split;     // number of the batch's counted items that were split
  uint32_t idle_called;   // whether idle was called in this round
  uint32_t marked;        // of the last block at a barrier: whether there are marks (bsp_rounds.cuh)
  uint32_t share;         // tickets of the round that this worker claims at once, kNoShare or kShareClaimed (consumer.cuh)
  uint32_t each;          // thread workers: tickets for each lane that had none
  uint32_t last_tick;     // in a launch with a time limit: the tick when time is up

  // Counts the pushes of the last step as flushed.
  ATOS_DEVICE void end_flush() {
    flushed = pushes;
    pushed += pushes;
    pushes = 0;
  }
};
static_assert(sizeof(Header) <= kHeaderBytes, "the header outgrew its place");

// A worker's state for a queue with buckets; pushes with their levels follow it (far_work.cuh).
struct FarState {
  Window window;    // window of buckets, as last sampled
  uint32_t pushes;  // far items pushed in this step, of which the buffer may hold fewer
  uint32_t surplus; // near items of a flush that are stored as far ones
  uint32_t taken;   // items of the chunk that were taken
  uint32_t kept;    // items of the next batch that the worker has already
  uint32_t filled;  // whether the first claimed ticket has its item, as last sampled
  uint32_t open;    // whether there were far items to take
  FarChunk chunk;   // the chunk that runs
};
static_assert(sizeof(FarState) <= kFarStateBytes, "the state for far items outgrew its place");

// A worker's stack in a queue that takes the newest items first (newest_first.cuh): the items [bottom, top), each at its number
// modulo the room of the stack.
struct StackState {
  uint64_t first; // of all stacks' places, the first of this one
  uint32_t bottom, top;
  uint32_t leaving; // newest items that are about to go to the queue
  uint32_t popped;  // items of the batch that runs
  uint32_t turns;   // steps in which other items than the newest had their turn

  ATOS_DEVICE uint32_t count() const { return top - bottom; }
};
static_assert(sizeof(StackState) <= kStackStateBytes, "the state of a stack outgrew its place");

// In a launch over several GPUs: what a flush pushes into the queue of one GPU.
struct PeerPush {
  Ring ring;            // ring of the reserved tickets
  uint64_t base;        // the first reserved ticket
  uint32_t count, next; // items to reserve tickets for, 0 between flushes; reserved tickets that have been taken
};
static_assert(sizeof(PeerPush) == kPeerPushBytes, "the parameters of the kernel know another size");

// A view of the far items of a launch.
template <unsigned bytes> ATOS_DEVICE FarItems<bytes> far_items_of(const Launch &launch) { return FarItems<bytes>(launch); }

// A task's view of its worker, passed to the task as a void pointer.
template <unsigned bytes> struct Worker {
  const Launch *launch;
  Header *header;
  PushArray<Item<bytes>> buffer;
  uint64_t *reduce;
  unsigned char *scratch;
  int64_t round = 0, mode = 0; // round and mode of a launch with barriers; in registers, if the task asks for these
  int64_t pending = 0; // in the function between rounds: items that wait for the next round; in a register, if asked for

  ATOS_DEVICE QueueRef<bytes> queue() const { return QueueRef<bytes>(*launch); }
  ATOS_DEVICE FarItems<bytes> far_items() const { return far_items_of<bytes>(*launch); }
  // The far items of an item's owner, which has this number among several GPUs.
  ATOS_DEVICE FarItems<bytes> far_items_of_owner(uint32_t number) const {
    return has_peers ? peers_of(*launch).template far_items<bytes>(number) : far_items();
  }
  ATOS_DEVICE uint32_t owner_of(const Item<bytes> &item) const { return has_peers ? peers_of(*launch).owner(item) : 0; }

  // Of a queue with buckets: the state, the levels of the items in the buffer, and the far items that were pushed.
  ATOS_DEVICE FarState *far_state() const {
    return reinterpret_cast<FarState *>(reinterpret_cast<unsigned char *>(header) + launch->far_at);
  }
  // Of a queue that takes the newest items first.
  ATOS_DEVICE StackState &stack() const {
    return *reinterpret_cast<StackState *>(reinterpret_cast<unsigned char *>(header) + launch->far_at);
  }
  ATOS_DEVICE Item<bytes> &on_stack(uint32_t number) const {
    return static_cast<Item<bytes> *>(launch->stacks)[stack().first + (number & (launch->stack_room - 1))];
  }
  ATOS_DEVICE PushArray<float> levels() const {
    return reinterpret_cast<float *>(reinterpret_cast<unsigned char *>(far_state()) + kFarStateBytes);
  }
  // In a launch over several GPUs: one PeerPush for each GPU.
  ATOS_DEVICE PeerPush *peer_pushes() const {
    return reinterpret_cast<PeerPush *>(reinterpret_cast<unsigned char *>(header) + launch->peers_at);
  }
  ATOS_DEVICE PushArray<float> far_levels() const { return levels() + launch->buffer; }
  ATOS_DEVICE PushArray<Item<bytes>> far_buffer() const {
    return reinterpret_cast<Item<bytes> *>(far_levels() + launch->buffer);
  }

  // [any lanes] After a push that got place `at` of `count`, beyond the buffer: keeps the 32-bit count from wrapping around.
  ATOS_DEVICE void limit_count(uint32_t *count, uint32_t at) const {
    if (at < kMostCounted) return;
    atomicAdd(count, ~0u);
    atomicAdd(&header->pushed, 1ull);
  }

  ATOS_DEVICE void push(const Item<bytes> &item);                         // push_buffer.cuh
  ATOS_DEVICE void push_on_stack(const Item<bytes> &item);                // newest_first.cuh
  ATOS_DEVICE void push_with_level(const Item<bytes> &item, float level); // far_work.cuh
};

// The lowest layer of all workers. `Group` is the threads that share a header.
template <class Group, unsigned bytes> struct WorkerState {
  const Launch &launch;
  const Arguments &args;
  Header *header;
  unsigned long long *ran_by; // with several kinds: number of tasks that ran of each kind
  Worker<bytes> worker;

  // [all threads]
  ATOS_DEVICE WorkerState(const Launch &launch, const Arguments &args, unsigned char *shared, const SharedLayout &at)
      : launch(launch), args(args), header(reinterpret_cast<Header *>(shared)),
        ran_by(reinterpret_cast<unsigned long long *>(shared + at.kinds)),
        worker{&launch, header, reinterpret_cast<Item<bytes> *>(shared + at.buffer),
               reinterpret_cast<uint64_t *>(shared + at.reduce), shared + at.scratch} {
    if (Group::rank() == 0) {
      *header = Header{};
      header->consumer.begin(queue());
      header->producer.begin(queue());
      set_round(launch.round_begin, launch.round_end);
      header->chunk.split = -1;
      header->step = Action::kLeave;
      if (launch.time_limit) header->last_tick = clock_ticks() + launch.time_limit;
      if (has_peers)
        for (uint32_t k = 0; k < launch.peer_count; ++k) worker.peer_pushes()[k] = PeerPush{};
      if (has_buckets) *worker.far_state() = FarState{worker.far_items().window(), 0, 0, 0, 0, 0, 0, {}};
      if (has_stack) {
        const uint64_t number = uint64_t(block_index()) * Group::per_block() + Group::index_in_block();
        worker.stack() = {number * launch.stack_room, 0, 0, 0, 0, 0};
      }
    }
    if (asks_for_round) {
      worker.round = int64_t(launch.round);
      worker.mode = int64_t(load(&queue().counters->mode));
    }
    if (Group::rank() < num_kinds) ran_by[Group::rank()] = 0;
    Group::sync();
  }

  ATOS_DEVICE QueueRef<bytes> queue() const { return worker.queue(); }
  ATOS_DEVICE bool relaxed() const { return launch.persistent && !launch.barrier; }

  // [one lane] Makes [begin, end) the current round. With buckets a worker claims no share, but chunks of far items, too.
  ATOS_DEVICE void set_round(uint64_t begin, uint64_t end) {
    header->round_end = end;
    header->share = relaxed() || has_buckets ? kNoShare : share_of_round(launch, end - begin, nested);
  }

  // [one lane] In a launch with a time limit: returns kStopAsked and asks all workers to stop if time is up, otherwise kRun.
  // The host asks for this stop too, but the driver may hold the host up.
  ATOS_DEVICE uint64_t stop_by_clock() const {
    if (!launch.time_limit || !is_past(header->last_tick)) return kRun;
    set_bits(&queue().counters->stop, kStopAsked);
    return kStopAsked;
  }

  // A fence between writes before an item is pushed and reads by the item's task. In a launch over several GPUs with barriers,
  // the barriers order writes on one GPU before reads on another.
  ATOS_DEVICE void fence_of_items() const {
    if (has_peers && !relaxed()) fence_device();
    else fence();
  }

  // [one warp] Counts the items of the lanes for which `runs` is true, by their kind. There is a ballot for each kind, since
  // lanes that all add to one number wait for each other.
  ATOS_DEVICE void count_kinds(bool runs, const Item<bytes> &item) const {
    for (unsigned kind = 0; kind < num_kinds; ++kind) {
      const unsigned count = __popc(__ballot_sync(kAll, runs && kind_of(item) == kind));
      if (count && lane_id() == 0) atomicAdd(&ran_by[kind], static_cast<unsigned long long>(count));
    }
  }

  // [one lane] Adds to a count of a launch with counters, at once and not when the worker leaves: such a launch may take its
  // time, and other launches have no place for counts.
  ATOS_DEVICE void count(uint64_t atos_sharing::*what, uint64_t n) const {
    if (has_counters && n) fetch_add(&(queue().counters->sharing.*what), n);
  }

  // The counter of the tickets that workers of this kernel have claimed, and the first ticket that can be claimed.
  ATOS_DEVICE uint64_t *claims_of_kernel() const {
    return launch.persistent ? &queue().counters->head : &queue().counters->claims[launch.stream];
  }
  ATOS_DEVICE uint64_t first_of_kernel() const { return launch.persistent ? 0 : launch.round_begin; }
};

} // namespace atos
