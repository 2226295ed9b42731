// Memory runs out at any moment: the n-th allocation fails, for every n that there is. Afterwards each item that was pushed has
// run or is pending, once, and the next launch runs the rest.
#include <atomic>
#include <cerrno>
#include <new>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include "tree.h"

// Allocations that may fail: those of C++, and where no sanitizer has replaced them those of the backend.
namespace {
std::atomic<int64_t> left{-1}; // allocations until one fails; below 0: none does
std::atomic<bool> failed{false};
std::atomic<size_t> largest{0}; // bytes of one, since this was 0
bool fails(size_t bytes) {
  size_t most = largest;
  while (bytes > most && !largest.compare_exchange_weak(most, bytes)) {}
  if (left.load() < 0 || left.fetch_sub(1) != 0) return false;
  failed = true;
  return true;
}
} // namespace

void *operator new(size_t bytes) {
  if (void *pointer = fails(bytes) ? nullptr : std::malloc(bytes ? bytes : 1)) return pointer;
  throw std::bad_alloc();
}
void *operator new(size_t bytes, const std::nothrow_t &) noexcept { return fails(bytes) ? nullptr : std::malloc(bytes ? bytes : 1); }
#if defined(__GNUC__) && !defined(__clang__) // which takes the two for those of the library where it has one of them inlined
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif
void operator delete(void *pointer) noexcept { std::free(pointer); }
void operator delete(void *pointer, size_t) noexcept { std::free(pointer); }

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
extern "C" void *__libc_calloc(size_t, size_t);
// The backend asks for more than 256 bytes. The C library asks for fewer, for the destructors of a thread, and aborts without.
extern "C" void *calloc(size_t n, size_t bytes) {
  if (n * bytes <= 256 || !fails(n * bytes)) return __libc_calloc(n, bytes);
  errno = ENOMEM;
  return nullptr;
}
extern "C" void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  if (fails(0)) { // they are addresses, most of which get no memory
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void *>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}
#endif

