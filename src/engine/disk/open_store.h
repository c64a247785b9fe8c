#pragma once
// Opens the folder that EngineOptions name for the prefix cache.

#include <memory>
#include <string>

#include "backend/backend.h"
#include "candor/options.h"
#include "prefix_store/store.h"

namespace candor::engine {

struct OpenedStore {
  std::shared_ptr<prefix_store::Store> store{};  // nullptr: none
  std::string problem{};                         // why there is none although one was asked for
};

OpenedStore open_store(const EngineOptions& options, backend::KvStore& kv);

}  // namespace candor::engine
