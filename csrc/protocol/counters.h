// The counters of a queue, in the memory of its device, and the values that they may have.
//
// A ticket is an index into the queue, given out by fetch-and-add: on `tail` to a push, whose item counts as an unfinished task
// from then on; on `head` to a worker that takes an item. The ticket says which slot to use (ring.cuh).
#pragma once
#include "include/interface.h"
#include "protocol/atomic.cuh"

namespace atos {

// Bits of Counters::stop, one for each reason, so that none hides another: a full ring, a failed check, a task's worker.stop(),
// and the host, which writes the upper half of the word as a whole. In a launch over several devices (peers.cuh) also: a stop
// of another device, a process that is gone, whose workers will not arrive at any barrier, and the end of all devices, which is
// no stop.
constexpr uint64_t kRun = 0, kStopFull = 1, kStopTask = 2, kStopCalled = ATOS_STOP_CALLED, kStopAsked = uint64_t(2) << 32;
constexpr uint64_t kStopElsewhere = 8, kEnded = 16, kStopGone = uint64_t(4) << 32;

// The tail packs two numbers, so that one addition returns both: in its lower 59 bits the tickets reserved, in its upper 5 how
// often the queue grew since the workers came.
constexpr unsigned kTicketBits = 59, kMostGrowths = 31;
constexpr uint64_t kGrowth = uint64_t(1) << kTicketBits;
ATOS_FUNCTION uint64_t tickets_of(uint64_t tail) { return tail & (kGrowth - 1); }
ATOS_FUNCTION unsigned growths_of(uint64_t tail) { return unsigned(tail >> kTicketBits); }

constexpr uint64_t kNever = ~0ull; // no tail or ticket

// A bit of round_end: no round follows. `tickets_of(round_end)` is the end of the current round with and without this bit.
constexpr uint64_t kLastRound = uint64_t(1) << 63;

// Values of ring_first_ticket before the ring's first ticket is known; afterwards the value is that ticket plus kGrown.
constexpr uint64_t kNotGrown = 0, kGrowing = 1, kGrown = 2;
constexpr uint64_t kNoMore = uint64_t(1) << 63; // a bit of growths_granted: no further growth will be granted

// Counters of the far items of a queue with buckets: the window, the list that is open, and statistics for the width
// (far_items.cuh).
struct FarCounters {
  alignas(128) uint64_t window; // the current bucket and the width
  uint64_t least;               // level of the lowest item beyond the window, by `ordered`; all bits if there is none
  alignas(128) uint64_t chunks; // of the open list: a bias plus the number of unclaimed chunks
  uint64_t left;                // chunks of the open list that are not finished
  uint64_t busy;                // 1 while a worker opens a list
  uint64_t list, begin, end;    // the open list, and its opened tickets [begin, end)
  uint64_t chunk_shift;         // log2 of the items of a chunk
  uint64_t opened;              // chunks that were opened between two rounds
  uint64_t again;               // whether the items of the open list are to be pushed again
  uint64_t taken_out;           // items of all lists that were opened
  uint64_t adapts;              // whether the width of buckets adapts
  uint64_t last_beyond;         // items beyond the window when the window last moved to them
  uint64_t passed;              // buckets since the last decision on the width
  uint64_t inside, beyond;      // items in the `passed` buckets, and items that came after each of these buckets
  uint64_t misplaced;           // lists, the first ones, that may have items of another width
  uint64_t next;                // peers: level at which the bucket begins that was opened last, or is to be opened
  alignas(128) uint64_t stored; // items that all pushes stored in lists

  uint64_t unopened() const { return stored - taken_out; } // while no workers run
};

// The counters of a queue. They only increase while workers run, except the counters of barriers, idle rounds and split items.
// Counters that are written often lie in different lines of 128 bytes.
struct Counters {
  alignas(128) uint64_t head;     // tickets claimed by workers; may be ahead of the tail
  alignas(128) uint64_t tail;     // tickets reserved for pushed items, and growths (kTicketBits)
  alignas(128) uint64_t finished; // tasks that ran, each of them counted in the tail or in `untracked`
  uint64_t stop;                  // why workers have to leave before the end, or kRun
  uint64_t untracked;             // tasks not tracked by the tail: split local items (no ticket), far items, the inbox
  alignas(128) uint64_t spilled;  // items that found their slot occupied
  uint64_t inbox;                 // items taken from the inbox, and whether a worker takes more (inbox.cuh)
  uint64_t first_left; // after a stop: the lowest ticket that a worker had claimed and left without its item, or kNever
  alignas(128) uint64_t quiescent; // idle rounds: see `register_quiescent`
  alignas(128) uint64_t arrived;   // grid barrier: blocks that arrived, and more (bsp_rounds.cuh)
  alignas(128) uint64_t phase;     // grid barrier: how often the barrier opened
  uint64_t splits_open;            // bits of the split items with unclaimed chunks, which workers at a barrier look for
  uint64_t round_end;              // with barriers: tickets below this run in the current round; kLastRound: no round follows
  uint64_t mode;                   // mode of the next round, set by the function between rounds
  alignas(128) uint64_t met;       // peers: devices whose blocks have all arrived, on the first device
  alignas(128) uint64_t meetings;  // peers: how often all devices have met, on each device
  alignas(128) uint64_t claims[ATOS_MAX_STREAMS]; // discrete kernels: tickets claimed of the range of each stream's kernel
  uint64_t gone[ATOS_MAX_STREAMS];                // blocks that left the kernel of each stream
  FarCounters far;
  alignas(128) uint64_t growths_granted;        // growths whose memory the host has mapped; maybe with kNoMore
  uint64_t growths_requested;                   // growths that pushers have requested from the host
  uint64_t ring_first_ticket[kMostGrowths + 1]; // first ticket of the ring after each growth, plus kGrown
  alignas(128) uint64_t ran;                    // statistics, added once by each worker
  uint64_t pushed;
  uint64_t rounds;
  uint64_t ran_by[ATOS_MAX_KINDS];
  alignas(128) atos_sharing sharing; // statistics, if the task counts shared work
  alignas(128) uint64_t ran_so_far;  // trace: tasks run, added after each batch
  uint64_t next_sample;              // trace: when the next sample is due
  uint64_t sampled;
  uint64_t failures;    // failed checks that tasks have reported
  atos_failure failure; // the first failed check
};

} // namespace atos
