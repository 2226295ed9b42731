// Recovery after a run: reads the items that the workers have left in a queue, and brings these items in order.
#include <algorithm>
#include <cstring>
#include <map>

#include "host/host_slots.h"
#include "host/queue_storage.h"

namespace atos {
namespace {

// Appends items to a vector, many at a time, since one by one takes several times as long.
class Appender {
public:
  explicit Appender(std::vector<unsigned char> *all) : all(all) {}
  unsigned char *add(size_t bytes) { // room for an item
    if (used + bytes > sizeof some) flush();
    used += bytes;
    return some + used - bytes;
  }
  void flush() {
    all->insert(all->end(), some, some + used);
    used = 0;
  }

private:
  std::vector<unsigned char> *all;
  unsigned char some[1 << 14];
  size_t used = 0;
};

} // namespace

// Slots as an InPlaceRecovery visits them: some at a time, through `staging`.
struct QueueStorage::StagedSlots {
  QueueStorage &queue;

  template <class F> void visit(const RingTickets &ring, uint64_t begin, uint64_t end, F f) {
    for (uint64_t some; begin < end; begin += some) {
      const uint64_t index = (begin - ring.start) % ring.size;
      some = std::min({end - begin, ring.size - index, kVisitedSlots});
      unsigned char *at = queue.slots_of(ring.number) + index * queue.slot_bytes, *here = queue.staging.memory.get();
      queue.backend.copy(here, at, some * queue.slot_bytes);
      const uint64_t sequence = ring.sequence_of(begin); // of all these slots
      bool changed = false;
      with_slots(queue.item_bytes, [&](auto view) {
        using View = decltype(view);
        auto *slot = reinterpret_cast<typename View::Any *>(here);
        for (uint64_t i = 0; i < some; ++i) {
          VisitedSlot<View> visited{&slot[i], sequence, &changed};
          f(begin + i, visited);
        }
      });
      if (changed) queue.backend.copy(at, here, some * queue.slot_bytes);
    }
  }
};

void QueueStorage::note_run() {
  disordered = true;
  prioritized.clear(); // all items are on the device
  in_lists = ring_used = false;
  level = 0;
}

void QueueStorage::finish_run() {
  counters.head = counters.finished = tickets_of(counters.tail);
  counters.untracked = 0;
  disordered = false;
  count_growths();
  stale |= counters.growths_requested != 0;
  counters.growths_requested = 0;
  if (growths) collapse_rings();
}

void QueueStorage::count_growths() {
  const unsigned now = growths_of(counters.tail);
  grown += now - growths;
  growths = now;
  size = first_size << now;
}

// Makes one empty ring of all rings, as large as the last if there is memory.
void QueueStorage::collapse_rings() {
  try {
    make_ring(size);
  } catch (const Failure &failure) {
    if (failure.status != ATOS_NO_MEMORY) throw;
    reset();
  }
}

void QueueStorage::recover_pending(const Run &run) {
  recover(run.launch.barrier ? tickets_of(counters.round_end) : 0, run.claimed_in_order);
}

// `level_end`: the end of an interrupted level, or 0. `claimed_in_order`: whether exactly the tickets below `head` were
// claimed.
void QueueStorage::recover(uint64_t level_end, bool claimed_in_order) {
  const uint64_t dropped = counters.spilled - std::min(counters.spilled, spill.size());
  staging.reserve(kVisitedSlots * slot_bytes);
  const bool in_place = claimed_in_order &&
                        (has_buckets() ? recover_lists_in_place(level_end) : recover_in_place(level_end, [] { return true; }));
  if (!in_place) recover_aside(level_end);
  lost += dropped;
  disordered = false;
}

// Reads spilled far items and the spilled items of tickets below `end`; returns the number of other spilled items.
uint64_t QueueStorage::read_spilled(uint64_t end) {
  uint64_t *const number = &static_cast<Counters *>(device_counters)->spilled;
  return spill.read(std::min(counters.spilled, spill.size()), end, number, &found);
}

// False if the rings cannot stay as they are.
bool QueueStorage::recover_in_place(uint64_t level_end, const std::function<bool()> &lists_stay) {
  const RingTickets last = last_ring();
  // All items of the tickets from `end` on were spilled, since their slots hold other items. However many these items are, they
  // stay in the spill area.
  const uint64_t end = std::min(last.end, std::max(std::min(counters.head, last.end), last.start) + last.size);
  if (counters.spilled > spill.size() || read_spilled(end) != last.end - end) return false; // items were lost
  if (!lists_stay()) return false;
  rings.clear();
  for (unsigned k = 0; k <= last.number; ++k) rings.push_back(ring_of_growth(k));
  StagedSlots staged{*this};
  InPlaceRecovery<StagedSlots> recovery(staged, rings, counters.head, counters.first_left, found);
  if (!recovery.plan()) return false;
  if (!spill.write(counters.spilled, found.displaced)) return false;
  recovery.carry_out();
  const uint64_t spilled = counters.spilled + found.displaced.size();
  count_growths();
  uint64_t first_tickets[kMostGrowths + 1];
  std::copy(std::begin(counters.ring_first_ticket), std::end(counters.ring_first_ticket), first_tickets);
  reset_counters();
  std::copy(first_tickets, first_tickets + growths + 1, counters.ring_first_ticket);
  counters.head = counters.finished = recovery.head;
  counters.tail = recovery.tail + growths * kGrowth;
  counters.quiescent = QueueRef<4>::none_quiescent(recovery.head);
  level = level_end - std::min(level_end, recovery.head);
  spill.keep(recovery.tail, last.end, spilled);
  return true;
}

// Reads all items, and stores all of them in a new ring.
void QueueStorage::recover_aside(uint64_t level_end) {
  uint64_t of_level = 0;
  std::vector<unsigned char> all = peek_from(0, level_end, &of_level);
  read_spilled(kNever);
  all.reserve(all.size() + found.spilled.size() * item_bytes);
  for (const TicketItem &its : found.spilled) all.insert(all.end(), its.item, its.item + item_bytes);
  if (has_buckets()) return recover_prioritized(all);
  count_growths();
  replace(all.data(), all.size() / item_bytes, of_level);
}

std::vector<unsigned char> QueueStorage::peek() {
  bring_to_host();
  std::vector<unsigned char> all = peek_from(counters.head, 0, nullptr);
  for (const LeveledItem &one : in_order()) all.insert(all.end(), one.item, one.item + item_bytes);
  return all;
}

// The items of ready slots in the order of their tickets, from `ticket` on, then the items without a slot; *of_level: how many
// of all these items have a ticket below `level_end`.
std::vector<unsigned char> QueueStorage::peek_from(uint64_t ticket, uint64_t level_end, uint64_t *of_level) {
  std::vector<unsigned char> result;
  uint64_t earlier = 0, slots = 0;
  for (unsigned k = 0; k <= growths_of(counters.tail); ++k) slots += first_size << k;
  const uint64_t unfinished = tickets_of(counters.tail) + counters.untracked - counters.finished;
  result.reserve((std::min(unfinished, slots) + spill.num_kept()) * item_bytes + overflow.size());
  if (!has_buckets() || disordered || in_lists)
    for (unsigned k = 0; k <= growths_of(counters.tail); ++k)
      earlier += peek_ring(ring_of_growth(k), ticket, level_end, &result);
  if (of_level) *of_level = earlier;
  if (const uint64_t kept = spill.num_kept()) {
    result.resize(result.size() + kept * item_bytes);
    spill.read_kept(&result[result.size() - kept * item_bytes]);
  }
  result.insert(result.end(), overflow.begin(), overflow.end());
  return result;
}

// Appends the pending items of a ring, from ticket `from` on; returns how many lie before `level_end`.
uint64_t QueueStorage::peek_ring(const RingTickets &ring, uint64_t from, uint64_t level_end,
                                 std::vector<unsigned char> *result) {
  const uint64_t lap = ring.end > ring.size ? ring.end - ring.size : 0; // from here on each ticket has its own slot
  const uint64_t begin = std::max({from, ring.start, lap});
  if (begin >= ring.end) return 0;
  staging.reserve(kVisitedSlots * slot_bytes);
  std::map<uint64_t, std::vector<unsigned char>> older; // items of older generations, by how many generations
  const size_t before = result->size();
  Appender latest(result);
  uint64_t earlier = 0;
  StagedSlots{*this}.visit(ring, begin, ring.end, [&](uint64_t ticket, const auto &slot) {
    const int64_t distance = slot.distance();
    if (distance == 1) {
      slot.get(latest.add(item_bytes));
      earlier += ticket < level_end;
    } else if (distance < 0 && distance % 2) {
      const uint64_t age = uint64_t(1 - distance) / 2;
      std::vector<unsigned char> &its = older[age];
      its.resize(its.size() + item_bytes);
      slot.get(its.data() + its.size() - item_bytes);
      earlier += ticket - age * ring.size < level_end;
    }
  });
  latest.flush();
  for (const auto &[age, items] : older) result->insert(result->begin() + ptrdiff_t(before), items.begin(), items.end());
  return earlier;
}

} // namespace atos
