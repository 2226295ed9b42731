// Threads of the CPU backend, kept between launches.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "status.h"

namespace atos {

// Spins a little, then lets others have the core.
struct Backoff {
  unsigned tries = 0;
  void wait() {
    if (++tries < 64) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      asm volatile("yield");
#endif
    } else if (tries < 1024) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  void reset() { tries = 0; }
  bool exhausted() const { return tries >= 72; }
};

// Threads that wait for work, so that a discrete launch does not start new ones for each round. The caller is number 0.
class ThreadPool {
public:
  ~ThreadPool() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      closing = true;
    }
    wake.notify_all();
    for (std::thread &thread : threads) thread.join();
  }

  // Makes sure that there are so many threads, the caller included.
  void start(unsigned count) {
    std::lock_guard<std::mutex> lock(mutex);
    while (threads.size() + 1 < count) {
      const unsigned number = unsigned(threads.size()) + 1;
      try {
        threads.emplace_back([this, number, seen = generation] { serve(number, seen); });
      } catch (const std::system_error &error) {
        throw Failure(ATOS_TOO_MANY, format("%u threads asked for, but the system starts only %u: %s; ask for fewer", count,
                                          number, error.what()));
      }
    }
  }

  void run(unsigned count, const std::function<void(unsigned)> &f) {
    start(count);
    if (count > 1) {
      std::lock_guard<std::mutex> lock(mutex);
      work = &f;
      wanted = count;
      left = count - 1;
      ++generation;
      wake.notify_all();
    }
    f(0);
    if (count > 1) {
      std::unique_lock<std::mutex> lock(mutex);
      done.wait(lock, [&] { return left == 0; });
    }
  }

private:
  void serve(unsigned number, uint64_t seen) {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return closing || generation != seen; });
      if (closing) return;
      seen = generation;
      if (number >= wanted) continue;
      const std::function<void(unsigned)> *f = work;
      lock.unlock();
      (*f)(number);
      lock.lock();
      if (--left == 0) done.notify_one();
    }
  }

  std::mutex mutex;
  std::condition_variable wake, done;
  std::vector<std::thread> threads;
  const std::function<void(unsigned)> *work = nullptr;
  unsigned wanted = 0, left = 0;
  uint64_t generation = 0;
  bool closing = false;
};

// A thread that drives launches for a caller, who is so free to look at the clock, and to walk away from one that is stuck.
// Who walks away leaves the chief behind, with everything that its job uses.
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

  // Runs `task` in the thread; `wait` is called again and again meanwhile, for a rest that it returns. What it throws leaves
  // the task running.
  template <class Wait> void run(std::function<void()> task, Wait wait) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (!thread.joinable()) thread = std::thread([this] { serve(); });
      job = std::move(task);
      failure = nullptr;
      busy = true;
    }
    wake.notify_one();
    for (Backoff backoff; busy && !backoff.exhausted();) backoff.wait(); // most launches are short
    for (;;) {
      const auto rest = wait();
      std::unique_lock<std::mutex> lock(mutex);
      if (done.wait_for(lock, rest, [&] { return !busy; })) break;
    }
    if (failure) std::rethrow_exception(failure);
  }

private:
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
