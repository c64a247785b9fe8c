#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "candor/sampling_table.h"
#include "candor/verify.h"
#include "formats/json_text.h"
#include "receipt/object_reader.h"

namespace candor {
namespace receipt {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr std::int32_t kTextVersion = 1;  // of prompts without images

// By GrammarKind, StopScope, OnContextFull and FinishReason.
const std::vector<std::string_view> kGrammarKinds = {"json_schema", "json_object", "regex", "lark", "choice", "gbnf"};
const std::vector<std::string_view> kStopScopes = {"both", "content", "reasoning"};
const std::vector<std::string_view> kOnFull = {"stop", "crop"};
const std::vector<std::string_view> kLogprobsOf = {"model", "chain"};

template <class Enum>
std::string_view name_in(const std::vector<std::string_view>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

std::vector<std::string_view> finish_names() {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kFinishReasons; ++i) names.emplace_back(to_string(static_cast<FinishReason>(i)));
  return names;
}

// The shortest number that is read as this float again.
double shortest(float value) {
  char digits[32];
  const auto written = std::to_chars(std::begin(digits), std::end(digits), value);
  double number = 0.0;
  std::from_chars(digits, written.ptr, number);
  return static_cast<float>(number) == value ? number : static_cast<double>(value);
}

std::string hex_of(std::uint64_t number) {
  return fmt::format("{:016x}", number);
}

std::uint64_t number_of(const std::string& hex) {
  std::uint64_t number = 0;
  std::from_chars(hex.data(), hex.data() + hex.size(), number, 16);
  return number;
}

template <std::size_t N>
void bytes_of(const std::string& hex, std::array<std::uint8_t, N>& bytes) {
  if (hex.size() != 2 * N) return;
  for (std::size_t i = 0; i < N; ++i) std::from_chars(&hex[2 * i], &hex[2 * i] + 2, bytes[i], 16);
}

template <class T>
Ordered or_null(const std::optional<T>& value) {
  return value ? Ordered(*value) : Ordered();
}

Ordered model_json(const ReceiptModel& model) {
  return {{"name", model.name},
          {"family", model.family},
          {"fingerprint", hex_of(model.fingerprint)},
          {"numerics", model.numerics},
          {"kv_type", model.kv_type},
          {"template", model.template_digest.empty() ? Ordered() : Ordered(model.template_digest)},
          {"context", model.n_ctx}};
}

Ordered bias_json(const LogitBias& bias) {
  Ordered json = bias.text.empty() ? Ordered{{"token", bias.token}} : Ordered{{"text", bias.text}};
  json["bias"] = bias.ban ? Ordered("ban") : Ordered(bias.bias);
  return json;
}

Ordered sampling_json(const SamplingParams& sampling) {
  Ordered json;
  for (const SamplingNumber& number : kSamplingNumbers) {
    std::visit([&](auto member) { json[std::string(number.name)] = sampling.*member; }, number.member);
  }
  json["samplers"] = sampling.samplers;
  json["seed"] = std::to_string(sampling.seed.value_or(0));
  json["max_tokens"] = or_null(sampling.max_tokens);
  json["stop"] = sampling.stop;
  json["stop_token_ids"] = sampling.stop_ids;
  json["stop_scope"] = name_in(kStopScopes, sampling.stop_scope);
  json["ignore_eos"] = sampling.ignore_eos;
  json["logit_bias"] = Ordered::array();
  for (const LogitBias& bias : sampling.logit_bias) json["logit_bias"].push_back(bias_json(bias));
  json["allowed_token_ids"] = sampling.allowed_token_ids;
  json["bad_words"] = sampling.bad_words;
  json["dry_sequence_breakers"] = sampling.dry_sequence_breakers;
  json["logprobs_of"] = kLogprobsOf[sampling.logprobs_after_chain ? 1 : 0];
  return json;
}

Ordered vision_json(const ReceiptVision& vision) {
  Ordered images = Ordered::array();
  for (const ReceiptImage& image : vision.images) {
    images.push_back(
        {{"sha256", image.digest}, {"width", image.width}, {"height", image.height}, {"rows", image.n_rows}});
  }
  return {{"family", vision.family},
          {"fingerprint", hex_of(vision.fingerprint)},
          {"preparation", vision.preparation},
          {"images", std::move(images)}};
}

Ordered answer_json(const ReceiptAnswer& answer) {
  Ordered logprobs = Ordered::array();
  for (const float logprob : answer.logprobs) logprobs.push_back(shortest(logprob));
  return {{"tokens", answer.tokens},
          {"logprobs", std::move(logprobs)},
          {"logprobs_digest", logprobs_digest(answer)},
          {"text", answer.text},
          {"finish_reason", to_string(answer.finish)},
          {"stop_index", or_null(answer.stop_index)},
          {"score", or_null(answer.score)}};
}

Ordered receipt_json(const Receipt& receipt) {
  Ordered json = {{"receipt", receipt.vision ? kReceiptVersion : kTextVersion},
                  {"made_by", receipt.made_by},
                  {"model", model_json(receipt.model)}};
  json["adapters"] = Ordered::array();
  for (const ReceiptAdapter& adapter : receipt.adapters) {
    json["adapters"].push_back(
        {{"name", adapter.name}, {"fingerprint", hex_of(adapter.fingerprint)}, {"scale", shortest(adapter.scale)}});
  }
  json["prompt"] = receipt.prompt;
  if (receipt.vision) json["vision"] = vision_json(*receipt.vision);
  json["sampling"] = sampling_json(receipt.sampling);
  json["n"] = receipt.n;
  json["beams"] = Ordered();
  if (const auto& beams = receipt.beams) {
    json["beams"] = {
        {"width", beams->width}, {"length_penalty", beams->length_penalty}, {"early_stopping", beams->early_stopping}};
  }
  json["constraint"] = Ordered();
  if (const auto& constraint = receipt.constraint) {
    json["constraint"] = {{"kind", name_in(kGrammarKinds, constraint->kind)},
                          {"source", constraint->source},
                          {"may_reason_first", constraint->may_reason_first}};
  }
  json["on_context_full"] = name_in(kOnFull, receipt.on_context_full);
  json["answers"] = Ordered::array();
  for (const ReceiptAnswer& answer : receipt.answers) json["answers"].push_back(answer_json(answer));
  if (const auto& signature = receipt.signature) {
    json["signature"] = {
        {"algorithm", "ed25519"}, {"signer", to_hex(signature->signer)}, {"value", to_hex(signature->value)}};
  }
  return json;
}

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

// Reads the parts of one receipt; the first error ends it.
class Parser {
 public:
  Result<Receipt> parse(const Json& json) {
    ObjectReader reader(json, "", error_);
    read_version(reader);
    receipt_.made_by = reader.text("made_by");
    read_model(reader);
    read_adapters(reader);
    receipt_.prompt = reader.ids("prompt");
    if (receipt_.prompt.empty()) reader.refuse("prompt", "one token id or more");
    if (version_ > kTextVersion) read_vision(reader);
    read_sampling(reader);
    receipt_.n = static_cast<std::int32_t>(reader.integer("n", 1, kMaxChoices));
    read_beams(reader);
    read_constraint(reader);
    receipt_.on_context_full = static_cast<OnContextFull>(reader.word("on_context_full", kOnFull));
    read_answers(reader);
    if (reader.has("signature")) read_signature(reader);
    reader.refuse_others();
    if (error_) return *error_;
    return std::move(receipt_);
  }

