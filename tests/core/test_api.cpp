// The C interface, through the library: statuses, messages, and what a queue holds.
#include "host/status.h"

#include <algorithm>
#include <thread>

#include "check.h"

namespace {

bool says(const char *part) { return std::strstr(atos_message(), part) != nullptr; }

#define OK(call)                                                                                                               \
  do {                                                                                                                         \
    atos_status status_;                                                                                                       \
    while ((status_ = (call)) == ATOS_HELD) {}                                                                                 \
    CHECK(status_ == ATOS_OK, #call " gave status %d: %s", int(status_), atos_message());                                      \
  } while (0)

#define FAILS(call, status, part)                                                                                              \
  do {                                                                                                                         \
    const atos_status status_ = (call);                                                                                        \
    CHECK(status_ == status, #call " gave status %d: %s", int(status_), atos_message());                                       \
    CHECK(says(part), #call " said «%s», without «" part "»", atos_message());                                                 \
  } while (0)

struct Queue {
  atos_queue *handle = nullptr;
  uint32_t item_bytes;
  Queue(uint64_t capacity, uint32_t item_bytes) : item_bytes(item_bytes) {
    OK(atos_queue_create(ATOS_CPU, capacity, item_bytes, &handle));
  }
  Queue(const Queue &) = delete;
  ~Queue() { atos_queue_destroy(handle); }
  operator atos_queue *() const { return handle; }
  uint64_t pending() const {
    uint64_t count = 99;
    OK(atos_queue_pending(handle, &count));
    return count;
  }
  std::vector<unsigned char> read() const {
    std::vector<unsigned char> items(pending() * item_bytes);
    atos_queue_state state;
    OK(atos_queue_read(handle, items.data(), pending(), &state));
    CHECK(state.pending == pending(), "%" PRIu64 " pending when read", state.pending);
    return items;
  }
};

std::vector<unsigned char> some_items(uint64_t seed, uint64_t n, uint32_t item_bytes) {
  check::Random random(seed);
  std::vector<unsigned char> items(n * item_bytes);
  for (unsigned char &byte : items) byte = static_cast<unsigned char>(random() % 3 == 0 ? 0xff : random());
  return items;
}

} // namespace

TEST(abi_version) { CHECK(atos_abi_version() == ATOS_ABI_VERSION, "%d", atos_abi_version()); }

TEST(create_refuses_what_makes_no_sense) {
  atos_queue *queue = nullptr;
  for (const uint32_t bytes : {0u, 1u, 2u, 3u, 5u, 7u, 12u, 15u, 17u, 24u, 31u, 33u, 64u, ~0u})
    FAILS(atos_queue_create(ATOS_CPU, 1, bytes, &queue), ATOS_INVALID, "items must have 4, 8, 16 or 32 bytes (got ");
  FAILS(atos_queue_create(ATOS_CPU, 1, 12, &queue), ATOS_INVALID, "(got 12)");
  FAILS(atos_queue_create(ATOS_CPU, 0, 4, &queue), ATOS_INVALID, "the capacity must be at least 1 (got 0)");
  for (const uint64_t capacity : {(1ull << 40) + 1, 1ull << 60, 1ull << 61, (1ull << 61) + 1, ~0ull})
    FAILS(atos_queue_create(ATOS_CPU, capacity, 8, &queue), ATOS_NO_MEMORY, "larger than any memory");
  CHECK(queue == nullptr, "a queue was made all the same");
}

TEST(addresses_that_get_memory_where_they_are_written) {
  const uint64_t least = 1 << 20, wanted = 1 << 28;
  uint64_t bytes = wanted;
  void *pointer = nullptr;
  OK(atos_reserve(ATOS_CPU, &bytes, least, &pointer));
  CHECK(bytes >= least && bytes <= wanted, "%" PRIu64 " bytes", bytes);
  auto *at = static_cast<unsigned char *>(pointer);
  CHECK(at[0] == 0 && at[bytes - 1] == 0, "the memory is not zero");
  at[0] = at[bytes - 1] = 1;
  OK(atos_release_reserved(ATOS_CPU, pointer, bytes, least));
  bytes = least;
  FAILS(atos_reserve(ATOS_CPU, &bytes, uint64_t(1) << 60, &pointer), ATOS_NO_MEMORY, "more than the host has");
}

TEST(devices_that_are_not_there) {
  atos_queue *queue = nullptr;
  for (const int32_t device : {-2, 12345, INT32_MIN, INT32_MAX}) {
    const atos_status status = atos_queue_create(device, 1, 4, &queue);
    CHECK(status == ATOS_NO_DEVICE && *atos_message(), "device %d: status %d, «%s»", device, int(status), atos_message());
  }
  atos_device_info info;
  void *pointer = nullptr;
  FAILS(atos_device_query(12345, &info), ATOS_NO_DEVICE, "");
  FAILS(atos_allocate(12345, 4, 1, &pointer), ATOS_NO_DEVICE, "");
  atos_program *program = nullptr;
  FAILS(atos_program_load(12345, "", "kernel", &program), ATOS_NO_DEVICE, "");
  CHECK(!queue && !pointer && !program, "something was made all the same");
}

TEST(the_cpu_describes_itself) {
  atos_device_info info;
  OK(atos_device_query(ATOS_CPU, &info));
  CHECK(std::string(info.name) == "CPU threads", "%s", info.name);
  CHECK(info.multiprocessor_count >= 1 && info.multiprocessor_count <= int(std::thread::hardware_concurrency()), "%d cores", info.multiprocessor_count);
  CHECK(info.total_bytes > info.free_bytes && info.free_bytes > 0, "%" PRIu64 " free", info.free_bytes);
  CHECK(info.compute_major == 0 && info.driver_version == 0, "the CPU has no compute capability");
}

TEST(device_count_says_why_there_is_none) {
  int32_t count = -1;
  OK(atos_device_count(&count));
  CHECK(count >= 0 && (count > 0) == (*atos_message() == 0), "%d GPUs, and the message «%s»", count, atos_message());
}

TEST(memory) {
  void *pointer = nullptr;
  OK(atos_allocate(ATOS_CPU, 1001, 1, &pointer));
  CHECK(reinterpret_cast<uintptr_t>(pointer) % 128 == 0, "the memory begins at %p", pointer);
  const auto *bytes = static_cast<const unsigned char *>(pointer);
  CHECK(std::all_of(bytes, bytes + 1001, [](unsigned char byte) { return byte == 0; }), "the memory is not zero");
  const unsigned char sixteen[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  for (const uint32_t size : {1u, 2u, 4u, 8u, 16u}) {
    OK(atos_fill(ATOS_CPU, pointer, sixteen, size, 1001 / size));
    for (uint32_t i = 0; i < 1001 / size * size; ++i)
      CHECK(bytes[i] == sixteen[i % size], "byte %u is %d after a fill with elements of %u", i, bytes[i], size);
  }
  unsigned char back[3];
  OK(atos_copy(ATOS_CPU, back, bytes + 16, 3));
  CHECK(back[0] == 1 && back[2] == 3, "a copy");
  int32_t device = 99;
  OK(atos_pointer_device(pointer, &device));
  CHECK(device == ATOS_CPU, "memory of the host is on device %d", device);
  OK(atos_release(ATOS_CPU, pointer));
  OK(atos_release(ATOS_CPU, nullptr));
}

TEST(nothing_to_copy) {
  OK(atos_copy(ATOS_CPU, nullptr, nullptr, 0));
  OK(atos_fill(ATOS_CPU, nullptr, "1234", 4, 0));
}

TEST(more_memory_than_there_is) {
  void *pointer = nullptr;
  FAILS(atos_allocate(ATOS_CPU, ~0ull, 1, &pointer), ATOS_NO_MEMORY, "18446744073709551615 bytes asked for");
  FAILS(atos_allocate(ATOS_CPU, ~0ull - 256, 1, &pointer), ATOS_NO_MEMORY, "18446744073709551359 bytes asked for");
  FAILS(atos_allocate(ATOS_CPU, 1ull << 60, 1, &pointer), ATOS_NO_MEMORY, "bytes asked for");
  CHECK(!pointer, "something was made all the same");
}

TEST(push_and_read_keep_order_and_bytes) {
  for (const uint32_t bytes : {4u, 8u, 16u, 32u}) {
    Queue queue(1000, bytes);
    CHECK(queue.pending() == 0 && queue.read().empty(), "a new queue is empty");
    std::vector<unsigned char> all;
    for (uint64_t n : {1, 0, 2, 300, 697}) {
      const auto items = some_items(n + bytes, n, bytes);
      OK(atos_queue_push(queue, items.data(), n));
      all.insert(all.end(), items.begin(), items.end());
      CHECK(queue.pending() == all.size() / bytes, "%" PRIu64 " are pending", queue.pending());
      CHECK(queue.read() == all, "items of %u bytes came back otherwise", bytes);
    }
    std::vector<unsigned char> few(3 * bytes);
    atos_queue_state state;
    OK(atos_queue_read(queue, few.data(), 3, &state));
    CHECK(state.pending == 1000, "%" PRIu64 " pending when three were read", state.pending);
    CHECK(std::equal(few.begin(), few.end(), all.begin()), "the oldest three");
    CHECK(queue.read() == all, "reading took something away");
  }
}

TEST(nothing_to_push_or_read) {
  Queue queue(1, 4);
  OK(atos_queue_push(queue, nullptr, 0));
  atos_queue_state state;
  OK(atos_queue_read(queue, nullptr, 0, &state));
  CHECK(state.pending == 0 && queue.pending() == 0, "something was pushed");
  OK(atos_queue_restore(queue, nullptr, &state));
  CHECK(queue.pending() == 0, "something was restored");
}

TEST(push_beyond_the_capacity_pushes_nothing) {
  Queue queue(10, 8);
  const auto items = some_items(1, 16, 8);
  OK(atos_queue_push(queue, items.data(), 6));
  const auto before = queue.read();
  FAILS(atos_queue_push(queue, items.data(), 5), ATOS_QUEUE_FULL,
        "pushing 5 items to a queue that holds 6 would exceed its max_capacity of 10");
  FAILS(atos_queue_push(queue, items.data(), ~0ull), ATOS_QUEUE_FULL, "pushing 18446744073709551615 items");
  FAILS(atos_queue_push(queue, items.data(), ~0ull - 5), ATOS_QUEUE_FULL, "would exceed"); // 6 more wrap around to 0
  CHECK(queue.read() == before, "a push that failed changed the queue");
  OK(atos_queue_push(queue, items.data(), 4));
  FAILS(atos_queue_push(queue, items.data(), 1), ATOS_QUEUE_FULL, "holds 10");
}

TEST(read_of_more_than_is_pending) {
  Queue queue(10, 4);
  const uint32_t items[3] = {1, 2, 3};
  OK(atos_queue_push(queue, items, 3));
  uint32_t back[4] = {9, 9, 9, 9};
  atos_queue_state state;
  for (const uint64_t room : {uint64_t(4), uint64_t(1) << 62, ~uint64_t(0)}) { // the second x 4 is 0
    OK(atos_queue_read(queue, back, room, &state));
    CHECK(state.pending == 3 && back[0] == 1 && back[1] == 2 && back[2] == 3 && back[3] == 9, "the three that there are");
  }
}

TEST(restore_gives_back_what_was_read) {
  for (const uint32_t bytes : {4u, 8u, 16u, 32u}) {
    for (const uint64_t n : {0, 1, 7, 10, 11, 30}) { // of which 10 fit the ring
      const auto items = some_items(n, n, bytes);
      const atos_queue_state state{n, n / 2, 1234, 567};
      Queue queue(10, bytes);
      OK(atos_queue_restore(queue, items.data(), &state));
      CHECK(queue.read() == items, "%" PRIu64 " items came back otherwise", n);
      atos_queue_state back;
      OK(atos_queue_read(queue, nullptr, 0, &back));
      CHECK(back.level == std::min<uint64_t>(n / 2, 10), "a level of %" PRIu64, back.level);
      CHECK(back.tasks_run == 1234 && back.tasks_pushed == 567, "the counters");
      if (n) FAILS(atos_queue_restore(queue, items.data(), &state), ATOS_INVALID, "only an empty queue can be restored");
      OK(atos_queue_resize(queue, 30));
      CHECK(queue.read() == items, "%" PRIu64 " items came back otherwise after a resize", n);
    }
  }
}

TEST(clear_and_push_again) {
  Queue queue(4, 16);
  for (uint64_t round = 0; round < 10; ++round) {
    const auto items = some_items(round, 3, 16);
    OK(atos_queue_push(queue, items.data(), 3));
    CHECK(queue.read() == items, "round %" PRIu64, round);
    OK(atos_queue_clear(queue));
    CHECK(queue.pending() == 0 && queue.read().empty(), "a cleared queue is empty");
  }
}

TEST(resize_keeps_items_in_order) {
  for (const uint32_t bytes : {4u, 8u, 16u, 32u}) {
    Queue queue(5, bytes);
    auto all = some_items(bytes, 5, bytes);
    OK(atos_queue_push(queue, all.data(), 5));
    for (const uint64_t capacity : {5, 6, 100, 100000, 9, 5}) {
      OK(atos_queue_resize(queue, capacity));
      CHECK(queue.read() == all, "after resize to %" PRIu64, capacity);
    }
    FAILS(atos_queue_resize(queue, 4), ATOS_INVALID, "a capacity of 4 is less than the 5 tasks pending");
    CHECK(queue.read() == all, "after a resize that was refused");
    const auto more = some_items(7, 1, bytes);
    FAILS(atos_queue_push(queue, more.data(), 1), ATOS_QUEUE_FULL, "capacity of 5");
    OK(atos_queue_resize(queue, 6));
    OK(atos_queue_push(queue, more.data(), 1));
    all.insert(all.end(), more.begin(), more.end());
    CHECK(queue.read() == all, "after a resize and a push");
  }
}

TEST(resize_to_nothing) {
  Queue queue(5, 4);
  FAILS(atos_queue_resize(queue, 0), ATOS_INVALID, "the capacity must be at least 1 (got 0)");
  const uint32_t item = 7;
  OK(atos_queue_push(queue, &item, 1));
}

TEST(resize_to_more_than_there_is_keeps_the_queue) {
  Queue queue(5, 8);
  const auto items = some_items(1, 5, 8);
  OK(atos_queue_push(queue, items.data(), 5));
  FAILS(atos_queue_resize(queue, 1ull << 60), ATOS_NO_MEMORY, "larger than any memory");
  CHECK(queue.pending() == 5 && queue.read() == items, "a resize that failed lost the items");
  OK(atos_queue_clear(queue));
  OK(atos_queue_push(queue, items.data(), 5));
  CHECK(queue.read() == items, "the queue works on");
}

TEST(destroy_and_unload_nothing) {
  atos_queue_destroy(nullptr);
  atos_program_unload(nullptr);
}

TEST(messages_belong_to_their_thread) {
  atos_queue *queue = nullptr;
  FAILS(atos_queue_create(ATOS_CPU, 0, 4, &queue), ATOS_INVALID, "capacity");
  std::thread([&] {
    CHECK(*atos_message() == 0, "a new thread begins with «%s»", atos_message());
    FAILS(atos_queue_create(ATOS_CPU, 1, 5, &queue), ATOS_INVALID, "items");
  }).join();
  CHECK(says("capacity"), "the message of another thread came here: «%s»", atos_message());
}

TEST(pushes_from_several_threads) {
  Queue queue(4000, 8);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&queue, t] {
      for (uint64_t i = 0; i < 1000; i += 10) {
        uint64_t items[10];
        for (uint64_t k = 0; k < 10; ++k) items[k] = t * 1000 + i + k;
        OK(atos_queue_push(queue, items, 10));
        (void)queue.pending();
      }
    });
  for (std::thread &thread : threads) thread.join();
  const auto bytes = queue.read();
  std::vector<uint64_t> items(4000);
  CHECK(bytes.size() == 32000, "%zu bytes are pending", bytes.size());
  std::memcpy(items.data(), bytes.data(), bytes.size());
  uint64_t next[4] = {0, 1000, 2000, 3000};
  for (const uint64_t item : items) CHECK(item == next[item / 1000]++, "item %" PRIu64 " is out of order", item);
}
