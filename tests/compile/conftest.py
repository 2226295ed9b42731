"""A kernel that stands in for the core, which tests of compiling and linking share."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from repository import ROOT

from atos_py.compile.codegen import ITEM_BYTES

# Calls every symbol of a task, and leaves a comment in the PTX for each symbol of the core that a task calls.
STAND_IN = """
#include <cstdint>
#include "protocol/link_constants.cuh"
extern "C" {
__device__ int64_t atos_task_workload(void *worker, const void *item, void *values, const void *args);
__device__ int64_t atos_task_body(void *worker, const void *item, int64_t i, const void *values, const void *args);
__device__ int64_t atos_task_idle(void *worker, const void *args);
__device__ int64_t atos_task_each_round(void *worker, const void *args);
#if ITEM_BYTES == 4
typedef uint32_t Item;
#elif ITEM_BYTES == 8
typedef uint64_t Item;
#else
struct Item { uint64_t words[ITEM_BYTES / 8]; };
#endif
struct Worker { Item *pushed; unsigned long long *count; uint64_t *reduced; int64_t scratch_bytes; void *scratch; };
struct Arguments { uint64_t words[64]; };
__device__ void atos_push(void *worker, const void *item) {
  asm volatile("// atos_push");
  Worker *w = (Worker *)worker;
  Item *slot = w->pushed + atomicAdd(w->count, 1ull);
  *slot = *(const Item *)item;
}
__device__ void atos_fence() { asm volatile("// atos_fence" ::: "memory"); }
__device__ int32_t atos_arrive_4(void *at, uint32_t n) { return atomicAdd((uint32_t *)at, 0u - n) == n; }
__device__ int32_t atos_arrive_8(void *at, uint64_t n) { return atomicAdd((unsigned long long *)at, 0ull - n) == n; }
__device__ void atos_stop(void *) { asm volatile("// atos_stop"); }
__device__ int64_t atos_round(void *) { return 5; }
__device__ int64_t atos_mode(void *) { return 6; }
__device__ int64_t atos_pending(void *) { return 7; }
__device__ void atos_set_mode(void *, int64_t) { asm volatile("// atos_set_mode"); }
__device__ int32_t atos_rank(void *) { return threadIdx.x; }
__device__ int32_t atos_size(void *) { return blockDim.x; }
__device__ void atos_sync(void *) { __syncthreads(); }
__device__ int64_t atos_reduce_i64(void *worker, int64_t v, int32_t op) {
  asm volatile("// atos_reduce_i64 %0" :: "r"(op)); ((Worker *)worker)->reduced[0] = v; return ((Worker *)worker)->reduced[1];
}
__device__ uint64_t atos_reduce_u64(void *worker, uint64_t v, int32_t op) {
  asm volatile("// atos_reduce_u64 %0" :: "r"(op)); ((Worker *)worker)->reduced[0] = v; return ((Worker *)worker)->reduced[1];
}
__device__ double atos_reduce_f64(void *worker, double v, int32_t op) {
  asm volatile("// atos_reduce_f64 %0" :: "r"(op)); ((Worker *)worker)->reduced[0] = v; return ((Worker *)worker)->reduced[1];
}
__device__ int32_t atos_any(void *, int32_t p) { return __syncthreads_or(p); }
__device__ int32_t atos_all(void *, int32_t p) { return __syncthreads_and(p); }
__device__ void *atos_scratch(void *worker) { return ((Worker *)worker)->scratch; }
__device__ int64_t atos_scratch_bytes(void *worker) { return ((Worker *)worker)->scratch_bytes; }
__device__ void *atos_sized_scratch(void *worker) { return ((Worker *)worker)->scratch; }

__global__ void atos_kernel(const __grid_constant__ Worker given, const char *items, int64_t n, int32_t *constants,
                            const __grid_constant__ Arguments args) {
  extern __shared__ uint64_t shared[];
  Worker worker = given;
  worker.scratch = shared + 64;
  const int32_t all[] = {atos::nested, atos::value_words, atos::has_idle, atos::checked, int32_t(atos::threads_of_iteration)};
  for (int k = 0; k < 5; ++k) constants[k] = all[k];
  for (int64_t k = blockIdx.x; k < n; k += gridDim.x) {
    const char *item = items + k * ITEM_BYTES;
    if (atos::nested) {
      const int64_t length = atos_task_workload(&worker, item, shared, &args);
      for (int64_t i = threadIdx.x; i < length; i += blockDim.x) atos_task_body(&worker, item, i, shared, &args);
    } else atos_task_body(&worker, item, 0, nullptr, &args);
  }
  if (atos::has_idle) atos_task_idle(&worker, &args);
  if (atos::has_each_round) atos_task_each_round(&worker, &args);
}
}
"""


def build_stand_ins(directory: Path) -> Path:
    """Compile the stand-in as the core is compiled, for each size of item."""
    source = directory / "stand_in.cu"
    source.write_text(STAND_IN)
    options = ["-std=c++17", "-O3", "-rdc=true", f"-I{ROOT / 'csrc'}", "-fatbin", "-gencode", "arch=compute_90,code=lto_90"]
    for size in ITEM_BYTES:
        target = str(directory / f"core_cta_{size}.fatbin")
        subprocess.run(["nvcc", *options, f"-DITEM_BYTES={size}", str(source), "-o", target], check=True)
    return directory


@pytest.fixture(scope="session")
def stand_ins_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the stand-in for the core, compiled once for all tests."""
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    pytest.importorskip("cuda.core")
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc builds the kernel that stands in for the core")
    return build_stand_ins(tmp_path_factory.mktemp("core"))
