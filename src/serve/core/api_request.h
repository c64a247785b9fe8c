#pragma once
// A client's request after parsing and checking, in a form that all APIs share: the engine's Requests, and a maker of
// the reply. Also the readers of JSON fields that several APIs share. An error names the field that is refused; a field
// without effect is named in `warnings`.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "candor/engine.h"
#include "candor/request.h"
#include "serve/core/adapter_terms.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/http/message.h"
#include "text/chat/forms/call_grammar.h"

namespace candor::serve {

class Reply;
struct ReplyHead;
struct EarlyStream;

inline constexpr size_t kMaxPrompts = 64;
inline constexpr size_t kMaxInputs = 2048;  // of an embedding
inline constexpr size_t kMaxMessages = 4096;
inline constexpr size_t kMaxTools = 128;

// A model's name without the tag that Ollama's clients put behind it (":latest").
std::string_view untagged(std::string_view name);

// The file at an address, or why there is none, in one line.
using FetchImage = std::function<Result<std::string>(const std::string& url)>;

// What the parsers need to know of the server.
struct ApiLimits {
  std::string model;  // the id that it serves
  std::vector<std::string> aliases = {};
  int64_t n_ctx = 0;
  int64_t max_choices = 128;
  int32_t dim = 0;                 // of an embedding
  ReadingInfo reading{};           // of the model
  bool ranks_by_likeness = false;  // documents, where the model has no head for it
  bool takes_images = false;       // the model
  // For the images of one request, which share its limits; empty: clients may name no addresses.
  std::function<FetchImage()> fetches_images{};
  bool is_strict = false;                             // an unknown field is an error
  std::filesystem::path adapter_dir{};                // from which clients may load adapters; empty: from nowhere
  bool is_let_go = false;                             // the model, when nobody used it for a while
  const AdapterTerms* adapters = nullptr;             // of the model, once it is served
  std::function<bool(const std::string&)> is_also{};  // a name that it was given since; empty: none

  // What the engine says of its model.
  void take_from(const ModelInfo& info) {
    n_ctx = info.n_ctx;
    reading = info.reading;
    dim = info.reading.dim;
    takes_images = !info.images.empty();
  }
  // Whether the model has that name; or it with an adapter.
  bool is_model(const std::string& name) const;
  bool knows(const std::string& name) const;
};

// What the client calls the things that the engine may refuse.
struct FieldNames {
  std::string prompt = "prompt";
  std::string constraint = "response_format";
};

// Makes the reply, in the format of the API that the client used.
using ReplyMaker = std::function<std::unique_ptr<Reply>(const Engine& engine, ReplyHead head, size_t n_choices)>;

struct ApiRequest {
  std::string model;                // as the client wrote it
  std::vector<Request> requests{};  // one per prompt
  int32_t n_choices = 1;            // per prompt
  bool stream = false;
  bool parallel_tool_calls = true;
  bool has_tools = false;
  bool wants_several_calls = false;             // asked for, not only allowed
  bool must_call = false;                       // the answer is a call, by constraint
  std::optional<ConstraintSpec> forced_call{};  // one JSON object: what any model can be held to
  std::optional<text::CallWish> wish{};         // the same for the model's own form
  bool is_in_own_form = false;                  // the constraint is that of the model's own form
  bool keeps_adapters = false;  // the requests' own, even none: the model's name and what holds add nothing
  FieldNames names{};
  std::vector<std::string> warnings{};
  ReplyMaker make_reply{};
  http::Headers headers{};                     // of the reply
  std::string note{};                          // for the reply's log line: what was assumed
  std::optional<double> keep_alive{};          // in seconds, where the client says it
  std::shared_ptr<const EarlyStream> early{};  // what its stream has said already; nullptr: nothing
};

// What came of a request's inputs, in order: a vector each, or a token's rows one behind the other; or a sparse one.
struct ReadTexts {
  std::vector<std::vector<float>> vectors{};
  std::vector<std::vector<WordWeight>> sparse{};
  std::vector<int64_t> n_tokens{};
  int64_t all_tokens() const;
};
// As the body of a reply.
using VectorsWriter = std::function<std::string(const ReadTexts& texts)>;

struct EmbeddingRequest {
  std::string model;
  std::vector<Request> requests{};      // one per input
  std::vector<std::string> warnings{};  // beside the reply
  size_t n_dimensions = 0;              // 0: all
  FieldNames names{.prompt = "input"};
  VectorsWriter write{};
  http::Headers headers{};             // of the reply
  std::string note{};                  // for the reply's log line
  std::optional<double> keep_alive{};  // as of an ApiRequest
};

// The model's name, where given, is one that is served: else 404. An empty name is none: some editors send it.
void check_model(Fields& fields, const ApiLimits& limits, std::string& model);
Error model_not_found(const std::string& model);

// Tools in OpenAI's form ({"type": "function", "function": {...}}). Why the list is none; "" if it is one.
std::string fault_of_tools(const Json& tools);
// The answer must be a call: of the tool of that name, or of any. REQUIRES: fault_of_tools(tools) is empty. False where
// no tool has the name.
bool force_call(const Json& tools, const std::optional<std::string>& name, ApiRequest& result);

// temperature, top_p, seed, stop, ..., as OpenAI and llama.cpp name them. default_max_tokens: absent = until the end.
SamplingParams read_sampling(Fields& fields, std::optional<int64_t> default_max_tokens, int64_t least_max_tokens);
// Text, or token ids, or a list of either.
std::vector<Prompt> read_prompts(Fields& fields, const char* name, size_t at_most = kMaxPrompts);
// Penalties, biases, bans and the rarer stages.
void read_sampler(Fields& fields, SamplingParams& sampling);
// truncate_prompt_tokens, as vLLM has it: a longer prompt loses its oldest tokens; -1 keeps what the context holds.
void read_truncation(Fields& fields, const ApiLimits& limits, Request& request);
// use_beam_search, as vLLM has it: n or best_of texts side by side.
void read_beams(Fields& fields, std::optional<int64_t> best_of, Request& request, std::vector<std::string>& warnings);
// priority, as vLLM has it: a lower value is served sooner.
Scheduling read_scheduling(Fields& fields);
// "lora" and "adapters"; empty: the request names none, or the scales that hold are 0.
std::vector<RequestAdapter> read_adapters(Fields& fields, const ApiLimits& limits);
// Whether the reply shows what it can be checked by (docs/receipts.md).
bool read_receipt(Fields& fields);
// response_format and its kin; name: which of them it was.
std::optional<ConstraintSpec> read_constraint(Fields& fields, std::string& name);
// Unknown fields become warnings, or an error.
void settle_unknown(Fields& fields, const ApiLimits& limits, std::vector<std::string>& warnings);

// x-candor-warnings, for clients that look at no further member of a reply: a JSON array in ASCII, of as many as a
// header may hold.
void add_warnings_header(const std::vector<std::string>& warnings, http::Headers& headers);

// The error with the field's name in this API.
Error with_api_field(Error error, const FieldNames& names = {});

}  // namespace candor::serve
