// The cores and the memory that this process may use: a container may leave less than the machine has.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace atos {

// Content of a small file; empty if it cannot be read. Read and parsed by the C library: a stream parses with the facets of the
// process' global locale, which other libraries may have set.
inline std::string content_of(const std::string &path) {
  std::string content;
  if (std::FILE *file = std::fopen(path.c_str(), "re")) {
    char part[4096];
    while (const size_t n = std::fread(part, 1, sizeof part, file)) content.append(part, n);
    std::fclose(file);
  }
  return content;
}

// The number that a file begins with, or 0, such as for "max", which is no limit.
inline double number_in(const std::string &path) { return std::strtod(content_of(path).c_str(), nullptr); }

// The least of `left(directory)` over the control groups of this process, which are nested. `mounted` is where control groups
// are mounted, `listed` names the groups of this process, a line for each hierarchy: "0::/some/path", or
// "4:cpu,cpuacct:/some/path" in version 1. In a container its own group may be mounted in place of the root, so that the path
// does not exist there.
template <class Left>
inline double least_of_groups(const std::string &controller, Left left, const std::string &mounted, const std::string &listed) {
  double least = INFINITY;
  const std::string lines = content_of(listed);
  for (size_t begin = 0, end; begin < lines.size(); begin = end + 1) {
    end = std::min(lines.find('\n', begin), lines.size());
    const size_t first = lines.find(':', begin), second = lines.find(':', first + 1);
    if (first >= end || second >= end) continue;
    const std::string controllers = lines.substr(first + 1, second - first - 1);
    std::string path = lines.substr(second + 1, end - second - 1);
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

// Cores' worth of time that a control group leaves, not rounded; infinite if the group sets no limit.
inline double quota_of_group(const std::string &directory) {
  const std::string both = content_of(directory + "/cpu.max"); // version 2: "150000 100000" or "max 100000"
  const size_t gap = both.find(' ');
  // In version 1 there are two files, and -1 is no limit.
  const double quota = gap < both.size() ? std::strtod(both.c_str(), nullptr) : number_in(directory + "/cpu.cfs_quota_us");
  const double period = gap < both.size() ? std::strtod(&both[gap], nullptr) : number_in(directory + "/cpu.cfs_period_us");
  return quota > 0 && period > 0 ? quota / period : INFINITY;
}

inline double quota(const std::string &mounted = "/sys/fs/cgroup", const std::string &listed = "/proc/self/cgroup") {
  return least_of_groups("cpu", quota_of_group, mounted, listed);
}

inline uint32_t cores() {
  static const double limit = quota();
  cpu_set_t set;
  const bool known = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0;
  const uint32_t bound = known ? uint32_t(CPU_COUNT(&set)) : std::max(1u, std::thread::hardware_concurrency());
  return limit < bound ? uint32_t(std::ceil(limit)) : bound;
}

// Bytes of addresses that a queue may take beside its immediate need: any number, unless the process has a limit on addresses
// (`ulimit -v`), and may need them for something else.
inline uint64_t addresses_to_spare() {
  rlimit limit;
  return getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur / 64;
}

// The number behind a word in a file of lines "word number", or -1.
inline double number_behind(const std::string &word, const std::string &path) {
  const std::string lines = "\n" + content_of(path), before = "\n" + word + " ";
  const size_t at = lines.find(before);
  return at == std::string::npos ? -1 : std::strtod(&lines[at + before.size()], nullptr);
}

// Bytes that a control group leaves; memory for cached files, which can be dropped, counts as free.
inline double memory_of_group(const std::string &directory) {
  double limit = number_in(directory + "/memory.max");
  const bool second = limit > 0;
  if (!second) limit = number_in(directory + "/memory.limit_in_bytes");
  const double used = number_in(directory + (second ? "/memory.current" : "/memory.usage_in_bytes"));
  const double files = number_behind(second ? "inactive_file" : "total_inactive_file", directory + "/memory.stat");
  return limit > 0 ? std::max(limit - used + std::max(files, 0.0), 0.0) : INFINITY;
}

// Bytes of memory that this process may still take: available memory, including caches that can be dropped.
inline uint64_t memory_free(const std::string &mounted = "/sys/fs/cgroup", const std::string &listed = "/proc/self/cgroup",
                            const std::string &system = "/proc/meminfo") {
  double available = 1024 * number_behind("MemAvailable:", system); // kB
  if (available < 0)
    available = double(sysconf(_SC_AVPHYS_PAGES)) * double(sysconf(_SC_PAGE_SIZE)); // nothing is known of caches
  return uint64_t(std::max(std::min(available, least_of_groups("memory", memory_of_group, mounted, listed)), 0.0));
}

} // namespace atos
