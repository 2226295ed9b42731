// The explored program: a few workers of one thread each run csrc/device/group_worker.cuh or thread_worker.cuh over a small ring, within the bounds that
// the command line tells (bounds.hpp).
//
// The rules: no worker leaves early; every task runs, and none twice; what is pending after a stop is there once; with a barrier,
// a level runs after the one before; a task sees what was written before it was pushed; a check that fails is reported; and the
// end can be reached from anywhere.
#include "protocol/atomic.cuh"
#include "device.hpp"
#include "device/group_worker.cuh"
#include "device/thread_worker.cuh"
#include "far.hpp"
#include "protocol/inbox.cuh"

using namespace atos;

namespace {

using model::bounds, model::first_child, model::level, model::now, model::parent, model::set;
constexpr unsigned kSpill = 8, kMostSlots = 8, kMostRings = 3, kMostNodes = 8;
const unsigned &kNodes = bounds.nodes; // those after it are not there

struct World {
  Counters counters{};
  Slot<BYTES> slots[kMostSlots]{}, more[2 * kMostSlots]{};
  SpilledItem<BYTES> spill[kSpill]{};
  SplitItem split_items[kSplitItems]{};
  uint64_t ran[kMostNodes]{}; // a bit for each iteration
  model::FarMemory far{};
  uint64_t aside[kMostNodes]{}, written[kMostNodes]{};
  uint64_t halted = 0; // 1: a task has stopped the launch
  uint64_t waited = 0; // times that tasks have pushed themselves again
  uint64_t calls = 0;  // of the function between rounds
  Inbox inbox{}; // its padding has room for more items
  uint64_t provided[kMostRings + 1]{}; // 1: there is memory for the ring after so many growths
  uint64_t size = 0, first_end = 0, ran_before = 0, launches = 0, stops = 0; // the host's; stops: those that it still asks for
} world;

// Whether barriers keep the order of two tasks. With buckets they run in the order of these, for no task pushes to a lower one.
bool comes_before(unsigned u, unsigned v) { return bounds.buckets ? bounds.levels[u] < bounds.levels[v] : level(u) < level(v); }
bool is_flat(unsigned v) { return !bounds.nested || bounds.flat >> v & 1; }
unsigned length(unsigned v) { return !is_flat(v) ? std::max(bounds.children[v], bounds.longs >> v & 1 ? bounds.long_from : 1u) : 1; }

bool has_run(unsigned v) { return now(world.ran[v]) == (uint64_t(1) << length(v)) - 1; }
unsigned failed() { // tasks whose check failed
  unsigned n = 0;
  for (unsigned v = 0; v < kNodes; ++v) n += (bounds.fails >> v & 1) && has_run(v);
  return n;
}
unsigned number_ran() {
  unsigned n = 0;
  for (unsigned v = 0; v < kNodes; ++v) n += has_run(v);
  return n;
}

// A worker of one thread, which may have to behave as if it were one of several warps.
struct Group : Warp {
  static bool has_more_warps() { return bounds.cta; }
};
using Worker1 = GroupWorker<Group, BYTES>;
using Threads1 = ThreadWorkers<BYTES>;
SharedLayout layout_of(const Launch &launch) { return bounds.threads ? Threads1::layout(launch) : Worker1::layout(launch); }

CompletionRecord record;

Launch launch() {
  Launch launch{};
  launch.counters = &world.counters;
  launch.slots = world.slots;
  launch.more = world.more;
  launch.spill = world.spill;
  launch.split_items = world.split_items;
  launch.size = now(world.size);
  launch.reciprocal = ~uint64_t(0) / launch.size;
  launch.spill_size = kSpill;
  launch.round_end = now(world.first_end);
  launch.record = &record;
  launch.fetch = bounds.fetch;
  while (bounds.grows && launch.size << (launch.growths + 1) <= bounds.max_capacity) ++launch.growths;
  launch.workers = bounds.workers;
  launch.buffer = bounds.buffer;
  launch.local_items = bounds.switched_off ? 0 : bounds.fetch / 2 + 1;
  launch.shares = !bounds.switched_off;
  if (bounds.buckets) {
    launch.far = world.far.words;
    launch.buckets = bounds.buckets;
    launch.blocks = bounds.blocks;
    launch.directory = model::FarMemory::directory();
    launch.far_at = layout_of(launch).far;
    launch.inverse_delta = 1;
  }
  if (bounds.newest) {
    launch.stacks = reinterpret_cast<unsigned char *>(model::machine.scratch) + sizeof model::machine.scratch - bounds.newest * sizeof(Item<BYTES>);
    launch.stack_room = bounds.newest;
    launch.far_at = layout_of(launch).far;
  }
  launch.persistent = 1;
  launch.time_limit = bounds.timed;
  launch.inbox = &world.inbox;
  launch.barrier = bounds.barrier;
  return launch;
}

// Items, slots and the spill area as one word each, or some: of an item, the words after the first one follow from it. The first
// has the kind, if tasks are of several, whose items have one word.
uint64_t item_word(uint64_t v) { return v | uint64_t(bounds.flat >> v & 1) << 56; }
uint64_t later_word(uint64_t v, unsigned k) { return v + 16 * k; }
Item<BYTES> item_of(uint64_t v) {
  Item<BYTES> item{};
  const uint64_t word = item_word(v);
  std::memcpy(&item, &word, std::min(sizeof item, sizeof word));
  for (unsigned k = 1; k < BYTES / 8; ++k) reinterpret_cast<uint64_t *>(&item)[k] = later_word(v, k);
  return item;
}
unsigned node_of(const void *item) {
  unsigned v;
  std::memcpy(&v, item, sizeof v);
  for (unsigned k = 1; k < BYTES / 8; ++k)
    if (static_cast<const uint64_t *>(item)[k] != later_word(v, k)) model::fail("an item with the words of another");
  return v;
}
constexpr unsigned kSlotWords = sizeof(Slot<BYTES>) / 8; // the item first, the sequence number last; 4-byte items share a word with it
uint64_t *word_of(Slot<BYTES> &slot, unsigned word) { return reinterpret_cast<uint64_t *>(&slot) + word; }
uint64_t sequence_in(Slot<BYTES> &slot) { return now(*word_of(slot, kSlotWords - 1)) >> (BYTES == 4 ? 32 : 0); }
unsigned node_in(Slot<BYTES> &slot) { return unsigned(now(*word_of(slot, 0))); }
void fill_slot(Slot<BYTES> &slot, uint64_t sequence, uint64_t item) {
  set(*word_of(slot, 0), item);
  for (unsigned k = 1; k + 1 < kSlotWords; ++k) set(*word_of(slot, k), later_word(item, k));
  set(*word_of(slot, kSlotWords - 1), BYTES == 4 ? sequence << 32 | item : sequence);
}
// The slots that there are: of the first ring, however large it may become, and of those that may follow it.
unsigned number_of_more() { return bounds.grows ? 2 * (bounds.max_capacity - bounds.capacity) : 0; }
template <class F> void for_slots(F f) {
  for (unsigned i = 0; i < bounds.max_capacity; ++i) f(world.slots[i]);
  for (unsigned i = 0; i < number_of_more(); ++i) f(world.more[i]);
}

void give(void *worker, unsigned v) {
  if (bounds.weak) store(&world.written[v], 1);
  Worker<BYTES> &its = *static_cast<Worker<BYTES> *>(worker);
  bounds.buckets ? its.push_with_level(item_of(v), float(bounds.levels[v])) : its.push(item_of(v));
}

void halt(void *worker) {
  static_cast<Worker<BYTES> *>(worker)->queue().stop();
  store(&world.halted, 1);
}

// The seeds that are in the queue from the start, and the number of those that the host has sent since.
unsigned first_seeds() { return bounds.seeds - bounds.sent; }
unsigned sent() { return unsigned(now(world.inbox.sent) & kSentItems); }
void set_inbox(uint64_t state) {
  set(world.counters.inbox, state);
  if (bounds.sent) set(world.counters.untracked, !(state & kInboxHeld));
}

std::vector<unsigned> seeds() {
  std::vector<unsigned> all(first_seeds());
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

// The host's part between two runs of the workers, as in csrc/host/queue_storage.cpp.
void append(const std::vector<unsigned> &nodes) {
  const uint64_t size = now(world.size);
  uint64_t tail = now(world.counters.tail);
  for (unsigned v : nodes) fill_slot(world.slots[tail % size], 2 * (tail / size) + 1, item_word(v)), ++tail;
  set(world.counters.tail, tail);
  set(world.counters.finished, now(world.counters.head));
}

// Items of the lowest bucket go to the ring, the others to the list of those beyond the window.
void provide(const std::vector<unsigned> &nodes, bool far_used) {
  if (!bounds.buckets) return append(nodes);
  const auto lower = [](unsigned a, unsigned b) { return bounds.levels[a] < bounds.levels[b]; };
  const Window window{nodes.empty() ? 0.0f : float(bounds.levels[*std::min_element(nodes.begin(), nodes.end(), lower)]), 1};
  std::vector<unsigned> near;
  std::vector<model::FarMemory::Entry> far;
  for (unsigned v : nodes) {
    if (window.is_near(float(bounds.levels[v]))) near.push_back(v);
    else far.push_back({v, bounds.levels[v]});
  }
  append(near);
  world.far.provide(world.counters.far, world.counters.untracked, window.current, far, far_used);
}

// The host looks for what was claimed and not taken from the lowest ticket on that a worker has told of.
void check_left(uint64_t ticket) {
  if (ticket < now(world.counters.head) && ticket < now(world.counters.first_left))
    model::fail("an item is left under a ticket that nobody has told of");
}

std::vector<unsigned> peek(uint64_t *of_level) {
  const uint64_t level_end = bounds.barrier ? tickets_of(now(world.counters.round_end)) : 0;
  std::vector<std::pair<uint64_t, unsigned>> found;
  Slot<BYTES> *ring = world.slots;
  for (unsigned k = 0; k <= growths_of(now(world.counters.tail)); ++k) {
    const uint64_t start = k ? now(world.counters.ring_first_ticket[k]) - kGrown : 0, size = now(world.size) << k;
    for (unsigned i = 0; i < size; ++i)
      if (sequence_in(ring[i]) % 2) found.emplace_back(start + sequence_in(ring[i]) / 2 * size + i, node_in(ring[i]));
    ring = k ? ring + size : world.more;
  }
  std::sort(found.begin(), found.end());
  std::vector<unsigned> all;
  for (const auto &[ticket, v] : found) all.push_back(v), *of_level += ticket < level_end, check_left(ticket);
  return all;
}

// Each task ran, or it is pending, or nobody has pushed it yet; those of the first two kinds are as many as were pushed.
void check_pending(const std::vector<unsigned> &pending) {
  for (unsigned v = 0; v < kNodes; ++v) {
    const bool was_pushed = v < bounds.seeds ? v < first_seeds() + sent() : (!(bounds.fails >> parent(v) & 1) && now(world.ran[parent(v)]) >> (is_flat(parent(v)) ? 0 : v - first_child(parent(v))) & 1);
    const bool in_inbox = v >= first_seeds() + now(world.inbox.taken) && v < first_seeds() + sent();
    const auto there = std::count(pending.begin(), pending.end(), v) + in_inbox;
    if (now(world.ran[v]) && !has_run(v)) model::fail("a task ran in part");
    if (there + has_run(v) + (now(world.aside[v]) != 0) != was_pushed)
      model::fail("task " + std::to_string(v) + (was_pushed ? " was lost, or is there twice" : " is there and was never pushed"));
  }
}

// One ring again, as large as the last, with nothing in it.
void collapse_rings() {
  set(world.size, now(world.size) << growths_of(now(world.counters.tail)));
  for (uint64_t *p : {&world.counters.head, &world.counters.tail, &world.counters.finished, &world.counters.stop,
                      &world.counters.untracked, &world.counters.splits_open, &world.counters.spilled, &world.counters.quiescent,
                      &world.counters.arrived, &world.counters.phase, &world.counters.round_end, &world.counters.gone[0],
                      &world.counters.growths_granted, &world.counters.growths_requested})
    set(*p, 0);
  set(world.counters.first_left, kNever);
  for (unsigned k = 1; k <= kMostRings; ++k) set(world.counters.ring_first_ticket[k], 0), set(world.provided[k], 0);
  for_slots([](auto &slot) { fill_slot(slot, 0, 0); });
}

// Whether what is pending fits; then the workers go on.
bool recover_pending() {
  uint64_t of_level = 0;
  std::vector<unsigned> all = peek(&of_level);
  for (unsigned v : world.far.peek()) all.push_back(v);
  const uint64_t spilled = now(world.counters.spilled);
  if (bounds.buckets && !spilled) world.far.check_lists(world.counters.far);
  if (spilled > kSpill) model::fail("the spill area of the model is too small");
  for (unsigned k = 0; k < spilled; ++k) all.push_back(unsigned(now(world.spill[k])));
  check_pending(all);
  if (now(world.counters.stop) == kStopFull && number_ran() == now(world.ran_before)) model::fail("nothing ran between two stops");
  set(world.ran_before, number_ran());
  const uint64_t state = now(world.counters.inbox);
  collapse_rings();
  set_inbox(state);
  set(world.inbox.sent, now(world.inbox.sent) & ~kStopSent); // as in the next inbox
  set(late, 0);                                                   // as in the next launch
  if (all.size() > bounds.max_capacity) return false;
  if (all.size() > now(world.size)) set(world.size, std::min<uint64_t>(bounds.max_capacity, 2 * all.size())); // grow
  provide(all, true);
  set(world.first_end, bounds.barrier && of_level && !bounds.buckets ? of_level : now(world.counters.tail));
  return true;
}

} // namespace

extern "C" {
void atos_left(void *) {}

int64_t atos_task_workload(void *, const void *item, void *values, const void *) {
  const unsigned v = node_of(item);
  if (is_flat(v)) model::fail("the workload of a flat task");
  *static_cast<uint64_t *>(values) = 3 * v + 1;
  return length(v);
}

static void run_task(void *worker, const void *item, int64_t i, const void *values) {
  const unsigned v = node_of(item);
  if (v >= kNodes) model::fail("an item that nobody pushed");
  if (!is_flat(v) && *static_cast<const uint64_t *>(values) != 3 * v + 1) model::fail("an item with the values of another");
  if (bounds.weak && v >= first_seeds() && !load(&world.written[v])) model::fail("a task does not see what was written before it was pushed");
  if (bounds.barrier)
    for (unsigned u = 0; u < kNodes; ++u)
      if (comes_before(u, v) && !load(&world.ran[u])) model::fail("a level began before the one above was over");
  if (bounds.waits >> v & 1 && load(&world.counters.head) < bounds.seeds) {
    if (fetch_add(&world.waited, uint64_t(1)) >= 4 * bounds.workers * bounds.steps) model::fail("a task waits for ever");
    return give(worker, v);
  }
  if (fetch_add(&world.ran[v], uint64_t(1) << i) >> i & 1) model::fail("task " + std::to_string(v) + " ran twice");
  if (bounds.fails >> v & 1) return static_cast<Worker<BYTES> *>(worker)->queue().fail({v + 1, 0, 0, 0, 0, 0, {0, 0}});
  if (bounds.halts >> v & 1) halt(worker);
  for (unsigned k = 0; k < bounds.children[v]; ++k) {
    const unsigned child = first_child(v) + k;
    if (!is_flat(v) && k != uint64_t(i)) continue;
    if ((bounds.aside | bounds.between) >> child & 1) store(&world.aside[child], 1);
    else give(worker, child);
  }
}

int64_t atos_task_body(void *worker, const void *item, int64_t i, const void *values, const void *) {
  if (bounds.flat && is_flat(node_of(item))) model::fail("a flat task in place of a loop");
  run_task(worker, item, i, values);
  return 0;
}

int64_t atos_task_flat(void *worker, const void *item, int64_t i, const void *values, const void *) {
  if (!is_flat(node_of(item))) model::fail("a loop in place of a flat task");
  run_task(worker, item, i, values);
  return 0;
}

int64_t atos_task_idle(void *worker, const void *) {
  for (unsigned v = 0; v < kNodes; ++v) {
    uint64_t there = 1;
    if ((bounds.aside >> v & 1) && compare_exchange(&world.aside[v], there, 0)) give(worker, v);
  }
  return 0;
}

// The call of number k follows the round of level k, and comes before the next one.
int64_t atos_task_each_round(void *worker, const void *) {
  const uint64_t calls = load(&world.calls);
  int64_t pending = 0;
  for (unsigned v = 0; v < kNodes; ++v) {
    const bool ran = load(&world.ran[v]);
    pending += level(v) == calls + 1 && !((bounds.aside | bounds.between) >> v & 1) && !(bounds.fails >> parent(v) & 1);
    if (level(v) > calls ? ran : !ran && !(bounds.fails >> parent(v) & 1))
      model::fail("the function between rounds is called " + std::string(ran ? "late, or not at all" : "early, or twice"));
    if (!(bounds.between >> v & 1) || level(v) != calls + 1) continue;
    if (!load(&world.aside[v])) model::fail("the function between rounds does not see what a task wrote");
    store(&world.aside[v], 0);
    give(worker, v);
  }
  if (static_cast<Worker<BYTES> *>(worker)->pending != pending) model::fail("another number of items waits for the next round");
  store(&world.calls, calls + 1);
  if (calls + 1 == bounds.ends) halt(worker);
  return 0;
}
}

namespace model {

// A worker on machine.scratch. The lanes of thread workers have their tickets in registers: these workers lie there too.
Launch given;
const Arguments arguments{};
Threads1 *threads_of(unsigned char *scratch) { return reinterpret_cast<Threads1 *>(scratch + (layout_of(given).bytes + 15) / 16 * 16); }
template <class Worker> void run(unsigned thread, Worker &worker) {
  machine.replayed = false;
  if (machine.threads[thread].begun) std::memcpy(machine.scratch, machine.threads[thread].local.data(), sizeof machine.scratch);
  worker.work();
}
void body(unsigned thread) {
  given = ::launch();
  unsigned char *const scratch = reinterpret_cast<unsigned char *>(machine.scratch);
  std::memset(scratch, 0, sizeof machine.scratch);
  const size_t own = bounds.threads ? 16 + sizeof(Threads1) : 0;
  if (layout_of(given).bytes + own + bounds.newest * sizeof(Item<BYTES>) > sizeof machine.scratch) fail("a worker needs more memory of its own");
  machine.replayed = machine.threads[thread].begun;
  if (bounds.threads) return run(thread, *new (threads_of(scratch)) Threads1(given, arguments, scratch));
  Worker1 worker(given, arguments, scratch);
  run(thread, worker);
}

// After a step: what next_action() and those after it write before they read it.
void tidy_local(unsigned) {
  unsigned char *local = reinterpret_cast<unsigned char *>(machine.scratch);
  Header &header = *reinterpret_cast<Header *>(local);
  if (header.pushes) fail("something is not flushed");
  const bool split_items = header.batch || (header.step == Action::kItems && header.any_long);
  Header seen{};
  seen.consumer = header.consumer;
  if (seen.consumer.first < seen.consumer.next_start) seen.consumer.next_start = kNever; // what lies ahead is found again
  if (seen.consumer.claimed == 0) seen.consumer.first = 0;
  seen.producer = header.producer;
  seen.producer.base = 0;
  // In steps that do not sample it. With buckets or stacks it also says whether the worker gives way.
  seen.producer.demand = bounds.threads ? header.producer.demand : (bounds.buckets || bounds.newest) && header.producer.demand != kUnseen ? 0 : kUnseen;
  seen.end.unreported = header.end.unreported;
  seen.ran = bounds.report ? header.ran : 0;
  seen.pushed = bounds.report ? header.pushed : 0;
  seen.round_end = header.round_end;
  seen.share = header.share;
  seen.end.quiescent = header.end.quiescent;
  seen.end.candidate = header.step == Action::kIdle ? header.end.candidate : 0;
  seen.chunk.split = header.chunk.split;
  seen.flushed = header.step == Action::kIdle ? header.flushed : 0;
  const bool ran = header.step == Action::kChunk || header.step == Action::kItems;
  seen.step = ran || header.step == Action::kIdle ? header.step : Action(Action::kLeave);
  seen.local_items = header.local_items;
  if (bounds.waits || bounds.newest) {
    seen.steps = std::min<uint32_t>(header.steps, bounds.steps);
    seen.stalled_steps = std::min<uint32_t>(header.stalled_steps, bounds.steps);
    seen.head = header.head;
  }
  seen.first_counted = ran ? header.first_counted : 0;
  seen.any_long = header.step == Action::kItems ? header.any_long : 0;
  seen.batch = header.batch;
  seen.next_long = header.batch ? header.next_long : 0;
  seen.num_split = header.batch ? header.num_split : 0;
  seen.idle_called = header.idle_called;
  seen.last_tick = header.last_tick;
  const SharedLayout at = layout_of(::launch());
  FarState *far_state = reinterpret_cast<FarState *>(local + at.far), far{};
  if (bounds.buckets) {
    if (far_state->pushes) fail("something is not flushed");
    far.window = far_state->window;
    far.filled = far_state->filled;
    far.open = far_state->open;
    if (header.step == Action::kFar) {
      seen.step = header.step;
      far.taken = far_state->taken;
      far.chunk = far_state->chunk;
    }
  }
  StackState *stack_state = reinterpret_cast<StackState *>(local + at.far), stack{};
  std::vector<Item<BYTES>> stacked;
  if (bounds.newest) {
    stack = *stack_state;
    stack.bottom = stack.leaving = 0;
    if (!ran) stack.popped = 0;
    stack.top = stack_state->top - stack_state->bottom;
    stack.turns %= 2;
    for (unsigned k = 0; k < bounds.newest; ++k)
      stacked.push_back(k < stack.top ? static_cast<Item<BYTES> *>(::launch().stacks)[(stack_state->bottom + k) % bounds.newest] : Item<BYTES>{});
  }
  Threads1 *const threads = threads_of(local);
  std::vector<unsigned char> registers;
  if (bounds.threads) {
    if (!threads->claimed) threads->first = 0;
    const unsigned char *const begin = reinterpret_cast<unsigned char *>(threads);
    registers.assign(begin, begin + sizeof *threads);
  }
  const size_t items = at.items + (split_items ? bounds.fetch : header.local_items) * sizeof(Item<BYTES>);
  std::memset(local + sizeof seen, 0, at.items - sizeof seen);
  std::memset(local + items, 0, (split_items ? at.values : sizeof machine.scratch) - items);
  if (split_items) std::memset(local + at.scan, 0, sizeof machine.scratch - at.scan);
  header = seen;
  std::copy(registers.begin(), registers.end(), reinterpret_cast<unsigned char *>(threads));
  if (bounds.buckets) *far_state = far;
  if (bounds.newest) {
    *stack_state = stack;
    std::copy(stacked.begin(), stacked.end(), static_cast<Item<BYTES> *>(::launch().stacks));
  }
}

void uses_ring(unsigned k) {
  if (k && !machine.memory.told(machine.current, &world.provided[k])) fail("a ring is used by who does not know of its memory");
}

void invariant(const char *in) {
  if (growths_of(now(world.counters.tail)) > (now(world.counters.growths_granted) & ~kNoMore)) fail("a ring without memory");
  if (!std::strcmp(in, "leave") && now(world.counters.stop) == kRun && number_ran() < kNodes) fail("a worker leaves early");
}

// The host sends an item, if the inbox has room, or closes it.
void send() {
  const unsigned n = sent(), v = first_seeds() + n;
  model::View view = machine.memory.told_with(&world.inbox.sent);
  if (n < bounds.sent) {
    machine.memory.tell(&world.written[v], 1, view);
    machine.memory.tell(&world.inbox.items[n % bounds.inbox], v, view);
  }
  machine.memory.tell(&world.inbox.sent, n < bounds.sent ? n + 1 : n | kClosed, view);
}
bool can_send() {
  return !(now(world.inbox.sent) & (kClosed | kStopSent)) && bounds.sent &&
         (sent() == bounds.sent || sent() - now(world.inbox.taken) < bounds.inbox);
}

// The host provides memory for a growth, or says that there is none. Or it sends an item. Or it asks for a stop: a timeout, or Ctrl-C; what is
// pending goes on in the next launch.
bool outside() {
  const uint64_t growths_granted = now(world.counters.growths_granted);
  const bool asked = now(world.counters.growths_requested) > growths_granted;
  const unsigned stops = now(world.stops) > 0 && !(bounds.stops_sent && now(world.inbox.sent) & kClosed), sends = can_send();
  if (!asked && !stops && !sends) return false;
  const unsigned way = pick((asked ? 2 : 0) + stops + sends); // memory comes in blocks: it may suffice for several growths
  if (sends && way == (asked ? 2 : 0) + stops) return send(), true;
  if (asked && way < 2) {
    const uint64_t more = std::min<uint64_t>({growths_granted + 1 + way, bounds.memory, launch().growths});
    model::View view{};
    for (uint64_t k = growths_granted + 1; k <= more; ++k) machine.memory.tell(&world.provided[k], 1, view);
    machine.memory.tell(&world.counters.growths_granted, more > growths_granted ? more : growths_granted | kNoMore, view);
    return true;
  }
  set(world.stops, now(world.stops) - 1);
  if (bounds.stops_sent) {
    model::View view = machine.memory.told_with(&world.inbox.sent);
    machine.memory.tell(&world.inbox.sent, now(world.inbox.sent) | kStopSent, view);
    return true;
  }
  if (bounds.timed) return set(late, 1), true;
  set(world.counters.stop, now(world.counters.stop) | uint64_t(2) << 32);
  return true;
}

bool host() {
  if (bounds.report && (record.tail != now(world.counters.tail) || record.stop != now(world.counters.stop) ||
                        record.ran != number_ran() || record.pushed != kNodes - bounds.seeds))
    fail("the report is not complete");
  if (now(world.counters.failures) != failed() || (failed() && (now(world.counters.stop) == kRun || !now(world.counters.failure.failed))))
    fail("a check that failed goes unnoticed");
  if (now(world.halted) != (now(world.counters.stop) & kStopCalled) / kStopCalled) fail("a stop goes unnoticed");
  set(world.halted, 0);
  if (now(world.counters.stop) != kRun) return !recover_pending() || failed();
  const uint64_t tail = tickets_of(now(world.counters.tail));
  if (number_ran() < kNodes) fail("the launch ended early");
  // A launch that goes on after a stop may find nothing left, and has a round of nothing.
  const bool stops = bounds.stops || bounds.halts || bounds.ends;
  const uint64_t levels = level(kNodes - 1) + 1, calls = now(world.calls);
  if (bounds.between && (stops ? calls < levels : calls != levels)) fail("the function between rounds was not called after each round");
  set(world.calls, 0);
  const uint64_t growths = growths_of(now(world.counters.tail));
  if (bounds.sent && (sent() != bounds.sent || now(world.inbox.taken) != sent() || !(now(world.counters.inbox) & kInboxHeld)))
    fail("the inbox is not as it is when all was taken");
  for_slots([](auto &slot) {
    if (sequence_in(slot) % 2) model::fail("an item was left");
  });
  if (growths || now(world.counters.growths_requested)) collapse_rings();
  else if (now(world.counters.head) != tail || now(world.counters.finished) != tail || now(world.counters.untracked) ||
      now(world.counters.splits_open) || now(world.counters.gone[0]))
    fail("the counters are not as the next launch expects them");
  if (bounds.buckets) world.far.check_end(world.counters.far);
  check_pending({});
  set(late, 0);
  set(world.launches, now(world.launches) - 1);
  if (now(world.launches) == 0) return true;
  for (uint64_t &ran : world.ran) set(ran, 0);
  for (unsigned v = bounds.seeds; v < kNodes; ++v) set(world.written[v], 0);
  set(world.ran_before, 0);
  provide(seeds(), false);
  set(world.first_end, now(world.counters.tail));
  return false;
}

} // namespace model

int main(int count, char **arguments) {
  if (!bounds.read(count, arguments)) return std::puts("the model makes no sense of its bounds"), 2;
  if (setjmp(model::machine.back)) return std::puts(model::machine.failure.c_str()), 2;
  using model::machine;
  Counters &c = world.counters;
  const auto name = [](auto &word, const std::string &name, bool plain = false, bool late = false, bool lock = false) {
    machine.memory.name(reinterpret_cast<const uint64_t *>(&word), name, plain, late, lock);
  };
  const auto several = [&](auto &words, const std::string &what, bool plain = false) {
    for (auto &word : words) name(word, what + " " + std::to_string(&word - words), plain);
  };
  // What nobody writes in this model, or nobody reads, is no step.
  name(c.head, "head"), name(c.tail, "tail"), name(c.finished, "finished"), name(c.gone[0], "gone");
  name(c.stop, "stop", bounds.capacity >= kNodes && !bounds.stops && !bounds.fails && !bounds.halts && !bounds.ends && (!bounds.buckets || bounds.blocks >= kNodes)), name(c.spilled, "spilled"), name(c.first_left, "first_left"), name(c.quiescent, "quiescent", bounds.aside == 0);
  name(c.untracked, "untracked", !bounds.nested && !bounds.sent && !bounds.buckets), name(c.splits_open, "splits_open", !bounds.nested);
  name(c.inbox, "inbox", !bounds.sent, false, true), name(world.inbox.sent, "sent", !bounds.sent), name(world.inbox.taken, "taken", !bounds.sent);
  for (unsigned i = 0; i < bounds.inbox; ++i) name(world.inbox.items[i], "inbox item " + std::to_string(i), !bounds.sent);
  name(c.arrived, "arrived", !bounds.barrier), name(c.phase, "phase", !bounds.barrier), name(c.round_end, "round_end", !bounds.barrier);
  name(c.claims[0], "claims", true), name(c.ran, "ran", !bounds.report || !bounds.weak), name(c.pushed, "pushed", !bounds.report || !bounds.weak), name(c.rounds, "rounds", true), name(c.mode, "mode", true);
  name(c.sampled, "sampled", true), name(c.failures, "failures", !bounds.fails), name(c.failure.failed, "failure", !bounds.fails);
  name(model::chance, "chance"), name(late, "late", !bounds.timed);
  name(c.growths_granted, "granted", !bounds.grows), name(c.growths_requested, "requested", !bounds.grows);
  for (unsigned k = 1; k <= kMostRings; ++k) {
    name(c.ring_first_ticket[k], "first ticket " + std::to_string(k), !bounds.grows);
    name(world.provided[k], "memory " + std::to_string(k), !bounds.grows);
  }
  several(c.ran_by, "ran by", true);
  unsigned number = 0;
  for_slots([&](auto &slot) {
    for (unsigned k = 0; k < kSlotWords; ++k)
      name(*word_of(slot, k), "slot " + std::to_string(number) + (k + 1 == kSlotWords ? "" : " item"));
    ++number;
  });
  for (SplitItem &share : world.split_items) {
    name(share.chunks, "chunks", false, true), name(share.left, "left"), name(share.busy, "busy"), name(share.length, "length");
    for (unsigned k = 0; k < (BYTES + 7) / 8; ++k) name(share.item[k], "share item");
    name(share.values[0], "share values");
  }
  if (bounds.buckets && !world.far.name_words(c.far, "", name)) return std::puts("the model has too little memory for far items"), 2;
  several(world.spill, "spill", true), several(world.ran, "ran", true), several(world.aside, "aside"), several(world.written, "written");
  name(world.first_end, "first_end", true), name(world.halted, "halted", true), name(world.calls, "calls", true), name(world.waited, "waited", true), name(world.ran_before, "ran before", true), name(world.launches, "launches", true);
  name(world.size, "size", true), name(world.stops, "stops", true);
  machine.memory.views.resize(bounds.workers);
  set(c.quiescent, 0);
  set(c.first_left, kNever);
  set(world.size, bounds.capacity);
  provide(seeds(), true);
  set(world.first_end, now(world.counters.tail));
  if (bounds.sent) set_inbox(0);
  set(world.launches, bounds.launches);
  set(world.stops, bounds.stops);
  return model::explore();
}
