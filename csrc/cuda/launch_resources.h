// LaunchResources: the events, streams and pinned memory with which a thread launches on a device. The resources are slow to
// make, so a thread that ends leaves them to the next thread.
#pragma once
#include "cuda/device.h"

namespace atos::cuda {

constexpr uint64_t kZeros = 1 << 20; // bytes of pinned zeros
constexpr uint32_t kMostGpus = 64;   // of a launch

struct LaunchResources {
  CUevent start = nullptr, stop = nullptr;
  CUstream streams[ATOS_MAX_STREAMS] = {}, control = nullptr; // `control` never has to wait for a kernel
  Counters *counters = nullptr, *observed = nullptr; // `observed`: a copy for each device of a launch, for its progress
  CompletionRecord *records = nullptr;
  uint64_t *stop_word = nullptr, *growths_granted = nullptr;
  void *zeros = nullptr;
  CUdeviceptr peer_table = 0; // in the GPU's memory, for launches over several GPUs
};

// The resources of the calling thread, made on first use. The device's context has to be current.
LaunchResources &resources_of_thread(CudaDevice &device);

// Makes the first `count` streams, as far as they are missing: kStreams streams always exist.
void make_streams(LaunchResources &resources, uint32_t count);

// Destroys the resources left by ended threads and those of the calling thread, which makes others when it launches.
void free_unused_resources(CudaDevice &device);

// Leaks the resources of the calling thread on purpose, since stuck kernels may still write to them; the thread gets others.
void abandon_resources(CudaDevice &device);

} // namespace atos::cuda
