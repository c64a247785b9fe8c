#include "engine/request/receipt_notes.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "base/utf8.h"
#include "candor/receipt.h"
#include "candor/version.h"
#include "sample/chain.h"

namespace candor::engine {
namespace {

Error refused(std::string why) {
  return {ErrorKind::kInvalidInput, "there is no receipt " + std::move(why), "receipt"};
}

// A receipt is JSON.
Result<void> check_texts(const char* name, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (first_invalid_utf8(text) < text.size()) return refused(std::string("where ") + name + " is not valid UTF-8");
  }
  return {};
}

Result<void> check_texts(const Request& request) {
  const SamplingParams& sampling = request.sampling;
  std::vector<std::string> biased;
  for (const LogitBias& bias : sampling.logit_bias) biased.push_back(bias.text);
  CANDOR_TRY(check_texts("stop", sampling.stop));
  CANDOR_TRY(check_texts("bad_words", sampling.bad_words));
  CANDOR_TRY(check_texts("logit_bias", biased));
  CANDOR_TRY(check_texts("dry_sequence_breakers", sampling.dry_sequence_breakers));
  if (!request.constraint) return {};
  return check_texts("the constraint", {request.constraint->source});
}

ReceiptModel model_of(const ModelInfo& info) {
  return {.name = info.paths.empty() ? "" : to_valid_utf8(info.paths.front().filename().string()),
          .family = info.family,
          .fingerprint = info.hash,
          .numerics = kNumericsVersion,
          .kv_type = info.kv_type,
          .template_digest = info.chat_template_digest,
          .n_ctx = info.n_ctx};
}

std::vector<ReceiptAdapter> adapters_of(const ActiveRequest& active) {
  std::vector<ReceiptAdapter> adapters;
  for (size_t i = 0; i < active.adapters.size(); ++i) {
    const AdapterInfo& info = active.adapters[i]->info();
    adapters.push_back({info.name, info.hash, active.spec.adapters[i].scale});
  }
  return adapters;
}

// REQUIRES: the engine takes images.
Result<ReceiptVision> vision_of(std::span<const PlacedTile> tiles, const RequestLimits& limits) {
  CANDOR_ASSIGN(VisionInfo info, limits.images->info());
  ReceiptVision vision{std::move(info.family), info.fingerprint, std::move(info.preparation), {}};
  for (const PlacedTile& tile : tiles) {
    if (tile.first_row != 0) continue;
    const image::Size size = tile.image->prepared().original;
    vision.images.push_back({to_hex(tile.image->digest()), size.width, size.height, tile.image->n_rows()});
  }
  return vision;
}

}  // namespace

Result<void> begin_receipt(const Request& request, const ReadPrompt& prompt, const RequestLimits& limits,
                           ActiveRequest& active) {
  if (!request.receipt) return {};
  if (request.on_logits) return refused("of what a hook on the logits decides");
  if (!active.rules.makes_text) return refused("where no token is chosen: it is of an answer in text");
  if (limits.info->backend == "reference")
    return refused("of the reference backend, which gives other bits: it is there to compare with");
  CANDOR_TRY(check_texts(request));
  auto receipt = std::make_shared<Receipt>();
  receipt->made_by = std::string("candor ") + kVersion;
  receipt->model = model_of(*limits.info);
  receipt->adapters = adapters_of(active);
  receipt->prompt = prompt.tokens;
  if (!prompt.images.empty()) {
    CANDOR_ASSIGN(receipt->vision, vision_of(prompt.images, limits));
  }
  receipt->sampling = request.sampling;
  receipt->sampling.seed = active.rules.seed;
  receipt->sampling.samplers.clear();
  for (const sample::Stage stage : active.rules.chain.stages) {
    receipt->sampling.samplers.emplace_back(sample::to_string(stage));
  }
  receipt->n = request.n;
  receipt->beams = request.beams;
  receipt->constraint = request.constraint;
  receipt->on_context_full = request.on_context_full;
  receipt->answers.resize(static_cast<size_t>(request.n));
  active.rules.n_logprobs = std::max(0, active.rules.n_logprobs);
  active.summary.receipt = receipt;
  active.receipt = std::move(receipt);
  return {};
}

void note_event(ActiveRequest& request, TokenEvent& event) {
  if (event.finish == FinishReason::kError) {
    request.receipt.reset();
    (event.summary ? *event.summary : request.summary).receipt.reset();
    return;
  }
  Receipt& receipt = *request.receipt;
  ReceiptAnswer& answer = receipt.answers[static_cast<size_t>(event.choice)];
  if (event.token >= 0) answer.tokens.push_back(event.token);
  if (event.logprob) answer.logprobs.push_back(event.logprob->logprob);
  answer.text += event.text;
  if (event.finish) {
    answer.finish = *event.finish;
    answer.stop_index = event.stop_index;
    answer.score = event.score;
  }
  if (receipt.sampling.logprobs >= 0) return;
  event.logprob.reset();
  event.top_logprobs.clear();
}

}  // namespace candor::engine
