// Starts a kernel on each GPU of a launch, looks after all kernels until they have ended, and stops the other kernels if one
// fails.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/peers.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "cuda/kernel_monitor.h"
#include "cuda/launch.h"
#include "cuda/memory_pool.h"
#include "cuda/program.h"
#include "cuda/running_kernels.h"

namespace atos::cuda {
namespace {

CudaDevice &gpu_of(const Run &run) { return instance_of_device<CudaDevice>(run.program->device); }

// The GPU, resources and stream of a run. Runs of one launch on the same GPU share the resources.
struct Place {
  CudaDevice &gpu;
  ScopedContext current;
  LaunchResources &resources;
  CompletionRecord &record;
  const CUstream stream;

  explicit Place(const Run &run)
      : gpu(gpu_of(run)), current(gpu.context), resources(resources_of_thread(gpu)), record(resources.records[run.place]),
        stream(resources.streams[run.place]) {}
};

bool has_ended(const Run &run) { return has_completed(run.pending_kernels[0]); }
bool all_ended(const Runs &runs) {
  return std::all_of(runs.begin(), runs.end(), [](const auto &run) { return has_ended(*run); });
}

void upload_table(const Run &run) {
  const Place at(run);
  check(driver().cuMemcpyHtoDAsync(at.resources.peer_table, run.peers.peer, run.peers.count * sizeof(Peer), at.stream),
        "launching");
  check(driver().cuStreamSynchronize(at.stream), "launching");
}

// Asks the workers of GPUs whose kernels have not ended to stop. If a process is gone, they wait at no barrier for its workers.
void send_stops(const Runs &runs) {
  for (const auto &run : runs) {
    if (has_ended(*run)) continue;
    const Place at(*run);
    if (runs[0]->monitor.lost()) *at.resources.stop_word = (kStopAsked | kStopGone) >> 32;
    send_stop(at.gpu, *run);
  }
}

void add_up(atos_sample *now, const atos_sample &its) {
  now->ran += its.ran;
  now->tail += its.tail;
  now->claimed += std::min(its.claimed, its.tail); // claims beyond a tail make up for no other device's item
}

// `observe` for several processes with a GPU each, whose counters this process reaches.
bool observe_processes(Run &run, atos_sample *now) {
  const Place at(run);
  if (!can_observe(at.gpu)) return false;
  const bool known = std::exchange(run.observing, true);
  for (uint32_t k = 0; k < run.peers.count; ++k) {
    Counters *const seen = &at.resources.observed[k];
    if (known) add_up(now, {0, seen->ran_so_far, tickets_of(seen->tail), seen->head});
    check(driver().cuMemcpyDtoHAsync(seen, address(run.peers.peer[k].counters), sizeof(Counters), at.resources.control),
          "observing");
  }
  return known;
}

// When the callback is due: adds up in *now the states of all devices when the callback was due before; whether these are
// known.
bool observe_all(const Runs &runs, atos_sample *now) {
  if (!runs[0]->launch.progress || !runs[0]->monitor.callback_due()) return false;
  if (runs[0]->peers.count > runs.size()) return observe_processes(*runs[0], now);
  for (const auto &run : runs)
    if (!can_observe(Place(*run).gpu)) return false;
  bool known = true;
  for (const auto &run : runs) {
    atos_sample its{};
    known &= observe(Place(*run).gpu, *run, &its);
    add_up(now, its);
  }
  return known;
}

void look_after(const Runs &runs) {
  for (unsigned polls = 1; !all_ended(runs); ++polls) {
    bool grows = false;
    for (const auto &run : runs) {
      if (has_ended(*run) || !__atomic_load_n(&run->kernel.record->growths_requested, __ATOMIC_ACQUIRE)) continue;
      const Place at(*run);
      grant_growth(at.gpu, *run, at.record);
      grows = true;
    }
    if (!grows && polls % kPollsBetweenChecks) continue;
    for (const auto &run : runs) {
      const Place at(*run);
      check_running(at.stream);
    }
    atos_sample now{};
    const bool known = observe_all(runs, &now);
    if (runs[0]->monitor.poll(known ? &now : nullptr)) send_stops(runs);
  }
}

} // namespace

void connect(const std::vector<CudaDevice *> &gpus) {
  static std::mutex guard;
  std::lock_guard<std::mutex> lock(guard);
  for (CudaDevice *gpu : gpus) {
    if (!gpu->attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
      throw Failure(ATOS_INVALID, format("the driver maps no memory of GPU %d for other GPUs", gpu->index));
    ScopedContext current(gpu->context);
    for (CudaDevice *other : gpus) {
      if (gpu->reached_by(*other)) continue;
      int can = 0;
      check(driver().cuDeviceCanAccessPeer(&can, other->handle, gpu->handle), "asking for the way between two GPUs");
      if (!can)
        throw Failure(ATOS_INVALID, format("GPU %d cannot reach the memory of GPU %d: no link or bus between them carries such "
                                           "accesses",
                                           other->index, gpu->index));
      pool_of(*gpu).share_with(*other);
      gpu->let_reach(*other);
    }
  }
}

void provide_peers(const Runs &runs) {
  if (runs[0]->kernel.peer_count > kMostGpus)
    throw Failure(ATOS_INVALID, format("a launch is over at most %u GPUs", kMostGpus));
  for (const auto &run : runs) {
    gpu_of(*run).refuse_if_stuck();
    if (run->place >= kStreams)
      throw Failure(ATOS_INVALID, format("a GPU is at most %u devices of a launch", unsigned(kStreams)));
  }
  for (const auto &run : runs) {
    const Place at(*run);
    if (!at.resources.peer_table)
      check(driver().cuMemAlloc(&at.resources.peer_table, kMostGpus * sizeof(Peer)), "allocating memory");
    Counters &counters = *run->counters;
    counters.arrived = counters.phase = counters.met = counters.meetings = 0;
    counters.quiescent = QueueRef<4>::none_quiescent(tickets_of(counters.tail));
    at.record = CompletionRecord{};
    run->kernel.record = &at.record;
    run->kernel.stream = 0;
    run->kernel.sequence = 1;
    run->kernel.peer_table = reinterpret_cast<const void *>(at.resources.peer_table);
    upload(at.gpu, *run, at.stream);
    // Another run may use the same pinned memory, and kernels of other GPUs arrays of this GPU, which are cleared by then.
    check(driver().cuStreamSynchronize(at.stream), "launching");
  }
}

void run_peers(const Runs &runs, bool collects) {
  std::vector<Run *> all;
  for (const auto &run : runs) all.push_back(run.get());
  RunningKernels(all).look_after([&] {
    for (const auto &run : runs) upload_table(*run);
    for (const auto &run : runs) // behind earlier work of the caller
      order(gpu_of(*runs[0]), static_cast<CUstream>(runs[0]->launch.stream), Place(*run).stream);
    for (const auto &run : runs) run->pending_kernels = {{&ended_record(), 0}};
    for (const auto &run : runs) {
      const Place at(*run);
      start_kernel(at.gpu, *run, at.stream);
      run->pending_kernels[0] = {&at.record, 1};
    }
    {
      const Place first(*runs[0]);
      check(driver().cuEventRecord(first.resources.stop, first.stream), "launching");
    }
    look_after(runs);
    for (const auto &run : runs) {
      const Place at(*run);
      check(driver().cuStreamSynchronize(at.resources.control), "stopping the workers");
      *at.resources.stop_word = kStopAsked >> 32;
      runs[0]->monitor.workers_stopped(at.record.stop);
    }
    if (collects) collect_peers(runs);
  });
}

void collect_peers(const Runs &runs) {
  for (const auto &run : runs) {
    const Place at(*run);
    download(at.gpu, *run);
  }
  if (!runs[0]->launch.barrier && runs[0]->peers.own == 0) ++runs[0]->counters->rounds;
}

} // namespace atos::cuda

#endif
