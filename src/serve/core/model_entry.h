#pragma once
// The state of one of the models that a server offers (models.h): whether it is loaded, how many requests use it, and
// which wait for it. Only the sources of models.h include it.

#include <cstdint>
#include <memory>
#include <optional>

#include "serve/core/model_loader.h"
#include "serve/core/models.h"
#include "serve/core/served_model.h"

namespace candor::serve {

// Guarded by the registry's mutex, but for what is behind a lease.
struct Models::Entry {
  ModelSource source{};
  uint64_t planned_bytes = 0;
  OpenedModel opened{};
  std::unique_ptr<ServedModel> served{};  // nullptr: not loaded
  std::shared_ptr<const ModelFacts> facts{};
  int32_t n_users = 0;
  Clock::time_point last_used{};
  double keep_alive = -1;   // seconds
  bool is_closing = false;  // nobody new gets it: another's turn has come
  bool is_loading = false;
  bool is_stale = false;  // its file is gone, or another
  bool is_gone = false;   // of them: gone
  std::optional<Error> failure{};
  Clock::time_point failed_at{};
  Waiters waiting{};
  bool is_queued = false;
};

// What a lease points into: gives the model back when it goes.
struct Models::Hold {
  Hold() = default;
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    if (models != nullptr) models->give_back(*entry, is_use);
  }

  Models* models = nullptr;
  Shared entry{};
  bool is_use = true;  // else a look, which does not keep it from being let go later
};

}  // namespace candor::serve
