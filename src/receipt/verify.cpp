#include "candor/verify.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/rounded_math.h"
#include "candor/engine.h"
#include "formats/quote.h"
#include "receipt/verification.h"

namespace candor {
namespace {

std::string shown(const Engine& engine, TokenId token, double logprob) {
  if (token < 0) return "no further token";
  const std::string_view bytes = engine.token_bytes(token);
  return fmt::format("{} {} (probability {:.3g})", token,
                     formats::in_quotes(bytes.empty() ? engine.piece(token) : bytes), rounded_exp(logprob));
}

std::string end_of(const ReceiptDifference& difference) {
  return fmt::format("differs behind token {}: the {} in the receipt is not the model's", difference.position,
                     difference.field);
}

}  // namespace

Result<ReceiptVerdict> verify(Engine& engine, const Receipt& receipt,
                              const std::function<bool(std::int64_t, std::int64_t)>& progress,
                              std::span<const std::string> images) {
  CANDOR_ASSIGN(receipt::Verification verification, receipt::Verification::prepare(engine, receipt, images));
  bool was_stopped = false;
  const auto completion = engine.generate(verification.request(), [&](const TokenEvent& event) {
    verification.on_event(event);
    const ReceiptVerdict& verdict = verification.verdict();
    was_stopped = was_stopped || (progress && !progress(verdict.n_verified, verdict.n_tokens));
    // Where it is over already, there is nothing to cancel.
    if ((was_stopped || verification.is_decided()) && !event.summary) static_cast<void>(engine.cancel(event.request));
  });
  if (!completion) return completion.error();
  if (was_stopped) return Error{ErrorKind::kCancelled, "the check was stopped", "receipt"};
  return verification.verdict();
}

std::string to_string(const ReceiptVerdict& verdict, const Engine& engine) {
  if (!verdict.difference) {
    return fmt::format("verified: {} of {} tokens, logprobs equal{}", verdict.n_verified, verdict.n_tokens,
                       verdict.was_searched ? " (the beam search was done again)" : "");
  }
  const ReceiptDifference& difference = *verdict.difference;
  const std::string answer = difference.answer > 0 ? fmt::format("answer {}: ", difference.answer + 1) : "";
  if (difference.field == "tokens") {
    return fmt::format("{}differs at token {}: the receipt has {}, the model gives {}", answer, difference.position + 1,
                       shown(engine, difference.claimed, difference.claimed_logprob),
                       shown(engine, difference.expected, difference.expected_logprob));
  }
  if (difference.field == "logprobs") {
    return fmt::format("{}differs at token {}: its logprob is {} in the receipt, the model gives {}", answer,
                       difference.position + 1, static_cast<float>(difference.claimed_logprob),
                       static_cast<float>(difference.expected_logprob));
  }
  return answer + end_of(difference);
}

std::string to_json(const ReceiptVerdict& verdict, const Engine& engine) {
  nlohmann::ordered_json json = {{"verified", !verdict.difference},
                                 {"message", to_string(verdict, engine)},
                                 {"tokens", verdict.n_tokens},
                                 {"verified_tokens", verdict.n_verified},
                                 {"difference", nullptr}};
  if (const auto& difference = verdict.difference) {
    json["difference"] = {{"field", difference->field},
                          {"answer", difference->answer},
                          {"position", difference->position},
                          {"claimed", difference->claimed},
                          {"claimed_logprob", difference->claimed_logprob},
                          {"expected", difference->expected},
                          {"expected_logprob", difference->expected_logprob}};
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace candor