 private:
  ObjectReader part(const Json& json, std::string path) { return {json, std::move(path), error_}; }

  void read_version(ObjectReader& reader) {
    if (!reader.has("receipt")) reader.refuse("receipt", "a receipt's version: this is something else");
    version_ = reader.integer("receipt", 1, kMost);
    if (error_ || version_ <= kReceiptVersion) return;
    error_ = Error{ErrorKind::kUnsupported,
                   fmt::format("the receipt is of version {}, and this program knows version {}: use a newer one",
                               version_, kReceiptVersion),
                   "receipt"};
  }

  void read_model(ObjectReader& reader) {
    const Json* json = reader.object("model");
    if (json == nullptr) return;
    ObjectReader model = part(*json, "model");
    ReceiptModel& read = receipt_.model;
    read.name = model.text("name");
    read.family = model.text("family");
    read.fingerprint = number_of(model.digits("fingerprint", 16));
    read.numerics = static_cast<std::int32_t>(model.integer("numerics", 0, kMost));
    read.kv_type = model.text("kv_type");
    read.template_digest = model.optional_text("template").value_or("");
    read.n_ctx = model.integer("context", 1, kMost);
    model.refuse_others();
  }

  void read_vision(ObjectReader& reader) {
    const Json* json = reader.object("vision");
    if (json == nullptr) return;
    ObjectReader vision = part(*json, "vision");
    ReceiptVision& read = receipt_.vision.emplace();
    read.family = vision.text("family");
    read.fingerprint = number_of(vision.digits("fingerprint", 16));
    read.preparation = vision.text("preparation");
    each(vision, "images", [&](ObjectReader& image) {
      ReceiptImage& one = read.images.emplace_back();
      one.digest = image.digits("sha256", 64);
      one.width = static_cast<std::int32_t>(image.integer("width", 1, kMost));
      one.height = static_cast<std::int32_t>(image.integer("height", 1, kMost));
      one.n_rows = static_cast<std::int32_t>(image.integer("rows", 1, kMost));
    });
    if (read.images.empty() || read.images.size() > kMaxImages)
      vision.refuse("images", fmt::format("1 to {} images", kMaxImages));
    vision.refuse_others();
  }

