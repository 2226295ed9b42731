// How many cores this process may keep busy: fewer than the machine has, if it is bound to some or has a quota of time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <string>
#include <thread>

namespace atos {

// Cores' worth of time that a control group leaves, not rounded; infinite if it sets no limit.
inline double quota_of_group(const std::string &directory) {
  double quota = 0, period = 0;
  std::string word;
  if (std::ifstream file{directory + "/cpu.max"}; file >> word >> period) { // version 2: "150000 100000" or "max 100000"
    quota = word == "max" ? 0 : std::strtod(word.c_str(), nullptr);
  } else { // version 1: -1 is no limit
    std::ifstream{directory + "/cpu.cfs_quota_us"} >> quota;
    std::ifstream{directory + "/cpu.cfs_period_us"} >> period;
  }
  return quota > 0 && period > 0 ? quota / period : INFINITY;
}

// The least of what the control groups of this process leave, which are nested. `mounted` is where they are mounted, `listed`
// names this process's, a line for each hierarchy: "0::/some/path", or "4:cpu,cpuacct:/some/path" in version 1. In a container
// its own group may be mounted in place of the root, so that the path does not exist there.
inline double quota(const std::string &mounted = "/sys/fs/cgroup", const std::string &listed = "/proc/self/cgroup") {
  double least = INFINITY;
  std::ifstream file{listed};
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields{line};
    std::string number, controllers, path;
    std::getline(std::getline(std::getline(fields, number, ':'), controllers, ':'), path);
    if (!controllers.empty() && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const std::string top = controllers.empty() ? mounted : mounted + "/cpu";
    for (;;) {
      least = std::min(least, quota_of_group(top + path));
      const size_t cut = path.rfind('/');
      if (cut == std::string::npos) break;
      path.resize(cut);
    }
  }
  return least;
}

inline uint32_t cores() {
  static const double limit = quota();
  cpu_set_t set;
  uint32_t bound = std::max(1u, std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) bound = uint32_t(CPU_COUNT(&set));
  return limit < bound ? uint32_t(std::ceil(limit)) : bound;
}

} // namespace atos
