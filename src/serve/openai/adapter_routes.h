#pragma once
// Routes that load adapters and drop them while the server runs, in vLLM's format; only from the folder that the
// operator opened for it. Called on workers.

#include "serve/core/api.h"
#include "serve/http/exchange.h"

namespace candor::serve::openai {

class AdapterRoutes {
 public:
  explicit AdapterRoutes(const Core& core) : core_(core) {}

  // {"lora_name": "...", "lora_path": "..."}, perhaps "scale".
  void load(http::Exchange& exchange) const;
  // {"lora_name": "..."}: requests that use it end well.
  void unload(http::Exchange& exchange) const;

 private:
  const Core& core_;
};

}  // namespace candor::serve::openai