  void read_adapters(ObjectReader& reader) {
    each(reader, "adapters", [&](ObjectReader& adapter) {
      ReceiptAdapter& read = receipt_.adapters.emplace_back();
      read.name = adapter.text("name");
      read.fingerprint = number_of(adapter.digits("fingerprint", 16));
      const double scale = adapter.number("scale");
      if (!(scale >= -1e30 && scale <= 1e30))
        adapter.refuse("scale", "a number from -1e30 to 1e30");
      else
        read.scale = static_cast<float>(scale);
    });
  }

  void read_sampling(ObjectReader& reader) {
    const Json* json = reader.object("sampling");
    if (json == nullptr) return;
    ObjectReader sampling = part(*json, "sampling");
    SamplingParams& read = receipt_.sampling;
    for (const SamplingNumber& number : kSamplingNumbers) read_number(sampling, number);
    read.samplers = sampling.texts("samplers");
    read_seed(sampling);
    read.max_tokens = sampling.optional_integer("max_tokens", 1, std::numeric_limits<std::int64_t>::max());
    read.stop = sampling.texts("stop");
    read.stop_ids = sampling.ids("stop_token_ids");
    read.stop_scope = static_cast<StopScope>(sampling.word("stop_scope", kStopScopes));
    read.ignore_eos = sampling.boolean("ignore_eos");
    each(sampling, "logit_bias", [&](ObjectReader& bias) { read_bias(bias); });
    read.allowed_token_ids = sampling.ids("allowed_token_ids");
    read.bad_words = sampling.texts("bad_words");
    read.dry_sequence_breakers = sampling.texts("dry_sequence_breakers");
    read.logprobs_after_chain = sampling.word("logprobs_of", kLogprobsOf) == 1;
    sampling.refuse_others();
  }

  void read_number(ObjectReader& sampling, const SamplingNumber& number) {
    const std::string name(number.name);
    if (const auto* member = std::get_if<double SamplingParams::*>(&number.member)) {
      receipt_.sampling.** member = sampling.number(name.c_str());
    } else {
      constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
      receipt_.sampling.*std::get<std::int64_t SamplingParams::*>(number.member) =
          sampling.integer(name.c_str(), -kAny, kAny);
    }
  }

  void read_seed(ObjectReader& sampling) {
    const std::string digits = sampling.text("seed");
    std::uint64_t seed = 0;
    const char* end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, seed);
    if (read.ec != std::errc() || read.ptr != end || digits != std::to_string(seed))
      sampling.refuse("seed", "a string of decimal digits, below 2^64");
    receipt_.sampling.seed = seed;
  }

