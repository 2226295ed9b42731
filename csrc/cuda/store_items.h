// Stores items that lie in a GPU's memory into slots of a ring, which the host would otherwise have to read and write.
#pragma once
#include "cuda/device.h"

namespace atos::cuda {

// Fills `count` slots from the first one on, all of one generation; the items have 4 or 8 bytes. Waits until they are there.
void store_items(CudaDevice &device, void *slots, const void *items, uint64_t count, uint32_t item_bytes, uint64_t generation);

} // namespace atos::cuda
