// LaunchResources: the events, streams and pinned memory with which a thread launches on a device. They are slow to make, so a
// thread that ends leaves its own to the next one.
#pragma once
#include "cuda/device.h"

namespace atos::cuda {

constexpr uint64_t kZeros = 1 << 20; // bytes of pinned zeros
constexpr uint32_t kMostGpus = 64;   // of a launch

struct LaunchResources {
  CUevent start = nullptr, stop = nullptr;
  CUstream streams[ATOS_MAX_STREAMS] = {}, control = nullptr; // the last never has to wait for a kernel
  Counters *counters = nullptr, *observed = nullptr;          // observed: of each device of a launch, for its progress
  CompletionRecord *records = nullptr;
  uint64_t *stop_word = nullptr, *growths_granted = nullptr;
  void *zeros = nullptr;
  CUdeviceptr peer_table = 0; // in the GPU's memory, for launches over several
};

// The resources of the calling thread, made on first use. The device's context has to be current.
LaunchResources &resources_of_thread(CudaDevice &device);

// Makes the first of its streams, as far as they are not there: kStreams are.
void make_streams(LaunchResources &resources, uint32_t count);

// Destroys those that threads which have ended left, and those of the calling thread, which makes others when it launches.
void free_unused_resources(CudaDevice &device);

// Leaks the resources of the calling thread on purpose, since stuck kernels may still write to them; it gets others.
void abandon_resources(CudaDevice &device);

} // namespace atos::cuda
