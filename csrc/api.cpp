// Devices, memory and programs at the C interface, for whichever backend the device has.
#include <cstring>

#include "backend.h"

namespace atos {

Backend &backend(int32_t device) { return device == ATOS_CPU ? cpu_backend() : cuda_backend(device); }

} // namespace atos

using namespace atos;

extern "C" {

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

atos_status atos_allocate(int32_t device, uint64_t bytes, void **pointer) {
  return guarded([&] { *pointer = backend(device).allocate(bytes); });
}

atos_status atos_release(int32_t device, void *pointer) {
  return guarded([&] { backend(device).release(pointer); });
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

atos_status atos_stream_wait(int32_t device, void *stream) {
  return guarded([&] { backend(device).wait(stream); });
}

atos_status atos_program_load(int32_t device, const void *cubin, const char *symbol, atos_program **program) {
  return guarded([&] { *program = cuda_program(device, cubin, symbol).release(); });
}

void atos_program_unload(atos_program *program) { delete program; }
}
