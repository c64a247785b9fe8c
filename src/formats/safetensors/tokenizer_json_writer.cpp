#include "formats/safetensors/tokenizer_json_writer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/quote.h"
#include "formats/safetensors/tokenizer_steps.h"

namespace candor::formats::safetensors {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSpaceMark = "\u2581";

// GGUF's kinds of tokens.
constexpr int64_t kNormal = 1;
constexpr int64_t kUnknown = 2;
constexpr int64_t kControl = 3;
constexpr int64_t kUserDefined = 4;
constexpr int64_t kUnused = 5;
constexpr int64_t kByte = 6;

Json steps(const char* member, Json list) {
  if (list.empty()) return nullptr;
  if (list.size() == 1) return list[0];
  return {{"type", "Sequence"}, {member, std::move(list)}};
}

class Writer {
 public:
  explicit Writer(const ModelFile& file) : file_(file) {}

  Result<TokenizerJson> write() {
    CANDOR_TRY(read_vocabulary());
    TokenizerJson result;
    Json& tokenizer = result.tokenizer;
    tokenizer = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
    tokenizer["added_tokens"] = added_tokens();
    CANDOR_TRY(write_parts(tokenizer));
    write_special(result);
    return result;
  }

 private:
  Result<void> read_vocabulary() {
    CANDOR_ASSIGN(const auto* tokens, meta_strings(file_, "tokenizer.ggml.tokens"));
    if (tokens == nullptr || tokens->empty()) {
      return fail(ErrorKind::kInvalidInput, "tokenizer.ggml.tokens: the file has no vocabulary to write");
    }
    pieces_.assign(tokens->begin(), tokens->end());
    CANDOR_ASSIGN(const auto* kinds, meta_ints(file_, "tokenizer.ggml.token_type"));
    kinds_.assign(pieces_.size(), kNormal);
    if (kinds != nullptr && kinds->size() == kinds_.size()) kinds_ = *kinds;
    CANDOR_ASSIGN(const auto* scores, meta_floats(file_, "tokenizer.ggml.scores"));
    scores_.assign(pieces_.size(), 0.0);
    if (scores != nullptr && scores->size() == scores_.size()) scores_ = *scores;
    return {};
  }

  std::string text_or(const char* key, const char* fallback) const {
    const auto text = meta_string(file_, key);
    return text && *text ? std::string(**text) : std::string(fallback);
  }
  bool flag_or(const char* key, bool fallback) const {
    const auto flag = meta_bool(file_, key);
    return flag && *flag ? **flag : fallback;
  }
  bool fuses_unknown(bool fallback) const { return flag_or("tokenizer.candor.fuse_unknown", fallback); }
  std::optional<size_t> id_at(const char* key) const {
    const auto id = meta_int(file_, key);
    if (!id || !*id || **id < 0 || **id >= static_cast<int64_t>(pieces_.size())) return std::nullopt;
    return static_cast<size_t>(**id);
  }
  std::set<int64_t> ids_at(const char* key) const {
    const auto ids = meta_ints(file_, key);
    return ids && *ids != nullptr ? std::set<int64_t>((*ids)->begin(), (*ids)->end()) : std::set<int64_t>();
  }

  Json added_tokens() const {
    Json list = Json::array();
    const std::set<int64_t> strips_left = ids_at("tokenizer.candor.lstrip_ids");
    const std::set<int64_t> strips_right = ids_at("tokenizer.candor.rstrip_ids");
    const bool names_unknown = !flag_or("tokenizer.candor.unknown_is_text", false);
    for (size_t id = 0; id < pieces_.size(); ++id) {
      const bool is_unknown = kinds_[id] == kUnknown && names_unknown;
      if (kinds_[id] != kControl && kinds_[id] != kUserDefined && !is_unknown) continue;
      list.push_back({{"id", id},
                      {"content", pieces_[id]},
                      {"single_word", false},
                      {"lstrip", strips_left.contains(static_cast<int64_t>(id))},
                      {"rstrip", strips_right.contains(static_cast<int64_t>(id))},
                      {"normalized", false},
                      {"special", kinds_[id] != kUserDefined}});
    }
    return list;
  }

  Result<void> write_parts(Json& tokenizer) const {
    const std::string model = text_or("tokenizer.ggml.model", "");
    if (model == "gpt2") return write_bytes(tokenizer);
    if (model == "llama" || model == "t5") return write_characters(tokenizer, model == "t5");
    if (model == "gemma4") {
      CANDOR_TRY(write_characters(tokenizer, false));
      return write_own_merges(tokenizer["model"]);
    }
    return fail(ErrorKind::kUnsupported,
                fmt::format("tokenizer.ggml.model: {} can't be written as tokenizer.json", in_quotes(model)));
  }

  Result<Json> normalizer_steps() const {
    Json list = Json::array();
    CANDOR_ASSIGN(const auto* strings, meta_strings(file_, "tokenizer.candor.normalizer"));
    for (size_t i = 0; strings != nullptr && i + 2 < strings->size(); i += 3) {
      const bool is_own = (*strings)[i + 2] == "longest" || ((*strings)[i] == "strip" && !(*strings)[i + 2].empty());
      if (is_own) {
        return fail(ErrorKind::kUnsupported,
                    "tokenizer.candor.normalizer: rules of a SentencePiece model, which tokenizer.json does not have; "
                    "write a GGUF file");
      }
      list.push_back(normalizer_json((*strings)[i], (*strings)[i + 1], (*strings)[i + 2]));
    }
    return list;
  }

