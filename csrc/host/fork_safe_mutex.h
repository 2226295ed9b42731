// ForkSafeTimedMutex: a mutex with a timed wait that a forked child does not wait for.
#pragma once
#include <condition_variable>
#include <mutex>
#include <unistd.h>

#include "host/stop_monitor.h"

namespace atos {

// A replacement for std::timed_mutex, whose waits ThreadSanitizer does not know. In a forked child no thread would ever unlock
// a mutex that a thread of its parent had locked, so locking fails in the child.
class ForkSafeTimedMutex {
public:
  bool try_lock_for(StopMonitor::Clock::duration limit) {
    std::unique_lock<std::mutex> lock(mutex);
    if (!unlocked.wait_for(lock, limit, [&] { return is_free(); })) return false;
    owner = getpid();
    return true;
  }
  void unlock() {
    std::lock_guard<std::mutex> lock(mutex);
    owner = 0;
    unlocked.notify_one();
  }

private:
  bool is_free() const {
    if (owner && owner != getpid())
      throw Failure(ATOS_BUSY, "a thread of the parent process used this queue at the fork; make another one here");
    return !owner;
  }

  std::mutex mutex;
  std::condition_variable unlocked;
  pid_t owner = 0; // the process of the thread that holds the mutex
};

} // namespace atos
