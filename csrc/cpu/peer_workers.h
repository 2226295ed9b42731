// The workers of a launch over several CPU devices, compiled apart from the workers of one device, whose code stays as it is.
#pragma once
#include <memory>
#include <vector>

#include "cpu/thread_pool.h"
#include "host/run.h"

namespace atos {

// Runs the workers of all devices, each in a thread.
void work_together(const Runs &runs, ThreadPool &pool);

} // namespace atos
