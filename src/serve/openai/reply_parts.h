#pragma once
// Makes the replies of OpenAI's API to chat and text completions, and the parts that both share (finish reason, usage,
// prompt logprobs).

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "serve/core/json_body.h"
#include "serve/core/reply.h"
#include "serve/openai/requests.h"

namespace candor::serve::openai {

std::unique_ptr<Reply> make_chat_reply(const Engine& engine, ReplyHead head, ReplyOptions options, size_t n_choices);
std::unique_ptr<Reply> make_completion_reply(const Engine& engine, ReplyHead head, ReplyOptions options,
                                             size_t n_choices);

std::string finish_reason(FinishReason reason);
Json usage_json(const ReplyUsage& usage);
// As vLLM shows them: null for the first token, then objects by token id.
Json prompt_logprobs_json(const Engine& engine, const std::vector<PromptLogprob>& logprobs);

}  // namespace candor::serve::openai
