// A queue whose items get kinds, or others: all that was in the queue before is in the one that takes its place.
#include <array>
#include <numeric>

#include "tree.h"

namespace {

using Kinds = std::array<uint8_t, 256>;

Kinds same_kinds() {
  Kinds kinds;
  std::iota(kinds.begin(), kinds.end(), uint8_t(0));
  return kinds;
}

void ok(atos_status status) { CHECK(status == ATOS_OK, "status %d: %s", int(status), atos_message()); }

template <class T> struct State : atos_queue_state {
  std::vector<T> items;
  explicit State(atos_queue *queue, uint64_t room = 1000) : items(room) {
    ok(atos_queue_read(queue, items.data(), room, this));
    items.resize(pending);
  }
};

uint64_t with_kind(uint64_t item, uint64_t kind) { return item | kind << 56; }

} // namespace

TEST(items_without_kinds_get_one) {
  atos_queue *queue, *next = nullptr;
  ok(atos_queue_create(ATOS_CPU, 10, 4, &queue));
  ok(atos_queue_limit(queue, 77));
  const uint32_t items[] = {5, ~0u, 0};
  ok(atos_queue_push(queue, items, 3));
  Kinds kinds = same_kinds();
  kinds[0] = 7;
  ok(atos_queue_convert(queue, 8, kinds.data(), &next));
  const State<uint64_t> state(next);
  CHECK(state.items == (std::vector<uint64_t>{with_kind(5, 7), with_kind(~0u, 7), with_kind(0, 7)}), "%zu items",
        state.items.size());
  uint64_t capacity, limit;
  atos_queue_capacity(next, &capacity, &limit);
  CHECK(capacity == 10 && limit == 77, "capacity %" PRIu64 ", limit %" PRIu64, capacity, limit);
  CHECK(atos_queue_push(queue, items, 1) == ATOS_REPLACED, "the queue before takes items");
  uint64_t n;
  CHECK(atos_queue_pending(queue, &n) == ATOS_REPLACED, "the queue before has items");
  CHECK(atos_queue_convert(next, 4, kinds.data(), &queue) == ATOS_INVALID, "items became smaller");
  atos_queue_destroy(queue);
  atos_queue_destroy(next);
}

TEST(kinds_get_other_numbers) {
  atos_queue *queue, *next = nullptr, *last = nullptr;
  ok(atos_queue_create(ATOS_CPU, 4, 8, &queue));
  const uint64_t items[] = {with_kind(1, 0), with_kind(2, 1), with_kind(3, 2), with_kind(4, 1), with_kind(5, 0)};
  const atos_queue_state given{5, 2, 30, 40}; // more than the capacity, within a level
  ok(atos_queue_restore(queue, items, &given));
  Kinds kinds = same_kinds();
  kinds[0] = 2, kinds[1] = ATOS_NO_KIND, kinds[2] = 0;
  ok(atos_queue_convert(queue, 8, kinds.data(), &next));
  CHECK(!next, "an item that is waiting has no kind");
  CHECK(State<uint64_t>(queue).items == std::vector<uint64_t>(items, items + 5), "something changed nevertheless");
  kinds[1] = 1;
  ok(atos_queue_convert(queue, 8, kinds.data(), &next));
  const State<uint64_t> state(next);
  const std::vector<uint64_t> expected{with_kind(1, 2), with_kind(2, 1), with_kind(3, 0), with_kind(4, 1), with_kind(5, 2)};
  CHECK(state.items == expected, "%zu items", state.items.size());
  CHECK(state.level == 2 && state.tasks_run == 30 && state.tasks_pushed == 40, "level %" PRIu64, state.level);
  atos_queue_destroy(queue); // what they share lives on
  ok(atos_queue_convert(next, 8, same_kinds().data(), &last));
  const State<uint64_t> same(last);
  CHECK(same.items == expected && same.level == 2 && same.tasks_run == 30, "%zu items", same.items.size());
  atos_queue_destroy(next);
  atos_queue_destroy(last);
}

TEST(kinds_are_counted) {
  atos_queue *queue;
  ok(atos_queue_create(ATOS_CPU, 100, 8, &queue));
  const auto run = [](atos_cpu_worker *worker, const void *items, int64_t n, const void *) {
    for (int64_t k = 0; k < n; ++k) ++worker->ran_by[static_cast<const uint64_t *>(items)[k] >> 56];
  };
  atos_program *program;
  ok(atos_program_native(
      reinterpret_cast<uint64_t>(static_cast<void (*)(atos_cpu_worker *, const void *, int64_t, const void *)>(run)), 0, 0, 0,
      &program));
  for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
    for (uint64_t k = 0; k < 60; ++k) {
      const uint64_t item = with_kind(k, k % 4 == 0 ? 7 : k % 2);
      ok(atos_queue_push(queue, &item, 1));
    }
    atos_launch launch = schedule(persistent, barrier, fetch, blocks);
    launch.worker = ATOS_CTA;
    launch.threads = 1;
    launch.kinds = 8;
    atos_stats stats;
    ok(atos_queue_launch(queue, program, &launch, &stats));
    const uint64_t *by = stats.tasks_run_by;
    CHECK(by[0] == 15 && by[1] == 30 && by[7] == 15 && stats.tasks_run == 60, "%s: %" PRIu64 ", %" PRIu64 ", %" PRIu64,
          name(persistent, barrier, fetch, blocks).c_str(), by[0], by[1], by[7]);
  });
  atos_program_unload(program);
  atos_queue_destroy(queue);
}
