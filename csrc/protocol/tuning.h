// The tuning constants of the core: each may have another value without anything being wrong. The model of the protocol
// (tests/model) has a file of its own in place of this one, with values small enough for every state to be visited.
#pragma once
#include <cstdint>

namespace atos {

// Pushed items.
constexpr uint32_t kCtaBuffer = 8192, kWarpBuffer = 1024; // bytes of a worker's push buffer
constexpr uint32_t kMostCounted = 1 << 30;                // pushes of a step that a worker counts in 32 bits
constexpr bool kKeepsLocalItems = true;  // whether warp and CTA workers run some of their own pushes without the queue
constexpr int64_t kBacklogPerWorker = 8; // items waiting for each worker from which on all pushes go to the queue
constexpr uint32_t kMostLocalSteps = 1024, kMostStalledSteps = 16; // steps in a row; stalled: nobody takes waiting items

// Newest first.
constexpr uint32_t kStackBytes = 1 << 15;     // of a worker's stack
constexpr uint32_t kMostStackSteps = 1 << 14; // steps of a worker with a stack, after which other items have their turn

// Far items.
constexpr uint64_t kBlockItems = 1024;                // entries of a block
constexpr uint64_t kLeastChunk = 32, kFarChunk = 256; // entries that a worker pushes again at once; divisors of kBlockItems
constexpr uint64_t kBucketsToAdapt = 8;               // buckets after which their width may change
constexpr uint64_t kFewItems = 4;                     // items in a bucket for each worker: enough, no wider buckets
constexpr uint64_t kOpenedBatches = 4;                // full batches for each worker that are opened at once, at most
constexpr uint64_t kOpenedByThread = 64;              // far items for each thread of the CPU that are opened at once, at most
constexpr uint32_t kThinPart = 16; // a worker that has kept at most 1 / 16 of a full batch looks for far items
constexpr uint32_t kStrip = 4;     // iterations of each thread, after which the pushes are flushed if there are many

// Items from the host (inbox.cuh).
constexpr uint64_t kInboxItems = 1 << 15;   // items that an inbox has room for
constexpr unsigned kStepsBetweenLooks = 64; // steps of a busy worker, on average, between two looks at the inbox

// Waiting.
constexpr unsigned kPollsBeforeEndTest = 4; // failed polls of its slots before a worker tests for the end, which takes longer
constexpr unsigned kPollNanoseconds = 20;   // pause after the test for the end
constexpr unsigned kMostTries = 1 << 17;    // waits for a larger ring: a third of a second on a GPU

// Spreading work over the threads of a worker.
constexpr unsigned kSmallShare = 16; // items of a round for each worker, up to which each claims its share at once
constexpr unsigned kFew = 32;        // pushes, or items of a batch, up to which a worker's first warp handles all by itself

// Work sharing.
constexpr int64_t kLong = 4096;      // iterations from which an item is split into chunks
constexpr uint64_t kChunkPart = 16;  // iterations of a chunk for each thread, or group of threads that run one together
constexpr unsigned kSplitItems = 64; // items that can be split at a time: bits of Counters::splits_open

} // namespace atos
