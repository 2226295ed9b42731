// The explored program for launches over several devices: workers of each (peer_worker.h) over queues that all push into, within
// the bounds that the command line tells (bounds.hpp).
//
// The rules: no device ends before all tasks have run; every task runs once, on its owner; what is pending after a stop is there
// once, in its owner's queue; with a barrier, a level runs after the one before, on all devices, and the function between rounds
// is called once after each, sees what its tasks wrote, and knows what waits; a task sees what was written before it was pushed;
// and the end can be reached from anywhere.
#include "protocol/atomic.cuh"
#include "far.hpp"
#include "protocol/peers.cuh"
#include "peer_worker.h"

using namespace atos;

namespace {

using model::bounds, model::first_child, model::level, model::now, model::parent, model::set;
constexpr unsigned kSpill = 8, kMostSlots = 8, kMostRings = 3, kMostNodes = 8;
constexpr uint64_t kChunk = 16; // an item is its owner's number times this, plus the number of the task

struct Device {
  Counters counters{};
  Slot<BYTES> slots[kMostSlots]{}, more[2 * kMostSlots]{};
  SpilledItem<BYTES> spill[kSpill]{};
  model::FarMemory far{};
  uint64_t size = 0; // the host's
};
struct World {
  Device device[kMostDevices];
  uint64_t numbered = 0; // workers that have asked for their number, by which they belong to a device
  uint64_t ran[kMostNodes]{}, written[kMostNodes]{};
  uint64_t aside[kMostNodes]{}, calls = 0; // tasks that the function between rounds is to push, and its calls
  uint64_t stops = 0, halted = 0; // that the host still asks for; 1: a task has stopped the launch
} world;

// Whether barriers keep the order of two tasks. With buckets they run in the order of these, for no task pushes to a lower one.
bool comes_before(unsigned u, unsigned v) { return bounds.buckets ? bounds.levels[u] < bounds.levels[v] : level(u) < level(v); }

unsigned number_ran() {
  unsigned n = 0;
  for (unsigned v = 0; v < bounds.nodes; ++v) n += now(world.ran[v]) != 0;
  return n;
}

uint64_t item_word(unsigned v) { return bounds.owners[v] * kChunk + v; }
Item<BYTES> item_of(unsigned v) {
  Item<BYTES> item{};
  const uint64_t word = item_word(v);
  std::memcpy(&item, &word, std::min(sizeof item, sizeof word));
  return item;
}
constexpr unsigned kSlotWords = sizeof(Slot<BYTES>) / 8;
uint64_t *word_of(Slot<BYTES> &slot, unsigned word) { return reinterpret_cast<uint64_t *>(&slot) + word; }
uint64_t sequence_in(Slot<BYTES> &slot) { return now(*word_of(slot, kSlotWords - 1)) >> (BYTES == 4 ? 32 : 0); }
unsigned item_in(Slot<BYTES> &slot) { return unsigned(now(*word_of(slot, 0))); }
void fill_slot(Slot<BYTES> &slot, uint64_t sequence, uint64_t item) {
  set(*word_of(slot, 0), item);
  set(*word_of(slot, kSlotWords - 1), BYTES == 4 ? sequence << 32 | item : sequence);
}
unsigned number_of_more() { return bounds.grows ? 2 * (bounds.max_capacity - bounds.capacity) : 0; }
template <class F> void for_slots(Device &its, F f) {
  for (unsigned i = 0; i < bounds.max_capacity; ++i) f(its.slots[i]);
  for (unsigned i = 0; i < number_of_more(); ++i) f(its.more[i]);
}

struct Table {
  Peer peer[kMostDevices];
};
Peers peers(Table &table, unsigned own) {
  for (unsigned k = 0; k < bounds.devices; ++k) {
    Device &its = world.device[k];
    const uint64_t size = now(its.size);
    unsigned growths = 0;
    while (bounds.grows && size << (growths + 1) <= bounds.max_capacity) ++growths;
    table.peer[k] = {{&its.counters, its.slots, its.more, its.spill, nullptr, size, ~uint64_t(0) / size, kSpill, growths,
                      bounds.buckets, bounds.blocks, model::FarMemory::directory(), its.far.words}, nullptr};
  }
  return {table.peer, bounds.devices, own, 4, kChunk, ~uint64_t(0) / kChunk};
}

// The host's part between two runs of the workers, as in csrc/host. `lowest`: the level of the lowest items of all devices.
void provide(Device &its, const std::vector<unsigned> &all, unsigned lowest, bool far_used) {
  const uint64_t size = now(its.size);
  std::vector<unsigned> items;
  std::vector<model::FarMemory::Entry> far;
  for (unsigned item : all) {
    if (!bounds.buckets || bounds.levels[item % kChunk] <= lowest) items.push_back(item);
    else far.push_back({item, bounds.levels[item % kChunk]});
  }
  for (unsigned i = 0; i < items.size(); ++i) fill_slot(its.slots[i], 1, items[i]);
  set(its.counters.tail, items.size());
  uint64_t most = 0; // all that may be mapped is
  while (bounds.grows && size << (most + 1) <= bounds.max_capacity) ++most;
  set(its.counters.growths_granted, most);
  if (bounds.buckets) its.far.provide(its.counters.far, its.counters.untracked, float(lowest), far, far_used);
}

// The same of all devices.
void provide_all(const std::vector<unsigned> *items, bool far_used) {
  unsigned lowest = ~0u;
  for (unsigned k = 0; bounds.buckets && k < bounds.devices; ++k)
    for (unsigned item : items[k]) lowest = std::min(lowest, bounds.levels[item % kChunk]);
  for (unsigned k = 0; k < bounds.devices; ++k) provide(world.device[k], items[k], lowest == ~0u ? 0 : lowest, far_used);
}

std::vector<unsigned> pending_in(Device &its, uint64_t *of_level) {
  const Counters &c = its.counters;
  std::vector<std::pair<uint64_t, unsigned>> found;
  Slot<BYTES> *ring = its.slots;
  for (unsigned k = 0; k <= growths_of(now(c.tail)); ++k) {
    const uint64_t start = k ? now(c.ring_first_ticket[k]) - kGrown : 0, size = now(its.size) << k;
    for (unsigned i = 0; i < size; ++i)
      if (sequence_in(ring[i]) % 2) found.emplace_back(start + sequence_in(ring[i]) / 2 * size + i, item_in(ring[i]));
    ring = k ? ring + size : its.more;
  }
  std::sort(found.begin(), found.end());
  std::vector<unsigned> all;
  for (const auto &[ticket, item] : found) {
    all.push_back(item);
    *of_level += bounds.barrier && !bounds.buckets && ticket < tickets_of(now(c.round_end));
    if (!bounds.buckets && ticket < now(c.head) && ticket < now(c.first_left)) model::fail("an item is left under a ticket that nobody has told of");
  }
  for (unsigned item : its.far.peek()) all.push_back(item);
  const uint64_t spilled = now(its.counters.spilled);
  if (spilled > kSpill) model::fail("the spill area of the model is too small");
  for (unsigned k = 0; k < spilled; ++k) all.push_back(unsigned(now(its.spill[k])));
  return all;
}

void clear(Device &its) {
  Counters &c = its.counters;
  set(its.size, std::min<uint64_t>(bounds.max_capacity, now(its.size) << growths_of(now(c.tail))));
  for (uint64_t *p : {&c.head, &c.tail, &c.finished, &c.stop, &c.untracked, &c.spilled, &c.growths_granted, &c.growths_requested, &c.arrived, &c.phase, &c.round_end,
                      &c.met, &c.meetings})
    set(*p, 0);
  set(c.first_left, kNever);
  for (unsigned k = 1; k <= kMostRings; ++k) set(c.ring_first_ticket[k], 0);
  for_slots(its, [](auto &slot) { fill_slot(slot, 0, 0); });
}

// Items of an interrupted level are those below the end of its round. As long as any device has some, the others have an empty round.
void begin_round(const uint64_t *of_level) {
  const bool any = std::any_of(of_level, of_level + bounds.devices, [](uint64_t n) { return n != 0; });
  for (unsigned k = 0; k < bounds.devices; ++k) {
    Counters &c = world.device[k].counters;
    set(c.round_end, any ? of_level[k] : now(c.tail));
  }
}

// Puts all that is pending into one ring for each device, in the order of the tickets; returns whether it fits.
bool recover() {
  std::vector<unsigned> pending[kMostDevices];
  uint64_t of_level[kMostDevices] = {};
  unsigned there[kMostNodes] = {};
  bool room = true;
  for (unsigned k = 0; k < bounds.devices; ++k) {
    Device &its = world.device[k];
    pending[k] = pending_in(its, &of_level[k]);
    for (const unsigned item : pending[k]) {
      if (item / kChunk != k) model::fail("an item waits for another device than its owner");
      ++there[item % kChunk];
    }
    clear(its);
    if (pending[k].size() > bounds.max_capacity) room = false;
    else if (pending[k].size() > now(its.size)) set(its.size, std::min<uint64_t>(bounds.max_capacity, 2 * pending[k].size()));
  }
  for (unsigned v = 0; v < bounds.nodes; ++v) {
    const bool was_pushed = v < bounds.seeds || now(world.ran[parent(v)]);
    if (there[v] + (now(world.ran[v]) != 0) + now(world.aside[v]) != was_pushed)
      model::fail("task " + std::to_string(v) + (was_pushed ? " was lost, or is there twice" : " is there and was never pushed"));
  }
  if (room) provide_all(pending, true);
  if (room) begin_round(of_level);
  set(world.numbered, 0);
  return room;
}

} // namespace

