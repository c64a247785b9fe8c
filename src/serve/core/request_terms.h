#pragma once
// What a request gets beside what the client wrote: the model's template decides what is said to it and how its answer
// is taken apart, and the key decides whose share it counts to. Immutable: any thread.

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
  // What the model's template does not know is put in words that it does, and said in the warnings.
  void settle(ApiRequest& request) const;
  // Turns are shared fairly between keys, and no key learns from the prefix cache what another has asked.
  void add_key(std::vector<Request>& requests, int32_t key) const;
  // How the answer is taken apart.
  text::OutputForm form_for(const ApiRequest& request) const;

 private:
  // Calls that are to be right by construction, as a grammar of the model's own form where that can be.
  void settle_calls(ApiRequest& request) const;

  const Engine& engine_;
  const ApiLimits& limits_;
  const ModelForm form_;
};

}  // namespace candor::serve