  Json vocabulary() const {
    Json vocabulary = Json::object();
    auto& rows = vocabulary.get_ref<Json::object_t&>();  // appended: a search for each key would be quadratic
    for (size_t id = 0; id < pieces_.size(); ++id) {
      if (kinds_[id] != kUnused) rows.emplace_back(pieces_[id], Json(id));
    }
    return vocabulary;
  }

  Result<void> write_bytes(Json& tokenizer) const {
    CANDOR_ASSIGN(std::optional<Json> words, split_json(file_));
    if (!words) {
      const std::string name = text_or("tokenizer.ggml.pre", "default");
      return fail(ErrorKind::kUnsupported,
                  fmt::format("tokenizer.ggml.pre: {} can't be written as tokenizer.json", in_quotes(name)));
    }
    CANDOR_ASSIGN(Json normalizer, normalizer_steps());
    if (!normalizer.empty() && normalizer.back()["type"] == "space_first") {
      normalizer.erase(normalizer.size() - 1);
      (*words)["pre_tokenizer"]["add_prefix_space"] = true;  // of ByteLevel alone
    }
    CANDOR_ASSIGN(const auto* merges, meta_strings(file_, "tokenizer.ggml.merges"));
    tokenizer["normalizer"] = steps("normalizers", std::move(normalizer));
    tokenizer["pre_tokenizer"] = (*words)["pre_tokenizer"];
    tokenizer["post_processor"] = post_processor();
    tokenizer["decoder"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}};
    Json model = {{"type", "BPE"}, {"dropout", nullptr}, {"unk_token", nullptr}, {"fuse_unk", fuses_unknown(false)}};
    if (const auto unknown = id_at("tokenizer.candor.unknown_byte_id")) model["unk_token"] = pieces_[*unknown];
    model["byte_fallback"] = false;
    model["ignore_merges"] = (*words)["ignore_merges"];
    model["vocab"] = vocabulary();
    model["merges"] = merges == nullptr ? std::vector<std::string_view>() : *merges;
    tokenizer["model"] = std::move(model);
    return {};
  }

  // Of a file that lists its merges over characters.
  Result<void> write_own_merges(Json& model) const {
    CANDOR_ASSIGN(const auto* merges, meta_strings(file_, "tokenizer.ggml.merges"));
    Json list = Json::array();
    for (size_t i = 0; merges != nullptr && i < merges->size(); ++i) {
      const std::string_view merge = (*merges)[i];
      const size_t space = merge.find(' ', 1);
      if (space == std::string_view::npos) {
        return fail(ErrorKind::kInvalidInput,
                    fmt::format("tokenizer.ggml.merges[{}]: {} is no pair", i, in_quotes(merge)));
      }
      list.push_back({merge.substr(0, space), merge.substr(space + 1)});
    }
    model["merges"] = std::move(list);
    return {};
  }