namespace model {

void body(unsigned thread) {
  std::memset(machine.scratch, 0, sizeof machine.scratch);
  if (machine.threads[thread].begun) std::memcpy(machine.scratch, machine.threads[thread].local.data(), sizeof machine.scratch);
  static_assert(sizeof(PeerWorker) <= sizeof machine.scratch);
  PeerWorker &worker = *reinterpret_cast<PeerWorker *>(machine.scratch);
  Table table;
  if (!worker.begun) {
    worker.device = fetch_add(&world.numbered, 1) % bounds.devices;
    worker.begin(peers(table, unsigned(worker.device)));
    commit();
  }
  const Peers view = peers(table, unsigned(worker.device));
  const auto run = [&](const Item<BYTES> &item) {
    uint64_t word = 0;
    std::memcpy(&word, &item, std::min(sizeof item, sizeof word));
    const unsigned v = unsigned(word % kChunk);
    if (word / kChunk != worker.device) fail("a task runs on another device than its owner");
    if (v >= bounds.nodes || word != item_word(v)) fail("an item that was never pushed");
    if (fetch_add(&world.ran[v], 1)) fail("task " + std::to_string(v) + " ran twice");
    for (unsigned u = 0; bounds.barrier && u < bounds.nodes; ++u)
      if (comes_before(u, v) && !now(world.ran[u])) fail("a task runs before the level above is complete");
    if (bounds.weak && v >= bounds.seeds && !atos::load(&world.written[v])) fail("a task does not see what was written before it was pushed");
    if (bounds.halts >> v & 1) atos::store(&world.halted, 1), view.queue<BYTES>(view.own).stop();
    for (unsigned child = first_child(v), end = child + bounds.children[v]; child < end; ++child) {
      if (bounds.weak) atos::store(&world.written[child], 1);
      if (bounds.between >> child & 1) atos::store(&world.aside[child], 1);
      else if (bounds.buckets) worker.push(view, item_of(child), float(bounds.levels[child]), true);
      else worker.push(view, item_of(child));
    }
  };
  // The call of number k follows the round of level k on all devices, and comes before the next one.
  const auto between = [&] {
    const uint64_t calls = atos::load(&world.calls);
    uint64_t waiting = 0;
    for (unsigned v = 0; v < bounds.nodes; ++v) {
      waiting += level(v) == calls + 1 && !(bounds.between >> v & 1);
      if (level(v) > calls ? now(world.ran[v]) != 0 : now(world.ran[v]) == 0)
        fail("the function between rounds is called " + std::string(now(world.ran[v]) ? "late, or not at all" : "early, or twice"));
    }
    if (view.waiting() != waiting) fail("another number of items waits for the next round");
    for (unsigned v = 0; v < bounds.nodes; ++v) {
      if (!(bounds.between >> v & 1) || level(v) != calls + 1) continue;
      if (!atos::load(&world.aside[v])) fail("the function between rounds does not see what a task wrote");
      atos::store(&world.aside[v], 0);
      worker.push(view, item_of(v));
    }
    atos::store(&world.calls, calls + 1);
    if (calls + 1 == bounds.ends) atos::store(&world.halted, 1), view.queue<BYTES>(view.own).stop();
  };
  const bool has = bounds.between != 0;
  const uint64_t here = (bounds.workers + bounds.devices - 1 - worker.device) / bounds.devices;
  while (bounds.barrier ? worker.step_of_rounds(view, here, run, has, between) : worker.step(view, run)) commit();
  worker.leave(view);
}

void tidy_local(unsigned) {
  PeerWorker &worker = *reinterpret_cast<PeerWorker *>(machine.scratch);
  if (!worker.consumer.claimed) worker.consumer.first = 0;
  if (worker.consumer.first < worker.consumer.next_start) worker.consumer.next_start = kNever;
  for (Producer &producer : worker.producers) producer.base = 0;
}

void uses_ring(unsigned) {}

void invariant(const char *) {
  for (unsigned k = 0; k < bounds.devices; ++k)
    if (now(world.device[k].counters.stop) & kEnded && number_ran() < bounds.nodes) fail("a worker leaves early");
}

// The host asks the first device for a stop.
bool outside() {
  if (!now(world.stops)) return false;
  set(world.stops, now(world.stops) - 1);
  Counters &first = world.device[0].counters;
  set(first.stop, now(first.stop) | kStopAsked);
  return true;
}

bool host() {
  bool over = true, called = false;
  for (unsigned k = 0; k < bounds.devices; ++k) {
    const uint64_t stop = now(world.device[k].counters.stop);
    if (stop == kRun && !bounds.barrier) fail("a device has left before the end, and without a stop");
    over &= stop == (bounds.barrier ? kRun : kEnded);
    called |= (stop & kStopCalled) != 0;
  }
  if (called != (now(world.halted) != 0)) fail("a stop goes unnoticed");
  set(world.halted, 0);
  if (!over) return !recover();
  if (number_ran() < bounds.nodes) fail("the launch ended early");
  // A launch that goes on after a stop may find nothing left, and has a round of nothing.
  const uint64_t levels = level(bounds.nodes - 1) + 1, calls = now(world.calls);
  if (bounds.between && (bounds.stops || bounds.halts || bounds.ends ? calls < levels : calls != levels))
    fail("the function between rounds was not called after each round");
  for (unsigned k = 0; k < bounds.devices; ++k) {
    const Counters &c = world.device[k].counters;
    uint64_t of_level = 0;
    if (tickets_of(now(c.tail)) + now(c.untracked) != now(c.finished)) fail("a device has other counts of pushed and of finished tasks at the end");
    if (!pending_in(world.device[k], &of_level).empty()) fail("an item was left");
    if (bounds.buckets) world.device[k].far.check_end(c.far);
  }
  return true;
}

} // namespace model

