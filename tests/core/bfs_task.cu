// The BFS task of atos_py/algorithms/bfs/tasks.py in CUDA C++, for the same core: what a Python task is measured against.
#include <cstdint>

struct Arguments { // as Python packs (graph, depth): pointers and lengths, no weights
  const int32_t *indptr;
  uint64_t indptr_size;
  const uint32_t *indices;
  uint64_t indices_size;
  uint32_t *depth;
  uint64_t depth_size;
};

__device__ __forceinline__ uint32_t load(const uint32_t *p) {
  uint32_t v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)));
  return v;
}

extern "C" {
__device__ void atos_push(void *worker, const void *item);

__device__ int64_t atos_task_workload(void *, const void *item, void *values, const void *args) {
  const Arguments &a = *static_cast<const Arguments *>(args);
  const uint32_t v = *static_cast<const uint32_t *>(item);
  const int32_t first = __ldg(&a.indptr[v]);
  int64_t *out = static_cast<int64_t *>(values);
  out[0] = first;
  out[1] = int64_t(load(&a.depth[v])) + 1;
  return __ldg(&a.indptr[v + 1]) - first;
}

__device__ int64_t atos_task_body(void *worker, const void *, int64_t i, const void *values, const void *args) {
  const Arguments &a = *static_cast<const Arguments *>(args);
  const int64_t *in = static_cast<const int64_t *>(values);
  const uint32_t neighbor = __ldg(&a.indices[in[0] + i]);
  const uint32_t next = uint32_t(in[1]);
  if (load(&a.depth[neighbor]) > next && atomicMin(&a.depth[neighbor], next) > next) atos_push(worker, &neighbor);
  return 0;
}

__device__ int64_t atos_task_flat(void *, const void *, int64_t, const void *, const void *) { return 0; }

__device__ int64_t atos_task_idle(void *, const void *) { return 0; }
__device__ int64_t atos_task_each_round(void *, const void *) { return 0; }
}

namespace atos { // the constants of the link, of which the others are 0
extern __device__ const int32_t nested = 1, value_words = 2;
extern __device__ const uint32_t threads_of_iteration = 1;
extern __device__ const int32_t has_idle = 0, has_each_round = 0, asks_for_round = 0, asks_for_pending = 0, checked = 0,
                                has_buckets = 0, has_stack = 0, has_inbox = 0, has_peers = 0, has_counters = 0;
extern __device__ const uint32_t num_kinds = 0, flat_kinds = 0;
} // namespace atos