namespace {

template <class F> atos_status with_failure(int64_t n, F call) {
  failed = false;
  left = n;
  const atos_status status = call();
  left = -1;
  return status;
}

void push_child(atos_cpu_worker *worker, uint64_t child, const Work &work) {
  const uint64_t item = child;
  worker->push(worker, &item, work.tree.level[child] % 7);
}

void run_with_priorities(atos_cpu_worker *worker, const void *items, int64_t n, const void *args) {
  Work &work = const_cast<Work &>(work_of(args));
  for (int64_t k = 0; k < n; ++k) {
    const uint64_t v = static_cast<const uint64_t *>(items)[k];
    CHECK(v < work.tree.nodes, "item %" PRIu64 " was never pushed", v);
    ++work.seen[v];
    for (uint64_t child = work.tree.first[v]; child < work.tree.first[v + 1]; ++child) push_child(worker, child, work);
  }
}

// Each node that was pushed, as the root or by its parent, has run or is among the pending items, once.
template <class T> void check_items(atos_queue *queue, const Work &work, int64_t n) {
  uint64_t pending = 0;
  CHECK(atos_queue_pending(queue, &pending) == ATOS_OK, "allocation %" PRId64 ": %s", n, atos_message());
  std::vector<T> items(pending);
  atos_queue_state state;
  CHECK(atos_queue_read(queue, items.data(), pending, &state) == ATOS_OK && state.pending == pending, "%s", atos_message());
  std::vector<uint32_t> there(work.tree.nodes);
  for (const T &item : items) ++there[decode(item)];
  for (uint64_t v = 0; v < work.tree.nodes; ++v) {
    const uint64_t pushed = v == 0 || [&] {
      const uint64_t parent = uint64_t(std::upper_bound(work.tree.first.begin(), work.tree.first.end(), v) - work.tree.first.begin()) - 1;
      return work.seen[parent] != 0;
    }();
    CHECK(work.seen[v] + there[v] == pushed, "allocation %" PRId64 " failed: item %" PRIu64 " was pushed %" PRIu64 " times, ran %u times and is pending %u times",
          n, v, pushed, work.seen[v].load(), there[v]);
  }
}

bool is_want_of_memory(atos_status status) { // a thread may not start, too
  return status == ATOS_NO_MEMORY || status == ATOS_QUEUE_FULL || status == ATOS_TOO_MANY;
}

struct Case {
  bool persistent, barrier;
  uint64_t capacity, limit; // of the queue; a limit of 0: as much memory as there is
  uint32_t buckets = 0;
};

// Launches of a tree, one of which has no memory at some moment; then the others run the rest.
template <class T> uint64_t launches(const Case &its) {
  const Tree tree(9, 700, 5);
  Program plain(run<T>, nullptr), by_level(run_with_priorities, nullptr);
  atos_program *const program = its.buckets ? by_level.handle : plain.handle;
  uint64_t failures = 0;
  for (int64_t n = 0;; ++n) {
    Work work(tree);
    atos_queue *queue = nullptr;
    CHECK(atos_queue_create(ATOS_CPU, its.capacity, sizeof(T), &queue) == ATOS_OK, "%s", atos_message());
    CHECK(atos_queue_limit(queue, its.limit) == ATOS_OK, "%s", atos_message());
    if (its.buckets) CHECK(atos_queue_set_buckets(queue, its.buckets, 2) == ATOS_OK, "%s", atos_message());
    const T root = encode<T>(0);
    CHECK(atos_queue_push(queue, &root, 1) == ATOS_OK, "%s", atos_message());
    const uint64_t argument = reinterpret_cast<uint64_t>(&work);
    atos_launch launch = schedule(its.persistent, its.barrier, 4, 3);
    launch.worker = ATOS_CTA;
    launch.argument_words = launch.threads = 1;
    launch.arguments = &argument;
    launch.buckets = its.buckets != 0;
    atos_stats stats;
    const auto start = [&] { return atos_queue_launch(queue, program, &launch, &stats); };
    atos_status status = with_failure(n, start);
    const bool done = !failed;
    CHECK(status == ATOS_OK || is_want_of_memory(status), "allocation %" PRId64 ": status %d, %s", n, int(status), atos_message());
    failures += status != ATOS_OK && status != ATOS_STOPPED;
    check_items<T>(queue, work, n);
    while (status != ATOS_OK) {
      uint64_t pending = 0;
      CHECK(atos_queue_pending(queue, &pending) == ATOS_OK, "%s", atos_message());
      CHECK(atos_queue_resize(queue, std::max<uint64_t>(2 * pending, 16)) == ATOS_OK, "%s", atos_message());
      status = start();
      CHECK(status == ATOS_OK || status == ATOS_QUEUE_FULL, "after allocation %" PRId64 ": status %d, %s", n, int(status), atos_message());
      check_items<T>(queue, work, n);
    }
    for (uint64_t v = 0; v < tree.nodes; ++v) CHECK(work.seen[v] == 1, "allocation %" PRId64 ": task %" PRIu64 " ran %u times", n, v, work.seen[v].load());
    atos_queue_destroy(queue);
    if (done) break;
  }
  return failures;
}

// Uses of a queue between launches, each of which is done or leaves the queue as it was.
template <class F> void use(const char *name, F call) {
  uint64_t failures = 0;
  for (int64_t n = 0;; ++n) {
    atos_queue *queue = nullptr;
    CHECK(atos_queue_create(ATOS_CPU, 8, 8, &queue) == ATOS_OK, "%s", atos_message());
    CHECK(atos_queue_limit(queue, 0) == ATOS_OK, "%s", atos_message());
    std::vector<uint64_t> before{5, 6, 7, 8, 9, 10}, items(64);
    CHECK(atos_queue_push(queue, before.data(), before.size()) == ATOS_OK, "%s", atos_message());
    atos_queue *next = nullptr;
    std::vector<uint64_t> after = before;
    after.reserve(64);
    const atos_status status = with_failure(n, [&] { return call(queue, &next, &after); });
    const bool done = !failed;
    atos_queue *const now = next ? next : queue;
    atos_queue_state state;
    CHECK(atos_queue_read(now, items.data(), items.size(), &state) == ATOS_OK, "%s", atos_message());
    items.resize(state.pending);
    CHECK(status == ATOS_OK || is_want_of_memory(status), "%s, allocation %" PRId64 ": %s", name, n, atos_message());
    failures += status != ATOS_OK;
    CHECK(items == (status == ATOS_OK ? after : before), "%s, allocation %" PRId64 ", status %d: %zu items are pending", name, n, int(status), items.size());
    if (next) atos_queue_destroy(next);
    atos_queue_destroy(queue);
    if (done) break;
  }
  CHECK(failures > 0, "%s: no failure was seen", name);
}

} // namespace

// Pushes its item again, and stops the launch after some.
std::atomic<int64_t> until_stop{0};
template <class T> void again_until_stopped(atos_cpu_worker *worker, const void *items, int64_t n, const void *) {
  for (int64_t k = 0; k < n; ++k) {
    push<T>(worker, decode(static_cast<const T *>(items)[k]));
    if (--until_stop == 0) worker->stop(worker);
  }
}

