// Newest first: a worker keeps all that its tasks push on a stack of its own, in the memory of the device, and goes on with the
// newest items, so that it works off a tree depth first. Idle workers get the oldest items, by way of the queue.
//
//   bottom                                        top
//     | oldest ...                         newest  | pushes of this step ...
//     `-> to the queue, for idle workers      `-> the next batch
//
// The items on a stack are local items (worker_state.cuh): they have no ticket. Only the worker itself touches its stack.
// Pushes for which a stack has no room go to the queue.
#pragma once
#include "device/push_buffer.cuh"

namespace atos {

// What a worker with items on its stack runs next: the newest ones, and in one of kMostStackSteps steps others, in turns.
enum class Turn : uint32_t { kNewest, kOldest, kWaiting };

// [any lanes] Puts an item on the stack, or into the queue if the stack has no room. Lanes that push together share one atomic.
template <unsigned bytes> ATOS_DEVICE void Worker<bytes>::push_on_stack(const Item<bytes> &item) {
  const unsigned active = __activemask();
  const unsigned leader = __ffs(active) - 1, before = __popc(active & ((1u << lane_id()) - 1));
  uint32_t at = 0;
  if (lane_id() == leader) at = atomicAdd(&header->pushes, __popc(active));
  at = __shfl_sync(active, at, leader) + before;
  if (stack().count() + at < launch->stack_room) {
    on_stack(stack().top + at) = item;
  } else {
    limit_count(&header->pushes, at);
    fence();
    publish_together(queue(), __activemask(), item);
  }
}

template <class Group, unsigned bytes> struct NewestFirst : PushBuffer<Group, bytes> {
  using Pushes = PushBuffer<Group, bytes>;
  using Pushes::header;
  using Pushes::launch;
  using Pushes::Pushes;
  using Pushes::queue;
  using Pushes::worker;

  // [one warp] After a step, before `settle_pushes`: whether to wait for space in the ring. Unless it `keeps` the pushes of the
  // step, they leave the stack for the queue; at a stop all items leave.
  ATOS_DEVICE bool waits_for_space(bool keeps) {
    StackState &stack = worker.stack();
    if (lane_id() == 0) stack.leaving = this->gives_way() ? stack.count() + this->buffered() : keeps ? 0 : this->buffered();
    __syncwarp();
    const bool waits = stack.leaving && header->producer.above_high_water(stack.leaving);
    __syncwarp(); // before the first lane reserves tickets
    return waits;
  }

  // [one warp] After a step: makes its pushes the top of the stack, and gives items to the queue: those that leave, or as many
  // of the oldest as the worker donates to idle ones.
  ATOS_DEVICE void settle_pushes() {
    StackState &stack = worker.stack();
    uint32_t from = 0, given = 0;
    if (lane_id() == 0) {
      stack.top += this->buffered();
      header->end_flush();
      given = stack.leaving;
      from = given ? stack.top - given : stack.bottom;
      if (!given) given = items_to_donate_of(stack.count());
      leave_with(given);
    }
    from = __shfl_sync(kAll, from, 0);
    given = __shfl_sync(kAll, given, 0);
    if (!given) return;
    fence(); // between the writes of the tasks that pushed the items, and the commits in `publish`
    __syncwarp();
    const Producer &producer = header->producer;
#pragma unroll 1
    for (uint32_t k = lane_id(); k < given; k += kWarpSize)
      queue().publish(producer.ring, producer.base + k, worker.on_stack(from + k));
    __syncwarp();
    if (lane_id() == 0) {
      if (stack.leaving) stack.top -= given;
      else stack.bottom += given;
      header->producer.reserved = 0;
    }
  }

  // [one lane] Reserves tickets for n items, unless `reserve_when_space` has done so.
  ATOS_DEVICE void leave_with(uint32_t n) {
    if (n && !header->producer.reserved) header->producer.reserve(queue(), n);
  }

  // [one lane] Of n items on the stack, the number that goes to idle workers.
  ATOS_DEVICE uint32_t items_to_donate_of(uint32_t n) const {
    const bool shares = n > 1 && launch.shares && header->producer.demand > 0;
    const uint32_t given = shares ? this->items_to_donate(n / 2) : 0;
    this->count(&atos_sharing::items_donated, given);
    return given;
  }

  // [one lane] Whose turn it is. The oldest items of the stack and the items that wait in the queue have theirs, also if the
  // newest items push themselves again until those have run.
  ATOS_DEVICE Turn next_turn() {
    this->stop_by_clock();
    if (header->steps < kMostStackSteps) return Turn::kNewest;
    header->steps = 0;
    return ++worker.stack().turns % 2 ? Turn::kWaiting : Turn::kOldest;
  }

  // [one warp] Takes n items off the stack, of which each lane gets those from its rank on: the newest, or the oldest.
  template <class Take> ATOS_DEVICE void pop(uint32_t n, bool oldest, uint32_t rank, uint32_t stride, Take take) {
    StackState &stack = worker.stack();
    const uint32_t first = oldest ? stack.bottom : stack.top - n;
#pragma unroll 1
    for (uint32_t k = rank; k < n; k += stride) take(k, worker.on_stack(first + k));
    __syncwarp();
    if (lane_id() == 0) {
      stack.popped = n;
      if (oldest) stack.bottom += n;
      else stack.top -= n;
      this->count(&atos_sharing::local_items, n);
    }
    __syncwarp();
  }
};

} // namespace atos
