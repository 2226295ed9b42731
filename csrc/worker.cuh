// Workers: they take items from the queue, spread a task over their threads, and hand on what it pushed. What a worker does
// next is decided in `decide()`, or `next()` of thread workers, the only places that know the schedules.
//
// A warp or CTA worker is one `Group` of threads: its first warp takes items, all threads run them. Thread workers step
// together in warps of 32, so that they share the atomics on the queue's counters. What a worker has to remember lies in
// shared memory and not in registers, of which a task needs as many as it can get.
#pragma once
#include "device/hardware.cuh"
#include "layout.h"
#include "queue.cuh"
#include "share.cuh"

// The task, compiled from Python and linked in. `args` and `values` are 64-bit words. What atos_config() tells is folded to a
// constant by the linker, which then drops what it rules out.
extern "C" {
__device__ int64_t atos_task_workload(void *worker, const void *item, void *values, const void *args);
__device__ void atos_task_body(void *worker, const void *item, int64_t i, const void *values, const void *args);
__device__ void atos_task_idle(void *worker, const void *args);
__device__ int32_t atos_config(int32_t key);
}

namespace atos {

constexpr unsigned kAll = ~0u;
constexpr uint64_t kNever = ~0ull;  // no number of published tasks; as the end of a round: none follows

// The next step of a worker, in one 32-bit word: a shuffle passes it between lanes, the header between warps.
//
//   +--> next_action() ---> kItems         run the task on count() items -------------------->+
//   |        |------------> kChunk         run it on a chunk of a split item ----------------->+
//   |        |------------> kIdle          call the idle function ---------------------------->+
//   |        |------------> kFlush         all threads flush the pushes ---------------------->+
//   |        |------------> kWaitForSpace  one thread waits for space in the ring, reserves -->+
//   |        |------------> kRound         all workers meet: next_round()                      |
//   |        |                                |---> kRound   the next one has begun ---------->+
//   |        |                                |---> kIdle    call the idle function ---------->+
//   |        |                                `---> kLeave --.                                 |
//   |        `------------> kLeave         report, exit <----'                                 |
//   +<----------------------------------------------------------------------------------------+
//
// next_action() first has the pushes of the last step flushed (kWaitForSpace, kFlush) and accounts for that step. Then come local items
// (kItems), chunks of this worker's long items (kChunk), and what fetch() finds: items of the queue, a chunk of another worker's
// item, or a reason to call idle or leave, in place of which a launch with rounds has kRound.
struct Action {
  enum Kind : int32_t {
    kItems = 1,
    kIdle = 0,
    kLeave = -1,
    kChunk = -2,
    kHandOn = -3,
    kRound = -4,
    kCrowded = -5,
    kWait = -6, // only within fetch(): poll the claimed slots again
  };

  Action() = default;
  ATOS_DEVICE Action(Kind kind) : word(kind) {}
  static ATOS_DEVICE Action items(uint32_t count) { return Action(Kind(count)); }

