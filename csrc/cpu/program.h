// CpuProgram: a task compiled to native code, which runs a whole batch of items at a call.
#pragma once
#include "host/run.h"

namespace atos {

using RunTask = void (*)(atos_cpu_worker *worker, const void *items, int64_t n, const void *args);
using RunIdle = void (*)(atos_cpu_worker *worker, const void *args);

struct CpuProgram : atos_program {
  RunTask run;
  RunIdle idle;
  bool checked;
  CpuProgram(RunTask run, RunIdle idle, bool checked) : atos_program(ATOS_CPU), run(run), idle(idle), checked(checked) {}
};

// The check that failed in the task which this thread runs. A task with checks calls atos_cpu_fail, and knows nothing of a
// worker there.
inline atos_failure &failure_of_thread() {
  static thread_local atos_failure failure{};
  return failure;
}

} // namespace atos
