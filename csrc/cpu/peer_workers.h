// The workers of a launch over several CPU devices. They are compiled apart from those of one device, whose code stays as it
// is.
#pragma once
#include <memory>
#include <vector>

#include "cpu/thread_pool.h"
#include "host/run.h"

namespace atos {

// Runs the workers of all devices, each in a thread. `provide` and `collect` are called for each run, before the first worker
// begins and after the last one of any device has left: others may push there until then.
void work_together(const std::vector<std::shared_ptr<Run>> &runs, ThreadPool &pool, void (*provide)(Run &),
                   void (*collect)(Run &));

} // namespace atos
