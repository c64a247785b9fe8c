#pragma once
// Parses and checks request bodies of Anthropic's API: each becomes an ApiRequest, the engine's requests with a maker
// of the reply. A conversation is rewritten in OpenAI's form (tool_calls, reasoning_content, the role tool), so that a
// chat template sees no difference.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/model_form.h"
#include "serve/core/reply.h"
#include "serve/core/request_terms.h"

namespace candor::serve::anthropic {

Result<ApiRequest> parse_message(const Json& body, const RequestTerms& terms);
// The same body, whose prompt is to be counted: max_tokens may be absent.
Result<ApiRequest> parse_counted(const Json& body, const RequestTerms& terms);

// system and messages. Where the model's template has no place for a message of the system, it is folded into the one
// beside it, which `warnings` says.
std::optional<ChatPrompt> read_conversation(Fields& fields, const ModelForm& form, const ApiLimits& limits,
                                            std::vector<std::string>& warnings);
// tools and tool_choice. Tools that run elsewhere are named in the warnings.
void read_tools(Fields& fields, ChatPrompt& chat, ApiRequest& result);

// What only these replies know.
struct ReplyOptions {
  int64_t n_prompt_tokens = 0;  // of a stream, whose first event tells it
  int64_t max_tokens = 0;
};

std::unique_ptr<Reply> make_message_reply(const Engine& engine, ReplyHead head, const ReplyOptions& options);

}  // namespace candor::serve::anthropic
