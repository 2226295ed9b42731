// Tasks that push into another queue: each item arrives once, whatever the capacities; what does not fit is reported.
#include <thread>

#include "protocol/receiver.cuh"
#include "tree.h"

namespace {

void ok(atos_status status) { CHECK(status == ATOS_OK, "status %d: %s", int(status), atos_message()); }

// A tree of which each node is pushed into the receiver too, as an item of type R.
template <class R> void run_and_send(atos_cpu_worker *worker, const void *items, int64_t n, const void *args) {
  const uint64_t *words = static_cast<const uint64_t *>(args);
  const atos::Receiver *receiver = reinterpret_cast<const atos::Receiver *>(words + 1);
  run<uint32_t>(worker, items, n, args);
  for (int64_t k = 0; k < n; ++k) {
    const R item = encode<R>(static_cast<const uint32_t *>(items)[k]);
    receiver->push(receiver, &item);
  }
}

template <class R> struct Sender : Launcher<uint32_t> {
  Program sending{run_and_send<R>, nullptr};
  atos_queue *receiver = nullptr;

  Sender(uint64_t capacity, uint64_t room) : Launcher<uint32_t>(capacity) {
    ok(atos_queue_create(ATOS_CPU, room, sizeof(R), &receiver));
    ok(atos_queue_limit(receiver, room));
  }
  ~Sender() { atos_queue_destroy(receiver); }

  atos_status send(Work &work, atos_launch launch, atos_stats *stats) {
    uint64_t words[1 + ATOS_RECEIVER_WORDS] = {reinterpret_cast<uint64_t>(&work)};
    launch.worker = ATOS_CTA;
    launch.threads = 1;
    launch.argument_words = 1 + ATOS_RECEIVER_WORDS;
    launch.arguments = words;
    launch.num_receivers = 1;
    launch.receivers[0] = {receiver, 1};
    return atos_queue_launch(queue, sending.handle, &launch, stats);
  }
  std::vector<uint32_t> received(uint64_t nodes) {
    uint64_t n = 0;
    ok(atos_queue_pending(receiver, &n));
    std::vector<R> items(n);
    atos_queue_state state;
    ok(atos_queue_read(receiver, items.data(), n, &state));
    std::vector<uint32_t> times(nodes);
    for (const R &item : items) {
      CHECK(decode(item) < nodes, "item %" PRIu64 " was never pushed", uint64_t(decode(item)));
      ++times[decode(item)];
    }
    return times;
  }
};

template <class R> void each_item_arrives_once() {
  const Tree tree(3, 700, 3);
  for (const uint64_t room : {uint64_t(700), uint64_t(3000)})
    for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
      Sender<R> sender(40, room);
      ok(atos_queue_limit(sender.queue, 0));      // it grows
      for (uint32_t turn = 0; turn < 2; ++turn) { // the second one finds the slots of the first one used
        Work work(tree);
        atos_stats stats;
        sender.push(0);
        ok(sender.send(work, schedule(persistent, barrier, fetch, blocks), &stats));
        CHECK(stats.tasks_run == tree.nodes && stats.tasks_pushed == tree.nodes - 1, "%s: %" PRIu64 " ran, %" PRIu64 " pushed",
              name(persistent, barrier, fetch, blocks).c_str(), stats.tasks_run, stats.tasks_pushed);
        for (const uint32_t times : sender.received(tree.nodes))
          CHECK(times == 1, "%s: an item arrived %u times", name(persistent, barrier, fetch, blocks).c_str(), times);
        ok(atos_queue_clear(sender.receiver));
      }
    });
}

} // namespace

TEST(each_item_of_4_bytes_arrives_once) { each_item_arrives_once<uint32_t>(); }
TEST(each_item_of_8_bytes_arrives_once) { each_item_arrives_once<uint64_t>(); }
TEST(each_item_of_16_bytes_arrives_once) { each_item_arrives_once<Pair>(); }

TEST(a_receiver_grows) {
  const Tree tree(5, 2000, 3);
  for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
    Sender<uint32_t> sender(3000, 7);
    ok(atos_queue_limit(sender.receiver, 0));
    Work work(tree);
    atos_stats stats;
    sender.push(0);
    ok(sender.send(work, schedule(persistent, barrier, fetch, blocks), &stats));
    CHECK(stats.tasks_run == tree.nodes, "%" PRIu64 " tasks", stats.tasks_run);
    uint64_t capacity, limit;
    atos_queue_capacity(sender.receiver, &capacity, &limit);
    CHECK(capacity >= tree.nodes, "a capacity of %" PRIu64, capacity);
    for (const uint32_t times : sender.received(tree.nodes)) CHECK(times == 1, "an item arrived %u times", times);
  });
}

