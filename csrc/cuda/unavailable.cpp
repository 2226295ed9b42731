// The functions of backend.cpp in a build without CUDA's headers: there is no GPU, and the missing headers are the reason.
#include "cuda/available.h"

#if !ATOS_HAS_CUDA
#include "host/backend.h"

namespace atos {

static const char *const kAbsent = "this build is for the CPU alone";

Backend &cuda_backend(int32_t device) { throw Failure(ATOS_NO_DEVICE, format("there is no GPU %d: %s", device, kAbsent)); }
int32_t cuda_device_count(std::string *why_none) {
  *why_none = kAbsent;
  return 0;
}
std::unique_ptr<atos_program> cuda_program(int32_t, const void *, const char *) { throw Failure(ATOS_NO_DEVICE, kAbsent); }
int32_t cuda_pointer_device(const void *) { return ATOS_CPU; }
void cuda_release_memory() {}
void cuda_connect(const std::vector<int32_t> &) { throw Failure(ATOS_NO_DEVICE, kAbsent); }
void *cuda_allocate_over(const std::vector<int32_t> &, const std::vector<uint64_t> &) {
  throw Failure(ATOS_NO_DEVICE, kAbsent);
}
void cuda_release_over(void *) noexcept {}
std::unique_ptr<atos_shared> cuda_share(int32_t, uint64_t) { throw Failure(ATOS_NO_DEVICE, kAbsent); }

} // namespace atos

#endif
