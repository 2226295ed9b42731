// Runs the workers of several CPU devices in one pool.
#include "cpu/peer_workers.h"

#include "cpu/crash_notice.h"
#include "cpu/worker.h"

namespace atos {
namespace {

template <unsigned bytes> void work(const Runs &runs, ThreadPool &pool) {
  std::vector<std::unique_ptr<CpuWorker<bytes, true>>> workers;
  for (const auto &run : runs)
    for (unsigned k = 0; k < run->blocks; ++k) workers.push_back(std::make_unique<CpuWorker<bytes, true>>(*run, k));
  pool.start(unsigned(workers.size())); // all threads before the first task runs, since a start may fail
  pool.run(unsigned(workers.size()), [&](unsigned number) {
    const CrashNotice notice(static_cast<const CpuProgram &>(*runs[0]->program).checked);
    workers[number]->work();
  });
}

} // namespace

void work_together(const Runs &runs, ThreadPool &pool) {
  switch (runs[0]->item_bytes) {
  case 4: return work<4>(runs, pool);
  case 8: return work<8>(runs, pool);
  case 16: return work<16>(runs, pool);
  default: return work<32>(runs, pool);
  }
}

} // namespace atos