TEST(a_receiver_that_is_full_is_reported_and_nothing_is_lost) {
  const Tree tree(5, 2000, 3);
  for_all_schedules([&](bool persistent, bool barrier, uint32_t fetch, uint32_t blocks) {
    Sender<uint64_t> sender(3000, 100);
    Work work(tree);
    atos_stats stats;
    sender.push(0);
    const std::string where = name(persistent, barrier, fetch, blocks);
    CHECK(sender.send(work, schedule(persistent, barrier, fetch, blocks), &stats) == ATOS_QUEUE_FULL, "%s", where.c_str());
    CHECK(stats.full_receiver == 1 && stats.lost == 0, "%s: receiver %" PRIu64, where.c_str(), stats.full_receiver);
    CHECK(stats.tasks_run < tree.nodes && stats.pending == sender.pending(), "%s: %" PRIu64 " ran", where.c_str(),
          stats.tasks_run);
    CHECK(sender.send(work, schedule(persistent, barrier, fetch, blocks), &stats) == ATOS_QUEUE_FULL, "%s", where.c_str());
    ok(atos_queue_resize(sender.receiver, 5000));
    ok(sender.send(work, schedule(persistent, barrier, fetch, blocks), &stats));
    for (const uint32_t times : sender.received(tree.nodes)) CHECK(times == 1, "%s: it arrived %u times", where.c_str(), times);
  });
}

// Items left of an interrupted round stay a round of their own, also where the receiver has no room for more.
TEST(a_receiver_keeps_its_interrupted_round) {
  const Tree tree(5, 300, 3);
  for (const uint64_t room : {uint64_t(50), uint64_t(1000)}) {
    Sender<uint32_t> sender(3000, room);
    std::vector<uint32_t> items;
    for (uint32_t v = 0; v < 40; ++v) items.push_back(v);
    const atos_queue_state before{40, 25, 3, 40};
    ok(atos_queue_restore(sender.receiver, items.data(), &before));
    Work work(tree);
    atos_stats stats;
    sender.push(0);
    CHECK(sender.send(work, schedule(true, false, 7, 2), &stats) == (room < 300 ? ATOS_QUEUE_FULL : ATOS_OK), "%s", atos_message());
    atos_queue_state state;
    std::vector<uint32_t> after(40);
    ok(atos_queue_read(sender.receiver, after.data(), after.size(), &state));
    CHECK(state.level == 25 && state.pending > 40 && after == items, "%" PRIu64 " of %" PRIu64 " items are left of the round", state.level, state.pending);
  }
}

TEST(receivers_that_make_no_sense_are_refused) {
  const Tree tree(1, 10, 2);
  Work work(tree);
  atos_stats stats;
  Sender<uint32_t> sender(10, 10);
  atos_queue *receiver = sender.receiver;
  sender.receiver = sender.queue;
  CHECK(sender.send(work, schedule(true, false, 1, 1), &stats) == ATOS_INVALID, "a queue is its own receiver");
  sender.receiver = receiver;
  ok(atos_queue_set_buckets(receiver, 4, 1));
  CHECK(sender.send(work, schedule(true, false, 1, 1), &stats) == ATOS_INVALID, "a receiver has buckets");
}

// Two queues whose tasks push into each other, launched by two threads: what one sends, the other sends back.
TEST(launches_that_push_into_each_other_wait_for_each_other) {
  const Tree tree(7, 1, 0);
  Sender<uint32_t> one(1000, 1), other(1000, 1);
  atos_queue *receivers[] = {one.receiver, other.receiver};
  one.receiver = other.queue;
  other.receiver = one.queue;
  const auto work = [&](Sender<uint32_t> &sender) {
    for (uint32_t turn = 0; turn < 200; ++turn) {
      Work done(tree);
      atos_stats stats;
      sender.push(0);
      ok(sender.send(done, schedule(true, false, 7, 2), &stats));
    }
  };
  std::thread thread([&] { work(other); });
  work(one);
  thread.join();
  one.receiver = receivers[0];
  other.receiver = receivers[1];
}
