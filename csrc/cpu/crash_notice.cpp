// CrashNotice, by handlers of SIGSEGV and SIGBUS in front of the earlier handlers.
#include "cpu/crash_notice.h"

#include <atomic>
#include <csignal>
#include <mutex>
#include <pthread.h>
#include <unistd.h>

namespace atos {
namespace {

constexpr char kText[] =
    "atos_py: a task has read or written memory that is not its own, such as an element outside of an array, "
    "and the process ends. Run it with ATOS_DEBUG=1 in the environment, or launch with debug=True: a check "
    "then names the line of the task and the item.\n";
constexpr int kSignals[] = {SIGSEGV, SIGBUS};

struct sigaction earlier[2];

// The threads that run tasks, or 0. Not thread_local: a signal handler may not be the first to use such a variable, and static
// thread-local storage takes room that the libraries of a process share.
constexpr unsigned kMostThreads = 1024;
std::atomic<pthread_t> threads[kMostThreads];

bool runs_task() {
  for (const std::atomic<pthread_t> &thread : threads)
    if (thread.load(std::memory_order_relaxed) == pthread_self()) return true;
  return false;
}

void tell(int number, siginfo_t *info, void *) {
  const bool of_thread = info->si_code > 0 || info->si_code == SI_TKILL; // SI_TKILL: raised again by another handler
  if (of_thread && runs_task() && write(STDERR_FILENO, kText, sizeof kText - 1) < 0) { // nobody to tell
  }
  sigaction(number, &earlier[number == kSignals[1]], nullptr);
  if (info->si_code <= 0) raise(number); // sent by a process; a fault happens again by itself
}

void install() {
  struct sigaction action = {};
  action.sa_sigaction = tell;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (int k = 0; k < 2; ++k) sigaction(kSignals[k], &action, &earlier[k]);
}

} // namespace

CrashNotice::CrashNotice(bool checked) {
  static std::once_flag installed;
  if (checked) place = kMostThreads;
  else std::call_once(installed, install);
  for (; place < kMostThreads; ++place) {
    pthread_t nobody = 0;
    if (threads[place].compare_exchange_strong(nobody, pthread_self())) return;
  }
}

CrashNotice::~CrashNotice() {
  if (place < kMostThreads) threads[place] = 0;
}

} // namespace atos