  ATOS_DEVICE bool operator==(Kind kind) const { return kind == kItems ? word > 0 : word == kind; }
  ATOS_DEVICE bool operator!=(Kind kind) const { return !(*this == kind); }
  ATOS_DEVICE uint32_t count() const { return uint32_t(word); } // of kItems
  ATOS_DEVICE Action of_first_lane() const { return Action(Kind(__shfl_sync(kAll, word, 0))); }

private:
  int32_t word; // a kind, or a positive count
};

ATOS_DEVICE bool nested() { return atos_config(ATOS_CONFIG_NESTED); }
ATOS_DEVICE bool has_idle() { return atos_config(ATOS_CONFIG_IDLE); }
ATOS_DEVICE int value_words() { return atos_config(ATOS_CONFIG_VALUE_WORDS); }

// What a worker remembers, at the start of its shared memory. Written by the first lane of the worker.
struct Header {
  uint64_t first, claimed;   // tickets [first, first + claimed) are ours and not yet taken
  uint64_t owed;             // tasks done and not yet counted as finished
  uint64_t ran, pushed;      // statistics
  uint64_t round_end;        // tickets below this run in the current round
  uint64_t quiet;            // `published` at which this worker registered as quiet
  uint64_t candidate;        // `published` when nothing was unfinished before an idle call, or kNever
  uint64_t base;             // first ticket of what is being published
  Ring taking, putting;      // those that our tickets are for, and what is being published
  uint64_t next_start;       // first ticket of the ring after `taking`, if it is known to be there, or kNever
  uint64_t guest_item[2];    // of the chunk that runs
  uint64_t guest_values[kValueWords];
  Chunk chunk;
  int64_t hungry;            // workers that wait for tasks, or less than 0: tasks that wait for workers
  int64_t spare;             // pushes beside those that others wait for, for which tickets can be had at any time
  uint32_t pushes;           // pushed items; those that the buffer does not hold went straight to the queue
  uint32_t handed;           // pushes of the last step that have been handed on
  Action verdict;            // what decide() says
  Action step;               // the last one that was a step: all but kHandOn and kCrowded are
  uint32_t kept;             // pushed items that became the next ones to run without going through the queue
  uint32_t counted;          // 1 if the items that run have tickets, 0 if they were kept
  uint32_t total;            // iterations of the batch, but for long items
  uint32_t any_long;         // whether the batch has long items
  uint32_t batch;            // items of a batch whose long ones are being shared, or 0
  uint32_t next_long;        // first of them that has not been looked at for sharing
  uint32_t shared;           // those that were shared
  uint32_t idle_called;      // in this round
  uint32_t each;             // thread workers: tickets for each lane without any
  uint32_t taken, put;       // growths before `taking` and `putting`
  uint32_t reserved;         // 1 if there are tickets for all that was pushed and not handed on
};
static_assert(sizeof(Header) <= kHeaderBytes, "the header outgrew its place");

// What a task sees of its worker, behind a void pointer.
template <unsigned bytes> struct Worker {
  const Launch *launch;
  Header *header;
  PushArray<Item<bytes>> buffer;
  uint64_t *reduce;
  unsigned char *scratch;

  ATOS_DEVICE QueueRef<bytes> queue() const {
    return {static_cast<Counters *>(launch->counters), static_cast<Slot<bytes> *>(launch->slots),
            static_cast<Slot<bytes> *>(launch->more),  static_cast<Item<bytes> *>(launch->spill),
            launch->size,    launch->reciprocal,       launch->spill_size,    launch->growths};
  }

  // Lanes that push together share one atomic. What the buffer cannot hold goes to the queue at once.
  ATOS_DEVICE void push(const Item<bytes> &item) {
    const unsigned active = __activemask();
    const unsigned leader = __ffs(active) - 1, before = __popc(active & ((1u << lane_id()) - 1));
    uint32_t at = 0;
    if (lane_id() == leader) at = atomicAdd(&header->pushes, __popc(active));
    at = __shfl_sync(active, at, leader) + before;
    if (at < launch->buffer) {
      buffer[at] = item;
    } else {
      fence();
      const uint64_t published = queue().reserve(1);
      const unsigned k = growths_of(published);
      queue().publish(queue().ring(k, queue().start_of(k)), tickets_of(published), item);
    }
  }
};

ATOS_DEVICE uint32_t inclusive_scan(uint32_t x) {
#pragma unroll
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const uint32_t y = __shfl_up_sync(kAll, x, distance);
    if (lane_id() >= distance) x += y;
  }
  return x;
}

// Blocks wait for each other; the last one to come runs `last` before anybody goes on. Free of deadlock because a launch
// with barriers has no more blocks than are resident at once.
template <class Last> ATOS_DEVICE void grid_barrier(Counters *counters, Last last) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const uint64_t phase = load(&counters->phase);
    fence();
    const uint64_t ticket = add(&counters->arrived, uint64_t(1));
    if (ticket + 1 == (phase + 1) * gridDim.x) { // a remainder of 64 bits would be a call, around which registers are kept
      fence();
      last();
      fence();
      store(&counters->phase, phase + 1);
    } else {
      while (load(&counters->phase) == phase) {}
    }
    fence();
  }
  __syncthreads();
}

