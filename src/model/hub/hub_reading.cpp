#include "model/hub/hub_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "formats/json_text.h"
#include "formats/quote.h"
#include "model/hub/hub_answers.h"
#include "model/hub/hub_words.h"

namespace candor::model {
namespace {

namespace fs = std::filesystem;
using formats::in_quotes;
using nlohmann::json;

constexpr size_t kMostLabels = 1 << 20;
constexpr size_t kMostModules = 64;
constexpr uint64_t kWeighted = 0;  // which GGUF has no number for

Error unsupported(const fs::path& file, std::string_view key, const json& seen, std::string_view expected) {
  return fail(
      ErrorKind::kUnsupported,
      fmt::format("{}: {} is {}, expected {}", in_quotes(file.string()), in_quotes(key),
                  in_quotes(seen.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 100)), expected));
}

// null where there is no such file.
Result<json> json_if_there(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return json();
  return formats::read_json_file(path, kMaxConfigBytes);
}

std::string text_of(const json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

// "sentence_transformers.models.Pooling" -> "Pooling".
std::string_view last_name(std::string_view dotted) {
  const size_t dot = dotted.rfind('.');
  return dot == std::string_view::npos ? dotted : dotted.substr(dot + 1);
}

class ReadingReader {
 public:
  ReadingReader(const fs::path& folder, std::string_view prefix, formats::MetaList& metadata)
      : folder_(folder), prefix_(prefix), metadata_(metadata) {}

  Result<ReadingParts> read(const json& config) {
    if (reads_both_ways(config)) metadata_.add(fmt::format("{}.attention.causal", prefix_), false);
    CANDOR_TRY(read_labels(config));
    CANDOR_TRY(read_modules());
    CANDOR_TRY(read_length());
    CANDOR_TRY(read_prompts());
    std::ranges::move(heads_beside(folder_), std::back_inserter(parts_.heads));
    return std::move(parts_);
  }

 private:
  // {"0": "NEGATIVE", "1": "POSITIVE"}, for a class that has a head for them.
  Result<void> read_labels(const json& config) {
    if (!config.is_object()) return {};
    const json classes = config.value("architectures", json::array());
    const std::string name = classes.is_array() && !classes.empty() && classes[0].is_string() ? classes[0] : json("");
    const bool of_tokens = name.ends_with("ForTokenClassification");
    if (!of_tokens && !name.ends_with("ForSequenceClassification")) return {};
    metadata_.add("candor.text.labels_of_tokens", of_tokens);
    const json pad = config.value("pad_token_id", json());
    if (pad.is_number_unsigned()) metadata_.add("candor.text.label_pad", pad.get<uint64_t>());
    const json labels = config.value("id2label", json());
    if (!labels.is_object() || labels.size() > kMostLabels) return {};
    std::map<uint64_t, std::string> by_id;
    for (const auto& [key, label] : labels.items()) {
      uint64_t id = 0;
      const auto end = std::from_chars(key.data(), key.data() + key.size(), id);
      if (end.ptr != key.data() + key.size() || !label.is_string() || id >= labels.size()) {
        return unsupported(folder_ / "config.json", "id2label", labels, "a name for each number from 0 on");
      }
      by_id[id] = label.get<std::string>();
    }
    std::vector<std::string> names;
    for (auto& [id, label] : by_id) names.push_back(std::move(label));
    metadata_.add_strings(fmt::format("{}.classifier.output_labels", prefix_), std::move(names));
    return {};
  }

  Result<void> read_modules() {
    CANDOR_ASSIGN(const json modules, json_if_there(folder_ / "modules.json"));
    if (modules.is_null()) return {};
    if (!modules.is_array() || modules.size() > kMostModules) {
      return unsupported(folder_ / "modules.json", "modules", modules, "a list");
    }
    bool normalises = false;
    std::vector<std::string> activations;
    for (const json& module : modules) {
      const std::string type = text_of(module, "type");
      const std::string_view name = last_name(type);
      CANDOR_ASSIGN(const fs::path place, place_of(text_of(module, "path")));
      if (name == "Normalize") {
        normalises = true;
      } else if (name == "Pooling") {
        CANDOR_TRY(read_pooling(place));
      } else if (name == "Dense") {
        CANDOR_TRY(read_dense(place, activations));
      } else if (name == "SpladePooling") {
        CANDOR_TRY(read_word_pooling(place));
      } else if (name != "Transformer" && name != "MLMTransformer" && name != "Dropout") {
        return unsupported(folder_ / "modules.json", "type", type,
                           "Transformer, MLMTransformer, Pooling, SpladePooling, Dense or Normalize");
      }
    }
    metadata_.add("candor.text.normalise", normalises);
    if (!activations.empty()) metadata_.add_strings("candor.text.dense_activations", std::move(activations));
    return {};
  }

  // Inside of the folder.
  Result<fs::path> place_of(const std::string& path) const {
    const fs::path relative(path);
    const bool climbs = std::ranges::any_of(relative, [](const fs::path& part) { return part == ".."; });
    if (relative.is_absolute() || climbs) {
      return unsupported(folder_ / "modules.json", "path", path, "a folder inside of the model's");
    }
    return relative;
  }

  Result<void> read_pooling(const fs::path& place) {
    const fs::path file = folder_ / place / "config.json";
    CANDOR_ASSIGN(const json config, json_if_there(file));
    if (!config.is_object()) return unsupported(file, "pooling", config, "an object that names a mode");
    constexpr std::pair<std::string_view, uint64_t> kModes[] = {
        {"mean", 1}, {"cls", 2}, {"lasttoken", 3}, {"weightedmean", kWeighted}};
    if (const json mode = config.value("pooling_mode", json()); mode.is_string()) {
      for (const auto& [name, number] : kModes) {
        if (mode == name) return keep_pooling(number);
      }
      return unsupported(file, "pooling_mode", mode, "cls, mean, weightedmean or lasttoken");
    }
    constexpr std::pair<const char*, uint64_t> kFlags[] = {{"pooling_mode_mean_tokens", 1},
                                                           {"pooling_mode_cls_token", 2},
                                                           {"pooling_mode_lasttoken", 3},
                                                           {"pooling_mode_weightedmean_tokens", kWeighted}};
    std::optional<uint64_t> chosen;
    for (const auto& [key, value] : config.items()) {
      if (!key.starts_with("pooling_mode_") || value != true) continue;
      const auto* known = std::ranges::find(kFlags, key, [](const auto& flag) { return std::string(flag.first); });
      if (known == std::end(kFlags) || chosen) {
        return unsupported(file, key, value, "one of the modes cls, mean, weightedmean and lasttoken alone");
      }
      chosen = known->second;
    }
    if (config.value("include_prompt", json()) == false) {
      return unsupported(file, "include_prompt", false, "true: prompts are pooled as the rest of the text is");
    }
    return chosen ? keep_pooling(*chosen) : Result<void>{};
  }

  Result<void> read_word_pooling(const fs::path& place) {
    const fs::path file = folder_ / place / "config.json";
    CANDOR_ASSIGN(const json config, json_if_there(file));
    if (!config.is_object()) return unsupported(file, "pooling_strategy", config, "an object that names it");
    const json strategy = config.value("pooling_strategy", json("max"));
    const json act = config.value("activation_function", json("relu"));
    if (strategy != "max" && strategy != "sum") return unsupported(file, "pooling_strategy", strategy, "max or sum");
    if (act != "relu" && act != "log1p_relu")
      return unsupported(file, "activation_function", act, "relu or log1p_relu");
    metadata_.add_string("candor.text.word_pooling", strategy.get<std::string>());
    metadata_.add("candor.text.word_logs", uint64_t{act == "relu" ? 1u : 2u});
    parts_.guesses_words = true;
    return {};
  }

  Result<void> keep_pooling(uint64_t number) {
    if (number == kWeighted) {
      metadata_.add("candor.text.weighted_mean", true);
      return {};
    }
    metadata_.add(fmt::format("{}.pooling_type", prefix_), number);
    return {};
  }

  Result<void> read_dense(const fs::path& place, std::vector<std::string>& activations) {
    const fs::path file = folder_ / place / "config.json";
    CANDOR_ASSIGN(const json config, json_if_there(file));
    const std::string act = text_of(config, "activation_function");
    constexpr std::pair<std::string_view, const char*> kActs[] = {{"", "identity"}, {"Identity", "identity"},
                                                                  {"Tanh", "tanh"}, {"GELU", "gelu"},
                                                                  {"ReLU", "relu"}, {"SiLU", "silu"}};
    const auto* known = std::ranges::find(kActs, last_name(act), [](const auto& row) { return row.first; });
    if (known == std::end(kActs)) {
      return unsupported(file, "activation_function", act, "Identity, Tanh, GELU, ReLU or SiLU");
    }
    activations.emplace_back(known->second);
    parts_.heads.push_back({module_weights(folder_, place), fmt::format("dense_{}", activations.size() + 1)});
    return {};
  }

  Result<void> read_length() {
    CANDOR_ASSIGN(const json config, json_if_there(folder_ / "sentence_bert_config.json"));
    const json most = config.is_object() ? config.value("max_seq_length", json()) : json();
    if (most.is_number_unsigned()) metadata_.add("candor.text.max_tokens", most.get<uint64_t>());
    return {};
  }

  Result<void> read_prompts() {
    CANDOR_ASSIGN(const json config, json_if_there(folder_ / "config_sentence_transformers.json"));
    const json prompts = config.is_object() ? config.value("prompts", json()) : json();
    if (!prompts.is_object()) return {};
    std::vector<std::string> names, texts;
    for (const auto& [name, text] : prompts.items()) {
      if (!text.is_string()) continue;
      names.push_back(name);
      texts.push_back(text.get<std::string>());
    }
    if (names.empty()) return {};
    metadata_.add_strings("candor.text.prompt_names", std::move(names));
    metadata_.add_strings("candor.text.prompt_texts", std::move(texts));
    if (const std::string chosen = text_of(config, "default_prompt_name"); !chosen.empty()) {
      metadata_.add_string("candor.text.default_prompt", chosen);
    }
    return {};
  }

  const fs::path& folder_;
  std::string_view prefix_;
  formats::MetaList& metadata_;
  ReadingParts parts_;
};

}  // namespace

Result<ReadingParts> read_reading(const fs::path& folder, const json& config, std::string_view prefix,
                                  formats::MetaList& metadata) {
  return ReadingReader(folder, prefix, metadata).read(config);
}

}  // namespace candor::model
