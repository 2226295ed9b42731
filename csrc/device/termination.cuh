// The end, seen by a worker without items: it waits, calls idle, or leaves once nothing is unfinished.
#pragma once
#include "device/push_buffer.cuh"

namespace atos {

template <class Group, unsigned bytes> struct Termination : PushBuffer<Group, bytes> {
  using Pushes = PushBuffer<Group, bytes>;
  using Pushes::header;
  using Pushes::launch;
  using Pushes::Pushes;
  using Pushes::queue;

  // [one lane] What to do while the slots of the claimed tickets are not filled: kIdle, kLeave or kWait.
  ATOS_DEVICE Action while_waiting() {
    if (header->unreported) {
      queue().finish(header->unreported);
      header->unreported = 0;
    }
    const uint64_t stop = load(&queue().counters->stop);
    uint64_t tail;
    const bool done = queue().ended(&tail);
    if (stop != kRun) return Action::kLeave;
    header->consumer.look_for_ring(queue(), tail);
    tail = tickets_of(tail);
    if (!has_idle()) return done ? Action::kLeave : Action::kWait;
    // Registered as quiescent, and nothing has been pushed since: only the others can change anything.
    if (done && header->quiescent == tail) return queue().all_quiescent(tail, launch.workers) ? Action::kLeave : Action::kWait;
    header->candidate = done ? tail : kNever;
    return Action::kIdle;
  }

  // [one lane] The same in a round, where a worker that reserved these tickets is about to fill them, unless it had to spill.
  ATOS_DEVICE Action while_round_fills() {
    header->consumer.look_for_ring(queue(), load(&queue().counters->tail));
    return queue().stopped() ? Action::kLeave : Action::kWait;
  }

  // [one lane] After an idle call for `workers` workers: registers them as quiescent if it pushed nothing.
  ATOS_DEVICE void idle_returned(uint32_t pushes, uint32_t workers) {
    if (!this->relaxed()) return;
    header->quiescent = pushes ? kNever : header->candidate;
    if (header->quiescent != kNever) queue().register_quiescent(header->quiescent, workers);
  }
};

} // namespace atos
