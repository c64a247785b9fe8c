#include "serve/core/reading_fields.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/rounded_math.h"

namespace candor::serve {
namespace {

std::string names_of(const std::vector<NamedPrompt>& prompts) {
  std::string names;
  for (const NamedPrompt& prompt : prompts) names += (names.empty() ? "" : ", ") + prompt.name;
  return names.empty() ? "none: its files name no prompts" : names;
}

const NamedPrompt* find_prompt(const std::vector<NamedPrompt>& prompts, std::string_view name) {
  const auto found = std::ranges::find(prompts, name, &NamedPrompt::name);
  return found == prompts.end() ? nullptr : &*found;
}

// Cohere's words for what models call query, document or passage.
const NamedPrompt* prompt_for(const std::vector<NamedPrompt>& prompts, std::string_view type) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"search_query", "query"}, {"search_document", "document"}, {"search_document", "passage"}};
  if (const NamedPrompt* own = find_prompt(prompts, type)) return own;
  for (const auto& [word, name] : kNames) {
    const NamedPrompt* found = type == word ? find_prompt(prompts, name) : nullptr;
    if (found != nullptr) return found;
  }
  return nullptr;
}

std::string read_prefix(Fields& fields, const ReadingInfo& reading, std::vector<std::string>& warnings) {
  const auto name = fields.text("prompt_name");
  const auto type = fields.text("input_type");
  if (name) {
    if (const NamedPrompt* prompt = find_prompt(reading.prompts, *name)) return prompt->text;
    fields.refuse("prompt_name", fmt::format("prompt_name is {}, expected one of the model's: {}", shown(Json(*name)),
                                             names_of(reading.prompts)));
    return {};
  }
  if (type) {
    if (const NamedPrompt* prompt = prompt_for(reading.prompts, *type)) return prompt->text;
    warnings.push_back(
        fmt::format("input_type {} has no effect: the model's files have no prompt for it (they have {})",
                    shown(Json(*type)), names_of(reading.prompts)));
    return {};
  }
  const NamedPrompt* usual = find_prompt(reading.prompts, reading.default_prompt);
  return usual == nullptr ? std::string() : usual->text;
}

// Jina's way: the adapter of that name.
void read_task(Fields& fields, const ApiLimits& limits, ReadingTerms& terms) {
  const auto task = fields.text("task");
  if (!task) return;
  const std::vector<AdapterInfo> adapters =
      limits.adapters == nullptr ? std::vector<AdapterInfo>() : limits.adapters->list();
  const auto adapter = std::ranges::find(adapters, *task, &AdapterInfo::name);
  if (adapter != adapters.end()) {
    terms.base.adapters = {{.name = *task}};
    if (!fields.has("prompt_name") && !fields.has("input_type")) terms.prefix = adapter->prompt;
    return;
  }
  std::string names;
  for (const AdapterInfo& one : adapters) names += (names.empty() ? "" : ", ") + one.name;
  fields.refuse("task", fmt::format("task is {}, expected an adapter that is loaded: {}", shown(Json(*task)),
                                    names.empty() ? "there is none" : names));
}

Pooling read_pooling(Fields& fields) {
  constexpr std::pair<std::string_view, Pooling> kWays[] = {
      {"model", Pooling::kModel}, {"mean", Pooling::kMean},   {"last", Pooling::kLast},
      {"cls", Pooling::kFirst},   {"first", Pooling::kFirst}, {"weighted", Pooling::kWeighted}};
  const std::string pooling = fields.text("pooling").value_or("model");
  for (const auto& [name, way] : kWays) {
    if (pooling == name) return way;
  }
  fields.refuse("pooling",
                fmt::format("pooling is {}, expected mean, last, cls, weighted or model", shown(Json(pooling))));
  return Pooling::kModel;
}

}  // namespace