// A stop copies no pending items: there would be no memory for a second copy of them.
template <class T> void stops_ask_for_little() {
  const uint64_t n = (uint64_t(8) << 20) / sizeof(T);
  Program program(again_until_stopped<T>, nullptr);
  for (const bool persistent : {true, false})
    for (const bool barrier : {true, false})
      for (const uint64_t room : {uint64_t(0), n / 2}) {
        atos_queue *queue = nullptr;
        CHECK(atos_queue_create(ATOS_CPU, n + room, sizeof(T), &queue) == ATOS_OK, "%s", atos_message());
        std::vector<T> items;
        for (uint64_t v = 0; v < n; ++v) items.push_back(encode<T>(v));
        CHECK(atos_queue_push(queue, items.data(), n) == ATOS_OK, "%s", atos_message());
        for (int launches = 0; launches < 3; ++launches) {
          atos_launch launch = schedule(persistent, barrier, 4, 3);
          launch.worker = ATOS_CTA;
          launch.threads = 1;
          until_stop = 5000;
          largest = 0;
          atos_stats stats;
          const atos_status status = atos_queue_launch(queue, program.handle, &launch, &stats);
          const size_t asked = largest;
          CHECK(status == ATOS_OK && stats.stopped && stats.pending == n, "status %d, %" PRIu64 " pending", int(status), stats.pending);
          CHECK(asked < n * sizeof(T) / 4, "%s: %zu bytes were asked for with %" PRIu64 " items pending", name(persistent, barrier, 4, 3).c_str(), asked, n);
        }
        atos_queue_destroy(queue);
      }
}

TEST(a_stop_asks_for_little_memory_whatever_is_pending) {
  stops_ask_for_little<uint64_t>();
  stops_ask_for_little<Large>();
}

