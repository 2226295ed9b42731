// ThreadPool: the threads of the CPU backend, kept between launches; Backoff: how the threads wait for each other.
#pragma once
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "host/status.h"

namespace atos {

// Waits by spinning at first, then by yielding the core, then by sleeping.
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

  // Starts threads until there are `count`, the caller included.
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

  // Calls f(0) to f(count - 1), each in a thread, the first in the caller's; returns when all calls have returned. If some
  // calls throw, rethrows the first exception.
  void run(unsigned count, const std::function<void(unsigned)> &f) {
    start(count);
    thrown = nullptr;
    if (count > 1) {
      std::lock_guard<std::mutex> lock(mutex);
      work = &f;
      num_active = count;
      left = count - 1;
      ++generation;
      wake.notify_all();
    }
    attempt(f, 0);
    if (count > 1) {
      std::unique_lock<std::mutex> lock(mutex);
      done.wait(lock, [&] { return left == 0; });
    }
    if (thrown) std::rethrow_exception(std::exchange(thrown, nullptr));
  }

private:
  void attempt(const std::function<void(unsigned)> &f, unsigned number) noexcept {
    try {
      f(number);
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  }

  void serve(unsigned number, uint64_t seen) {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return closing || generation != seen; });
      if (closing) return;
      seen = generation;
      if (number >= num_active) continue;
      const std::function<void(unsigned)> *f = work;
      lock.unlock();
      attempt(*f, number);
      lock.lock();
      if (--left == 0) done.notify_one();
    }
  }

  std::mutex mutex;
  std::condition_variable wake, done;
  std::vector<std::thread> threads;
  const std::function<void(unsigned)> *work = nullptr;
  std::exception_ptr thrown;         // exception of the work
  unsigned num_active = 0, left = 0; // threads that the work is for; threads that still run the work
  uint64_t generation = 0;
  bool closing = false;
};

} // namespace atos
