#pragma once
// The routes that describe the server: whether it lives, its metrics, and its models, in OpenAI's and Anthropic's
// format at once. Any thread.

#include "serve/core/api.h"
#include "serve/core/json_body.h"
#include "serve/core/models.h"
#include "serve/http/exchange.h"

namespace candor::serve::openai {

class InfoRoutes {
 public:
  explicit InfoRoutes(const ServerCore& core) : core_(core) {}

  void metrics(http::Exchange& exchange) const;
  void health(http::Exchange& exchange) const;
  void ready(http::Exchange& exchange) const;
  void models(http::Exchange& exchange) const;
  // The one that the path names.
  void model(http::Exchange& exchange) const;

 private:
  Json model_json(const ModelStatus& model) const;
  void add_adapters(Json& data) const;

  const ServerCore& core_;
};

}  // namespace candor::serve::openai