  void read_bias(ObjectReader& reader) {
    LogitBias& bias = receipt_.sampling.logit_bias.emplace_back();
    if (reader.has("text")) {
      bias.text = reader.text("text");
      if (bias.text.empty()) reader.refuse("text", "a text");
    } else {
      bias.token = static_cast<TokenId>(reader.integer("token", 0, kMost));
    }
    bias.ban = reader.is_text("bias");
    if (!bias.ban) bias.bias = reader.number("bias");
    if (bias.ban) reader.word("bias", {"ban"});
  }

  void read_beams(ObjectReader& reader) {
    const Json* json = reader.optional_object("beams");
    if (json == nullptr) return;
    ObjectReader beams = part(*json, "beams");
    BeamSearch& read = receipt_.beams.emplace();
    read.width = static_cast<std::int32_t>(beams.integer("width", 1, kMaxBeams));
    read.length_penalty = beams.number("length_penalty");
    read.early_stopping = beams.boolean("early_stopping");
    beams.refuse_others();
  }

  void read_constraint(ObjectReader& reader) {
    const Json* json = reader.optional_object("constraint");
    if (json == nullptr) return;
    ObjectReader constraint = part(*json, "constraint");
    ConstraintSpec& read = receipt_.constraint.emplace();
    read.kind = static_cast<GrammarKind>(constraint.word("kind", kGrammarKinds));
    read.source = constraint.text("source");
    read.may_reason_first = constraint.boolean("may_reason_first");
    constraint.refuse_others();
  }

  void read_answers(ObjectReader& reader) {
    each(reader, "answers", [&](ObjectReader& answer) { read_answer(answer); });
    if (receipt_.answers.size() != static_cast<std::size_t>(receipt_.n))
      reader.refuse("answers", fmt::format("as many as n says, {}", receipt_.n));
  }

  void read_answer(ObjectReader& reader) {
    ReceiptAnswer& answer = receipt_.answers.emplace_back();
    answer.tokens = reader.ids("tokens");
    answer.logprobs = reader.floats("logprobs");
    if (answer.logprobs.size() != answer.tokens.size())
      reader.refuse("logprobs", fmt::format("one for each token, {}", answer.tokens.size()));
    const std::string digest = reader.digits("logprobs_digest", 64);
    if (digest != logprobs_digest(answer)) reader.refuse("logprobs_digest", "the digest of its logprobs");
    answer.text = reader.text("text");
    answer.finish = static_cast<FinishReason>(reader.word("finish_reason", finish_names()));
    if (answer.finish == FinishReason::kError) reader.refuse("finish_reason", "how an answer ended, not an error");
    if (const auto index = reader.optional_integer("stop_index", 0, kMost))
      answer.stop_index = static_cast<std::size_t>(*index);
    answer.score = reader.optional_number("score");
  }

  void read_signature(ObjectReader& reader) {
    const Json* json = reader.object("signature");
    if (json == nullptr) return;
    ObjectReader signature = part(*json, "signature");
    signature.word("algorithm", {"ed25519"});
    ReceiptSignature& read = receipt_.signature.emplace();
    bytes_of(signature.digits("signer", 64), read.signer);
    bytes_of(signature.digits("value", 128), read.value);
    signature.refuse_others();
  }

  template <class Read>
  void each(ObjectReader& reader, const char* name, Read&& read) {
    const Json* list = reader.array(name);
    for (std::size_t i = 0; list != nullptr && i < list->size() && !error_; ++i) {
      ObjectReader item = part((*list)[i], fmt::format("{}[{}]", reader.path_of(name), i));
      read(item);
      item.refuse_others();
    }
  }

  Receipt receipt_;
  std::int64_t version_ = 0;
  std::optional<Error> error_;
};

}  // namespace
}  // namespace receipt

std::string logprobs_digest(const ReceiptAnswer& answer) {
  return to_hex(sha256(std::as_bytes(std::span(answer.logprobs))));
}

std::string to_json(const Receipt& receipt) {
  return receipt::receipt_json(receipt).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Receipt> parse_receipt(std::string_view json) {
  if (json.size() > kMaxReceiptBytes) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("the receipt has {} bytes, expected at most {}", json.size(), kMaxReceiptBytes));
  }
  CANDOR_ASSIGN(const nlohmann::json parsed, formats::parse_json(json, "the receipt", "give it as it was written"));
  return receipt::Parser().parse(parsed);
}

}  // namespace candor
