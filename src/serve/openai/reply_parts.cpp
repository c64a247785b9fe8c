#include "serve/openai/reply_parts.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace candor::serve::openai {

std::string finish_reason(FinishReason reason) {
  return is_cut(reason) ? "length" : "stop";
}

Json usage_json(const ReplyUsage& sum) {
  const Usage& usage = sum.usage;
  Json of_prompt = {{"cached_tokens", usage.cached_tokens}, {"audio_tokens", 0}};
  if (usage.image_tokens > 0) of_prompt["image_tokens"] = usage.image_tokens;
  if (usage.disk_tokens > 0) of_prompt["disk_tokens"] = usage.disk_tokens;
  if (usage.truncated_tokens > 0) of_prompt["truncated_tokens"] = usage.truncated_tokens;
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", std::move(of_prompt)},
          {"completion_tokens_details",
           {{"reasoning_tokens", sum.reasoning_tokens},
            {"accepted_prediction_tokens", 0},
            {"rejected_prediction_tokens", 0},
            {"audio_tokens", 0}}}};
}

Json prompt_logprobs_json(const Engine& engine, const std::vector<PromptLogprob>& logprobs) {
  Json list = Json::array({nullptr});
  for (const PromptLogprob& shown : logprobs) {
    Json tokens = Json::object();
    const auto add = [&](const TokenLogprob& one) -> Json& {
      Json& json = tokens[std::to_string(one.token)];
      json = {{"logprob", finite_logprob(one.logprob)}, {"decoded_token", token_text(engine, one.token)}};
      return json;
    };
    add(shown.logprob);
    for (size_t i = 0; i < shown.top.size(); ++i) add(shown.top[i])["rank"] = i + 1;
    list.push_back(std::move(tokens));
  }
  return list;
}

}  // namespace candor::serve::openai
