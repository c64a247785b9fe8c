// candor_read(): many texts at once, to vectors or to what the model's head gives.

#include <candor/candor.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "capi/guard.h"
#include "capi/objects.h"
#include "serve/core/read_many.h"

namespace candor::capi {
namespace {

using nlohmann::json;

constexpr size_t kMostTexts = size_t{1} << 20;

Result<Pooling> pooling_of(const json& asked) {
  constexpr std::pair<const char*, Pooling> kWays[] = {{"model", Pooling::kModel},   {"mean", Pooling::kMean},
                                                       {"last", Pooling::kLast},     {"cls", Pooling::kFirst},
                                                       {"labels", Pooling::kLabels}, {"sparse", Pooling::kSparse}};
  const json way = asked.value("pooling", json("model"));
  for (const auto& [name, pooling] : kWays) {
    if (way == name) return pooling;
  }
  return fail(ErrorKind::kInvalidInput, "pooling: expected model, mean, last, cls, labels or sparse", "pooling");
}

// "tokens": lists of ids.
Result<std::vector<Prompt>> token_prompts_of(const json& lists) {
  if (!lists.is_array() || lists.empty() || lists.size() > kMostTexts) {
    return fail(ErrorKind::kInvalidInput, "tokens: expected lists of token ids", "tokens");
  }
  std::vector<Prompt> prompts;
  for (const json& list : lists) {
    const bool are_ids = list.is_array() && std::ranges::all_of(list, [](const json& id) {
                           return id.is_number_integer() && id >= 0 && id <= std::numeric_limits<TokenId>::max();
                         });
    if (!are_ids) return fail(ErrorKind::kInvalidInput, "tokens: expected lists of token ids", "tokens");
    prompts.emplace_back(list.get<TokenPrompt>());
  }
  return prompts;
}

// What is asked of each text's rows in place of a vector.
Result<void> add_rows(const json& asked, Request& request) {
  const json kind = asked.value("rows", json());
  if (kind.is_null()) return {};
  request.pooling = Pooling::kNone;
  const json first = asked.value("first", json(1));
  if (kind == "logits" || kind == "hidden") {
    request.rows = kind == "logits" ? PromptRows::kLogits : PromptRows::kHidden;
  } else if (kind == "scores" && first.is_number_integer() && first >= 1 &&
             first <= std::numeric_limits<int32_t>::max()) {
    request.sampling.prompt_logprobs = 1;
    request.sampling.max_tokens = 0;
    request.first_scored = first.get<int32_t>();
  } else {
    return fail(ErrorKind::kInvalidInput, "rows: expected logits, hidden, or scores with a \"first\" of 1 or more",
                "rows");
  }
  return {};
}

Result<std::vector<Prompt>> prompts_of(const json& asked) {
  if (asked.contains("tokens")) return token_prompts_of(asked["tokens"]);
  const bool are_pairs = asked.contains("pairs");
  const json list = asked.value(are_pairs ? "pairs" : "texts", json());
  if (!list.is_array() || list.empty() || list.size() > kMostTexts) {
    return fail(ErrorKind::kInvalidInput, "texts: expected a list of texts, or \"pairs\" of two texts each", "texts");
  }
  std::vector<Prompt> prompts;
  for (const json& one : list) {
    const bool is_pair = one.is_array() && one.size() == 2 && one[0].is_string() && one[1].is_string();
    if (are_pairs ? !is_pair : !one.is_string()) {
      return fail(ErrorKind::kInvalidInput, are_pairs ? "pairs: expected two texts each" : "texts: expected texts",
                  are_pairs ? "pairs" : "texts");
    }
    if (are_pairs)
      prompts.emplace_back(PairPrompt{one[0].get<std::string>(), one[1].get<std::string>()});
    else
      prompts.emplace_back(TextPrompt{.text = one.get<std::string>()});
  }
  return prompts;
}

Result<std::vector<RequestAdapter>> adapters_of(const json& asked) {
  std::vector<RequestAdapter> adapters;
  const json named = asked.value("adapters", json::object());
  if (!named.is_object() || named.size() > kMaxRequestAdapters) {
    return fail(ErrorKind::kInvalidInput, "adapters: expected an object of names and scales", "adapters");
  }
  for (const auto& [name, scale] : named.items()) {
    if (!scale.is_number()) return fail(ErrorKind::kInvalidInput, "adapters: expected numbers as scales", "adapters");
    adapters.push_back({name, scale.get<double>()});
  }
  return adapters;
}

Result<std::vector<Request>> requests_of(const json& asked, const ModelInfo& info) {
  CANDOR_ASSIGN(const Pooling pooling, pooling_of(asked));
  CANDOR_ASSIGN(std::vector<Prompt> prompts, prompts_of(asked));
  CANDOR_ASSIGN(const std::vector<RequestAdapter> adapters, adapters_of(asked));
  const json normalise = asked.value("normalize", json());
  const bool cuts = asked.value("truncate", json(false)) == true;
  std::vector<Request> requests(prompts.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = std::move(prompts[i]);
    requests[i].pooling = pooling;
    requests[i].adapters = adapters;
    CANDOR_TRY(add_rows(asked, requests[i]));
    if (normalise.is_boolean()) requests[i].normalise = normalise.get<bool>();
    if (!cuts) continue;
    requests[i].max_prompt_tokens = info.n_ctx;
    requests[i].prompt_cut = PromptCut::kEnd;
  }
  return requests;
}

}  // namespace
}  // namespace candor::capi

using namespace candor;
using namespace candor::capi;

candor_status candor_read(candor_engine handle, const char* asked, candor_data* floats, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(asked);
    CANDOR_NEEDS(floats);
    CANDOR_ASSIGN(const auto engine, find_engine(handle));
    const json parsed = json::parse(asked, nullptr, false);
    if (!parsed.is_object()) return fail(ErrorKind::kInvalidInput, "expected a JSON object with \"texts\"", "texts");
    CANDOR_ASSIGN(const std::vector<Request> requests, requests_of(parsed, engine->info()));
    std::vector<float> rows;
    const auto keep = [&](size_t index, const serve::ReadText& text) {
      rows.insert(rows.end(), text.numbers.begin(), text.numbers.end());
      for (const WordWeight& word : text.words) {
        rows.insert(rows.end(), {static_cast<float>(index), static_cast<float>(word.token), word.weight});
      }
    };
    CANDOR_TRY(serve::read_many(*engine, {.requests = requests, .on_read = keep}));
    return give(std::move(rows), floats);
  });
}
