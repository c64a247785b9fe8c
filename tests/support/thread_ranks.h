#pragma once
// Ranks as threads of one process: each has a backend of its own and loads its parts of the model, as a process would.

#include <functional>
#include <memory>

#include "backend/backend.h"
#include "engine/open/loaded_model.h"

namespace candor::testing {

// What a rank computes with.
using InnerBackend = std::function<Result<std::unique_ptr<backend::Backend>>(int32_t rank)>;
InnerBackend cpu_backend();
// Each rank has another one of the tables that run here, the fastest first, over and over.
InnerBackend cpu_backend_of_each_isa();
// Products are sums of as many parts as there are ranks, each over some of the inputs: what a communicator that sums
// would give.
InnerBackend summing_backend(int32_t n_parts);

engine::BackendFactory thread_ranks(int32_t n_ranks, const InnerBackend& inner = cpu_backend());

}  // namespace candor::testing
