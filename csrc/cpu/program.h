// CpuProgram: a task compiled to native code, which runs a whole batch of items at a call.
#pragma once
#include <cstring>

#include "host/run.h"

namespace atos {

using RunTask = void (*)(atos_cpu_worker *worker, const void *items, int64_t n, const void *args);
using RunIdle = void (*)(atos_cpu_worker *worker, const void *args);

struct CpuProgram : atos_program {
  RunTask run;
  RunIdle idle, each_round;
  bool checked;
  CpuProgram(RunTask run, RunIdle idle, RunIdle each_round, bool checked)
      : atos_program(ATOS_CPU), run(run), idle(idle), each_round(each_round), checked(checked) {}
};

// The check that failed in the task which this thread runs. A task with checks calls atos_cpu_fail, which gets no worker.
inline atos_failure &failure_of_thread() {
  static thread_local atos_failure failure{};
  return failure;
}

// Reports the check that failed in the task which has just returned, if a check did.
template <unsigned bytes> void report_failure(const QueueRef<bytes> &queue, const Item<bytes> *item) {
  atos_failure &failure = failure_of_thread();
  if (!failure.failed) return;
  failure.in_item = item != nullptr;
  if (item) std::memcpy(failure.item, item, bytes);
  queue.fail(failure);
  failure = atos_failure{};
}

} // namespace atos
