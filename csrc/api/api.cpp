// The C interface: each function checks what it can, calls the core, and turns exceptions into a status.
#include <cstring>

#include "cpu/memory.h"
#include "cpu/program.h"
#include "cpu/shared_range.h"
#include "cpu/team.h"
#include "host/backend.h"
#include "host/process_group.h"
#include "host/queue.h"

namespace atos {

Backend &backend(int32_t device) { return device == ATOS_CPU ? cpu_backend() : cuda_backend(device); }

} // namespace atos

using namespace atos;

extern "C" {

int32_t atos_abi_version(void) { return ATOS_ABI_VERSION; }
const char *atos_message(void) { return message().c_str(); }

atos_status atos_device_count(int32_t *count) {
  return guarded([&] {
    std::string why;
    *count = cuda_device_count(&why);
    set_message(why);
  });
}

atos_status atos_device_query(int32_t device, atos_device_info *info) {
  return guarded([&] {
    std::memset(info, 0, sizeof *info);
    backend(device).query(info);
  });
}

atos_status atos_allocate(int32_t device, uint64_t bytes, int32_t cleared, void **pointer) {
  return guarded([&] { *pointer = cleared ? backend(device).allocate(bytes) : backend(device).allocate_uncleared(bytes); });
}

atos_status atos_release(int32_t device, void *pointer) {
  return guarded([&] { backend(device).release(pointer); });
}

atos_status atos_reserve(int32_t device, uint64_t *bytes, uint64_t least, void **pointer) {
  return guarded([&] { *pointer = backend(device).reserve(bytes, least); });
}

atos_status atos_release_reserved(int32_t device, void *pointer, uint64_t bytes, uint64_t least) {
  return guarded([&] { backend(device).release_reserved(pointer, bytes, least, true); });
}

atos_status atos_release_memory(void) {
  return guarded([] {
    StopMonitor::refuse_in_callback("release memory");
    cpu::release_kept();
    cuda_release_memory();
  });
}

atos_status atos_copy(int32_t device, void *to, const void *from, uint64_t bytes) {
  return guarded([&] { backend(device).copy(to, from, bytes); });
}

atos_status atos_fill(int32_t device, void *to, const void *element, uint32_t element_bytes, uint64_t count) {
  return guarded([&] { backend(device).fill(to, element, element_bytes, count); });
}

atos_status atos_pointer_device(const void *pointer, int32_t *device) {
  return guarded([&] { *device = cuda_pointer_device(pointer); });
}

atos_status atos_connect(uint32_t count, const int32_t *devices) {
  return guarded([&] {
    StopMonitor::refuse_in_callback("connect GPUs");
    cuda_connect({devices, devices + count});
  });
}

atos_status atos_allocate_over(uint32_t count, const int32_t *devices, const uint64_t *borders, void **pointer) {
  return guarded([&] {
    StopMonitor::refuse_in_callback("make an array over several GPUs; make it before the launch");
    *pointer = cuda_allocate_over({devices, devices + count}, {borders, borders + count + 1});
  });
}

void atos_release_over(void *pointer) { cuda_release_over(pointer); }

atos_status atos_stream_wait(int32_t device, void *stream) {
  return guarded([&] {
    if (device != ATOS_CPU) StopMonitor::refuse_in_callback("wait for a stream of a GPU, which may wait for the launch");
    backend(device).wait(stream);
  });
}

atos_status atos_program_load(int32_t device, const void *cubin, const char *symbol, atos_program **program) {
  return guarded([&] {
    StopMonitor::refuse_in_callback("load a program; launch it once before");
    *program = cuda_program(device, cubin, symbol).release();
  });
}

atos_status atos_program_native(uint64_t run, uint64_t idle, uint64_t each_round, int32_t checked, atos_program **program) {
  return guarded([&] {
    *program = new CpuProgram(reinterpret_cast<RunTask>(run), reinterpret_cast<RunIdle>(idle),
                              reinterpret_cast<RunIdle>(each_round), checked);
  });
}

void atos_cpu_fail(int64_t site, int64_t value, int64_t bound, int64_t array) {
  atos_failure &failure = failure_of_thread();
  if (!failure.failed) failure = {1, site, value, bound, array, 0, {}};
}

const atos_named_function *atos_cpu_team() { return team_functions(); }

void atos_program_unload(atos_program *program) { delete program; }

static void check_item_bytes(uint32_t item_bytes) {
  if (item_bytes != 4 && item_bytes != 8 && item_bytes != 16 && item_bytes != 32)
    throw Failure(ATOS_INVALID, format("items must have 4, 8, 16 or 32 bytes (got %u)", item_bytes));
}

atos_status atos_queue_create(int32_t device, uint64_t capacity, uint32_t item_bytes, atos_queue **queue) {
  return guarded([&] {
    check_item_bytes(item_bytes);
    if (capacity == 0) throw Failure(ATOS_INVALID, "the capacity must be at least 1 (got 0)");
    *queue = new atos_queue(device, capacity, item_bytes);
  });
}

atos_status atos_queue_create_shared(void *memory, uint64_t bytes, uint64_t capacity, uint32_t item_bytes, atos_queue **queue) {
  return guarded([&] {
    check_item_bytes(item_bytes);
    if (capacity == 0) throw Failure(ATOS_INVALID, "the capacity must be at least 1 (got 0)");
    *queue = new atos_queue(ATOS_CPU, capacity, item_bytes, std::make_unique<SharedRange>(memory, bytes));
  });
}

atos_status atos_queue_create_in(atos_shared *shared, uint64_t capacity, uint32_t item_bytes, atos_queue **queue) {
  return guarded([&] {
    check_item_bytes(item_bytes);
    if (capacity == 0) throw Failure(ATOS_INVALID, "the capacity must be at least 1 (got 0)");
    *queue = new atos_queue(shared->device, capacity, item_bytes, source_in(*shared));
  });
}

atos_status atos_shared_reserve(int32_t device, uint64_t bytes, atos_shared **shared, void **begin) {
  static_assert(ATOS_SHARED_GRANULE == atos_shared::kGranule);
  return guarded([&] {
    *shared = cuda_share(device, bytes).release();
    *begin = (*shared)->begin;
  });
}

void atos_shared_release(atos_shared *shared) { delete shared; }

static atos_shared::Part part_of(const atos_shared &shared, uint64_t at, uint64_t bytes) {
  if (bytes == 0 || at % ATOS_SHARED_GRANULE || bytes % ATOS_SHARED_GRANULE || at > shared.bytes || bytes > shared.bytes - at)
    throw Failure(ATOS_INVALID, format("a part has multiples of %d bytes (got %llu at %llu of %llu)", int(ATOS_SHARED_GRANULE),
                                       static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(at),
                                       static_cast<unsigned long long>(shared.bytes)));
  return {at, bytes};
}

atos_status atos_shared_create(atos_shared *shared, uint64_t at, uint64_t bytes, int32_t *file) {
  return guarded([&] {
    StopMonitor::refuse_in_callback("share memory of a GPU");
    shared->create(part_of(*shared, at, bytes));
    *file = shared->descriptor(shared->created.size() - 1);
  });
}

uint64_t atos_shared_created(const atos_shared *shared) {
  uint64_t bytes = 0;
  for (const atos_shared::Part &part : shared->created) bytes += part.size;
  return bytes;
}

atos_status atos_shared_attach(atos_shared *shared, uint64_t at, uint64_t bytes, int32_t file) {
  return guarded([&] { shared->attach(part_of(*shared, at, bytes), file); });
}

atos_status atos_group_create(uint32_t count, uint32_t own, const int32_t *sockets, atos_group **group) {
  return guarded([&] {
    if (own >= count) throw Failure(ATOS_INVALID, format("process %u of %u", own, count));
    *group = new atos_group(count, own, sockets);
  });
}

void atos_group_destroy(atos_group *group) { delete group; }
void atos_group_leave(atos_group *group) { group->leave(); }

static void check_gathered(uint64_t bytes) {
  if (bytes == 0 || bytes > ATOS_GATHER_BYTES)
    throw Failure(ATOS_INVALID, format("1 to %d bytes are gathered at once (got %llu)", int(ATOS_GATHER_BYTES),
                                       static_cast<unsigned long long>(bytes)));
}

atos_status atos_group_gather(atos_group *group, const void *own, uint64_t bytes, void *all) {
  return guarded([&] {
    check_gathered(bytes);
    group->gather_in_turn(own, bytes, all);
  });
}

atos_status atos_group_gather_files(atos_group *group, const void *own, uint64_t bytes, void *all, int32_t file,
                                    int32_t *files) {
  return guarded([&] {
    check_gathered(bytes);
    group->gather_files_in_turn(own, bytes, all, file, files);
  });
}

int32_t atos_group_has_left(atos_group *group, uint32_t number) { return number < group->count && group->has_left(number); }

atos_status atos_queue_convert(atos_queue *queue, uint32_t item_bytes, const uint8_t *kinds, atos_queue **successor) {
  return guarded([&] {
    check_item_bytes(item_bytes);
    *successor = queue->convert(item_bytes, kinds).release();
  });
}

void atos_queue_destroy(atos_queue *queue) {
  if (queue && !queue->in_use()) delete queue;
}

void atos_queue_capacity(atos_queue *queue, uint64_t *capacity, uint64_t *limit) {
  *capacity = queue->capacity();
  *limit = queue->limit();
}

atos_status atos_queue_limit(atos_queue *queue, uint64_t limit) {
  return guarded([&] { queue->set_limit(limit); });
}

atos_status atos_queue_push(atos_queue *queue, const void *items, uint64_t count) {
  return guarded([&] { queue->push(Pushed::of_host(items), nullptr, count); });
}

atos_status atos_queue_set_buckets(atos_queue *queue, uint32_t buckets, double delta) {
  return guarded([&] { queue->set_buckets(buckets, delta); });
}

atos_status atos_queue_push_prioritized(atos_queue *queue, const void *items, const double *priorities, uint64_t count) {
  return guarded([&] { queue->push(Pushed::of_host(items), priorities, count); });
}

atos_status atos_queue_read_priorities(atos_queue *queue, double *priorities, uint64_t capacity) {
  return guarded([&] { queue->read_priorities(priorities, capacity); });
}

atos_status atos_queue_push_device(atos_queue *queue, const void *items, uint64_t count) {
  return guarded([&] { queue->push(Pushed::of_device(items), nullptr, count); });
}

atos_status atos_queue_push_range(atos_queue *queue, uint64_t first, uint64_t count) {
  return guarded([&] { queue->push(Pushed::from(first), nullptr, count); });
}

atos_status atos_queue_pending(atos_queue *queue, uint64_t *count) {
  return guarded([&] { *count = queue->pending(); });
}

atos_status atos_queue_read(atos_queue *queue, void *items, uint64_t capacity, atos_queue_state *state) {
  return guarded([&] { queue->read(items, capacity, state); });
}

atos_status atos_queue_restore(atos_queue *queue, const void *items, const atos_queue_state *state) {
  return guarded([&] { queue->restore(static_cast<const unsigned char *>(items), *state); });
}

atos_status atos_queue_clear(atos_queue *queue) {
  return guarded([&] { queue->clear(); });
}

atos_status atos_queue_resize(atos_queue *queue, uint64_t capacity) {
  return guarded([&] { queue->resize(capacity); });
}

atos_status atos_inbox_create(int32_t device, uint32_t item_bytes, atos_inbox **inbox) {
  return guarded([&] { *inbox = new atos_inbox(device, item_bytes); });
}

void atos_inbox_destroy(atos_inbox *inbox) { delete inbox; }

atos_status atos_inbox_begun(atos_inbox *inbox) {
  return guarded([&] {
    if (!inbox->has_begun()) throw Failure(ATOS_HELD, "the launch does not have the queue yet");
  });
}

atos_status atos_inbox_push(atos_inbox *inbox, const void *items, uint64_t count, uint64_t *pushed) {
  *pushed = 0;
  return guarded([&] { *pushed = inbox->push(static_cast<const unsigned char *>(items), count); });
}

atos_status atos_inbox_close(atos_inbox *inbox) {
  return guarded([&] { inbox->close(); });
}

uint64_t atos_inbox_waiting(atos_inbox *inbox) { return inbox->waiting(); }

void atos_inbox_stop(atos_inbox *inbox) { inbox->stop(); }

atos_status atos_queue_launch(atos_queue *queue, atos_program *program, const atos_launch *launch, atos_stats *stats) {
  return guarded([&] {
    if (program->device != queue->device)
      throw Failure(ATOS_INVALID,
                    format("the program is for device %d, the queue on device %d", program->device, queue->device));
    queue->launch(*program, *launch, stats);
  });
}

atos_status atos_peers_launch(const atos_peers *peers, const atos_launch *launch, atos_stats *stats) {
  return guarded([&] { atos_queue::launch_peers(*peers, *launch, stats); });
}

} // extern "C"
