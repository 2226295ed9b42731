// Memory of a GPU: allocate, reserve, release, fill, copy, and which device a pointer belongs to.
#pragma once
#include "cuda/device.h"
#include "host/kept_ranges.h"

namespace atos::cuda {

void *allocate(CudaDevice &device, uint64_t bytes, bool cleared = true); // filled with zeros, or with anything

// Managed memory: pages come when they are written, and go to the host if the GPU has no space. Where the GPU cannot fault,
// just what is needed. Sets *bytes to what it is.
void *reserve(CudaDevice &device, uint64_t *bytes, uint64_t least);
// Keeps it for the next who asks, unless it was written: its pages would stay.
void release_reserved(CudaDevice &device, const AddressRange &range, uint64_t least, bool written) noexcept;

// Does nothing while a kernel is stuck: freeing memory would wait for it. During a launch it is put off.
void release(CudaDevice &device, void *pointer) noexcept;

// Pinned memory and a stream for an inbox. They are slow to make and to free, which may wait for kernels: those that are
// released are kept for the next one.
InboxMemory make_inbox(CudaDevice &device);
void release_inbox(CudaDevice &device, const InboxMemory &memory) noexcept;
void free_unused_inboxes(CudaDevice &device);

// In the callback of a launch these do not wait for its kernels: what they see is of that moment.
void copy(CudaDevice &device, void *to, const void *from, uint64_t bytes);
void fill(CudaDevice &device, void *to, const void *element, uint32_t element_bytes, uint64_t count);

int32_t device_of_pointer(const void *pointer); // ATOS_CPU for memory of the host

} // namespace atos::cuda
