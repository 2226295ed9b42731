// Launches that are stopped at any moment, of queues of any size: what is pending is in the order of before, up to items that had
// been taken; with barriers the interrupted round goes on first; each task runs once, and rounds are counted once.
#include <map>

#include "tree.h"

namespace {

// The tasks of round k are the numbers from k * kWidth on, `starts` of them. Every second one pushes two of the next round.
constexpr uint64_t kWidth = uint64_t(1) << 20;

struct Ladder {
  uint64_t rounds, starts;
  std::vector<std::atomic<uint32_t>> ran;
  std::vector<std::atomic<uint64_t>> ran_of_round;
  std::atomic<uint64_t> early{0};
  std::atomic<int64_t> left{0}; // tasks until one stops the launch
  uint32_t turns = 0;

  Ladder(uint64_t rounds, uint64_t starts) : rounds(rounds), starts(starts), ran(rounds * starts), ran_of_round(rounds) {}
  static uint64_t round_of(uint64_t v) { return v / kWidth; }
  static uint64_t children(uint64_t v) { return v % 2 ? 0 : 2; }
};

template <class T> void climb(atos_cpu_worker *worker, const void *items, int64_t n, const void *args) {
  Ladder &ladder = **static_cast<Ladder *const *>(args);
  for (int64_t k = 0; k < n; ++k) {
    const uint64_t v = decode(static_cast<const T *>(items)[k]), round = Ladder::round_of(v), number = v % kWidth;
    CHECK(round < ladder.rounds && number < ladder.starts, "item %" PRIu64 " was never pushed", v);
    if (round && ladder.ran_of_round[round - 1] != ladder.starts) ++ladder.early;
    ++ladder.ran[round * ladder.starts + number];
    ++ladder.ran_of_round[round];
    for (uint32_t turn = 0; turn < ladder.turns; ++turn) __asm__ volatile("");
    if (--ladder.left == 0) worker->stop(worker);
    if (round + 1 == ladder.rounds) continue;
    for (uint64_t child = 0; child < Ladder::children(v); ++child) push<T>(worker, (round + 1) * kWidth + number + child);
  }
}

template <class T> std::vector<uint64_t> pending_in(atos_queue *queue, atos_queue_state *state) {
  uint64_t n = 0;
  CHECK(atos_queue_pending(queue, &n) == ATOS_OK, "%s", atos_message());
  std::vector<T> items(n);
  CHECK(atos_queue_read(queue, items.data(), n, state) == ATOS_OK && state->pending == n, "%s", atos_message());
  std::vector<uint64_t> numbers;
  for (const T &item : items) numbers.push_back(decode(item));
  return numbers;
}

struct Seen {
  uint64_t launches, interrupted, in_order; // in_order: pairs of items that were looked at
};

struct Sizes {
  uint64_t capacity, limit; // a limit of 0: as much as there is memory for
};

// One worker takes the tasks in the order of their numbers, so that the order of all that is pending is known.
template <class T> Seen stopped_at_any_moment(bool persistent, bool barrier, uint32_t blocks, Sizes sizes, uint64_t seed) {
  constexpr uint64_t kRounds = 5, kStarts = 200;
  check::Random random(seed);
  Program program(climb<T>, nullptr);
  Ladder ladder(kRounds, kStarts);
  const std::string which = name(persistent, barrier, 1, blocks) + ", capacity " + std::to_string(sizes.capacity) + ", seed " + std::to_string(seed);
  atos_queue *queue = nullptr;
  CHECK(atos_queue_create(ATOS_CPU, sizes.capacity, sizeof(T), &queue) == ATOS_OK && atos_queue_limit(queue, sizes.limit) == ATOS_OK, "%s", atos_message());
  std::vector<T> first;
  for (uint64_t v = 0; v < kStarts; ++v) first.push_back(encode<T>(v));
  CHECK(atos_queue_push(queue, first.data(), first.size()) == ATOS_OK, "%s", atos_message());
  const Ladder *argument = &ladder;
  const uint64_t word = reinterpret_cast<uint64_t>(argument);
  uint64_t rounds = 0, interrupted = 0, launches = 0, in_order = 0;
  for (;; ++launches) {
    atos_launch launch = schedule(persistent, barrier, 1 + uint32_t(random.below(20)), blocks);
    launch.argument_words = launch.threads = 1;
    launch.arguments = &word;
    launch.worker = ATOS_CTA;
    const bool by_clock = random.below(3) == 0;
    ladder.turns = by_clock ? 3000 : 0;
    launch.timeout = by_clock ? 1e-6 * double(1 + random.below(1500)) : 0;
    ladder.left = by_clock ? INT64_MAX : int64_t(1 + random.below(150));
    atos_stats stats;
    atos_status status = atos_queue_launch(queue, program.handle, &launch, &stats);
    CHECK(status == ATOS_OK || status == ATOS_STOPPED || status == ATOS_QUEUE_FULL, "%s: status %d, %s", which.c_str(), int(status), atos_message());
    atos_queue_state state;
    const std::vector<uint64_t> pending = pending_in<T>(queue, &state);
    rounds += stats.rounds;
    interrupted += state.level != 0;
    CHECK(stats.lost == 0 && stats.pending == pending.size(), "%s: %zu tasks pending", which.c_str(), pending.size());
    std::map<uint64_t, uint64_t> there;
    for (const uint64_t v : pending) ++there[v];
    for (uint64_t v = 0; v < kRounds * kWidth; v += v % kWidth + 1 == kStarts ? kWidth - kStarts + 1 : 1) {
      const uint64_t round = Ladder::round_of(v), number = v % kWidth;
      const bool pushed = round == 0 || ladder.ran[(round - 1) * kStarts + number / 2 * 2] != 0;
      const uint64_t ran = ladder.ran[round * kStarts + number], is_there = there.count(v) ? there[v] : 0;
      CHECK(ran + is_there == pushed, "%s: task %" PRIu64 " was pushed %d times, ran %" PRIu64 " times and is pending %" PRIu64 " times",
            which.c_str(), v, int(pushed), ran, is_there);
    }
    if (barrier) {
      uint64_t of_round = 0;
      while (of_round < pending.size() && Ladder::round_of(pending[of_round]) == Ladder::round_of(pending[0])) ++of_round;
      CHECK(state.level == of_round || (state.level == 0 && of_round == pending.size()), "%s: %" PRIu64 " tasks are left of a round, and %" PRIu64 " are said to be",
            which.c_str(), of_round, state.level);
      for (uint64_t k = 1; k < state.level; ++k)
        CHECK(blocks > 1 && Ladder::round_of(pending[0]) ? true : pending[k - 1] < pending[k], "%s: of an interrupted round %" PRIu64 " comes after %" PRIu64,
              which.c_str(), pending[k], pending[k - 1]);
    }
    for (uint64_t k = 1; blocks == 1 && k < pending.size(); ++k) {
      CHECK(pending[k - 1] < pending[k], "%s: %" PRIu64 " comes after %" PRIu64, which.c_str(), pending[k], pending[k - 1]);
      ++in_order;
    }
    if (status == ATOS_QUEUE_FULL) {
      uint64_t capacity, limit;
      atos_queue_capacity(queue, &capacity, &limit);
      CHECK(atos_queue_resize(queue, std::max<uint64_t>(pending.size() + 1 + random.below(50), capacity)) == ATOS_OK, "%s", atos_message());
    }
    if (pending.empty()) break;
    if (random.below(8) == 0) { // it is copied, as by a checkpoint
      atos_queue *other = nullptr;
      std::vector<T> items;
      for (const uint64_t v : pending) items.push_back(encode<T>(v));
      const uint64_t capacity = std::max<uint64_t>(sizes.capacity, items.size());
      CHECK(atos_queue_create(ATOS_CPU, capacity, sizeof(T), &other) == ATOS_OK, "%s", atos_message());
      CHECK(atos_queue_limit(other, sizes.limit ? capacity : 0) == ATOS_OK, "%s", atos_message());
      CHECK(atos_queue_restore(other, items.data(), &state) == ATOS_OK, "%s", atos_message());
      atos_queue_destroy(queue);
      queue = other;
    }
  }
  CHECK(ladder.early == 0 || !barrier, "%s: %" PRIu64 " tasks ran early", which.c_str(), ladder.early.load());
  CHECK(!barrier || rounds - interrupted == kRounds, "%s: %" PRIu64 " rounds, of which %" PRIu64 " were interrupted, for %d", which.c_str(), rounds,
        interrupted, int(kRounds));
  atos_queue_destroy(queue);
  return {launches, interrupted, in_order};
}

template <class T> void stopped_in_any_schedule() {
  uint64_t seed = sizeof(T);
  Seen all{};
  for (const bool persistent : {true, false})
    for (const bool barrier : {true, false})
      for (const uint32_t blocks : {1u, 3u})
        for (const Sizes sizes : {Sizes{200, 200}, Sizes{230, 230}, Sizes{1000, 1000}, Sizes{200, 0}})
          for (int turn = 0; turn < 20; ++turn) {
            const Seen seen = stopped_at_any_moment<T>(persistent, barrier, blocks, sizes, ++seed);
            all.launches += seen.launches, all.interrupted += seen.interrupted, all.in_order += seen.in_order;
          }
  CHECK(all.launches > 1000 && all.interrupted > 300 && all.in_order > 50000, "%" PRIu64 " launches, %" PRIu64 " interrupted rounds, %" PRIu64 " pairs in order",
        all.launches, all.interrupted, all.in_order);
}

} // namespace

TEST(stops_keep_the_order_of_items_of_4_bytes) { stopped_in_any_schedule<uint32_t>(); }
TEST(stops_keep_the_order_of_items_of_16_bytes) { stopped_in_any_schedule<Pair>(); }
TEST(stops_keep_the_order_of_items_of_32_bytes) { stopped_in_any_schedule<Large>(); }
