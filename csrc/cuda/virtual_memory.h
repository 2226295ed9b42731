// CudaGrowableRange: a reserved range of virtual addresses whose beginning is backed by memory; more can be mapped while
// kernels run (cuMemAddressReserve, cuMemCreate, cuMemMap).
#pragma once
#include "cuda/device.h"

namespace atos::cuda {

class CudaGrowableRange final : public GrowableRange {
public:
  CudaGrowableRange(CudaDevice &device, uint64_t size);
  ~CudaGrowableRange() override;
  void extend(uint64_t size) override;

private:
  uint64_t reserved() const { return (bytes + granularity - 1) / granularity * granularity; }

  CudaDevice &device;
  CUmemAllocationProp properties{};
  size_t granularity = 0; // bytes; the size of a part is a multiple of it
  struct Part {
    CUmemGenericAllocationHandle handle;
    uint64_t at, size;
  };
  std::vector<Part> parts;
};

// A range of so many bytes; null if the GPU or the driver has none. The queue then grows between kernels.
std::unique_ptr<GrowableRange> reserve_range(CudaDevice &device, uint64_t bytes);

} // namespace atos::cuda
