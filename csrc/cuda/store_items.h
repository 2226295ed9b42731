// Stores items that lie in a GPU's memory, or numbers, into slots of a ring, which the host would otherwise have to write.
#pragma once
#include "cuda/device.h"

namespace atos::cuda {

// Fills `count` slots from the first one on, all of one generation; the items have 4 or 8 bytes. If `items` is null, they are
// numbers from `first` on. Waits until the slots are filled.
void store_items(CudaDevice &device, void *slots, const void *items, uint64_t first, uint64_t count, uint32_t item_bytes,
                 uint64_t generation);

} // namespace atos::cuda
