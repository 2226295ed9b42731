// What this process may use of its host: cores and memory, of which a container may leave less than the machine has.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace atos {

// The least of `left(directory)` over the control groups of this process, which are nested. `mounted` is where they are mounted,
// `listed` names this process's, a line for each hierarchy: "0::/some/path", or "4:cpu,cpuacct:/some/path" in version 1. In a
// container its own group may be mounted in place of the root, so that the path does not exist there.
template <class Left>
inline double least_of_groups(const std::string &controller, Left left, const std::string &mounted, const std::string &listed) {
  double least = INFINITY;
  std::ifstream file{listed};
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields{line};
    std::string number, controllers, path;
    std::getline(std::getline(std::getline(fields, number, ':'), controllers, ':'), path);
    if (!controllers.empty() && ("," + controllers + ",").find("," + controller + ",") == std::string::npos) continue;
    const std::string top = controllers.empty() ? mounted : mounted + "/" + controller;
    for (;;) {
      least = std::min(least, left(top + path));
      const size_t cut = path.rfind('/');
      if (cut == std::string::npos) break;
      path.resize(cut);
    }
  }
  return least;
}

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

inline double quota(const std::string &mounted = "/sys/fs/cgroup", const std::string &listed = "/proc/self/cgroup") {
  return least_of_groups("cpu", quota_of_group, mounted, listed);
}

inline uint32_t cores() {
  static const double limit = quota();
  cpu_set_t set;
  uint32_t bound = std::max(1u, std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) bound = uint32_t(CPU_COUNT(&set));
  return limit < bound ? uint32_t(std::ceil(limit)) : bound;
}

// Bytes of addresses that a queue may take beside those it needs at once: any number, unless the process is limited in them
// (`ulimit -v`), and may need them for something else.
inline uint64_t addresses_to_spare() {
  rlimit limit;
  return getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur / 64;
}

// The number behind a word in a file of lines "word number", or -1.
inline double number_behind(const std::string &word, const std::string &path) {
  std::ifstream file{path};
  double value = 0;
  for (std::string line, first; std::getline(file, line);) {
    std::istringstream fields{line};
    if (fields >> first >> value && first == word) return value;
  }
  return -1;
}

// Bytes that a control group leaves; what it uses for files that it can do without counts as free.
inline double memory_of_group(const std::string &directory) {
  double limit = -1, used = 0;
  const bool second = bool(std::ifstream{directory + "/memory.max"} >> limit); // "max" is no number, and no limit
  if (!second) std::ifstream{directory + "/memory.limit_in_bytes"} >> limit;
  std::ifstream{directory + (second ? "/memory.current" : "/memory.usage_in_bytes")} >> used;
  const double files = number_behind(second ? "inactive_file" : "total_inactive_file", directory + "/memory.stat");
  return limit > 0 ? std::max(limit - used + std::max(files, 0.0), 0.0) : INFINITY;
}

// Bytes of memory that this process may still take: what is available, caches that can be dropped included.
inline uint64_t memory_free(const std::string &mounted = "/sys/fs/cgroup", const std::string &listed = "/proc/self/cgroup",
                            const std::string &system = "/proc/meminfo") {
  double available = 1024 * number_behind("MemAvailable:", system); // kB
  if (available < 0) available = double(sysconf(_SC_AVPHYS_PAGES)) * double(sysconf(_SC_PAGE_SIZE)); // nothing is known of caches
  return uint64_t(std::max(std::min(available, least_of_groups("memory", memory_of_group, mounted, listed)), 0.0));
}

} // namespace atos