// What warps, CTAs and warps of thread workers have in common. `Group` is the threads that share a header.
template <class Group, unsigned bytes> struct Base {
  const Launch &launch;
  const Arguments &args;
  Header *header;
  Worker<bytes> worker;

  ATOS_DEVICE QueueRef<bytes> queue() const { return worker.queue(); }
  ATOS_DEVICE bool relaxed() const { return launch.persistent && !launch.barrier; }

  ATOS_DEVICE Base(const Launch &launch, const Arguments &args, unsigned char *shared,
                                  const SharedLayout &at)
      : launch(launch), args(args), header(reinterpret_cast<Header *>(shared)),
        worker{&launch, header, reinterpret_cast<Item<bytes> *>(shared + at.buffer),
               reinterpret_cast<uint64_t *>(shared + at.reduce), shared + at.scratch} {
    if (Group::rank() == 0) {
      *header = Header{};
      header->taking = header->putting = queue().ring(0, 0);
      header->round_end = launch.round_end;
      header->quiet = header->next_start = kNever;
      header->hungry = kUnseen;
      header->spare = queue().spare(header->putting);
      header->chunk.share = -1;
      header->step = Action::kLeave;
    }
    Group::sync();
  }

  // A fair part of what is there, so that the others get theirs; at least one.
  ATOS_DEVICE uint64_t share(uint64_t head, uint64_t end) const {
    const int64_t there = int64_t(end - head);
    if (there <= int64_t(launch.workers)) return 1;
    // In 32 bits, since a 64-bit division is slow; more than that many items is plenty for everybody.
    const uint32_t part = uint32_t(there < 0x7fffffff ? there : 0x7fffffff) / launch.workers;
    return part < launch.fetch ? part : launch.fetch;
  }

  // By one lane, when our tickets are not filled: they may be for a ring that has come since.
  ATOS_DEVICE void look_for_ring(uint64_t published) {
    header->next_start = growths_of(published) > header->taken ? queue().start_of(header->taken + 1) : kNever;
  }
  ATOS_DEVICE void next_ring() {
    header->taking = queue().ring(++header->taken, header->next_start);
    header->next_start = kNever;
  }

  // What was pushed and not handed on, but for what went straight to the queue.
  ATOS_DEVICE uint32_t buffered() const {
    return header->pushes < launch.buffer ? header->pushes : launch.buffer;
  }

  // Whether what is to be handed on has to wait for its turn, with `reserve_in_turn`.
  ATOS_DEVICE bool crowded() const {
    return int64_t(buffered()) > header->hungry + header->spare && !header->reserved;
  }

  // By one lane, between steps.
  ATOS_DEVICE void reserve_in_turn() {
    const auto ask = [&] { static_cast<volatile Report *>(launch.report)->wanted = 1; };
    reserved(queue().reserve_with_room(buffered(), ask));
    header->reserved = 1;
  }

  // By one lane: the tickets that it was given for what is handed on, and the ring for them.
  ATOS_DEVICE void reserved(uint64_t published) {
    header->base = tickets_of(published);
    const unsigned k = growths_of(published);
    if (k == header->put) return;
    header->put = k;
    header->putting = queue().ring(k, queue().start_of(k));
    header->spare = queue().spare(header->putting);
  }

  // By one lane: what to do when our tickets are not filled yet: kIdle, kLeave or kWait.
  ATOS_DEVICE Action while_waiting() {
    if (header->owed) {
      queue().finish(header->owed);
      header->owed = 0;
    }
    const uint64_t stop = load(&queue().counters->stop);
    uint64_t published;
    const bool done = queue().ended(&published);
    if (stop != kRun) return Action::kLeave;
    look_for_ring(published);
    published = tickets_of(published);
    if (!has_idle()) return done ? Action::kLeave : Action::kWait;
    // Registered as quiet, and nothing has been pushed since: only the others can change anything.
    if (done && header->quiet == published) return queue().all_quiet(published, launch.workers) ? Action::kLeave : Action::kWait;
    header->candidate = done ? published : kNever;
    return Action::kIdle;
  }

  ATOS_DEVICE Action while_round_fills() {
    look_for_ring(load(&queue().counters->published));
    return queue().stopped() ? Action::kLeave : Action::kWait;
  }

  // By one lane, after an idle call for `workers` workers.
  ATOS_DEVICE void idle_returned(uint32_t pushes, uint32_t workers) {
    if (!relaxed()) return;
    header->quiet = pushes ? kNever : header->candidate;
    if (header->quiet != kNever) queue().register_quiet(header->quiet, workers);
  }

  // Where the tickets are counted that workers of this kernel have claimed, and from which on.
  ATOS_DEVICE uint64_t *claims_of_kernel() const {
    return launch.persistent ? &queue().counters->head : &queue().counters->claims[launch.stream];
  }
  ATOS_DEVICE uint64_t first_of_kernel() const { return launch.persistent ? 0 : launch.round_begin; }

  // By one lane: tickets of a round, of which no more will come.
  ATOS_DEVICE uint64_t claim_of_round(uint64_t lanes, uint64_t *first) {
    uint64_t *claims = claims_of_kernel();
    const uint64_t begin = first_of_kernel(), end = header->round_end;
    const uint64_t next = begin + load(claims);
    if (next >= end) return 0;
    const uint64_t want = share(next, end) * lanes;
    *first = begin + add(claims, want);
    return *first >= end ? 0 : end - *first < want ? end - *first : want;
  }

  // All threads, when nothing is left of a round: kLeave, kIdle, or kRound after the next one has opened.
  ATOS_DEVICE Action next_round() {
    Counters *counters = queue().counters;
    bool idle = has_idle() && !header->idle_called;
    if (launch.persistent) {
      const uint64_t end = header->round_end;
      // The last block decides for all. Were each to look at `stop` itself, a slow one could see what a fast one has set in
      // the next round already, and leave it waiting.
      grid_barrier(counters, [&] {
        store(&counters->head, end); // claims ran past the end of the round
        store(&counters->round_end, queue().stopped() ? kNever : tickets_of(load(&counters->published)));
        add(&counters->rounds, uint64_t(1));
      });
      const uint64_t next = load(&counters->round_end);
      if (next == kNever) return Action::kLeave;
      if (next != end) {
        if (Group::rank() == 0) {
          header->round_end = next;
          header->idle_called = 0;
        }
        Group::sync();
        return Action::kRound;
      }
    } else {
      idle = idle && launch.idle_round;
    }
    if (!idle) return Action::kLeave;
    Group::sync(); // all have read the header
    if (Group::rank() == 0) {
      header->idle_called = 1;
      header->step = Action::kIdle;
    }
    Group::sync();
    return Action::kIdle;
  }

  // By one lane that is not needed elsewhere, when `ran` tasks have run.
  ATOS_DEVICE void trace(uint32_t ran) const {
    if (!launch.samples) return;
    queue().trace(ran, global_nanoseconds(), claims_of_kernel(), first_of_kernel(), static_cast<atos_sample *>(launch.samples),
                  launch.max_samples, launch.sample_interval);
  }

  // All threads, at the end. The last block of a kernel tells the host how things stand, and leaves the counters as the next
  // launch expects them, so that neither has to be copied.
  ATOS_DEVICE void leave() {
    Counters *counters = queue().counters;
    if (Group::rank() == 0) {
      if (header->ran) add(&counters->ran, header->ran);
      if (header->pushed) add(&counters->pushed, header->pushed);
      if (header->owed) queue().finish(header->owed);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    fence();
    if (add(&counters->gone[launch.stream], 1) != gridDim.x - 1) return;
    fence();
    store(&counters->gone[launch.stream], 0);
    store(&counters->claims[launch.stream], 0);
    volatile Report *report = launch.report;
    const uint64_t published = load(&counters->published), stop = load(&counters->stop);
    report->published = published;
    report->stop = stop;
    report->ran = load(&counters->ran);
    report->pushed = load(&counters->pushed);
    report->rounds = load(&counters->rounds);
    report->sampled = load(&counters->sampled);
    if (launch.persistent && stop == kRun) {
      store(&counters->head, published); // claims that ran ahead are void; if the queue grew, the host makes all of this anew
      store(&counters->finished, published);
      for (uint64_t *zero : {&counters->direct, &counters->arrived, &counters->phase, &counters->ran, &counters->pushed, &counters->rounds})
        store(zero, 0);
      store(&counters->quiet, QueueRef<bytes>::nobody_quiet(published));
    }
    __threadfence_system();
    report->sequence = launch.sequence;
  }

  // By one lane, beside the step that runs: whether others wait for work.
  ATOS_DEVICE void look_around() {
    const QueueRef<bytes> q = queue();
    const int64_t hungry = int64_t(load(&q.counters->head) - tickets_of(load(&q.counters->published)));
    header->hungry = q.stopped() ? kUnseen : hungry; // nothing is kept then
  }

  // By a team of threads, behind a barrier of the worker: hands on what the last step pushed. If it may be kept, some of it
  // becomes the next batch of this worker, `items`, without going through the queue: all that fits, but for what others wait
  // for. While much work waits for workers, all goes behind it, for the sake of order.
  template <class Team> ATOS_DEVICE void hand_on(bool may_keep, BatchArray<Item<bytes>> items) {
    const uint32_t pushes = header->pushes, n = buffered();
    const bool local = may_keep && !header->reserved && header->hungry >= -int64_t(launch.workers) * kBacklog;
    if (!local) fence(); // beside the reservation; a worker that keeps to itself mostly has nothing to publish
    if (Team::rank() == 0) {
      const uint32_t most = launch.fetch / 2 + 1; // a long batch is hard to share
      uint32_t given = n;
      if (local) given = n > most ? n - most : n > 1 && header->hungry > 0 ? gift(n / 2) : 0;
      if (given && !header->reserved) reserved(queue().reserve(given));
      header->kept = n - given;
      header->pushed += pushes;
      header->handed = pushes;
    }
    Team::sync();
    const uint32_t kept = header->kept;
    if (n > kept) {
      if (local) fence();
      queue().publish(Ring(header->putting), header->base, worker.buffer + kept, n - kept, Team::rank(), Team::size());
    }
    for (uint32_t k = Team::rank(); k < kept; k += Team::size()) items[k] = worker.buffer[k];
    if (Team::rank() == 0) header->pushes = header->reserved = 0;
  }

  // By one lane: how many of at most n items others shall have. Each worker that has work gives an equal part of what is
  // awaited, rounded up or down by chance: if each gave for all that wait, most would end up in the queue.
  ATOS_DEVICE uint32_t gift(uint32_t n) const {
    const int32_t hungry = int32_t(header->hungry), active = max(int32_t(launch.workers) - hungry, 1); // 64 bits are slow
    return quotient_rounded_by_chance(hungry, active, n);
  }
};

struct Warp {
  static ATOS_DEVICE unsigned rank() { return lane_id(); }
  static ATOS_DEVICE unsigned size() { return kWarpSize; }
  static ATOS_DEVICE bool has_more_warps() { return false; }
  static ATOS_DEVICE void sync() { __syncwarp(); }
  static ATOS_DEVICE unsigned index_in_block() { return threadIdx.x / 32; }
  static ATOS_DEVICE bool any(bool p) {
    __syncwarp(); // the vote alone orders no memory
    return __any_sync(kAll, p);
  }

  // Inclusive scan over the threads, and the sum.
  static ATOS_DEVICE uint32_t scan(uint32_t x, uint32_t *sum, uint64_t *) {
    const uint32_t inclusive = inclusive_scan(x);
    *sum = __shfl_sync(kAll, inclusive, 31);
    return inclusive;
  }
};

struct Cta {
  static ATOS_DEVICE unsigned rank() { return threadIdx.x; }
  static ATOS_DEVICE unsigned size() { return blockDim.x; }
  static ATOS_DEVICE bool has_more_warps() { return blockDim.x > kWarpSize; }
  static ATOS_DEVICE void sync() { __syncthreads(); }
  static ATOS_DEVICE unsigned index_in_block() { return 0; }
  static ATOS_DEVICE bool any(bool p) { return __syncthreads_or(p); }

  static ATOS_DEVICE uint32_t scan(uint32_t x, uint32_t *sum, uint64_t *space) {
    uint32_t *sums = reinterpret_cast<uint32_t *>(space);
    const uint32_t inclusive = inclusive_scan(x);
    if (lane_id() == 31) sums[threadIdx.x / 32] = inclusive;
    __syncthreads();
    const uint32_t mine = lane_id() < blockDim.x / 32 ? sums[lane_id()] : 0;
    const uint32_t all = inclusive_scan(mine);
    *sum = __shfl_sync(kAll, all, 31);
    return inclusive + __shfl_sync(kAll, all - mine, threadIdx.x / 32);
  }
};

// A warp or CTA worker. It goes from step to step: its first warp decides what comes next, all threads do it.
template <class Group, unsigned bytes> struct GroupWorker : Base<Group, bytes> {
  using Base<Group, bytes>::launch;
  using Base<Group, bytes>::args;
  using Base<Group, bytes>::header;
  using Base<Group, bytes>::worker;
  using Base<Group, bytes>::queue;

  static constexpr unsigned kPolls = 4; // slots that a lane polls at once

  BatchArray<Item<bytes>> items;
  uint64_t *values;
  BatchArray<int64_t> lengths;
  BatchArray<uint32_t> scan;

  static ATOS_DEVICE SharedLayout layout(const Launch &launch) {
    return shared_layout(false, nested(), bytes, value_words(), launch.fetch, launch.buffer, launch.scratch);
  }

  ATOS_DEVICE GroupWorker(const Launch &launch, const Arguments &args, unsigned char *shared)
      : GroupWorker(launch, args, shared + Group::index_in_block() * layout(launch).bytes, layout(launch)) {}

  ATOS_DEVICE GroupWorker(const Launch &launch, const Arguments &args, unsigned char *mine,
                                         const SharedLayout &at)
      : Base<Group, bytes>(launch, args, mine, at), items(reinterpret_cast<Item<bytes> *>(mine + at.items)),
        values(reinterpret_cast<uint64_t *>(mine + at.values)), lengths(reinterpret_cast<int64_t *>(mine + at.lengths)),
        scan(reinterpret_cast<uint32_t *>(mine + at.scan)) {}

  // The first warp: takes the items of our tickets, from the first one on, as far as they are there.
  ATOS_DEVICE unsigned take_ready() {
    const Ring ring = header->taking;
    const uint64_t first = header->first;
    const unsigned claimed = unsigned(header->claimed);
    unsigned got = 0;
    for (bool more = true; more && got < claimed;) {
      typename Slot<bytes>::Seen seen[kPolls];
      unsigned ready[kPolls];
#pragma unroll
      for (unsigned u = 0; u < kPolls; ++u) {
        const unsigned k = got + u * kWarpSize + lane_id();
        bool full = false;
        if (k < claimed) {
          const Place place = ring.at(first + k);
          full = ring.template slot<bytes>(place.index).full(place.turn, seen[u]);
        }
        ready[u] = __ballot_sync(kAll, full);
      }
#pragma unroll
      for (unsigned u = 0; u < kPolls; ++u) {
        if (!more) continue;
        const unsigned prefix = ready[u] == kAll ? kWarpSize : __ffs(~ready[u]) - 1;
        if (Slot<bytes>::packed && lane_id() < prefix) items[got + lane_id()] = ring.template slot<bytes>(0).get(seen[u]);
        got += prefix;
        more = prefix == kWarpSize;
      }
    }
    if (got == 0) return 0;
    fence();
    if (!Slot<bytes>::packed) {
#pragma unroll 1
      for (unsigned k = lane_id(); k < got; k += kWarpSize)
        items[k] = ring.template slot<bytes>(ring.at(first + k).index).get({});
      fence();
    }
#pragma unroll 1
    for (unsigned k = lane_id(); k < got; k += kWarpSize) {
      const Place place = ring.at(first + k);
      ring.template slot<bytes>(place.index).retire(place.turn);
    }
    if (lane_id() == 0) {
      header->first = first + got;
      header->claimed = claimed - got;
    }
    return got;
  }

  // The first warp: tickets, if we have none: kWait for their items, or kChunk or kLeave.
  ATOS_DEVICE Action claim() {
    Action verdict = Action::kWait;
    if (lane_id() == 0 && header->claimed == 0) {
      const Counters *counters = queue().counters;
      const bool relaxed = this->relaxed();
      // All is asked for before the first answer is looked at: they take as long as one.
      const uint64_t open = nested() ? load(&counters->open) : 0, stop = load(&counters->stop);
      const uint64_t head = relaxed ? load(&counters->head) : 0, published = relaxed ? load(&counters->published) : 0;
      if (open && help()) {
        verdict = Action::kChunk; // what is open is older than what waits
      } else if (stop != kRun) {
        verdict = Action::kLeave;
      } else if (relaxed) {
        const uint64_t want = this->share(head, tickets_of(published));
        header->first = queue().claim(want);
        header->claimed = want;
      } else {
        header->claimed = this->claim_of_round(1, &header->first);
        if (header->claimed == 0) verdict = Action::kLeave;
      }
    }
    return verdict.of_first_lane();
  }

  // The first warp: items, or why there are none.
  ATOS_DEVICE Action fetch() {
    restart_point(header->step);
    Action verdict = claim();
    __syncwarp(); // the first lane wrote into the header
    if (verdict != Action::kWait) return verdict;
    restart_point(header->step);
    for (unsigned polls = 0;; ++polls) {
      if (const unsigned got = take_ready()) return Action::items(got);
      if (polls % kPatience != kPatience - 1) continue;
      if (lane_id() == 0) {
        // In a round, whoever reserved these tickets is about to fill them, unless it had to spill.
        verdict = help() ? Action(Action::kChunk) : this->relaxed() ? this->while_waiting() : this->while_round_fills();
        if (header->first >= header->next_start) this->next_ring();
      }
      verdict = verdict.of_first_lane();
      if (verdict != Action::kWait) return verdict;
      __nanosleep(kPollNanoseconds);
      restart_point(header->step);
    }
  }

  // The first warp, after each step: hands on what was pushed, counts what was done, and says what comes next. Where many
  // items are to be handed on, all threads do it, and this is called again.
  ATOS_DEVICE Action decide() {
    __syncwarp();
    if (const uint32_t pushes = header->pushes) {
      if (this->crowded()) return Action::kCrowded;
      if (pushes > kFew && Group::has_more_warps()) return Action::kHandOn;
      hand_on<Warp>();
    }
    restart_point();
    __syncwarp();
    const uint32_t kept = header->kept;
    bool goes_on = false;
    __syncwarp(); // all have read it
    if (lane_id() == 0) {
      goes_on = conclude();
      header->kept = 0;
    }
    Action verdict = Action::items(kept);
    if (nested() && __shfl_sync(kAll, goes_on, 0)) verdict = Action::kChunk;
    else if (kept == 0) verdict = fetch();
    if (verdict != Action::kItems && verdict != Action::kChunk && !this->relaxed()) verdict = Action::kRound;
    if (lane_id() == 0) {
      header->step = verdict;
      header->any_long = 0;
      if (verdict == Action::kItems) header->counted = kept == 0; // a chunk belongs to the batch before
    }
    __syncwarp();
    if (nested() && verdict == Action::kItems && verdict.count() <= kFew) {
      const uint32_t total = measure<Warp>(verdict.count());
      if (lane_id() == 0) header->total = total;
    }
    return verdict;
  }

  // What the last step pushed; only what a whole batch pushed may be kept. What idle pushes is never kept: the others' idle
  // rounds have to see it.
  template <class Team> ATOS_DEVICE void hand_on() {
    const bool may_keep = kKeepsLocalItems && this->relaxed() && header->step == Action::kItems && !header->any_long;
    Base<Group, bytes>::template hand_on<Team>(may_keep, items);
  }

  // By one lane, when what the last step pushed is published: counts it. True if a chunk comes next.
  ATOS_DEVICE bool conclude() {
    const Action step = header->step;
    if (step == Action::kItems) {
      header->ran += step.count();
      if (nested() && header->any_long) {
        header->batch = step.count();
        header->next_long = header->shared = 0;
      } else if (header->counted) {
        header->owed += step.count();
      }
    } else if (has_idle() && step == Action::kIdle) {
      this->idle_returned(header->handed, 1);
    }
    header->handed = 0;
    if (!nested() || (step != Action::kChunk && !header->batch)) return false;
    if (header->chunk.share >= 0 && chunk_done(static_cast<Share *>(launch.shares), header->chunk.share)) ++header->owed;
    header->chunk.share = -1;
    if (next_chunk()) return true;
    if (header->batch && header->counted) header->owed += header->batch - header->shared;
    header->batch = 0;
    return false;
  }

  // A team: the iterations of `got` items, and where those of each begin.
  template <class Team> ATOS_DEVICE uint32_t measure(unsigned got) {
    uint32_t total = 0;
    bool any_long = false;
#pragma unroll 1
    for (unsigned from = 0; from < got; from += Team::size()) {
      const unsigned k = from + Team::rank();
      uint32_t mine = 0, sum;
      if (k < got) {
        const int64_t length = atos_task_workload(&worker, &items[k], &values[k * value_words()], &args);
        lengths[k] = length;
        if (length >= kLong) any_long = true;
        else if (length > 0) mine = uint32_t(length);
      }
      const uint32_t inclusive = Team::scan(mine, &sum, worker.reduce);
      if (k < got) scan[k] = total + inclusive - mine;
      total += sum;
      if (got > Team::size()) Team::sync(); // the scan's space is used again
    }
    any_long = Team::any(any_long);
    if (any_long && Team::rank() == 0) header->any_long = 1;
    return total;
  }

  // A warp: the item that iteration e, of 32 that follow each other from `base` on, belongs to: the last whose scan is at most e.
  // The lanes look at 32 places of the scan first, which leaves few for each.
  ATOS_DEVICE unsigned item_of(uint32_t e, uint32_t base, unsigned got) const {
    const unsigned stride = (got + kWarpSize - 1) / kWarpSize, k = lane_id() * stride;
    const uint32_t start = k < got ? scan[k] : ~0u;
    unsigned low = (__popc(__ballot_sync(kAll, start <= base)) - 1) * stride;
    unsigned high = __popc(__ballot_sync(kAll, start <= base + 31)) * stride;
    if (high > got) high = got;
    while (high - low > 1) {
      const unsigned middle = (low + high) / 2;
      if (scan[middle] <= e) low = middle;
      else high = middle;
    }
    return low;
  }

  // All threads: runs the task on `got` items, but for the long ones.
  ATOS_DEVICE void run(unsigned got) {
    const bool looks = kKeepsLocalItems && launch.persistent && Group::rank() == Group::size() - 1;
    if (!nested()) {
      if (looks) this->look_around();
      for (unsigned k = 0; k < got; ++k) {
        if (k) Group::sync();
        atos_task_body(&worker, &items[k], 0, nullptr, &args);
      }
      return;
    }
    const uint32_t total = got > kFew ? measure<Group>(got) : header->total;
    // The last warp, which has the least to do, looks around meanwhile.
    if (Group::has_more_warps() && looks) this->look_around();
#pragma unroll 1
    for (uint32_t base = Group::rank() & ~31u; base < total; base += Group::size()) {
      const uint32_t e = base + lane_id();
      const unsigned k = item_of(e, base, got);
      if (e < total) atos_task_body(&worker, &items[k], int64_t(e - scan[k]), &values[k * value_words()], &args);
    }
    if (!Group::has_more_warps() && looks) this->look_around();
  }

  // By one lane: the next chunk to run, from the long items of our batch or from anybody's.
  ATOS_DEVICE bool next_chunk() {
    while (header->next_long < header->batch) {
      const unsigned k = header->next_long++;
      if (lengths[k] < kLong) continue;
      const uint64_t *its_values = &values[k * value_words()];
      if (open_share<bytes>(queue().counters, shares(), hint() + k, items[k], its_values, value_words(), lengths[k],
                            chunk_size(), header->counted)) {
        ++header->shared;
        continue;
      }
      *guest() = items[k];
      for (int i = 0; i < value_words(); ++i) header->guest_values[i] = its_values[i];
      header->chunk = {0, lengths[k], -1};
      return true;
    }
    return help();
  }

  // By one lane: a chunk of anybody's long item.
  ATOS_DEVICE bool help() {
    return nested() && load(&queue().counters->open) &&
           claim_chunk<bytes>(queue().counters, shares(), hint(), guest(), header->guest_values, value_words(), chunk_size(),
                              &header->chunk);
  }

  ATOS_DEVICE Share *shares() const { return static_cast<Share *>(launch.shares); }
  ATOS_DEVICE unsigned hint() const { return block_index() + 31 * Group::index_in_block(); }
  ATOS_DEVICE uint64_t chunk_size() const { return kChunkPart * Group::size(); }
  ATOS_DEVICE Item<bytes> *guest() const { return reinterpret_cast<Item<bytes> *>(header->guest_item); }

  // All threads.
  ATOS_DEVICE void run_chunk() {
    const Chunk chunk = header->chunk;
#pragma unroll 1
    for (int64_t i = chunk.from + Group::rank(); i < chunk.to; i += Group::size())
      atos_task_body(&worker, guest(), i, header->guest_values, &args);
  }

  ATOS_DEVICE void work() {
    for (;;) {
      if (Group::rank() < 32) {
        const Action verdict = decide();
        if (lane_id() == 0) header->verdict = verdict;
      }
      Group::sync();
      Action verdict = header->verdict;
      if (verdict == Action::kRound) verdict = this->next_round();
      if (verdict == Action::kLeave) break;
      if (verdict == Action::kItems) {
        run(verdict.count());
        if (Group::rank() == Group::size() - 1) this->trace(verdict.count());
      } else if (verdict == Action::kHandOn) {
        hand_on<Group>();
      } else if (verdict == Action::kCrowded) {
        if (Group::rank() == 0) this->reserve_in_turn();
      } else if (nested() && verdict == Action::kChunk) {
        run_chunk();
      } else if (has_idle() && verdict == Action::kIdle) {
        atos_task_idle(&worker, &args);
      }
      Group::sync();
    }
    this->leave();
  }
};

// The 32 thread workers of a warp. Each lane has tickets of its own and runs an item at a time.
template <unsigned bytes> struct ThreadWorkers : Base<Warp, bytes> {
  using Base<Warp, bytes>::launch;
  using Base<Warp, bytes>::args;
  using Base<Warp, bytes>::header;
  using Base<Warp, bytes>::worker;
  using Base<Warp, bytes>::queue;

  uint64_t first = 0;   // tickets [first, first + claimed) are this lane's and not yet taken
  uint32_t claimed = 0;

  static ATOS_DEVICE SharedLayout layout(const Launch &launch) {
    return shared_layout(true, nested(), bytes, value_words(), launch.fetch, launch.buffer, launch.scratch);
  }

  ATOS_DEVICE ThreadWorkers(const Launch &launch, const Arguments &args, unsigned char *shared)
      : Base<Warp, bytes>(launch, args, shared + Warp::index_in_block() * layout(launch).bytes, layout(launch)) {
    worker.scratch += lane_id() * ((launch.scratch + 15) / 16 * 16);
  }

  // Gives each lane without tickets its own, all from one atomic. False: no lane has any, or we are to leave.
  ATOS_DEVICE bool claim() {
    const unsigned empty = __ballot_sync(kAll, claimed == 0);
    if (!empty) return true;
    if (lane_id() == 0) {
      const uint64_t lanes = __popc(empty);
      uint64_t total = 0;
      const Counters *counters = queue().counters;
      const bool relaxed = this->relaxed();
      const uint64_t stop = load(&counters->stop); // as above, all is asked for first
      const uint64_t head = relaxed ? load(&counters->head) : 0;
      const uint64_t published = relaxed ? tickets_of(load(&counters->published)) : 0;
      if (stop == kRun && relaxed) {
        header->hungry = int64_t(head - published);
        total = this->share(head, published) * lanes;
        header->base = queue().claim(total);
      } else if (stop == kRun) {
        total = this->claim_of_round(lanes, &header->base);
      }
      header->claimed = total;
      header->each = uint32_t((total + lanes - 1) / lanes);
    }
    __syncwarp();
    if (claimed == 0) {
      const uint64_t total = header->claimed, want = header->each;
      const uint64_t before = __popc(empty & ((1u << lane_id()) - 1)) * want;
      if (before < total) {
        first = header->base + before;
        claimed = uint32_t(total - before < want ? total - before : want);
      }
    }
    __syncwarp();
    return __any_sync(kAll, claimed != 0);
  }

  // One item for each lane whose next ticket is filled; which lanes those are.
  ATOS_DEVICE unsigned take(Item<bytes> *item) {
    const Ring ring = header->taking;
    typename Slot<bytes>::Seen seen{};
    Place place{};
    bool full = false;
    if (claimed) {
      place = ring.at(first);
      full = ring.template slot<bytes>(place.index).full(place.turn, seen);
    }
    const unsigned lanes = __ballot_sync(kAll, full);
    if (lanes == 0) return 0;
    fence();
    if (full) {
      *item = ring.template slot<bytes>(place.index).get(seen);
      if (!Slot<bytes>::packed) fence();
      ring.template slot<bytes>(place.index).retire(place.turn);
      ++first;
      --claimed;
    }
    return lanes;
  }

  // The lanes that have an item to run; 0 with *verdict kIdle or kLeave.
  ATOS_DEVICE unsigned next(Item<bytes> *item, Action *verdict) {
    for (;;) {
      *verdict = Action::kWait;
      for (unsigned polls = 0; *verdict == Action::kWait; ++polls) {
        if (!claim()) {
          *verdict = Action::kLeave;
          break;
        }
        if (const unsigned lanes = take(item)) return lanes;
        if (polls % kPatience != kPatience - 1) continue;
        if (lane_id() == 0) *verdict = this->relaxed() ? this->while_waiting() : this->while_round_fills();
        *verdict = verdict->of_first_lane();
        // Lanes whose tickets are for the next ring wait for those that have older ones, which are about to be filled.
        __syncwarp();
        if (__all_sync(kAll, !claimed || first >= header->next_start) && lane_id() == 0) this->next_ring();
        __syncwarp();
        if (*verdict == Action::kWait) __nanosleep(kPollNanoseconds);
      }
      if (this->relaxed()) return 0;
      *verdict = this->next_round();
      if (*verdict != Action::kRound) return 0;
    }
  }

  ATOS_DEVICE void work() {
    for (;;) {
      Item<bytes> item;
      Action verdict;
      const unsigned lanes = next(&item, &verdict);
      if (lanes == 0 && verdict == Action::kLeave) break;
      if (lanes >> lane_id() & 1) {
        if (nested()) {
          uint64_t values[kValueWords];
          const int64_t length = atos_task_workload(&worker, &item, values, &args);
#pragma unroll 1
          for (int64_t i = 0; i < length; ++i) atos_task_body(&worker, &item, i, values, &args);
        } else {
          atos_task_body(&worker, &item, 0, nullptr, &args);
        }
      }
      if (has_idle() && lanes == 0) atos_task_idle(&worker, &args);
      __syncwarp();
      const uint32_t pushes = header->pushes;
      if (pushes && this->crowded()) {
        if (lane_id() == 0) this->reserve_in_turn();
        __syncwarp();
      }
      if (pushes) this->template hand_on<Warp>(false, nullptr);
      if (lane_id() == 0) {
        header->owed += __popc(lanes);
        header->ran += __popc(lanes);
        this->trace(__popc(lanes));
        if (has_idle() && lanes == 0) this->idle_returned(pushes, 32);
      }
      __syncwarp();
    }
    this->leave();
  }
};

} // namespace atos
