// Runs the workers of several CPU devices in one pool.
#include "cpu/peer_workers.h"

#include "cpu/worker.h"

namespace atos {
namespace {

template <unsigned bytes>
void work(const std::vector<std::shared_ptr<Run>> &runs, ThreadPool &pool, void (*provide)(Run &), void (*collect)(Run &)) {
  std::vector<std::unique_ptr<CpuWorker<bytes, true>>> workers;
  for (const auto &run : runs) run->kernel.round_end = run->counters->round_end = run->first_end;
  for (const auto &run : runs)
    for (unsigned k = 0; k < run->blocks; ++k) workers.push_back(std::make_unique<CpuWorker<bytes, true>>(*run, k));
  pool.start(unsigned(workers.size()));
  for (const auto &run : runs) provide(*run);
  pool.run(unsigned(workers.size()), [&](unsigned number) { workers[number]->work(); });
  for (const auto &run : runs) collect(*run);
}

} // namespace

void work_together(const std::vector<std::shared_ptr<Run>> &runs, ThreadPool &pool, void (*provide)(Run &),
                   void (*collect)(Run &)) {
  switch (runs[0]->item_bytes) {
  case 4: return work<4>(runs, pool, provide, collect);
  case 8: return work<8>(runs, pool, provide, collect);
  case 16: return work<16>(runs, pool, provide, collect);
  default: return work<32>(runs, pool, provide, collect);
  }
}

} // namespace atos
