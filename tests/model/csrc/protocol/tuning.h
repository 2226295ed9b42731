// In place of csrc/protocol/tuning.h: small values, most of them bounds of the scenario.
#pragma once
#include "bounds.hpp"

namespace atos {

constexpr uint32_t kMostCounted = 2;
inline const unsigned &kKeepsLocalItems = model::bounds.keep;
inline const unsigned &kBacklogPerWorker = model::bounds.backlog;
inline const unsigned &kMostLocalSteps = model::bounds.steps, &kMostStalledSteps = model::bounds.steps, &kMostStackSteps = model::bounds.steps;
constexpr uint32_t kStackBytes = 0; // the scenario says how much room a stack has
constexpr uint64_t kBlockItems = 2, kLeastChunk = 1, kFarChunk = 2, kBucketsToAdapt = 1, kFewItems = 1, kOpenedBatches = 1;
constexpr uint32_t kThinPart = 4, kStrip = 1;
inline const unsigned &kInboxItems = model::bounds.inbox;
constexpr unsigned kStepsBetweenLooks = 64, kPollsBeforeEndTest = 1, kPollNanoseconds = 0, kMostTries = 1 << 17;
inline const unsigned &kFew = model::bounds.few;
inline const unsigned &kLong = model::bounds.long_from;
inline const unsigned &kChunkPart = model::bounds.chunk;
inline const unsigned &kSmallShare = model::bounds.share;
constexpr unsigned kSplitItems = 1;

} // namespace atos
