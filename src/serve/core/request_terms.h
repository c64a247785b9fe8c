#pragma once
// What the server adds to a request beside what the client wrote. The model's chat template decides how roles and tool
// calls are adapted and how the answer is parsed; the API key decides whose share of the engine the request counts to
// and which prefix-cache entries it may use. Immutable: any thread.

#include <cstdint>
#include <vector>

#include "candor/engine.h"
#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/model_form.h"
#include "text/chat/output_parser.h"

namespace candor::serve {

class RequestTerms {
 public:
  // Both are borrowed.
  RequestTerms(const Engine& engine, const ApiLimits& limits)
      : engine_(engine), limits_(limits), form_(probe_model_form(engine)) {}

  const Engine& engine() const { return engine_; }
  const ApiLimits& limits() const { return limits_; }
  const ModelForm& model_form() const { return form_; }
  // Rewrites what the model's chat template does not know (a role, say) as what it knows, and warns of it.
  void settle(ApiRequest& request) const;
  // Sets the key by which turns are shared fairly, and a prefix-cache scope of the key's own: no key learns from the
  // cache what another has asked.
  void add_key(std::vector<Request>& requests, int32_t key) const;
  // The adapter that the model's name names; where it names none and the requests say nothing, those that hold then.
  void add_adapter(std::vector<Request>& requests, const std::string& model) const;
  // The format by which the answer is split into reasoning, content and tool calls.
  text::OutputForm form_for(const ApiRequest& request) const;

 private:
  // Tool calls that must obey their schemas: constrained by a grammar of the model's own call format where possible.
  void settle_calls(ApiRequest& request) const;

  const Engine& engine_;
  const ApiLimits& limits_;
  const ModelForm form_;
};

}  // namespace candor::serve
