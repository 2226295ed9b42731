// Items that the host sends through an inbox while workers run.
#include <thread>
#include <unistd.h>

#include "host/inbox.h"
#include "protocol/inbox.cuh"
#include "tree.h"

namespace {

struct HostInbox {
  atos_inbox *handle = nullptr;
  explicit HostInbox(uint32_t item_bytes) {
    CHECK(atos_inbox_create(ATOS_CPU, item_bytes, &handle) == ATOS_OK, "%s", atos_message());
  }
  HostInbox(const HostInbox &) = delete;
  ~HostInbox() { atos_inbox_destroy(handle); }

  void wait_until_begun() {
    atos_status status;
    while ((status = atos_inbox_begun(handle)) == ATOS_HELD) {}
    CHECK(status == ATOS_OK, "%s", atos_message());
  }
  template <class T> void push(const std::vector<T> &items) {
    for (uint64_t done = 0, some; done < items.size(); done += some) {
      const atos_status status = atos_inbox_push(handle, &items[done], items.size() - done, &some);
      CHECK(status == ATOS_OK || (status == ATOS_HELD && some == 0), "%s", atos_message());
    }
  }
  void close() { CHECK(atos_inbox_close(handle) == ATOS_OK, "%s", atos_message()); }
};

atos_launch with_inbox(const HostInbox &inbox, uint32_t fetch, uint32_t blocks, bool idle = false) {
  atos_launch launch = schedule(true, false, fetch, blocks, idle);
  launch.inbox = inbox.handle;
  return launch;
}

// As many trees as nodes of one, whose roots come from two threads, some of them in pieces larger than an inbox.
template <class T> void what_is_sent_runs(uint64_t capacity) {
  const Tree tree(5, 5, 3);
  for (const uint32_t blocks : {1u, 3u}) {
    Work work(tree);
    Launcher<T> launcher(capacity);
    CHECK(atos_queue_limit(launcher.queue, 0) == ATOS_OK, "%s", atos_message());
    HostInbox inbox(sizeof(T));
    atos_stats stats;
    std::thread workers([&] {
      const atos_status status = launcher.launch(work, with_inbox(inbox, 8, blocks, true), &stats);
      CHECK(status == ATOS_OK, "%s", atos_message());
    });
    inbox.wait_until_begun();
    std::vector<std::thread> threads;
    for (const size_t piece : {1, 40000})
      threads.emplace_back([&inbox, piece] {
        for (size_t sent = 0; sent < 40000; sent += piece) {
          if (piece == 1 && sent == 500) return;
          inbox.push(std::vector<T>(piece, encode<T>(0)));
        }
      });
    for (std::thread &thread : threads) thread.join();
    inbox.close();
    workers.join();
    CHECK(stats.tasks_run == 40500 * tree.nodes, "%" PRIu64 " tasks", stats.tasks_run);
    for (uint64_t v = 0; v < tree.nodes; ++v)
      CHECK(work.seen[v] == 40500, "task %" PRIu64 " ran %u times", v, work.seen[v].load());
    CHECK(launcher.pending() == 0 && stats.pending == 0, "%" PRIu64 " pending", stats.pending);
  }
}

TEST(what_is_sent_runs_with_4_bytes) { what_is_sent_runs<uint32_t>(10000); }
TEST(what_is_sent_runs_with_8_bytes) { what_is_sent_runs<uint64_t>(100); }
TEST(what_is_sent_runs_with_16_bytes) { what_is_sent_runs<Pair>(3); }
TEST(what_is_sent_runs_with_32_bytes) { what_is_sent_runs<Large>(1000); }

std::vector<uint64_t> handed_over; // plain memory

void read_memory(atos_cpu_worker *, const void *items, int64_t n, const void *) {
  for (int64_t k = 0; k < n; ++k) {
    const uint32_t v = static_cast<const uint32_t *>(items)[k];
    CHECK(handed_over[v] == v + 1, "item %u sees %" PRIu64, v, handed_over[v]);
  }
}

// A task sees what its sender wrote before, and the caller what tasks wrote, also where nothing else orders them.
TEST(an_inbox_hands_memory_over) {
  handed_over.assign(3000, 0);
  Program program(read_memory, nullptr);
  Launcher<uint32_t> launcher(5000);
  HostInbox inbox(4);
  std::thread workers([&] {
    const atos_launch launch = with_inbox(inbox, 4, 2);
    atos_stats stats;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
    CHECK(stats.tasks_run == handed_over.size(), "%" PRIu64 " tasks", stats.tasks_run);
  });
  inbox.wait_until_begun();
  for (uint32_t v = 0; v < handed_over.size(); ++v) {
    handed_over[v] = v + 1;
    inbox.push(std::vector<uint32_t>{v});
  }
  inbox.close();
  workers.join();
}

void again(atos_cpu_worker *worker, const void *items, int64_t n, const void *) {
  for (int64_t k = 0; k < n; ++k) push<uint32_t>(worker, static_cast<const uint32_t *>(items)[k]);
}

void nothing(atos_cpu_worker *, const void *, int64_t, const void *) {}

// What is sent to a launch that is stopped runs or stays, in a queue that has no room for it too.
TEST(what_nobody_took_is_in_the_queue) {
  Program program(again, nullptr), last(nothing, nullptr);
  for (const uint64_t most : {10, 10000}) {
    Launcher<uint32_t> launcher(10);
    CHECK(atos_queue_limit(launcher.queue, most) == ATOS_OK, "%s", atos_message());
    HostInbox inbox(4);
    std::thread workers([&] {
      const atos_launch launch = with_inbox(inbox, 4, 2);
      atos_stats stats;
      const atos_status status = atos_queue_launch(launcher.queue, program.handle, &launch, &stats);
      CHECK(status == (most == 10 ? ATOS_QUEUE_FULL : ATOS_STOPPED), "status %d, %s", int(status), atos_message());
      CHECK(stats.pending == 1000 && stats.lost == 0, "%" PRIu64 " pending, %" PRIu64 " lost", stats.pending, stats.lost);
    });
    inbox.wait_until_begun();
    std::vector<uint32_t> sent(1000), found(1000);
    for (uint32_t v = 0; v < sent.size(); ++v) sent[v] = v;
    inbox.push(sent);
    atos_inbox_stop(inbox.handle);
    workers.join();
    atos_queue_state state;
    CHECK(atos_queue_read(launcher.queue, found.data(), found.size(), &state) == ATOS_OK, "%s", atos_message());
    CHECK(state.pending == sent.size(), "%" PRIu64 " are there", state.pending);
    std::sort(found.begin(), found.end());
    CHECK(found == sent, "others are there than were sent");
    const atos_launch launch = schedule(true, false, 4, 2);
    atos_stats stats;
    CHECK(atos_queue_limit(launcher.queue, 10000) == ATOS_OK, "%s", atos_message());
    CHECK(atos_queue_launch(launcher.queue, last.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
    CHECK(stats.tasks_run == sent.size(), "%" PRIu64 " ran", stats.tasks_run);
  }
}

TEST(an_inbox_takes_nothing_after_its_end) {
  const Tree tree(1, 1, 0);
  Work work(tree);
  const uint32_t item = 0;
  uint64_t some;
  for (const int end : {0, 1, 2}) { // closed, stopped, never begun
    Launcher<uint32_t> launcher(10);
    HostInbox inbox(4);
    CHECK(atos_inbox_begun(inbox.handle) == ATOS_HELD, "an inbox begins without its launch");
    atos_launch launch = with_inbox(inbox, 4, end == 2 ? 1000000 : 2);
    atos_stats stats;
    if (end == 0) inbox.close();
    if (end == 1) atos_inbox_stop(inbox.handle);
    const atos_status status = launcher.launch(work, launch, &stats);
    CHECK(status == (end == 2 ? ATOS_TOO_MANY : ATOS_OK), "status %d, %s", int(status), atos_message());
    CHECK(atos_inbox_begun(inbox.handle) == (end == 2 ? ATOS_CLOSED : ATOS_OK), "%s", atos_message());
    CHECK(atos_inbox_push(inbox.handle, &item, 1, &some) == ATOS_CLOSED && some == 0, "it takes an item");
    CHECK(launcher.pending() == 0, "it is in the queue");
  }
}

// Workers read a stop beside the number of items, whatever is sent after it.
TEST(a_stop_stays_in_the_ring) {
  HostInbox inbox(4);
  const auto sent = [&] { return atos::load_system(&inbox.handle->memory.ring->sent); };
  inbox.push(std::vector<uint32_t>{1, 2});
  CHECK(sent() == 2, "%" PRIx64, sent());
  atos_inbox_stop(inbox.handle);
  CHECK(sent() == (2 | atos::kStopSent), "%" PRIx64, sent());
  inbox.push(std::vector<uint32_t>{3});
  CHECK(sent() == (3 | atos::kStopSent), "%" PRIx64, sent());
  inbox.close();
  CHECK(sent() == (3 | atos::kStopSent | atos::kClosed), "%" PRIx64, sent());
}

// A launch that is not closed goes on without items, and none of its workers leaves.
TEST(an_open_inbox_keeps_the_launch) {
  const Tree tree(1, 1, 0);
  Work work(tree);
  Launcher<uint32_t> launcher(10);
  launcher.push(0);
  HostInbox inbox(4);
  std::atomic<bool> ended{false};
  std::thread workers([&] {
    atos_stats stats;
    const atos_status status = launcher.launch(work, with_inbox(inbox, 1, 3), &stats);
    CHECK(status == ATOS_OK && stats.tasks_run == 2, "%" PRIu64 " tasks, %s", stats.tasks_run, atos_message());
    ended = true;
  });
  while (work.seen[0] < 1) std::this_thread::yield();
  usleep(20000);
  CHECK(!ended, "the launch ended with its inbox open");
  inbox.push(std::vector<uint32_t>{0});
  while (work.seen[0] < 2) std::this_thread::yield();
  usleep(20000);
  CHECK(!ended, "the launch ended with its inbox open");
  inbox.close();
  workers.join();
}

// One worker, whose items never end, takes those that are sent to it.
TEST(busy_workers_look) {
  alarm(60);
  Program program(again, nullptr);
  Launcher<uint32_t> launcher(100);
  launcher.push(0);
  HostInbox inbox(4);
  std::thread workers([&] {
    const atos_launch launch = with_inbox(inbox, 4, 1);
    atos_stats stats;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_STOPPED, "%s", atos_message());
    CHECK(stats.pending == 3, "%" PRIu64 " pending", stats.pending);
  });
  inbox.wait_until_begun();
  inbox.push(std::vector<uint32_t>{1, 2});
  while (atos_inbox_waiting(inbox.handle)) usleep(1000);
  atos_inbox_stop(inbox.handle);
  workers.join();
}

TEST(an_inbox_of_another_kind_is_refused) {
  const Tree tree(1, 1, 0);
  Work work(tree);
  for (const int wrong : {0, 1, 2}) {
    Launcher<uint32_t> launcher(10);
    HostInbox inbox(wrong == 0 ? 8 : 4);
    atos_launch launch = schedule(wrong != 1, wrong == 2, 1, 1);
    launch.inbox = inbox.handle;
    atos_stats stats;
    CHECK(launcher.launch(work, launch, &stats) == ATOS_INVALID, "%s", atos_message());
  }
}

} // namespace
