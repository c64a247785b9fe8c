#include "receipt/verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/sha256.h"
#include "candor/version.h"

namespace candor::receipt {
namespace {

Error not_here(std::string why) {
  return {ErrorKind::kUnsupported, std::move(why), "receipt"};
}

// Of the answers the longest.
std::size_t answer_tokens(const Receipt& receipt) {
  std::size_t most = 0;
  for (const ReceiptAnswer& answer : receipt.answers) most = std::max(most, answer.tokens.size());
  return most;
}

// Whether the answer depends on where the context ends.
bool depends_on_context(const Receipt& receipt) {
  if (receipt.beams && !receipt.sampling.max_tokens) return true;
  if (receipt.on_context_full == OnContextFull::kCrop) return true;
  return std::ranges::any_of(receipt.answers, [](const auto& a) { return a.finish == FinishReason::kContextFull; });
}

Result<void> check_model(const Receipt& receipt, const ModelInfo& info) {
  const ReceiptModel& model = receipt.model;
  if (model.numerics != kNumericsVersion) {
    return not_here(
        fmt::format("the receipt follows version {} of the numerics ({}), this program version {}: check it "
                    "with that program",
                    model.numerics, receipt.made_by, kNumericsVersion));
  }
  if (model.fingerprint != info.hash) {
    const std::string here = info.paths.empty() ? "" : info.paths.front().filename().string();
    return not_here(
        fmt::format("the receipt is of another model: {} ({}, fingerprint {:016x}), this one is {} ({}, "
                    "fingerprint {:016x})",
                    model.name, model.family, model.fingerprint, here, info.family, info.hash));
  }
  if (model.kv_type != info.kv_type) {
    return not_here(
        fmt::format("the receipt was made with --kv-type {}, this engine has {}", model.kv_type, info.kv_type));
  }
  if (depends_on_context(receipt) && model.n_ctx != info.n_ctx) {
    return not_here(
        fmt::format("the answer depends on where the context ends: the receipt's has {} tokens, this "
                    "engine's {}",
                    model.n_ctx, info.n_ctx));
  }
  const std::size_t n_tokens = receipt.prompt.size() + answer_tokens(receipt);
  if (receipt.on_context_full == OnContextFull::kStop && n_tokens > static_cast<std::size_t>(info.n_ctx) + 1) {
    return not_here(
        fmt::format("prompt and answer have {} tokens, this engine's context holds {}", n_tokens, info.n_ctx));
  }
  return {};
}

Result<std::vector<RequestAdapter>> adapters_of(const Receipt& receipt, const Engine& engine) {
  const std::vector<AdapterInfo> loaded = engine.adapters();
  std::vector<RequestAdapter> result;
  for (const ReceiptAdapter& adapter : receipt.adapters) {
    const auto at = std::ranges::find(loaded, adapter.fingerprint, &AdapterInfo::hash);
    if (at == loaded.end()) {
      return not_here(
          fmt::format("the receipt uses the adapter {} (fingerprint {:016x}), which is not loaded: give it "
                      "by --adapter",
                      adapter.name, adapter.fingerprint));
    }
    result.push_back({at->name, static_cast<double>(adapter.scale) / (at->scale == 0.0 ? 1.0 : at->scale)});
  }
  return result;
}

// An end that no rule of the request gives.
bool was_broken_off(const ReceiptAnswer& answer) {
  return answer.finish == FinishReason::kCancelled || answer.finish == FinishReason::kDeadline;
}

Result<void> check_vision(const ReceiptVision& vision, const Engine& engine) {
  CANDOR_ASSIGN(const VisionInfo here, engine.vision_info());
  if (vision.preparation != here.preparation) {
    return not_here(fmt::format("the receipt's images were prepared in another way: \"{}\", here \"{}\"",
                                vision.preparation, here.preparation));
  }
  if (vision.fingerprint == here.fingerprint) return {};
  return not_here(
      fmt::format("the receipt's images were read by another tower: {} (fingerprint {:016x}), this one is {} "
                  "(fingerprint {:016x})",
                  vision.family, vision.fingerprint, here.family, here.fingerprint));
}

// The files that the digests name, in the order of the prompt.
Result<std::vector<std::string>> images_of(const ReceiptVision& vision, std::span<const std::string> files) {
  std::vector<std::string> digests;
  for (const std::string& file : files) digests.push_back(to_hex(sha256(file)));
  std::vector<std::string> images;
  for (std::size_t i = 0; i < vision.images.size(); ++i) {
    const ReceiptImage& image = vision.images[i];
    const auto at = std::ranges::find(digests, image.digest);
    if (at == digests.end()) {
      return not_here(
          fmt::format("image {} of the receipt, {} x {} pixels with the SHA-256 {}, is not among the {} images given: "
                      "give its file, unchanged",
                      i + 1, image.width, image.height, image.digest, files.size()));
    }
    images.push_back(files[static_cast<std::size_t>(at - digests.begin())]);
  }
  return images;
}

Result<Request> request_of(const Receipt& receipt, const Engine& engine) {
  Request request;
  request.prompt = receipt.prompt;
  request.sampling = receipt.sampling;
  request.sampling.logprobs = 0;
  request.n = receipt.n;
  request.beams = receipt.beams;
  request.constraint = receipt.constraint;
  request.on_context_full = receipt.on_context_full;
  CANDOR_ASSIGN(request.adapters, adapters_of(receipt, engine));
  for (const ReceiptAnswer& answer : receipt.answers) request.predicted.push_back(answer.tokens);
  return request;
}

}  // namespace

Result<Verification> Verification::prepare(const Engine& engine, Receipt receipt, std::span<const std::string> images) {
  CANDOR_TRY(check_signature(receipt));
  CANDOR_TRY(check_model(receipt, engine.info()));
  if (receipt.vision) CANDOR_TRY(check_vision(*receipt.vision, engine));
  CANDOR_ASSIGN(Request request, request_of(receipt, engine));
  if (receipt.vision) {
    CANDOR_ASSIGN(request.images, images_of(*receipt.vision, images));
  }
  return Verification(std::move(receipt), std::move(request));
}

Verification::Verification(Receipt receipt, Request request)
    : receipt_(std::move(receipt)), request_(std::move(request)), answers_(receipt_.answers.size()) {
  verdict_.was_searched = receipt_.beams.has_value();
  for (const ReceiptAnswer& answer : receipt_.answers) verdict_.n_tokens += std::ssize(answer.tokens);
}

bool Verification::is_decided() const {
  return verdict_.difference || std::ranges::all_of(answers_, &Answer::is_over);
}

void Verification::on_event(const TokenEvent& event) {
  Answer& answer = answers_[static_cast<std::size_t>(event.choice)];
  if (answer.is_over || verdict_.difference) return;
  const ReceiptAnswer& claimed = receipt_.answers[static_cast<std::size_t>(event.choice)];
  if (was_broken_off(claimed) && answer.n_tokens == claimed.tokens.size()) {
    finish_broken_off(event, claimed, answer);
  } else {
    follow(event, claimed, answer);
  }
}

void Verification::follow(const TokenEvent& event, const ReceiptAnswer& claimed, Answer& answer) {
  answer.text += event.text;
  if (event.token >= 0) take_token(event, claimed, answer);
  if (!verdict_.difference && event.finish) finish(event, claimed, answer);
  answer.is_over = event.finish.has_value();
}

void Verification::take_token(const TokenEvent& event, const ReceiptAnswer& claimed, Answer& answer) {
  const std::size_t i = answer.n_tokens;
  if (i >= claimed.tokens.size() || claimed.tokens[i] != event.token) return differ("tokens", event, claimed, i);
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  if (event.logprob && bits(claimed.logprobs[i]) != bits(event.logprob->logprob))
    return differ("logprobs", event, claimed, i);
  ++answer.n_tokens;
  ++verdict_.n_verified;
}

void Verification::finish(const TokenEvent& event, const ReceiptAnswer& claimed, const Answer& answer) {
  const std::size_t n = answer.n_tokens;
  if (n < claimed.tokens.size()) return differ("tokens", event, claimed, n);
  if (claimed.finish != *event.finish) return differ("finish_reason", event, claimed, n);
  if (claimed.stop_index != event.stop_index) return differ("stop_index", event, claimed, n);
  if (claimed.score != event.score) return differ("score", event, claimed, n);
  if (claimed.text != answer.text) return differ("text", event, claimed, n);
}

// The end is nobody's to check; text that was held back then came at once.
void Verification::finish_broken_off(const TokenEvent& event, const ReceiptAnswer& claimed, Answer& answer) {
  answer.is_over = true;
  if (!claimed.text.starts_with(answer.text)) differ("text", event, claimed, answer.n_tokens);
}

void Verification::differ(const char* field, const TokenEvent& event, const ReceiptAnswer& claimed,
                          std::size_t position) {
  ReceiptDifference& found = verdict_.difference.emplace();
  found.field = field;
  found.answer = event.choice;
  found.position = static_cast<std::int64_t>(position);
  if (position < claimed.tokens.size()) {
    found.claimed = claimed.tokens[position];
    const bool is_weighed = event.predicted && event.predicted->token == found.claimed;
    found.claimed_logprob = static_cast<double>(is_weighed ? event.predicted->logprob : claimed.logprobs[position]);
  }
  found.expected = event.token;
  if (event.logprob) found.expected_logprob = static_cast<double>(event.logprob->logprob);
}

}  // namespace candor::receipt