int main(int count, char **arguments) {
  if (!bounds.read(count, arguments) || bounds.devices == 0 || bounds.devices > kMostDevices)
    return std::puts("the model makes no sense of its bounds"), 2;
  if (setjmp(model::machine.back)) return std::puts(model::machine.failure.c_str()), 2;
  using model::machine;
  const auto name = [](auto &word, const std::string &name, bool plain = false, bool late = false) {
    machine.memory.name(reinterpret_cast<uint64_t *>(&word), name, plain, late, false);
  };
  const bool stops = bounds.capacity < bounds.nodes || bounds.stops || bounds.halts || bounds.ends || (bounds.buckets && bounds.blocks < bounds.nodes);
  for (unsigned k = 0; k < bounds.devices; ++k) {
    Device &its = world.device[k];
    Counters &c = its.counters;
    const std::string of = " of " + std::to_string(k);
    name(c.head, "head" + of), name(c.tail, "tail" + of), name(c.finished, "finished" + of), name(c.stop, "stop" + of);
    name(c.untracked, "untracked" + of, !bounds.buckets), name(c.spilled, "spilled" + of, !stops);
    name(c.arrived, "arrived" + of, !bounds.barrier), name(c.phase, "phase" + of, !bounds.barrier);
    name(c.met, "met" + of, !bounds.barrier || k), name(c.meetings, "meetings" + of, !bounds.barrier);
    name(c.round_end, "round_end" + of, !bounds.barrier), name(c.first_left, "first_left" + of, !stops);
    name(c.growths_granted, "granted" + of, true), name(c.growths_requested, "requested" + of, true);
    for (unsigned i = 1; i <= kMostRings; ++i) name(c.ring_first_ticket[i], "first ticket " + std::to_string(i) + of, !bounds.grows);
    unsigned number = 0;
    for_slots(its, [&](auto &slot) {
      for (unsigned i = 0; i < kSlotWords; ++i)
        name(*word_of(slot, i), "slot " + std::to_string(number) + of + (i + 1 == kSlotWords ? "" : " item"));
      ++number;
    });
    for (auto &word : its.spill) name(word, "spill" + of, true);
    name(its.size, "size" + of, true);
    if (bounds.buckets && !its.far.name_words(c.far, of, name)) return std::puts("the model has too little memory for far items"), 2;
  }
  name(world.numbered, "numbered");
  for (auto &word : world.ran) name(word, "ran", true);
  for (auto &word : world.written) name(word, "written");
  for (auto &word : world.aside) name(word, "aside", !bounds.between);
  name(world.calls, "calls", !bounds.between);
  name(world.stops, "stops", true), name(world.halted, "halted", true);
  machine.memory.views.resize(bounds.workers);
  std::vector<unsigned> seeds[kMostDevices];
  for (unsigned v = 0; v < bounds.seeds; ++v) seeds[bounds.owners[v]].push_back(unsigned(item_word(v)));
  for (unsigned k = 0; k < bounds.devices; ++k) set(world.device[k].size, bounds.capacity), set(world.device[k].counters.first_left, kNever);
  provide_all(seeds, true);
  const uint64_t of_level[kMostDevices] = {};
  begin_round(of_level);
  set(world.stops, bounds.stops);
  return model::explore();
}