TEST(items_from_the_host_are_not_lost_without_memory) {
  const Tree tree(3, 4, 2);
  Program program(run<uint64_t>, nullptr);
  uint64_t failures = 0;
  for (int64_t n = 0;; ++n) {
    Work work(tree);
    atos_queue *queue = nullptr;
    atos_inbox *inbox = nullptr;
    CHECK(atos_queue_create(ATOS_CPU, 16, 8, &queue) == ATOS_OK && atos_inbox_create(ATOS_CPU, 8, &inbox) == ATOS_OK, "%s", atos_message());
    const uint64_t argument = reinterpret_cast<uint64_t>(&work);
    atos_launch launch = schedule(true, false, 4, 2);
    launch.worker = ATOS_CTA;
    launch.argument_words = launch.threads = 1;
    launch.arguments = &argument;
    launch.inbox = inbox;
    atos_stats stats;
    atos_status status;
    bool done = false;
    std::thread workers([&] {
      status = with_failure(n, [&] { return atos_queue_launch(queue, program.handle, &launch, &stats); });
      done = !failed;
    });
    uint64_t sent = 0;
    atos_status begun;
    while ((begun = atos_inbox_begun(inbox)) == ATOS_HELD) {}
    for (int tries = 0; begun == ATOS_OK && tries < 3000 && sent < 400; ++tries) {
      const uint64_t root = 0;
      uint64_t some = 0;
      if (atos_inbox_push(inbox, &root, 1, &some) == ATOS_CLOSED) break;
      sent += some;
    }
    atos_inbox_stop(inbox);
    workers.join();
    CHECK(status == ATOS_OK || status == ATOS_STOPPED || is_want_of_memory(status), "status %d: %s", int(status), atos_message());
    failures += status != ATOS_OK && status != ATOS_STOPPED;
    atos_inbox_destroy(inbox);
    launch.inbox = nullptr;
    uint64_t pending = 0;
    CHECK(atos_queue_pending(queue, &pending) == ATOS_OK && atos_queue_resize(queue, std::max<uint64_t>(8 * pending, 16)) == ATOS_OK, "%s", atos_message());
    CHECK(atos_queue_launch(queue, program.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
    for (uint64_t v = 0; v < tree.nodes; ++v)
      CHECK(work.seen[v] == sent, "allocation %" PRId64 ": task %" PRIu64 " ran %u times for %" PRIu64 " trees", n, v, work.seen[v].load(), sent);
    atos_queue_destroy(queue);
    if (done) break;
  }
  CHECK(failures > 5, "%" PRIu64 " launches failed", failures);
}

TEST(launches_over_devices_without_memory_lose_nothing) {
  constexpr uint32_t kDevices = 3;
  const Tree tree(9, 600, 5);
  Program plain(run<uint64_t>, nullptr), by_level(run_with_priorities, nullptr);
  uint64_t failures = 0;
  for (const bool barrier : {false, true})
    for (const bool buckets : {false, true})
      for (int64_t n = 0;; ++n) {
        Work work(tree);
        std::vector<atos_queue *> queues(kDevices);
        for (atos_queue *&queue : queues) {
          CHECK(atos_queue_create(ATOS_CPU, 16, 8, &queue) == ATOS_OK && atos_queue_limit(queue, 0) == ATOS_OK, "%s", atos_message());
          if (buckets) CHECK(atos_queue_set_buckets(queue, 4, 2) == ATOS_OK, "%s", atos_message());
        }
        const uint64_t root = 0, argument = reinterpret_cast<uint64_t>(&work);
        CHECK(atos_queue_push(queues[0], &root, 1) == ATOS_OK, "%s", atos_message());
        atos_launch launch = schedule(true, barrier, 4, 1);
        launch.worker = ATOS_CTA;
        launch.argument_words = launch.threads = 1;
        launch.arguments = &argument;
        launch.buckets = buckets;
        std::vector<atos_program *> programs(kDevices, buckets ? by_level.handle : plain.handle);
        const atos_peers peers{kDevices, 8, (tree.nodes + kDevices - 1) / kDevices, queues.data(), programs.data(), nullptr};
        std::vector<atos_stats> stats(kDevices);
        const auto start = [&] { return atos_peers_launch(&peers, &launch, stats.data()); };
        atos_status status = with_failure(n, start);
        const bool done = !failed;
        failures += status != ATOS_OK;
        for (int tries = 0; status != ATOS_OK && tries < 20; ++tries) status = start();
        CHECK(status == ATOS_OK, "after allocation %" PRId64 ": status %d, %s", n, int(status), atos_message());
        for (uint64_t v = 0; v < tree.nodes; ++v)
          CHECK(work.seen[v] == 1, "allocation %" PRId64 ": task %" PRIu64 " ran %u times", n, v, work.seen[v].load());
        for (atos_queue *queue : queues) atos_queue_destroy(queue);
        if (done) break;
      }
  CHECK(failures > 60, "%" PRIu64 " launches failed", failures);
}

TEST(launches_without_memory_lose_nothing_of_4_bytes) {
  uint64_t failures = 0;
  for (const bool persistent : {true, false})
    for (const bool barrier : {true, false})
      for (const uint64_t limit : {uint64_t(16), uint64_t(0)}) failures += launches<uint32_t>({persistent, barrier, 16, limit});
  CHECK(failures > 30, "%" PRIu64 " launches failed", failures);
}

TEST(launches_without_memory_lose_nothing_of_32_bytes) {
  uint64_t failures = 0;
  for (const bool persistent : {true, false})
    for (const bool barrier : {true, false})
      failures += launches<Large>({persistent, barrier, 16, 16}) + launches<Large>({persistent, barrier, 16, 0});
  CHECK(failures > 15, "%" PRIu64 " launches failed", failures);
}

TEST(launches_with_buckets_and_without_memory_lose_nothing) {
  uint64_t failures = 0;
  for (const bool persistent : {true, false})
    for (const uint64_t limit : {uint64_t(16), uint64_t(0)}) failures += launches<uint64_t>({persistent, false, 16, limit, 4});
  CHECK(failures > 30, "%" PRIu64 " launches failed", failures);
}

TEST(uses_without_memory_leave_the_queue_as_it_was) {
  use("push", [](atos_queue *queue, atos_queue **, std::vector<uint64_t> *after) {
    const uint64_t more[] = {1, 2, 3, 4, 5};
    after->insert(after->end(), more, more + 5);
    return atos_queue_push(queue, more, 5);
  });
  use("resize", [](atos_queue *queue, atos_queue **, std::vector<uint64_t> *) { return atos_queue_resize(queue, 100); });
  use("kinds get other numbers", [](atos_queue *queue, atos_queue **next, std::vector<uint64_t> *after) {
    uint8_t kinds[256];
    for (unsigned kind = 0; kind < 256; ++kind) kinds[kind] = uint8_t(kind + 3);
    for (uint64_t &item : *after) item |= uint64_t(3) << 56;
    return atos_queue_convert(queue, 8, kinds, next);
  });
}

TEST(a_checkpoint_that_finds_no_memory_changes_nothing) {
  const std::vector<uint64_t> items{5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  const atos_queue_state given{10, 0, 3, 4};
  uint64_t failures = 0;
  for (int64_t n = 0;; ++n) {
    atos_queue *queue = nullptr;
    CHECK(atos_queue_create(ATOS_CPU, 8, 8, &queue) == ATOS_OK && atos_queue_limit(queue, 0) == ATOS_OK, "%s", atos_message());
    const atos_status status = with_failure(n, [&] { return atos_queue_restore(queue, items.data(), &given); });
    const bool done = !failed;
    std::vector<uint64_t> read(10);
    atos_queue_state state;
    CHECK(atos_queue_read(queue, read.data(), 10, &state) == ATOS_OK, "%s", atos_message());
    read.resize(state.pending);
    CHECK(read == (status == ATOS_OK ? items : std::vector<uint64_t>()), "allocation %" PRId64 ", status %d: %zu items are pending", n, int(status), read.size());
    failures += status != ATOS_OK;
    atos_queue_destroy(queue);
    if (done) break;
  }
  CHECK(failures > 0, "no failure was seen");
}
