// Memory of a GPU: allocate, reserve, release, fill, copy, and which device a pointer belongs to.
#pragma once
#include "cuda/device.h"
#include "host/kept_ranges.h"

namespace atos::cuda {

void *allocate(CudaDevice &device, uint64_t bytes, bool cleared = true); // filled with zeros, or with anything

// Fills memory with zeros, and waits until they are there.
void clear(CudaDevice &device, CUdeviceptr at, uint64_t bytes);

// Managed memory: pages come when they are written, and go to the host if the GPU has no space. Where the GPU cannot fault,
// just `least` bytes. Sets *bytes to the size of the memory.
void *reserve(CudaDevice &device, uint64_t *bytes, uint64_t least);
// Keeps the range for the next `reserve`, unless it was written: its pages would stay.
void release_reserved(CudaDevice &device, const AddressRange &range, uint64_t least, bool written) noexcept;

// Does nothing while a kernel is stuck: freeing memory would wait for the kernel. During a launch the release is put off.
void release(CudaDevice &device, void *pointer) noexcept;

// Pinned memory and a stream for an inbox. Both are slow to make, and freeing them may wait for kernels, so released ones are
// kept for the next inbox.
InboxMemory make_inbox(CudaDevice &device);
void release_inbox(CudaDevice &device, const InboxMemory &memory) noexcept;
void free_unused_inboxes(CudaDevice &device);

// In the callback of a launch, `copy` and `fill` do not wait for its kernels: they see memory as it is at that moment.
void copy(CudaDevice &device, void *to, const void *from, uint64_t bytes);
void fill(CudaDevice &device, void *to, const void *element, uint32_t element_bytes, uint64_t count);

int32_t device_of_pointer(const void *pointer); // ATOS_CPU for memory of the host

} // namespace atos::cuda
