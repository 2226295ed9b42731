// A batch of items, whose iterations are spread evenly over the threads of a worker, or over groups of threads, however long
// each item is.
//
// The lengths of all items are scanned, and each thread finds the item of its iteration by a search in that scan: the
// load-balancing search of moderngpu. Long items stay out of the scan (work_sharing.cuh).
#pragma once
#include "device/bsp_rounds.cuh"

namespace atos {

template <class Group, unsigned bytes> struct LoadBalance : BspRounds<Group, bytes> {
  using Below = BspRounds<Group, bytes>;
  using Below::args;
  using Below::header;
  using Below::launch;
  using Below::worker;

  BatchArray<Item<bytes>> items;
  uint64_t *values; // of each item, as many as the workload returns
  BatchArray<int64_t> lengths;
  BatchArray<uint32_t> scan;

  // [all threads]
  ATOS_DEVICE LoadBalance(const Launch &launch, const Arguments &args, unsigned char *mine, const SharedLayout &at)
      : Below(launch, args, mine, at), items(reinterpret_cast<Item<bytes> *>(mine + at.items)),
        values(reinterpret_cast<uint64_t *>(mine + at.values)), lengths(reinterpret_cast<int64_t *>(mine + at.lengths)),
        scan(reinterpret_cast<uint32_t *>(mine + at.scan)) {}

  // [team] Calls the workload of `got` items: stores their lengths, and the exclusive scan over lengths that are not long;
  // returns the sum of these.
  template <class Team> ATOS_DEVICE uint32_t measure(unsigned got) {
    uint32_t total = 0;
    bool any_long = false;
#pragma unroll 1
    for (unsigned from = 0; from < got; from += Team::size()) {
      const unsigned k = from + Team::rank();
      uint32_t mine = 0, sum;
      if (k < got) {
        const int64_t length = is_flat(items[k]) ? 0 : atos_task_workload(&worker, &items[k], &values[k * value_words], &args);
        lengths[k] = length;
        if (length >= kLong) any_long = true;
        else if (length > 0) mine = uint32_t(length);
      }
      const uint32_t inclusive = Team::scan(mine, &sum, worker.reduce);
      if (k < got) scan[k] = total + inclusive - mine;
      total += sum;
      if (got > Team::size()) Team::sync(); // the scan's space is used again
    }
    any_long = Team::any(any_long);
    if (any_long && Team::rank() == 0) header->any_long = 1;
    return total;
  }

  // [one warp] Load-balancing search: the item of iteration e, i.e. the last item whose scan is at most e. The warp runs
  // consecutive iterations from `base` on at once. Its lanes look at 32 places of the scan first, which leaves few places for
  // each lane to search.
  ATOS_DEVICE unsigned item_of(uint32_t e, uint32_t base, unsigned got) const {
    const unsigned stride = (got + kWarpSize - 1) / kWarpSize, k = lane_id() * stride;
    const uint32_t start = k < got ? scan[k] : ~0u;
    unsigned low = (__popc(__ballot_sync(kAll, start <= base)) - 1) * stride;
    unsigned high = __popc(__ballot_sync(kAll, start <= base + 32 / threads_of_iteration - 1)) * stride;
    if (high > got) high = got;
    while (high - low > 1) {
      const unsigned middle = (low + high) / 2;
      if (scan[middle] <= e) low = middle;
      else high = middle;
    }
    return low;
  }

  static ATOS_DEVICE unsigned iterations_at_once() { return Group::size() / threads_of_iteration; }

  // [all threads of an iteration]
  ATOS_DEVICE void run_iteration(const Item<bytes> *item, int64_t i, const uint64_t *values) {
    const unsigned threads = threads_of_iteration;
    if (threads > 1) __syncwarp(lanes_of_group(threads)); // the threads share scratch, also with the iteration before
    atos_task_body(&worker, item, i, values, &args);
  }

  // With buckets, a long step is run in strips, between which the pushes are flushed if a buffer is half full: items that find
  // no room in a buffer are stored one by one, which is slow.
  static ATOS_DEVICE bool flushes_within_step() { return has_buckets; }
  // [all threads]
  ATOS_DEVICE void flush_within_step() {
    if (!Group::any(this->is_half_full())) return; // `any` is a barrier, too
    this->template flush_pushes<Group>(false, this->relaxed(), nullptr);
    Group::sync();
  }

  // [all threads] With flat kinds beside nested ones: runs the flat tasks of a batch, one after another.
  ATOS_DEVICE void run_flat(unsigned got) {
    if (checked) atos_left(&worker); // a thread may have left a nested task, and nobody has waited for this thread
#pragma unroll 1
    for (unsigned k = 0; k < got; ++k) {
      if (!is_flat(items[k])) continue;
      atos_task_flat(&worker, &items[k], 0, nullptr, &args);
      Group::sync(); // before the space for scans, reductions and scratch is used again
    }
  }

  // [all threads] Runs the task on `got` items, but for long items. The threads of an iteration may vote and shuffle in the
  // task; the threads of a warp converge in the search for the next iteration.
  ATOS_DEVICE void run(unsigned got) {
    if (num_kinds)
      for (unsigned from = Group::rank() & ~31u; from < got; from += Group::size()) {
        const unsigned k = from + lane_id();
        this->count_kinds(k < got, items[k < got ? k : 0]);
      }
    const bool looks = kKeepsLocalItems && launch.persistent && Group::rank() == Group::size() - 1;
    if (!nested) {
      if (looks) this->sample_demand();
      for (unsigned k = 0; k < got; ++k) {
        if (k) Group::sync();
        atos_task_body(&worker, &items[k], 0, nullptr, &args);
      }
      return;
    }
    if (flat_kinds) run_flat(got);
    const uint32_t total = got > kFew ? measure<Group>(got) : header->total;
    // The last warp, which has the least to do, samples the demand meanwhile.
    if (Group::has_more_warps() && looks) this->sample_demand();
    const unsigned step = iterations_at_once(), first = (Group::rank() & ~31u) / threads_of_iteration;
#pragma unroll 1
    for (uint32_t from = 0, to; from < total; from = to) {
      to = flushes_within_step() && total - from > kStrip * step ? from + kStrip * step : total;
#pragma unroll 1
      for (uint32_t base = from + first; base < to; base += step) {
        const uint32_t e = base + lane_id() / threads_of_iteration;
        const unsigned k = item_of(e, base, got);
        if (e < total) run_iteration(&items[k], int64_t(e - scan[k]), &values[k * value_words]);
      }
      if (to < total) flush_within_step();
    }
    if (!Group::has_more_warps() && looks) this->sample_demand();
  }
};

} // namespace atos