  Result<void> write_characters(Json& tokenizer, bool is_unigram) const {
    const bool has_prefix = flag_or("tokenizer.ggml.add_space_prefix", true);
    const std::string prefix = has_prefix ? text_or("tokenizer.candor.space_prefix", "each") : "";
    CANDOR_ASSIGN(Json normalizer, normalizer_steps());
    Json words = Json::array();
    const bool splits = flag_or("tokenizer.candor.split_at_marks", false);
    if (flag_or("tokenizer.candor.split_at_white_space", false)) words.push_back({{"type", "WhitespaceSplit"}});
    if (prefix == "each" || prefix == "before_tokens" || (prefix.empty() && !splits && words.empty())) {
      if (!prefix.empty()) normalizer.push_back({{"type", "Prepend"}, {"prepend", kSpaceMark}});
      normalizer.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMark}});
    } else {
      const char* scheme = prefix == "each_once" ? "always" : prefix == "first_once" ? "first" : "never";
      words.push_back(
          {{"type", "Metaspace"}, {"replacement", kSpaceMark}, {"prepend_scheme", scheme}, {"split", splits}});
    }
    tokenizer["normalizer"] = steps("normalizers", std::move(normalizer));
    tokenizer["pre_tokenizer"] = steps("pretokenizers", std::move(words));
    tokenizer["post_processor"] = post_processor();
    Json decoder = {{{"type", "Replace"}, {"pattern", {{"String", kSpaceMark}}}, {"content", " "}},
                    {{"type", "ByteFallback"}},
                    {{"type", "Fuse"}}};
    if (flag_or("tokenizer.candor.strip_space", has_prefix)) {
      decoder.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    }
    tokenizer["decoder"] = steps("decoders", std::move(decoder));
    tokenizer["model"] = is_unigram ? unigram() : character_pairs();
    return {};
  }

  bool has_byte_tokens() const { return std::ranges::find(kinds_, kByte) != kinds_.end(); }

  Json unigram() const {
    Json vocabulary = Json::array();
    for (size_t id = 0; id < pieces_.size(); ++id) vocabulary.push_back({pieces_[id], scores_[id]});
    const auto unknown = std::ranges::find(kinds_, kUnknown);
    Json model = {{"type", "Unigram"}, {"unk_id", nullptr}, {"vocab", std::move(vocabulary)}};
    if (unknown != kinds_.end()) model["unk_id"] = unknown - kinds_.begin();
    model["byte_fallback"] = has_byte_tokens();
    return model;
  }

  // Every pair of pieces that makes a piece, the best piece first; see check_merges_are_complete() of the reader.
  Json character_pairs() const {
    const auto is_text = [&](size_t id) { return kinds_[id] == kNormal || kinds_[id] == kUserDefined; };
    std::unordered_map<std::string_view, size_t> ids;
    for (size_t id = 0; id < pieces_.size(); ++id) {
      if (is_text(id)) ids.emplace(pieces_[id], id);
    }
    std::vector<std::tuple<double, size_t, size_t>> merges;
    for (size_t id = 0; id < pieces_.size(); ++id) {
      if (!is_text(id)) continue;
      const std::string_view piece = pieces_[id];
      for (size_t cut = 1; cut < piece.size(); ++cut) {
        const auto left = ids.find(piece.substr(0, cut));
        const auto right = ids.find(piece.substr(cut));
        if (left != ids.end() && right != ids.end()) merges.emplace_back(-scores_[id], left->second, right->second);
      }
    }
    std::ranges::sort(merges);
    Json list = Json::array();
    for (const auto& [score, left, right] : merges) list.push_back({pieces_[left], pieces_[right]});
    const auto unknown = std::ranges::find(kinds_, kUnknown);
    Json model = {{"type", "BPE"}, {"dropout", nullptr}, {"unk_token", nullptr}, {"fuse_unk", fuses_unknown(true)}};
    if (unknown != kinds_.end()) model["unk_token"] = pieces_[static_cast<size_t>(unknown - kinds_.begin())];
    model["byte_fallback"] = has_byte_tokens();
    model["ignore_merges"] = false;
    model["vocab"] = vocabulary();
    model["merges"] = std::move(list);
    return model;
  }

  Json post_processor() const {
    const bool is_character_model = text_or("tokenizer.ggml.model", "") == "llama";
    const auto bos = id_at("tokenizer.ggml.bos_token_id");
    const auto eos = id_at("tokenizer.ggml.eos_token_id");
    const bool adds_bos = flag_or("tokenizer.ggml.add_bos_token", is_character_model) && bos;
    const bool adds_eos = flag_or("tokenizer.ggml.add_eos_token", false) && eos;
    Json single = Json::array();
    Json special = Json::object();
    const auto add = [&](size_t id) {
      single.push_back({{"SpecialToken", {{"id", pieces_[id]}, {"type_id", 0}}}});
      special[pieces_[id]] = {{"id", pieces_[id]}, {"ids", {id}}, {"tokens", {pieces_[id]}}};
    };
    if (adds_bos) add(*bos);
    single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
    if (adds_eos) add(*eos);
    if (!adds_bos && !adds_eos) return nullptr;
    Json pair = single;
    pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
    return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", special}};
  }

  void write_special(TokenizerJson& result) const {
    result.config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
    const std::pair<const char*, const char*> kTokens[] = {{"bos_token", "tokenizer.ggml.bos_token_id"},
                                                           {"eos_token", "tokenizer.ggml.eos_token_id"},
                                                           {"unk_token", "tokenizer.ggml.unknown_token_id"},
                                                           {"pad_token", "tokenizer.ggml.padding_token_id"}};
    for (const auto& [name, key] : kTokens) {
      if (const auto id = id_at(key)) result.config[name] = pieces_[*id];
    }
    const std::string chat_template = text_or("tokenizer.chat_template", "");
    if (!chat_template.empty()) result.config["chat_template"] = chat_template;
    const auto is_shallow = [](int depth, Json::parse_event_t, Json&) { return depth < 100; };
    const Json response = Json::parse(text_or("tokenizer.response_template", ""), is_shallow, false);
    if (response.is_object()) result.config["response_template"] = response;
    std::set<int64_t> ends;
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
      if (const auto id = id_at(key)) ends.insert(static_cast<int64_t>(*id));
    }
    const auto listed = meta_ints(file_, "tokenizer.candor.end_token_ids");
    if (listed && *listed != nullptr) ends.insert((*listed)->begin(), (*listed)->end());
    result.generation = Json::object();
    if (const auto bos = id_at("tokenizer.ggml.bos_token_id")) result.generation["bos_token_id"] = *bos;
    if (!ends.empty()) result.generation["eos_token_id"] = ends;
  }

  const ModelFile& file_;
  std::vector<std::string> pieces_;
  std::vector<int64_t> kinds_;
  std::vector<double> scores_;
};

}  // namespace

Result<TokenizerJson> write_tokenizer(const ModelFile& file) {
  return Writer(file).write();
}

}  // namespace candor::formats::safetensors
