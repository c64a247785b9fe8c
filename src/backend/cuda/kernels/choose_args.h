#pragma once
// What the kernels take that read whole rows of logits for a choice (backend/device_logits.h). Plain data: it is copied
// as bytes. Pointers are addresses of the device.

#include <cstdint>

#include "backend/logit_edit.h"

namespace candor::backend::cuda {

// A row is read in segments, each by a block of threads.
inline constexpr int32_t kSegment = 2048;
inline constexpr uint32_t kSegmentThreads = 256;
// Rows of at most so many logits are ranked as a whole; of others the best are, as long as they are no more.
inline constexpr int32_t kMostGathered = 2048;

// A query (backend/device_logits.h).
struct RowQueryArgs {
  const float* logits = nullptr;        // [n]
  const uint32_t* mask = nullptr;       // or nullptr
  const EditedToken* edited = nullptr;  // or nullptr; by segments
  const LogitEdit* edits = nullptr;
  const int32_t* first_edited = nullptr;  // [segments + 1]: where in `edited` each begins
  float divisor = 1.0f;
  int32_t n = 0;
  int32_t n_best = 0;
  int32_t best_at = 0;  // the place of its first in the list of all
  int32_t asked = -1;
  bool is_scaled = false;
  bool is_weighed = false;
};

// Of a segment, edited.
struct SegmentScan {
  float greatest = 0.0f;
  int32_t token = 0;  // the first that has it
  bool is_valid = false;
};

// Of a query, between its kernels.
struct RowState {
  float greatest = 0.0f;
  float bound = 0.0f;  // what is gathered is not less; before the division
  int32_t token = 0;   // the first with the greatest logit
  uint32_t n_gathered = 0;
  bool is_valid = false;
};

struct GatheredLogit {
  int32_t token = -1;
  float logit = 0.0f;
  float models = 0.0f;
};

// What goes to the host.
struct RowHead {
  uint64_t total = 0;
  float greatest = 0.0f;
  float asked = 0.0f;
  int32_t n_best = 0;
  bool is_valid = false;
  bool is_whole = false;
};

// Queries, a row of blocks each. Chunk c of a segment has those logits that the threads c * chunk_lanes and the next
// read, chunk_lanes of them.
struct ChooseArgs {
  const RowQueryArgs* queries = nullptr;
  float* maxima = nullptr;            // [queries, segments * chunks of a segment]
  SegmentScan* scans = nullptr;       // [queries, segments]
  uint64_t* totals = nullptr;         // [queries, segments]
  RowState* states = nullptr;         // [queries]
  GatheredLogit* gathered = nullptr;  // [queries, kMostGathered]
  RowHead* heads = nullptr;           // [queries]
  GatheredLogit* best = nullptr;      // of all queries
  int32_t n_segments = 0;
  int32_t chunk_lanes = 1;
};

// Weights of a row by the distance from its greatest logit: of usual rows each has some hundred candidates at most.
inline constexpr int32_t kBuckets = 8192;

// Where a sum of weights, in order, exceeds a target.
struct ReachState {
  uint64_t weight_before = 0;  // of all buckets before
  int32_t bucket = 0;
  uint32_t n_gathered = 0;  // of the bucket
};

struct Reached {
  uint64_t weight = 0;  // of all up to the last, which is the one
  GatheredLogit last{};
  bool is_known = false;
};

struct ReachArgs {
  const RowQueryArgs* query = nullptr;
  float greatest = 0.0f;
  uint64_t target = 0;
  uint64_t* sums = nullptr;  // [kBuckets], zeros
  ReachState* state = nullptr;
  GatheredLogit* gathered = nullptr;  // [kMostGathered]
  Reached* reached = nullptr;
};

}  // namespace candor::backend::cuda
