// Termination seen by a worker without items: the worker waits, calls idle, or leaves once nothing is unfinished.
#pragma once
#include "device/newest_first.cuh"

namespace atos {

template <class Group, unsigned bytes> struct Termination : NewestFirst<Group, bytes> {
  using Pushes = NewestFirst<Group, bytes>;
  using Pushes::header;
  using Pushes::launch;
  using Pushes::Pushes;
  using Pushes::queue;

  // [one lane] What to do while the slots of the claimed tickets are not filled: kIdle, kLeave or kWait.
  ATOS_DEVICE Action while_waiting() {
    this->stop_by_clock();
    if (has_peers) return Action(peers_of(launch).while_waiting(queue(), header->consumer, header->end));
    return Action(header->end.while_waiting(queue(), header->consumer, has_idle, launch.workers));
  }

  // [one lane] While the slots of the claimed tickets are not filled: finds out whether another ring follows.
  ATOS_DEVICE void look_for_ring() { header->consumer.look_for_ring(queue(), load(&queue().counters->tail)); }

  // [one lane] What to do in a round while the slots of the claimed tickets are not filled: kWait, since the worker that
  // reserved the tickets is about to fill the slots, or kLeave at a stop, when it may have spilled the items.
  ATOS_DEVICE Action while_round_fills() {
    look_for_ring();
    return queue().stopped() || this->stop_by_clock() != kRun ? Action::kLeave : Action::kWait;
  }

  // [one lane] After an idle call for `workers` workers: registers these workers as quiescent if the call pushed nothing.
  ATOS_DEVICE void idle_returned(uint32_t pushes, uint32_t workers) {
    if (this->relaxed()) header->end.idle_returned(queue(), pushes, workers);
  }
};

} // namespace atos
