#pragma once
// The ranks of an engine: rank 0 is the engine's own process, and the others are processes that it starts on its host,
// or that mpirun started on several, which load their parts of the same models and compute with it.

#include <cstdint>
#include <memory>

#include "backend/backend.h"
#include "backend/ranks/rank_backend.h"
#include "base/error.h"
#include "candor/options.h"
#include "comm/communicator.h"
#include "platform/numa.h"

namespace candor::engine {

// The backend that the options name, or one of EngineOptions::n_ranks of them, which starts its processes when the
// first weight is uploaded. Of several ranks, the calling thread and those that it starts from now on are bound to
// where rank 0 belongs (platform::ScopedPlace frees it).
Result<std::unique_ptr<backend::Backend>> make_ranked_backend(const EngineOptions& options);

// A backend that plans the memory of one rank, and loads nothing.
Result<std::unique_ptr<backend::Backend>> make_planning_rank(const EngineOptions& options, int32_t rank);

// The options that another rank needs, rank 0's becoming everybody's. False: rank 0 has no more models.
Result<bool> share_options(EngineOptions& options, comm::Communicator& comm);

// A rank that follows: loads what the options name, and computes until rank 0 ends. inner: what it computes with.
Result<void> follow_as_rank(const EngineOptions& options, std::unique_ptr<backend::Backend> inner, int32_t rank,
                            backend::RankGroup group);
// The same, bound to its place, with what the options and the place name.
Result<void> follow_at(const platform::ProcessPlace& place, const EngineOptions& options, int32_t rank,
                       std::unique_ptr<comm::Communicator> comm);

// The whole life of a process that rank 0 started.
struct RankEnd {
  Result<void> outcome{};
  bool is_reported = false;  // rank 0 knows why
};
RankEnd serve_as_rank(int descriptor, int32_t rank);

}  // namespace candor::engine
