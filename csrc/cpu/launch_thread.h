// LaunchThread: runs a launch in a thread of its own, so that the caller can poll the clock and the callback meanwhile.
#pragma once
#include <atomic>
#include <exception>

#include "cpu/thread_pool.h"

namespace atos {

// On a timeout that the workers do not heed, the object and its thread pool are leaked on purpose: workers may still use them.
class LaunchThread {
public:
  ThreadPool pool;

  ~LaunchThread() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      closing = true;
    }
    wake.notify_one();
    if (thread.joinable()) thread.join();
  }

  // Runs `task` in the thread. Meanwhile `poll` is called again and again, each time after the duration that it returned. An
  // exception from `poll` leaves the task running.
  template <class Poll> void run(std::function<void()> task, Poll poll) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (!thread.joinable()) start();
      job = std::move(task);
      failure = nullptr;
      busy = true;
    }
    wake.notify_one();
    for (Backoff backoff; busy && !backoff.exhausted();) backoff.wait(); // most launches are short
    for (;;) {
      const auto until_next = poll();
      std::unique_lock<std::mutex> lock(mutex);
      if (done.wait_for(lock, until_next, [&] { return !busy; })) break;
    }
    if (failure) std::rethrow_exception(failure);
  }

private:
  void start() {
    try {
      thread = std::thread([this] { serve(); });
    } catch (const std::system_error &error) {
      throw Failure(ATOS_TOO_MANY, format("the system starts no thread for the launch: %s", error.what()));
    }
  }

  void serve() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      lock.unlock();
      for (Backoff backoff; !busy && !backoff.exhausted();) backoff.wait(); // launches come in a row
      lock.lock();
      wake.wait(lock, [&] { return closing || busy; });
      if (!busy) return;
      lock.unlock();
      std::exception_ptr thrown;
      try {
        job();
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      failure = thrown;
      job = nullptr;
      busy = false;
      done.notify_one();
    }
  }

  std::mutex mutex;
  std::condition_variable wake, done;
  std::thread thread;
  std::function<void()> job;
  std::atomic<bool> busy{false};
  std::exception_ptr failure;
  bool closing = false;
};

} // namespace atos
