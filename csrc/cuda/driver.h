// The CUDA driver API as a table of function pointers under NVIDIA's names, so that `driver().cuMemCreate(...)` can be looked
// up and grepped for. The driver is loaded when it is first asked for: all other code works on a machine without a driver.
#pragma once
#include <cuda.h>
#include <cudaTypedefs.h>

#include "host/status.h"

namespace atos::cuda {

// Each function with the CUDA version of its signature, as cudaTypedefs.h spells it: cuGetProcAddress returns a
// PFN_cuMemAlloc_v3020 for "cuMemAlloc" and 3020. The CUDA_VERSION of the headers would be wrong here: a driver refuses
// versions newer than its own, even for functions that it has, so that a core built with the headers of CUDA 13.2 would not run
// on a driver for 13.0 (r580). The versions listed run on later drivers too, which return the signature that was asked for.
#define ATOS_DRIVER_FUNCTIONS(X)                                                                                               \
  X(cuGetErrorString, 6000)                                                                                                    \
  X(cuInit, 2000)                                                                                                              \
  X(cuDriverGetVersion, 2020)                                                                                                  \
  X(cuDeviceGetCount, 2000)                                                                                                    \
  X(cuDeviceGet, 2000)                                                                                                         \
  X(cuDeviceGetName, 2000)                                                                                                     \
  X(cuDeviceGetAttribute, 2000)                                                                                                \
  X(cuDeviceCanAccessPeer, 4000)                                                                                               \
  X(cuDevicePrimaryCtxRetain, 7000)                                                                                            \
  X(cuCtxPushCurrent, 4000)                                                                                                    \
  X(cuCtxPopCurrent, 4000)                                                                                                     \
  X(cuCtxSynchronize, 2000)                                                                                                    \
  X(cuMemGetInfo, 3020)                                                                                                        \
  X(cuMemAlloc, 3020)                                                                                                          \
  X(cuMemFree, 3020)                                                                                                           \
  X(cuMemAllocFromPoolAsync, 11020)                                                                                            \
  X(cuMemFreeAsync, 11020)                                                                                                     \
  X(cuMemPoolCreate, 11020)                                                                                                    \
  X(cuMemPoolSetAttribute, 11020)                                                                                              \
  X(cuMemPoolGetAttribute, 11020)                                                                                              \
  X(cuMemPoolSetAccess, 11020)                                                                                                 \
  X(cuMemPoolTrimTo, 11020)                                                                                                    \
  X(cuMemAllocManaged, 6000)                                                                                                   \
  X(cuMemAddressReserve, 10020)                                                                                                \
  X(cuMemAddressFree, 10020)                                                                                                   \
  X(cuMemGetAllocationGranularity, 10020)                                                                                      \
  X(cuMemCreate, 10020)                                                                                                        \
  X(cuMemRelease, 10020)                                                                                                       \
  X(cuMemMap, 10020)                                                                                                           \
  X(cuMemUnmap, 10020)                                                                                                         \
  X(cuMemExportToShareableHandle, 10020)                                                                                       \
  X(cuMemImportFromShareableHandle, 10020)                                                                                     \
  X(cuMemSetAccess, 10020)                                                                                                     \
  X(cuMemAllocHost, 3020)                                                                                                      \
  X(cuMemFreeHost, 2000)                                                                                                       \
  X(cuMemcpy, 4000)                                                                                                            \
  X(cuMemcpyPeer, 4000)                                                                                                        \
  X(cuMemcpyAsync, 4000)                                                                                                       \
  X(cuMemcpyPeerAsync, 4000)                                                                                                   \
  X(cuMemcpyHtoDAsync, 3020)                                                                                                   \
  X(cuMemcpyDtoHAsync, 3020)                                                                                                   \
  X(cuMemsetD8, 3020)                                                                                                          \
  X(cuMemsetD16, 3020)                                                                                                         \
  X(cuMemsetD32, 3020)                                                                                                         \
  X(cuMemsetD2D32, 3020)                                                                                                       \
  X(cuPointerGetAttributes, 7000)                                                                                              \
  X(cuModuleLoadData, 2000)                                                                                                    \
  X(cuModuleUnload, 2000)                                                                                                      \
  X(cuModuleGetFunction, 2000)                                                                                                 \
  X(cuFuncSetAttribute, 9000)                                                                                                  \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050)                                                                         \
  X(cuLaunchKernel, 4000)                                                                                                      \
  X(cuLaunchCooperativeKernel, 9000)                                                                                           \
  X(cuStreamCreate, 2000)                                                                                                      \
  X(cuStreamDestroy, 4000)                                                                                                     \
  X(cuStreamQuery, 2000)                                                                                                       \
  X(cuStreamSynchronize, 2000)                                                                                                 \
  X(cuStreamWaitEvent, 3020)                                                                                                   \
  X(cuEventCreate, 2000)                                                                                                       \
  X(cuEventDestroy, 4000)                                                                                                      \
  X(cuEventRecord, 2000)                                                                                                       \
  X(cuEventSynchronize, 2000)                                                                                                  \
  X(cuEventQuery, 2000)                                                                                                        \
  X(cuEventElapsedTime, 12080)                                                                                                 \
  X(cuCtxRecordEvent, 12050)

struct Driver {
// Members have the names that cuda.h gives: a macro there (cuMemAlloc as cuMemAlloc_v2) renames the member and its uses alike.
#define ATOS_MEMBER(name, version) PFN_##name##_v##version name = nullptr;
  ATOS_DRIVER_FUNCTIONS(ATOS_MEMBER)
#undef ATOS_MEMBER
  std::string missing; // why there is no driver, or empty

  Driver();
  std::string describe(CUresult result) const;
};

const Driver &driver();

// Throws a Failure that says what was being done and why the driver refused it.
void check(CUresult result, const char *doing);

inline CUdeviceptr address(const void *pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

} // namespace atos::cuda
