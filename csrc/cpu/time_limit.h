// TimeLimit: a worker's own look at the clock, for when the host is held up by the interpreter or by a callback.
#pragma once
#include "host/stop_monitor.h"
#include "protocol/queue_ref.cuh"

namespace atos {

class TimeLimit {
public:
  explicit TimeLimit(const StopMonitor &monitor) : end(monitor.time_limit()) {}

  // Whether the worker is to leave before the end. A worker that finds time up asks all workers to leave. Looks at the clock if
  // `now`, otherwise at some calls only, since batches are short.
  template <unsigned bytes> bool stops(const QueueRef<bytes> &queue, bool now) {
    const bool looks = end != StopMonitor::Clock::time_point::max() && (now || calls++ % kCallsBetweenLooks == 0);
    if (looks && StopMonitor::Clock::now() >= end) set_bits(&queue.counters->stop, kStopAsked);
    return queue.stopped();
  }

private:
  static constexpr unsigned kCallsBetweenLooks = 8;
  const StopMonitor::Clock::time_point end;
  unsigned calls = 0;
};

} // namespace atos
