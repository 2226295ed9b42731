// CrashNotice: tells the user of a task that reads or writes outside of its arrays how to find the line.
#pragma once

namespace atos {

// While a CrashNotice is alive, a memory fault of its thread is taken for a task's, and a sentence on the standard error says
// what to do. The fault then goes on to the handler installed before: by default the process ends.
class CrashNotice {
public:
  explicit CrashNotice(bool checked); // a task with checks has already reported all it can
  ~CrashNotice();
  CrashNotice(const CrashNotice &) = delete;
  CrashNotice &operator=(const CrashNotice &) = delete;

private:
  unsigned place = 0; // place of this thread among the threads that run tasks
};

} // namespace atos
