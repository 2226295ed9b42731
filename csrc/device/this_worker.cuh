// The kind of worker and the size of items that this translation unit is compiled for (ATOS_WORKER, ATOS_ITEM_BYTES).
#pragma once
#include <type_traits>

#include "device/group_worker.cuh"
#include "device/thread_worker.cuh"

namespace atos {

constexpr int kWorker = ATOS_WORKER; // ATOS_THREAD, ATOS_WARP or ATOS_CTA
constexpr unsigned kBytes = ATOS_ITEM_BYTES;

using Workers = std::conditional_t<kWorker == ATOS_THREAD, ThreadWorkers<kBytes>,
                                   GroupWorker<std::conditional_t<kWorker == ATOS_WARP, Warp, Cta>, kBytes>>;

} // namespace atos
