#pragma once
// What a request gets beside what the client wrote: the model's template decides what is said to it and how its answer
// is taken apart, and the key decides whose share it counts to. Immutable: any thread.

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "candor/engine.h"
#include "serve/openai/api_request.h"
#include "serve/openai/model_form.h"
#include "text/chat/output_parser.h"

namespace candor::openai {

class RequestTerms {
 public:
  // Both are borrowed.
  RequestTerms(const Engine& engine, const ApiLimits& limits)
      : engine_(engine), limits_(limits), form_(probe_model_form(engine)) {}

  const ApiLimits& limits() const { return limits_; }
  // As /v1/chat/completions reads it; also: further fields, which the route itself reads. What the model's template
  // does not know is put in words that it does, and said in the warnings.
  Result<ApiRequest> read_chat(const Json& body, std::initializer_list<const char*> also = {}) const;
  // One or the other, ready but for what add_key() adds, with what it echoes.
  Result<ApiRequest> read_generation(const Json& body, bool is_chat) const;
  // Turns are shared fairly between keys, and no key learns from the prefix cache what another has asked.
  void add_key(std::vector<Request>& requests, int32_t key) const;
  // How the answer is taken apart.
  text::OutputForm form_for(const ApiRequest& request) const;

 private:
  void settle_for_template(ApiRequest& request) const;

  const Engine& engine_;
  const ApiLimits& limits_;
  const ModelForm form_;
};

}  // namespace candor::openai
