// Loads the CUDA driver by cuGetProcAddress, and maps its results to failures of the core.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include <dlfcn.h>

#include <type_traits>

#include "cuda/driver.h"

namespace atos::cuda {
namespace {

// The message for a driver without a function. The driver's version comes by dlsym, since cuGetProcAddress may be missing.
std::string too_old(void *library, const char *function) {
  const auto get_version = reinterpret_cast<PFN_cuDriverGetVersion_v2020>(dlsym(library, "cuDriverGetVersion"));
  int version = 0;
  if (get_version) get_version(&version);
  return format("the NVIDIA driver is too old: it is for CUDA %d.%d and has no %s; driver 580 (CUDA 13.0) or newer is needed",
                version / 1000, version % 1000 / 10, function);
}

// Results after which the driver refuses everything in the context, with the same result again.
bool is_fault(CUresult result) {
  switch (result) {
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_LAUNCH_FAILED:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_CONTEXT_IS_DESTROYED: return true;
  default: return false;
  }
}

} // namespace

Driver::Driver() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    missing = "no NVIDIA driver is installed (libcuda.so.1 was not found)";
    return;
  }
  const auto get_address = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  if (!get_address) {
    missing = too_old(library, "cuGetProcAddress_v2");
    return;
  }
  // The null stream is the legacy default stream, as for the libraries whose streams are handed in.
  const auto load = [&](const char *name, int version, auto &function) {
    if (!missing.empty()) return;
    void *found = nullptr;
    const CUresult result = get_address(name, &found, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, nullptr);
    switch (result) {
    case CUDA_SUCCESS: // with null, as documented for a name that the driver does not know
      function = reinterpret_cast<std::decay_t<decltype(function)>>(found);
      [[fallthrough]];
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_INVALID_VALUE: // the driver is older than the version asked for
      if (!found) missing = too_old(library, name);
      break;
    default: missing = "the NVIDIA driver does not start: " + describe(result);
    }
  };
#define ATOS_LOAD(name, version) load(#name, version, name);
  ATOS_DRIVER_FUNCTIONS(ATOS_LOAD)
#undef ATOS_LOAD
  if (!missing.empty()) return;
  const CUresult result = cuInit(0);
  if (result != CUDA_SUCCESS) missing = "the NVIDIA driver does not start: " + describe(result);
}

std::string Driver::describe(CUresult result) const {
  const char *words = nullptr;
  if (cuGetErrorString) cuGetErrorString(result, &words);
  return words ? words : format("error %d", int(result));
}

const Driver &driver() {
  static const Driver instance;
  return instance;
}

void check(CUresult result, const char *doing) {
  if (result == CUDA_SUCCESS) return;
  const atos_status status = result == CUDA_ERROR_OUT_OF_MEMORY ? ATOS_NO_MEMORY : is_fault(result) ? ATOS_FAULT : ATOS_DRIVER;
  throw Failure(status, format("%s: %s", doing, driver().describe(result).c_str()));
}

} // namespace atos::cuda

#endif
