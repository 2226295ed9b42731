// Termination detection: how a worker without items finds out whether anything is left to do.
#pragma once
#include "protocol/consumer.cuh"

namespace atos {

// The next step of a worker while the slots of its claimed tickets are not filled. The numbers are those of Action
// (action.cuh).
enum class Waiting : int32_t { kIdle = 0, kLeave = -1, kPoll = -6 };

// On the GPU a detector lies in shared memory, and one lane calls its functions.
struct TerminationDetector {
  uint64_t unreported = 0;     // tasks that ran and are not yet counted as finished
  uint64_t quiescent = kNever; // the counted tasks at which this worker registered as quiescent
  uint64_t candidate = kNever; // the counted tasks when none was unfinished before an idle call, or kNever

  // Counts the tasks that ran as finished. Their pushes have been flushed, and no local item descends from these tasks.
  template <unsigned bytes> ATOS_FUNCTION void report(const QueueRef<bytes> &queue) {
    if (!unreported) return;
    queue.finish(unreported);
    unreported = 0;
  }

  template <unsigned bytes>
  ATOS_FUNCTION Waiting while_waiting(const QueueRef<bytes> &queue, Consumer &consumer, bool has_idle, uint64_t workers) {
    report(queue);
    const uint64_t stop = load(&queue.counters->stop);
    uint64_t tail, counted;
    const bool done = queue.ended(&tail, &counted);
    if (stop != kRun) return Waiting::kLeave;
    consumer.look_for_ring(queue, tail);
    if (!has_idle) return done ? Waiting::kLeave : Waiting::kPoll;
    // This worker is registered as quiescent, and nothing has been pushed since: only other workers can change anything.
    if (done && quiescent == counted) return queue.all_quiescent(counted, workers) ? Waiting::kLeave : Waiting::kPoll;
    candidate = done ? counted : kNever;
    return Waiting::kIdle;
  }

  // After an idle call for `lanes` workers: registers these workers as quiescent if the call pushed nothing.
  template <unsigned bytes> ATOS_FUNCTION void idle_returned(const QueueRef<bytes> &queue, uint64_t pushes, uint64_t lanes) {
    quiescent = pushes ? kNever : candidate;
    if (quiescent != kNever) queue.register_quiescent(quiescent, lanes);
  }
};

} // namespace atos
