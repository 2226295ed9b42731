// Makes launch resources, and keeps those of threads that have ended for others.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/launch_resources.h"

namespace atos::cuda {
namespace {

// The resources that threads which have ended left on a device.
class FreeLaunchResources {
public:
  explicit FreeLaunchResources(int32_t) {}

  void give_back(const Session &session) {
    std::lock_guard<std::mutex> lock(guard);
    spare_sessions.push_back(session);
  }

  void take(Session &session) {
    std::lock_guard<std::mutex> lock(guard);
    if (spare_sessions.empty()) return;
    session = spare_sessions.back();
    spare_sessions.pop_back();
  }

private:
  std::mutex guard;
  std::vector<Session> spare_sessions;
};

// The resources of one thread, by device; they are left to others when it ends.
struct LaunchResourcesByDevice : std::map<int32_t, Session> {
  ~LaunchResourcesByDevice() {
    for (const auto &[index, session] : *this)
      if (session.start) instance_of_device<FreeLaunchResources>(index).give_back(session); // else nothing was made
  }
};

LaunchResourcesByDevice &sessions_of_thread() {
  static thread_local LaunchResourcesByDevice sessions;
  return sessions;
}

} // namespace

Session &session_of_thread(CudaDevice &device) {
  Session &session = sessions_of_thread()[device.index];
  if (session.reports) return session;
  if (!session.start) instance_of_device<FreeLaunchResources>(device.index).take(session);
  if (session.reports) return session;
  // Resumes after a part that the driver refused before.
  const Driver &d = driver();
  for (CUevent *event : {&session.start, &session.stop})
    if (!*event) check(d.cuEventCreate(event, CU_EVENT_DEFAULT), "making an event");
  for (CUstream &stream : session.streams)
    if (!stream) check(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "making a stream");
  if (!session.control) check(d.cuStreamCreate(&session.control, CU_STREAM_NON_BLOCKING), "making a stream");
  void *pinned;
  check(d.cuMemAllocHost(&pinned, 2 * sizeof(Counters) + kStreams * sizeof(Report) + 16 + kZeros), "allocating pinned memory");
  session.counters = static_cast<Counters *>(pinned);
  session.observed = session.counters + 1;
  session.reports = reinterpret_cast<Report *>(session.observed + 1);
  session.stop_word = reinterpret_cast<uint64_t *>(session.reports + kStreams);
  *session.stop_word = kStopAsked >> 32;
  session.allowed = session.stop_word + 1;
  session.zeros = session.stop_word + 2;
  __builtin_memset(session.zeros, 0, kZeros);
  return session;
}

void abandon_resources(CudaDevice &device) { sessions_of_thread().erase(device.index); }

} // namespace atos::cuda

#endif
