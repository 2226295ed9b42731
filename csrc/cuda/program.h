// CudaProgram: a cubin that is loaded into a GPU, and how many of its blocks are resident at once.
#pragma once
#include "cuda/device.h"

namespace atos::cuda {

class CudaProgram final : public atos_program {
public:
  explicit CudaProgram(CudaDevice &gpu) : atos_program(gpu.index), gpu(gpu) {}
  ~CudaProgram() override;

  void load(const void *cubin, const char *symbol);

  // Resident blocks on all of the GPU, in the configuration of a launch; allows the kernel the shared memory that it takes.
  uint32_t resident_blocks(const atos_launch &launch, uint32_t item_bytes, uint32_t peers);

  CUfunction function = nullptr;

private:
  CudaDevice &gpu;
  CUmodule module = nullptr;
  std::mutex guard; // guards the following members: several threads may launch the program
  uint32_t shared_allowed = 48 << 10;
  // Resident blocks of the latest configuration, since a repeated launch asks again.
  uint32_t known_threads = 0, known_shared = 0, known_blocks = 0;
};

} // namespace atos::cuda
