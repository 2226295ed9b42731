// The switches of a launch for what its workers keep, donate and gather.
#include "tree.h"

namespace {

// The capacity that tasks see, of which there is one.
int64_t capacity = 0;
void see_capacity(atos_cpu_worker *worker, const void *, int64_t, const void *) { capacity = worker->capacity; }

TEST(a_push_buffer_has_the_size_that_was_asked_for) {
  Program program(see_capacity, nullptr);
  const std::pair<uint32_t, int64_t> sizes[] = {{0, 2048}, {1, 1}, {2, 1}, {8, 7}, {65537, 65536}}; // without any: one push
  for (const auto &[given, expected] : sizes) {
    Launcher<uint32_t> launcher(4);
    launcher.push(0);
    atos_launch launch = schedule(true, false, 1, 1);
    launch.worker = ATOS_CTA;
    launch.push_buffer = given;
    atos_stats stats;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
    CHECK(capacity == expected, "%" PRId64 " items", capacity);
    launch.push_buffer = 65538;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_INVALID, "no error");
    CHECK(std::string(atos_message()) == "a push buffer of 65537 items, more than 65536", "%s", atos_message());
  }
}

// Each item is a node whose children have the same priority, and is written down.
std::vector<uint64_t> order;
void run_in_order(atos_cpu_worker *worker, const void *items, int64_t n, const void *args) {
  const Tree &tree = work_of(args).tree;
  for (int64_t k = 0; k < n; ++k) {
    const uint32_t v = static_cast<const uint32_t *>(items)[k];
    order.push_back(v);
    for (uint64_t child = tree.first[v]; child < tree.first[v + 1]; ++child) {
      const uint32_t item = uint32_t(child);
      worker->push(worker, &item, 1);
    }
  }
}

// One worker runs what it pushed last first. If it keeps nothing, all items go through the queue, in whose order they run: that
// of their numbers.
TEST(a_worker_keeps_no_more_than_it_may) {
  const Tree tree(5, 3000, 4);
  Work work(tree);
  const uint64_t argument = reinterpret_cast<uint64_t>(&work);
  Program program(run_in_order, nullptr);
  uint64_t inversions[4] = {};
  for (const uint32_t most : {0, 1, 2, 3}) {
    order.clear();
    Launcher<uint32_t> launcher(4000);
    CHECK(atos_queue_set_buckets(launcher.queue, 2, 1) == ATOS_OK, "%s", atos_message());
    launcher.push(0);
    atos_launch launch = schedule(true, false, 1, 1);
    launch.worker = ATOS_CTA;
    launch.buckets = launch.argument_words = launch.threads = 1;
    launch.arguments = &argument;
    launch.local_items = most;
    atos_stats stats;
    CHECK(atos_queue_launch(launcher.queue, program.handle, &launch, &stats) == ATOS_OK, "%s", atos_message());
    CHECK(order.size() == tree.nodes, "%zu tasks ran", order.size());
    for (size_t k = 1; k < order.size(); ++k) inversions[most] += order[k] < order[k - 1];
  }
  CHECK(inversions[1] == 0, "%" PRIu64 " times a later item ran first", inversions[1]);
  CHECK(0 < inversions[2] && inversions[2] <= inversions[3] && inversions[3] < inversions[0],
        "%" PRIu64 ", %" PRIu64 " and %" PRIu64 " times", inversions[2], inversions[3], inversions[0]);
}

} // namespace
