#pragma once
// Ollama's routes that answer from what the server knows, without a generation.

#include "serve/core/api.h"

namespace candor::serve::ollama {

class InfoRoutes {
 public:
  // Borrowed.
  explicit InfoRoutes(const Core& core) : core_(core) {}

  void root(http::Exchange& exchange) const;
  void version(http::Exchange& exchange) const;
  void tags(http::Exchange& exchange) const;
  void running(http::Exchange& exchange) const;
  void show(http::Exchange& exchange) const;
  // Of the model that is served: it is there already. Another is refused.
  void pull(http::Exchange& exchange) const;

 private:
  Json model_json() const;
  Json details_json() const;
  Json capabilities_json() const;

  const Core& core_;
};

}  // namespace candor::serve::ollama
