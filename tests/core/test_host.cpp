// The cores and the memory that a process may use (csrc/host/resource_limits.h), by control groups as they look in a directory;
// what a launch asks for; and the threads that run it.
#include "cpu/thread_pool.h"
#include "host/backend.h"
#include "host/recent_number.h"
#include "host/resource_limits.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <unistd.h>

#include "check.h"

using namespace atos;
namespace fs = std::filesystem;

namespace {

struct Groups {
  fs::path root = fs::temp_directory_path() / ("atos_host_" + std::to_string(getpid()));
  Groups() { fs::create_directories(root); }
  ~Groups() { fs::remove_all(root); }
  void write(const std::string &name, const std::string &text) {
    fs::create_directories((root / name).parent_path());
    std::ofstream{root / name} << text;
  }
  double found(const std::string &listed) {
    write("self", listed);
    return quota(root.string(), (root / "self").string());
  }
  uint64_t memory(const std::string &listed) {
    write("self", listed);
    write("meminfo", "MemTotal:  4096 kB\nMemFree:  16 kB\nMemAvailable:  1024 kB\n");
    return memory_free(root.string(), (root / "self").string(), (root / "meminfo").string());
  }
};

} // namespace

TEST(a_recent_number_is_found_out_when_it_is_old) {
  RecentNumber number;
  uint64_t next = 5;
  const auto read = [&] { return next++; };
  CHECK(number.get(read, 0) == 5, "first");
  CHECK(number.get(read, RecentNumber::kAge) == 5, "recent");
  CHECK(number.get(read, RecentNumber::kAge + 1) == 6, "old");
  CHECK(number.get(read) == 7, "by the clock");
}

TEST(a_push_buffer_of_a_queue_with_buckets_holds_an_item) {
  atos_launch launch{};
  launch.push_buffer = 1; // 0 items
  CHECK(buffer_items(launch, 4) == 0, "without buckets %u", buffer_items(launch, 4));
  launch.buckets = 4;
  CHECK(buffer_items(launch, 4) == 1, "with buckets %u", buffer_items(launch, 4));
  launch.push_buffer = 8;
  CHECK(buffer_items(launch, 4) == 7, "given %u", buffer_items(launch, 4));
}

TEST(what_threads_throw_comes_when_all_have_returned) {
  ThreadPool pool;
  for (const unsigned throws : {0u, 1u, 2u}) {
    std::atomic<unsigned> returned{0};
    bool caught = false;
    try {
      pool.run(3, [&](unsigned number) {
        if (number == throws) throw Failure(ATOS_NO_MEMORY, "thread " + std::to_string(number));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ++returned;
      });
    } catch (const Failure &failure) {
      caught = failure.message == "thread " + std::to_string(throws) && returned == 2;
    }
    CHECK(caught, "thread %u", throws);
  }
  std::atomic<unsigned> returned{0};
  pool.run(3, [&](unsigned) { ++returned; });
  CHECK(returned == 3, "%u threads after that", returned.load());
}

TEST(no_groups_no_limit) {
  CHECK(std::isinf(quota("/nowhere", "/nowhere/self")), "%f", quota("/nowhere", "/nowhere/self"));
  CHECK(std::isinf(Groups{}.found("0::/some/where\n")), "no files");
  Groups groups;
  groups.write("cpu.max", "max 100000\n");
  CHECK(std::isinf(groups.found("0::/\n")), "max");
  groups.write("cpu.max", "nonsense\n");
  CHECK(std::isinf(groups.found("0::/\n")), "nonsense");
}

TEST(the_group_of_a_container_is_the_root) {
  Groups groups;
  groups.write("cpu.max", "150000 100000\n");
  CHECK(groups.found("0::/\n") == 1.5, "%f", groups.found("0::/\n"));
  CHECK(groups.found("0::/not/mounted\n") == 1.5, "%f", groups.found("0::/not/mounted\n"));
}

TEST(the_least_of_nested_groups_counts) {
  Groups groups;
  groups.write("a/cpu.max", "200000 100000\n");
  groups.write("a/b/cpu.max", "max 100000\n");
  groups.write("a/b/c/cpu.max", "700000 100000\n");
  CHECK(groups.found("0::/a/b/c\n") == 2, "%f", groups.found("0::/a/b/c\n"));
  CHECK(groups.found("0::/a\n") == 2, "%f", groups.found("0::/a\n"));
  CHECK(std::isinf(groups.found("0::/\n")), "%f", groups.found("0::/\n"));
}

TEST(version_1_has_a_hierarchy_for_cores) {
  Groups groups;
  groups.write("cpu/x/cpu.cfs_quota_us", "50000\n");
  groups.write("cpu/x/cpu.cfs_period_us", "100000\n");
  groups.write("cpu/cpu.cfs_quota_us", "-1\n");
  groups.write("cpu/cpu.cfs_period_us", "100000\n");
  const std::string listed = "11:memory:/x\n4:cpu,cpuacct:/x\n3:cpuset:/y\n";
  CHECK(groups.found(listed) == 0.5, "%f", groups.found(listed));
  CHECK(std::isinf(groups.found("11:memory:/x\n3:cpuset:/x\n")), "other hierarchies say nothing of cores");
}

TEST(at_least_one_core_and_no_more_than_there_are) {
  const uint32_t found = cores();
  CHECK(found >= 1 && found <= std::max(1u, std::thread::hardware_concurrency()), "%u", found);
}

TEST(without_groups_all_memory_that_is_available_counts) {
  Groups groups;
  CHECK(groups.memory("") == 1 << 20, "%lu", (unsigned long)groups.memory(""));
  groups.write("memory.max", "max\n");
  groups.write("memory.current", "1000\n");
  CHECK(groups.memory("0::/\n") == 1 << 20, "%lu", (unsigned long)groups.memory("0::/\n"));
  groups.write("memory.max", "99999999999\n"); // more than there is
  CHECK(groups.memory("0::/\n") == 1 << 20, "%lu", (unsigned long)groups.memory("0::/\n"));
}

TEST(a_group_leaves_what_it_does_not_use_or_uses_for_files) {
  Groups groups;
  groups.write("a/memory.max", "100000\n");
  groups.write("a/memory.current", "70000\n");
  CHECK(groups.memory("0::/a\n") == 30000, "%lu", (unsigned long)groups.memory("0::/a\n"));
  groups.write("a/memory.stat", "anon 1\ninactive_file 20000\nactive_file 7\n");
  CHECK(groups.memory("0::/a\n") == 50000, "%lu", (unsigned long)groups.memory("0::/a\n"));
  groups.write("a/b/memory.max", "10\n");
  groups.write("a/b/memory.current", "11\n");
  CHECK(groups.memory("0::/a/b\n") == 0, "%lu", (unsigned long)groups.memory("0::/a/b\n"));
}

TEST(version_1_has_a_hierarchy_for_memory) {
  Groups groups;
  groups.write("memory/x/memory.limit_in_bytes", "50000\n");
  groups.write("memory/x/memory.usage_in_bytes", "20000\n");
  groups.write("memory/x/memory.stat", "inactive_file 1\ntotal_inactive_file 5000\n");
  const std::string listed = "11:memory:/x\n4:cpu,cpuacct:/x\n";
  CHECK(groups.memory(listed) == 35000, "%lu", (unsigned long)groups.memory(listed));
}

TEST(some_memory_is_free_here) {
  CHECK(memory_free() > 1 << 20, "%lu", (unsigned long)memory_free());
}
