// Loads and runs kernels that the core has as PTX.
#include "cuda/available.h"

#if ATOS_HAS_CUDA
#include "cuda/ptx_kernel.h"

#include <algorithm>
#include <string>

namespace atos::cuda {
namespace {

constexpr uint32_t kThreads = 256, kBlocksPerMultiprocessor = 8;

} // namespace

PtxModule::PtxModule(const char *ptx, const char *what) : what(what) {
  check(driver().cuModuleLoadData(&module, ptx), (std::string("compiling ") + what).c_str());
}

CUfunction PtxModule::kernel(const char *name) const {
  CUfunction function = nullptr;
  check(driver().cuModuleGetFunction(&function, module, name), (std::string("loading ") + what).c_str());
  return function;
}

void run_over(CudaDevice &device, CUfunction kernel, uint64_t count, void **parameters, const char *doing) {
  const uint64_t useful = (count + kThreads - 1) / kThreads;
  const uint32_t blocks =
      uint32_t(std::min<uint64_t>(useful, uint64_t(device.multiprocessor_count) * kBlocksPerMultiprocessor));
  check(driver().cuLaunchKernel(kernel, blocks, 1, 1, kThreads, 1, 1, 0, CU_STREAM_LEGACY, parameters, nullptr), doing);
  check(driver().cuStreamSynchronize(CU_STREAM_LEGACY), doing);
}

} // namespace atos::cuda

#endif
