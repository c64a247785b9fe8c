#include "formats/safetensors/tokenizer_special.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/quote.h"
#include "formats/safetensors/sentencepiece_proto.h"
#include "formats/safetensors/tokenizer_steps.h"

namespace candor::formats::safetensors {
namespace {

using nlohmann::json;

// Of transformers 5.23's TOKENIZER_MAPPING_NAMES: the types of language models for which tokenizer.json stands as it is.
constexpr std::string_view kAsPublished[] = {
    "arctic",     "ernie4_5",         "ernie4_5_moe",     "flex_olmo",   "glm",         "glm4",     "glm4_moe",
    "glm4_moe_lite", "gpt_bigcode",   "granite",          "granitemoe",  "granitemoehybrid", "granitemoeshared",
    "hyperclovax", "internlm2",       "internlm3",        "jamba",       "kimi_linear", "mimo_v2_flash", "minicpm3",
    "minimax_m2", "ministral",        "ministral3",       "mistral",     "mistral3",    "mistral_large4", "mixtral",
    "nemotron",   "olmo2",            "olmo3",            "olmo_hybrid", "persimmon",   "phi3",     "phimoe",
    "stablelm"};

class SpecialReader {
 public:
  SpecialReader(const TokenizerFiles& files, const PieceIds& ids, MetaList& metadata)
      : files_(files), tokenizer_(*files.tokenizer), ids_(ids), metadata_(metadata) {}

  Result<void> read() {
    CANDOR_TRY(read_config());
    CANDOR_TRY(read_post_processor());
    obey_config();
    if (bos_) add_id("tokenizer.ggml.bos_token_id", *bos_);
    if (eos_) add_id("tokenizer.ggml.eos_token_id", *eos_);
    metadata_.add("tokenizer.ggml.add_bos_token", adds_bos_);
    metadata_.add("tokenizer.ggml.add_eos_token", adds_eos_);
    return read_end_tokens();
  }

 private:
  Error bad(const std::string& reason) const {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: {}: {}; download it again", files_.name, files_.vocabulary, reason));
  }
  Error unsupported(std::string_view part, std::string_view seen, std::string_view expected) const {
    return unsupported_part(files_.name, part, seen, expected);
  }

  Result<void> read_config() {
    const auto id_of = [&](int64_t id) { return id < 0 ? std::nullopt : std::optional(static_cast<size_t>(id)); };
    if (files_.pieces != nullptr) {
      bos_ = id_of(files_.pieces->bos_id);
      eos_ = id_of(files_.pieces->eos_id);
      adds_bos_ = bos_ && !files_.pieces->is_unigram;
    }
    if (files_.config == nullptr) return {};
    const json& config = *files_.config;
    if (const auto id = token_of(config, "bos_token")) bos_ = id;
    if (const auto id = token_of(config, "eos_token")) eos_ = id;
    if (const auto pad = token_of(config, "pad_token")) add_id("tokenizer.ggml.padding_token_id", *pad);
    const auto unk = files_.pieces == nullptr ? token_of(config, "unk_token") : std::nullopt;
    if (unk) add_id("tokenizer.ggml.unknown_token_id", *unk);
    read_chat_template(config);
    if (const auto response = config.find("response_template"); response != config.end() && response->is_object()) {
      metadata_.add_string("tokenizer.response_template", response->dump());
    }
    return {};
  }

  Result<void> read_post_processor() {
    for (const json& step : steps_of(tokenizer_, "post_processor", "processors")) {
      const std::string type = type_of(step);
      if (type == "ByteLevel") continue;
      if (type == "BertProcessing" || type == "RobertaProcessing") {
        metadata_.add("tokenizer.candor.pair_marks", uint64_t{type == "BertProcessing" ? 1U : 2U});
        metadata_.add("tokenizer.candor.pair_types", type == "BertProcessing");
        CANDOR_TRY(read_pair(step, "cls", bos_));
        CANDOR_TRY(read_pair(step, "sep", eos_));
        adds_bos_ = adds_eos_ = true;
        continue;
      }
      if (type != "TemplateProcessing") {
        return unsupported("post_processor", type, "ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing");
      }
      CANDOR_TRY(read_template(step));
    }
    return {};
  }

  // Not beside a tokenizer.json, whose post_processor says it all.
  void obey_config() {
    if (files_.config == nullptr || files_.vocabulary == "tokenizer.json") return;
    const json& config = *files_.config;
    if (!config.contains("add_bos_token") && !config.contains("add_eos_token")) return;
    const auto bos = token_of(config, "bos_token");
    const auto eos = token_of(config, "eos_token");
    const bool is_own = files_.pieces != nullptr;  // its file names them too
    adds_bos_ = flag_at(config, "add_bos_token", is_own && adds_bos_) && (bos || (is_own && bos_));
    adds_eos_ = flag_at(config, "add_eos_token", false) && (eos || (is_own && eos_));
    if (adds_bos_ && bos) bos_ = bos;
    if (adds_eos_ && eos) eos_ = eos;
  }

