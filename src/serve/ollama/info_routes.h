#pragma once
// Ollama's routes that answer from what the server knows, without a generation.

#include "serve/core/api.h"
#include "serve/core/json_body.h"
#include "serve/core/models.h"

namespace candor::serve::ollama {

class InfoRoutes {
 public:
  // Borrowed.
  explicit InfoRoutes(const ServerCore& core) : core_(core) {}

  void root(http::Exchange& exchange) const;
  void version(http::Exchange& exchange) const;
  void tags(http::Exchange& exchange) const;
  // Those that are loaded.
  void running(http::Exchange& exchange) const;
  // Of a model that is here: it is there already. Another is refused.
  void pull(http::Exchange& exchange) const;
  // A further name, and its end.
  void copy(http::Exchange& exchange) const;
  void remove(http::Exchange& exchange) const;
  // Of what no client may do to models.
  void refuse_change(http::Exchange& exchange) const;

 private:
  Json model_json(const ModelStatus& model) const;

  const ServerCore& core_;
};

// POST /api/show
void show(const Core& core, http::Exchange& exchange);

}  // namespace candor::serve::ollama
