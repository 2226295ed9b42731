// CrashNotice, by handlers of SIGSEGV and SIGBUS that stand in front of those that were there.
#include "cpu/crash_notice.h"

#include <csignal>
#include <mutex>
#include <unistd.h>

namespace atos {
namespace {

constexpr char kText[] =
    "atos_py: a task has read or written memory that is not its own, such as an element outside of an array, "
    "and the process ends. Run it with ATOS_DEBUG=1 in the environment, or launch with debug=True: a check "
    "then names the line of the task and the item.\n";
constexpr int kSignals[] = {SIGSEGV, SIGBUS};

struct sigaction earlier[2];

// Of the static block of the thread's storage, which a handler of signals may look at: nothing is allocated for it.
__attribute__((tls_model("initial-exec"))) thread_local volatile std::sig_atomic_t in_task = 0;

void tell(int number, siginfo_t *info, void *) {
  const bool of_thread = info->si_code > 0 || info->si_code == SI_TKILL; // which a handler before this one has raised again
  if (in_task && of_thread && write(STDERR_FILENO, kText, sizeof kText - 1) < 0) { // nobody to tell
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
  if (checked) return;
  std::call_once(installed, install);
  in_task = 1;
}

CrashNotice::~CrashNotice() { in_task = 0; }

} // namespace atos