  // "<s>" or {"content": "<s>"}.
  std::optional<size_t> token_of(const json& config, const char* key) const {
    const auto at = config.find(key);
    if (at == config.end()) return std::nullopt;
    const std::string text = at->is_string() ? at->get<std::string>() : at->is_object() ? text_at(*at, "content") : "";
    const auto id = ids_.by_piece.find(text);
    return id == ids_.by_piece.end() ? std::nullopt : std::optional<size_t>(id->second);
  }

  // ["[CLS]", 101]
  Result<void> read_pair(const json& step, const char* key, std::optional<size_t>& id) const {
    const auto pair = step.find(key);
    const bool is_pair = pair != step.end() && pair->is_array() && pair->size() == 2 && (*pair)[1].is_number_unsigned();
    if (!is_pair || (*pair)[1].get<uint64_t>() >= ids_.n_vocab)
      return bad(fmt::format("post_processor.{} names no token", key));
    id = (*pair)[1].get<size_t>();
    return {};
  }

  // The template of one text: at most one special token before it and one behind.
  Result<void> read_template(const json& step) {
    bool is_before = true;
    if (!step.contains("single") || !step["single"].is_array()) return bad("post_processor.single is no array");
    for (const json& item : step["single"]) {
      if (item.is_object() && item.contains("Sequence")) {
        is_before = false;
        continue;
      }
      const std::string name =
          item.is_object() && item.contains("SpecialToken") ? text_at(item["SpecialToken"], "id") : "";
      const auto id = ids_.by_piece.find(name);
      if (id == ids_.by_piece.end() || (is_before ? adds_bos_ : adds_eos_)) {
        return unsupported("post_processor.single", step["single"].dump(), "one token before the text, one behind");
      }
      (is_before ? adds_bos_ : adds_eos_) = true;
      (is_before ? bos_ : eos_) = id->second;
    }
    read_pair_template(step);
    return {};
  }

  // How many special tokens stand between two texts.
  void read_pair_template(const json& step) {
    if (!step.contains("pair") || !step["pair"].is_array()) return;
    uint64_t n_texts = 0, n_between = 0;
    for (const json& item : step["pair"]) {
      const bool is_text = item.is_object() && item.contains("Sequence");
      if (is_text) ++n_texts;
      if (is_text && n_texts == 2) metadata_.add("tokenizer.candor.pair_types", item["Sequence"].value("type_id", 0) == 1);
      if (!is_text && n_texts == 1) ++n_between;
    }
    if (n_texts == 2 && (n_between == 1 || n_between == 2)) metadata_.add("tokenizer.candor.pair_marks", n_between);
  }

  void add_id(const char* key, size_t id) { metadata_.add(key, static_cast<uint64_t>(id)); }

  // A string, or a list of {name, template} of which "default" is meant.
  void read_chat_template(const json& config) {
    const auto at = config.find("chat_template");
    if (at == config.end()) return;
    if (at->is_string()) return metadata_.add_string("tokenizer.chat_template", at->get<std::string>());
    if (!at->is_array()) return;
    for (const json& item : *at) {
      if (item.is_object() && text_at(item, "name") == "default") {
        metadata_.add_string("tokenizer.chat_template", text_at(item, "template"));
      }
    }
  }

  Result<void> read_end_tokens() {
    if (files_.generation == nullptr || !files_.generation->contains("eos_token_id")) return {};
    const json& ends = (*files_.generation)["eos_token_id"];
    if (ends.is_null()) return {};
    std::vector<int64_t> ids;
    for (const json& id : ends.is_array() ? ends : json::array({ends})) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() >= ids_.n_vocab) {
        return fail(ErrorKind::kInvalidInput,
                    fmt::format("{}: generation_config.json: \"eos_token_id\" holds {}, expected ids below {}",
                                files_.name, in_quotes(id.dump()), ids_.n_vocab));
      }
      ids.push_back(id.get<int64_t>());
    }
    metadata_.add("tokenizer.candor.end_token_ids", MetaArray(std::move(ids)));
    return {};
  }

  const TokenizerFiles& files_;
  const json& tokenizer_;
  PieceIds ids_;
  MetaList& metadata_;
  std::optional<size_t> bos_;
  std::optional<size_t> eos_;
  bool adds_bos_ = false;
  bool adds_eos_ = false;
};

}  // namespace

void obey_class(const TokenizerFiles& files, CharacterRules& rules) {
  if (files.config == nullptr || files.model_type.empty()) return;
  const json& config = *files.config;
  const std::string type = text_at(config, "tokenizer_class");
  const bool is_llama = type == "LlamaTokenizer" || type == "LlamaTokenizerFast";
  if (!is_llama || std::ranges::find(kAsPublished, files.model_type) != std::end(kAsPublished)) return;
  const bool adds_space = flag_at(config, "add_prefix_space", true);
  const char* prefix = flag_at(config, "legacy", false) ? "each_once" : "first_once";
  rules = {.normalizer = {},
           .space_prefix = adds_space ? prefix : "",
           .splits_at_marks = false,
           .splits_at_white_space = false,
           .strips_space = adds_space};
}

Result<void> read_special_tokens(const TokenizerFiles& files, const PieceIds& ids, MetaList& metadata) {
  return SpecialReader(files, ids, metadata).read();
}

}  // namespace candor::formats::safetensors
