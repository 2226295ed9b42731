// Action: the next step of a worker, a kind and a count.
#pragma once
#include "device/group.cuh"
#include "protocol/termination.cuh"

namespace atos {

// The next step of a worker, in one 32-bit word: a shuffle passes the word between lanes, the header between warps.
//
//   +--> next_action() -> kItems         run the task on count() items --------------------------->+
//   |        |----------> kChunk         run it on a chunk of a split item ----------------------->+
//   |        |----------> kFar           push the far items of an opened chunk again --------------->+
//   |        |----------> kIdle          call the idle function ---------------------------------->+
//   |        |----------> kFlush         all threads flush the pushes ---------------------------->+
//   |        |----------> kWaitForSpace  one thread waits for space in the ring, and reserves it ->+
//   |        |----------> kRound         all workers meet in next_round():                         |
//   |        |                            |-> kRound   the next one has begun -------------------->+
//   |        |                            |-> kIdle    call the idle function -------------------->+
//   |        |                            `-> kLeave --.                                           |
//   |        `----------> kLeave         report, exit <'                                           |
//   +<---------------------------------------------------------------------------------------------+
//
// next_action() first has the pushes of the last step flushed (kWaitForSpace, kFlush) and accounts for that step. Then come
// local items (kItems), chunks of this worker's long items (kChunk), and what fetch() finds: items of the queue, a chunk of
// another worker's item, or a reason to call idle or leave, in place of which a launch with rounds has kRound.
struct Action {
  enum Kind : int32_t {
    kItems = 1,
    kIdle = int32_t(Waiting::kIdle),
    kLeave = int32_t(Waiting::kLeave),
    kChunk = -2,
    kFlush = -3,
    kRound = -4,
    kWaitForSpace = -5,
    kFar = -7,
    kWait = int32_t(Waiting::kPoll), // only within fetch(): poll the claimed slots again
  };

  Action() = default;
  ATOS_DEVICE Action(Kind kind) : word(kind) {}
  explicit ATOS_DEVICE Action(Waiting next) : word(int32_t(next)) {}
  static ATOS_DEVICE Action items(uint32_t count) { return Action(Kind(count)); }

  ATOS_DEVICE bool operator==(Kind kind) const { return kind == kItems ? word > 0 : word == kind; }
  ATOS_DEVICE bool operator!=(Kind kind) const { return !(*this == kind); }
  ATOS_DEVICE uint32_t count() const { return uint32_t(word); } // of kItems
  ATOS_DEVICE Action of_first_lane() const { return Action(Kind(__shfl_sync(kAll, word, 0))); }

private:
  int32_t word; // a kind, or a positive count
};

} // namespace atos
