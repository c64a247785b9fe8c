#pragma once
// Parses and checks request bodies of llama.cpp's API: each becomes an ApiRequest, the engine's requests with a maker
// of the reply.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/request_terms.h"

namespace candor::serve::llama_cpp {

inline constexpr int64_t kMostSlot = 1 << 16;

// What only these replies have.
struct ReplyOptions {
  bool return_tokens = false;
  bool return_progress = false;
  bool as_list = false;                // several prompts or answers
  double max_predict_ms = 0;           // from the first token on, once a line is complete; 0: no limit
  int64_t n_indent = 0;                // a later line with less ends the text before it
  std::vector<std::string> fields{};   // of the reply, '/' leads into an object; empty: all
  std::vector<std::string> prompts{};  // as they are shown
  SamplingParams sampling{};           // in effect
  bool is_warm_up = false;             // the prompt is read, and that is all
  std::string constraint{};            // "" where there is none
};

Result<ApiRequest> parse_completion(const Json& body, const RequestTerms& terms);
Result<ApiRequest> parse_infill(const Json& body, const RequestTerms& terms);

// The body without an empty grammar, which clients send for none; nullopt where there is none.
std::optional<Json> without_empty_grammar(const Json& body);

// What both kinds share, but for the prompt. REQUIRES: finish_generation() follows.
Request read_generation(Fields& fields, const ApiLimits& limits, ApiRequest& result, ReplyOptions& reply);
// A request for each prompt, and the reply.
Result<ApiRequest> finish_generation(const RequestTerms& terms, Request base, std::vector<Prompt> prompts,
                                     ApiRequest result, ReplyOptions reply);

// A text, token ids, a list that mixes both, a text with images, or a list of these. Control tokens written in a text
// become their ids.
std::vector<Prompt> read_mixed_prompts(Fields& fields, const RequestTerms& terms);

// Stages by llama.cpp's names; a stage that is not listed is off.
void read_samplers(Fields& fields, SamplingParams& sampling, std::vector<std::string>& warnings);
// Where a client says nothing.
SamplingParams default_sampling();
Json settings_json(const ReplyOptions& options, uint64_t seed);

}  // namespace candor::serve::llama_cpp
