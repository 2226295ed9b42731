// Finds and moves items in a GPU's memory, as `Backend` says: there may be millions of them, which would take the host seconds.
#pragma once
#include "cuda/device.h"
#include "host/backend.h"

namespace atos::cuda {

void gather_spilled(CudaDevice &device, const SpilledItems &spilled, uint64_t end, uint64_t *number, uint64_t size);
void store_spilled(CudaDevice &device, const SpilledItems &spilled, uint64_t first, uint64_t n, const RingSlots &to);
void move_slots(CudaDevice &device, const RingSlots &from, uint64_t first, uint64_t n, uint32_t item_bytes, void *to);

} // namespace atos::cuda