void read_cut(Fields& fields, const ApiLimits& limits, Request& base) {
  base.prompt_cut = PromptCut::kEnd;
  const Json* truncate = fields.raw("truncate");
  if (truncate != nullptr && truncate->is_string()) {
    const std::string way = *truncate;
    if (way != "NONE" && way != "START" && way != "END") {
      fields.refuse("truncate", fmt::format("truncate is {}, expected NONE, START or END", shown(*truncate)));
    }
    if (way == "START") base.prompt_cut = PromptCut::kStart;
    if (way == "START" || way == "END") base.max_prompt_tokens = limits.n_ctx;
  } else if (fields.boolean("truncate").value_or(false)) {
    base.max_prompt_tokens = limits.n_ctx;
  }
  const std::string direction = fields.text("truncation_direction").value_or("right");
  if (direction == "left" || direction == "Left")
    base.prompt_cut = PromptCut::kStart;
  else if (direction != "right" && direction != "Right") {
    fields.refuse("truncation_direction",
                  fmt::format("truncation_direction is {}, expected left or right", shown(Json(direction))));
  }
  const auto kept = fields.integer("truncate_prompt_tokens", -1, limits.n_ctx);
  if (kept) base.max_prompt_tokens = *kept < 1 ? limits.n_ctx : *kept;
}

ReadingTerms read_reading(Fields& fields, const ApiLimits& limits, std::vector<std::string>& warnings) {
  ReadingTerms terms;
  terms.base.pooling = read_pooling(fields);
  terms.base.normalise = fields.boolean("normalize");
  terms.base.scheduling = read_scheduling(fields);
  read_cut(fields, limits, terms.base);
  terms.prefix = read_prefix(fields, limits.reading, warnings);
  read_task(fields, limits, terms);
  return terms;
}

std::vector<std::string> read_texts(Fields& fields, const char* name, size_t at_most) {
  std::vector<std::string> texts;
  const Json* list = fields.array(name);
  const size_t n = list == nullptr ? 0 : list->size();
  if (n == 0 || n > at_most) {
    fields.refuse(name, fmt::format("{} has {} elements, expected 1 to {} texts", name, n, at_most));
    return texts;
  }
  for (const Json& item : *list) {
    const bool is_wrapped = item.is_object() && item.contains("text") && item["text"].is_string();
    if (!item.is_string() && !is_wrapped) {
      fields.refuse(name, fmt::format("{} holds {}, expected texts", name, shown(item)));
      return texts;
    }
    texts.push_back(is_wrapped ? item["text"].get<std::string>() : item.get<std::string>());
  }
  return texts;
}

void shorten(std::vector<float>& vector, size_t n_dimensions) {
  if (n_dimensions == 0 || n_dimensions >= vector.size()) return;
  vector.resize(n_dimensions);
  double square = 0;
  for (const float x : vector) square += static_cast<double>(x) * static_cast<double>(x);
  const double scale = square > 0 ? 1.0 / std::sqrt(square) : 0.0;
  for (float& x : vector) x = static_cast<float>(static_cast<double>(x) * scale);
}

std::string to_base64(std::span<const float> vector) {
  static_assert(std::endian::native == std::endian::little, "base64 carries little-endian floats");
  const auto* bytes = reinterpret_cast<const unsigned char*>(vector.data());
  const size_t n_digits = (vector.size_bytes() + 2) / 3 * 4;
  std::string text(n_digits + 1, '\0');  // ends with a zero byte
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes, static_cast<int>(vector.size_bytes()));
  text.resize(n_digits);
  return text;
}

double sigmoid(double x) {
  return 1.0 / (1.0 + rounded_exp(-x));
}

double rank_logit(std::span<const float> numbers) {
  const double first = numbers.empty() ? 0.0 : static_cast<double>(numbers.front());
  return numbers.size() < 2 ? first : first - static_cast<double>(numbers[1]);
}

std::vector<double> softmax(std::span<const float> logits) {
  std::vector<double> shares(logits.size());
  if (logits.empty()) return shares;
  const double most = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    shares[i] = rounded_exp(static_cast<double>(logits[i]) - most);
    sum += shares[i];
  }
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace candor::serve
