// Finds and moves spilled items in a GPU's memory, as `Backend::gather_spilled` and `Backend::store_spilled` say. There may be
// millions of these items, which would take the host a second.
#pragma once
#include "cuda/device.h"
#include "host/backend.h"

namespace atos::cuda {

void gather_spilled(CudaDevice &device, const SpilledItems &spilled, uint64_t end, uint64_t *number, uint64_t size);
void store_spilled(CudaDevice &device, const SpilledItems &spilled, uint64_t first, uint64_t num_tickets, uint64_t start,
                   uint64_t size, void *slots);

} // namespace atos::cuda
