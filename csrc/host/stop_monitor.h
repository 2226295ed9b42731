// StopMonitor: polls the timeout, the caller's callback (Ctrl-C, progress) and the inbox of a launch while the host waits for
// workers.
#pragma once
#include <algorithm>
#include <chrono>

#include "host/inbox.h"
#include "host/process_group.h"
#include "host/status.h"
#include "protocol/counters.h"

namespace atos {

class StopMonitor {
public:
  using Clock = std::chrono::steady_clock;

  explicit StopMonitor(const atos_launch &launch)
      : poll_callback(launch.poll_callback), inbox(launch.inbox), next_callback(Clock::now() + kPollInterval) {
    // A limit of centuries counts as none: such a limit would not fit the clock.
    if (launch.timeout > 0 && launch.timeout < 1e9)
      deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(launch.timeout));
  }

  // Watches the processes of a launch, or none (null): the launch stops when one of them is gone. The workers of other
  // processes, which this process's workers may wait for, do not get cores when this process does.
  void watch(atos_group *processes) {
    group = processes;
    if (group) grace = allowed = kGroupGrace;
  }
  // From now on this process waits for other processes, which find out first what is amiss with their own workers.
  void wait_for_others() { grace = allowed = 2 * kGroupGrace; }
  bool lost() const { return gone; } // whether a process is gone

  // Whether the workers are to stop; the callback gets `state`, or null if the state is not known. Throws ATOS_STUCK when the
  // workers were asked to stop, and have not for the time of grace.
  bool poll(const atos_sample *state = nullptr) {
    const Clock::time_point now = Clock::now();
    if (group && !gone && group->lost()) {
      gone = true;
      if (!stop) polled = now;
      stop = true;
    }
    if (stop) {
      // A process that was suspended, or got no core for a while, polls late, and its workers had no more time than the
      // process. So only time between polls that follow each other as they should counts.
      grace -= std::min<Clock::duration>(now - polled, kPollInterval);
      polled = now;
      if (grace <= Clock::duration::zero())
        throw Failure(ATOS_STUCK, format("the workers were asked to stop, and did not for %d ms", int(allowed.count())));
      return true;
    }
    stop = now >= deadline || stop_sent();
    if (!stop && poll_callback && now >= next_callback) {
      in_callback() = true;
      stop = poll_callback(state) != 0;
      in_callback() = false;
      next_callback = now + kPollInterval;
    }
    if (stop) polled = Clock::now();
    return stop;
  }

  // When workers are to stop by their own clock, if the host has not asked them to; the greatest time if there is no timeout.
  // Whatever holds up the host, such as a driver that waits for another thread, or a slow callback, does not hold up the
  // workers.
  Clock::time_point time_limit() const { return deadline == Clock::time_point::max() ? deadline : deadline + kOwnPatience; }
  // Notes that the workers have stopped, for these reasons: if the time limit is among them, the launch was asked to stop.
  void workers_stopped(uint64_t reasons) {
    if (!(reasons & kStopAsked) || stop) return;
    stop = true;
    polled = Clock::now();
  }

  // Whether this thread is in a launch, where it waits for no other thread's launch: its own has a timeout.
  static bool &in_launch() {
    static thread_local bool launching = false;
    return launching;
  }
  struct InLaunch {
    InLaunch() { in_launch() = true; }
    ~InLaunch() { in_launch() = false; }
  };

  // Whether this thread is in the callback of a launch. In a callback a thread waits for nothing that waits for the workers.
  static bool &in_callback() {
    static thread_local bool running = false;
    return running;
  }
  static void refuse_in_callback(const char *what) {
    if (in_callback())
      throw Failure(ATOS_INVALID, format("a signal handler or progress function that runs during a launch cannot %s", what));
  }

  // Whether the workers are to stop, by the last poll or since then by their inbox, which tells workers of a stop before the
  // host.
  bool stopped() const { return stop || stop_sent(); }

  // Whether the next poll calls the callback.
  bool callback_due() const { return !stop && poll_callback && Clock::now() >= next_callback; }

  // The time until the next poll, for which the host may sleep.
  Clock::duration time_to_next_poll() const {
    const Clock::duration most = kPollInterval;
    return std::max(Clock::duration::zero(), std::min(most, stop ? grace : deadline - Clock::now()));
  }

private:
  bool stop_sent() const { return inbox && inbox->stop_asked; }

  static constexpr std::chrono::milliseconds kPollInterval{20};
  static constexpr std::chrono::milliseconds kGrace{1000}, kGroupGrace{5000}, kOwnPatience{100};

  int32_t (*const poll_callback)(const atos_sample *);
  const atos_inbox *const inbox;
  Clock::time_point next_callback, deadline = Clock::time_point::max(), polled{};
  std::chrono::milliseconds allowed = kGrace;
  Clock::duration grace = kGrace; // time that is left of kGrace
  bool stop = false, gone = false;
  atos_group *group = nullptr;
};

} // namespace atos
