#pragma once
// The ranks of an engine on one host: rank 0 is the engine's own process, and the others are processes that it starts,
// which load their parts of the same models and compute with it.

#include <cstdint>
#include <memory>

#include "backend/backend.h"
#include "backend/ranks/rank_backend.h"
#include "base/error.h"
#include "candor/options.h"
#include "comm/communicator.h"

namespace candor::engine {

// The backend that the options name, or one of EngineOptions::n_ranks of them, which starts its processes when the first
// weight is uploaded.
Result<std::unique_ptr<backend::Backend>> make_ranked_backend(const EngineOptions& options);

// How many of n_threads (0: as many as are advised) a rank computes with: at least one.
int32_t threads_of_rank(const EngineOptions& options, int32_t rank);

// The options that another rank needs, rank 0's becoming everybody's.
Result<void> share_options(EngineOptions& options, comm::Communicator& comm);

// A rank that follows: loads what the options name, and computes until rank 0 ends. inner: what it computes with.
Result<void> follow_as_rank(const EngineOptions& options, std::unique_ptr<backend::Backend> inner, int32_t rank,
                            backend::Crew crew);

// The whole life of a process that rank 0 started.
struct RankEnd {
  Result<void> outcome{};
  bool is_told = false;  // rank 0 knows why
};
RankEnd serve_as_rank(int descriptor, int32_t rank);

}  // namespace candor::engine
