#include "formats/safetensors/tokenizer_json.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/model_file.h"
#include "formats/quote.h"
#include "formats/safetensors/tokenizer_steps.h"

namespace candor::formats::safetensors {
namespace {

using nlohmann::json;

constexpr size_t kMaxPieceBytes = 1024;  // every cut of a piece is looked at

enum class Kind : int64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

class Reader {
 public:
  Reader(const TokenizerFiles& files, int64_t n_vocab, MetaList& metadata)
      : files_(files), tokenizer_(*files.tokenizer), n_vocab_(static_cast<size_t>(n_vocab)), metadata_(metadata) {}

  Result<void> read() {
    if (!tokenizer_.is_object() || !tokenizer_.contains("model")) return bad("it has no \"model\"");
    const json& model = tokenizer_["model"];
    const std::string type = type_of(model);
    CANDOR_TRY(start_vocabulary());
    if (type == "Unigram") {
      CANDOR_TRY(read_pieces(model));
      CANDOR_TRY(read_added());
      CANDOR_TRY(read_unigram(model));
    } else if (type == "WordPiece") {
      CANDOR_TRY(read_vocabulary(model));
      CANDOR_TRY(read_added());
      CANDOR_TRY(read_word_pieces(model));
    } else {
      CANDOR_TRY(check_byte_pairs(model, type));
      CANDOR_TRY(read_vocabulary(model));
      CANDOR_TRY(read_added());
      CANDOR_TRY(read_merges(model));
      CANDOR_TRY(flag_at(model, "byte_fallback", false) ? read_characters() : read_bytes());
    }
    write_tokens();
    return read_special();
  }

 private:
  Error bad(const std::string& reason) const {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: tokenizer.json: {}; download it again", files_.name, reason));
  }
  Error unsupported(std::string_view part, std::string_view seen, std::string_view expected) const {
    return unsupported_part(files_.name, part, seen, expected);
  }

  Result<void> place(const std::string& piece, const json& id, Kind kind) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= n_vocab_) {
      return bad(fmt::format("token {} has an id that is not below {}, the rows of the embedding", in_quotes(piece),
                             n_vocab_));
    }
    const size_t at = id.get<size_t>();
    if (kinds_[at] != Kind::kUnused && pieces_[at] != piece) {
      return bad(fmt::format("tokens {} and {} have the same id {}", in_quotes(pieces_[at]), in_quotes(piece), at));
    }
    pieces_[at] = piece;
    kinds_[at] = kind;
    ids_[piece] = at;
    return {};
  }

  // BPE has no "type" in files of before 2020.
  Result<void> check_byte_pairs(const json& model, const std::string& type) const {
    if (!type.empty() && type != "BPE") return unsupported("model", type, "BPE, Unigram, WordPiece");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!text_at(model, key).empty()) return unsupported("model", key, "BPE without it");
    }
    if (model.contains("dropout") && !model["dropout"].is_null()) return unsupported("model", "dropout", "none");
    return {};
  }

  Result<void> start_vocabulary() {
    pieces_.resize(n_vocab_);
    kinds_.assign(n_vocab_, Kind::kUnused);
    for (size_t id = 0; id < n_vocab_; ++id) pieces_[id] = fmt::format("[PAD{}]", id);
    return {};
  }

  Result<void> read_vocabulary(const json& model) {
    if (!model.contains("vocab") || !model["vocab"].is_object()) return bad("model.vocab is no object");
    for (const auto& [piece, id] : model["vocab"].items()) CANDOR_TRY(place(piece, id, Kind::kNormal));
    return {};
  }

  Result<void> read_pieces(const json& model) {
    if (!model.contains("vocab") || !model["vocab"].is_array()) return bad("model.vocab is no array");
    size_t id = 0;
    for (const json& row : model["vocab"]) {
      if (!row.is_array() || row.size() != 2 || !row[0].is_string() || !row[1].is_number()) {
        return bad(fmt::format("model.vocab[{}] is no pair of a piece and its score", id));
      }
      CANDOR_TRY(place(row[0].get<std::string>(), json(id), Kind::kNormal));
      ++id;
    }
    return {};
  }

  Result<void> read_added() {
    if (!tokenizer_.contains("added_tokens")) return {};
    std::vector<int64_t> strips_left;
    std::vector<int64_t> strips_right;
    for (const json& token : tokenizer_["added_tokens"]) {
      if (!token.is_object() || !token.contains("content") || !token.contains("id")) return bad("a bad added token");
      const std::string content = text_at(token, "content");
      if (flag_at(token, "single_word", false)) {
        return unsupported(fmt::format("added token {} with", in_quotes(content)), "single_word", "none");
      }
      CANDOR_TRY(place(content, token["id"], flag_at(token, "special", false) ? Kind::kControl : Kind::kUserDefined));
      if (flag_at(token, "lstrip", false)) strips_left.push_back(token["id"].get<int64_t>());
      if (flag_at(token, "rstrip", false)) strips_right.push_back(token["id"].get<int64_t>());
    }
    if (!strips_left.empty()) metadata_.add("tokenizer.candor.lstrip_ids", MetaArray(std::move(strips_left)));
    if (!strips_right.empty()) metadata_.add("tokenizer.candor.rstrip_ids", MetaArray(std::move(strips_right)));
    return {};
  }

  // "a b" or ["a", "b"].
  Result<void> read_merges(const json& model) {
    if (!model.contains("merges") || !model["merges"].is_array()) return bad("model.merges is no array");
    for (const json& merge : model["merges"]) {
      std::string left;
      std::string right;
      if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        left = merge[0].get<std::string>();
        right = merge[1].get<std::string>();
      } else if (merge.is_string()) {
        const std::string both = merge.get<std::string>();
        const size_t space = both.find(' ');
        left = both.substr(0, space);
        right = space == std::string::npos ? std::string() : both.substr(space + 1);
      }
      if (left.empty() || right.empty()) return bad(fmt::format("merge {} is no pair", merges_.size()));
      if (!ids_.contains(left + right)) {
        return bad(fmt::format("merge {} makes {}, which is no token", merges_.size(), in_quotes(left + right)));
      }
      merges_.emplace_back(std::move(left), std::move(right));
    }
    return {};
  }

  Result<void> read_bytes() {
    CANDOR_ASSIGN(ByteRules rules, read_byte_rules(tokenizer_, files_.name));
    add_normalizer(std::move(rules.normalizer));
    metadata_.add_string("tokenizer.ggml.model", "gpt2");
    add_split_rules(std::move(rules.words));
    if (const auto unknown = unknown_token()) {
      add_id("tokenizer.candor.unknown_byte_id", *unknown);
      metadata_.add("tokenizer.candor.fuse_unknown", flag_at(tokenizer_["model"], "fuse_unk", false));
    }
    std::vector<std::string> merges;
    merges.reserve(merges_.size());
    for (const auto& [left, right] : merges_) merges.push_back(fmt::format("{} {}", left, right));
    metadata_.add_strings("tokenizer.ggml.merges", std::move(merges));
    return {};
  }

  void add_split_rules(SplitRules rules) {
    metadata_.add_string("tokenizer.ggml.pre", std::move(rules.name));
    if (rules.is_general) metadata_.add_strings("tokenizer.candor.splits", std::move(rules.steps));
    if (rules.whole_first) metadata_.add("tokenizer.candor.whole_piece_first", *rules.whole_first);
  }

  void add_normalizer(std::vector<std::string> steps) {
    if (!steps.empty()) metadata_.add_strings("tokenizer.candor.normalizer", std::move(steps));
  }

  void add_rules(CharacterRules rules) {
    add_normalizer(std::move(rules.normalizer));
    const bool has_prefix = !rules.space_prefix.empty();
    metadata_.add("tokenizer.ggml.add_space_prefix", has_prefix);
    if (has_prefix) metadata_.add_string("tokenizer.candor.space_prefix", std::move(rules.space_prefix));
    if (rules.splits_at_marks) metadata_.add("tokenizer.candor.split_at_marks", true);
    if (rules.splits_at_white_space) metadata_.add("tokenizer.candor.split_at_white_space", true);
    if (has_marked_tokens()) metadata_.add("tokenizer.candor.literal_tokens", true);
    if (rules.strips_space != has_prefix) metadata_.add("tokenizer.candor.strip_space", rules.strips_space);
  }

  // Added tokens are found in the text before its spaces become marks.
  bool has_marked_tokens() const {
    for (size_t id = 0; id < n_vocab_; ++id) {
      if (kinds_[id] == Kind::kUserDefined && pieces_[id].find("\u2581") != std::string::npos) return true;
    }
    return false;
  }

  // SentencePiece merges whatever two neighbours make a token, the best score first; that is the same as the merges
  // only where they list every way to make a token.
  Result<void> check_merges_are_complete() const {
    std::unordered_map<std::string_view, size_t> n_listed;
    std::vector<std::string> joined;
    joined.reserve(merges_.size());
    for (const auto& [left, right] : merges_) ++n_listed[joined.emplace_back(left + right)];
    CANDOR_TRY(check_lengths());
    for (size_t id = 0; id < n_vocab_; ++id) {
      if (kinds_[id] != Kind::kNormal) continue;
      const std::string& piece = pieces_[id];
      if (piece.size() > kMaxPieceBytes) {
        return unsupported("a token of", fmt::format("{} bytes", piece.size()), fmt::format("{}", kMaxPieceBytes));
      }
      size_t n_ways = 0;
      for (size_t cut = 1; cut < piece.size(); ++cut) {
        if ((static_cast<unsigned char>(piece[cut]) & 0xC0) == 0x80) continue;
        n_ways += is_ordinary(piece.substr(0, cut)) && is_ordinary(piece.substr(cut)) ? 1 : 0;
      }
      const auto listed = n_listed.find(piece);
      if ((listed == n_listed.end() ? 0 : listed->second) == n_ways) continue;
      return unsupported("model BPE with byte_fallback whose merges leave out a way to make token", piece,
                         "merges made from a SentencePiece model");
    }
    return {};
  }

  // Each way to cut a token is looked up: a token of n bytes costs n squared. Vocabularies stay a hundred times below.
  Result<void> check_lengths() const {
    constexpr size_t kMaxWork = size_t{1} << 29;
    size_t work = 0;
    for (const std::string& piece : pieces_) {
      const bool is_countable = piece.size() <= kMaxWork;
      if (is_countable) work += piece.size() * piece.size();
      if (!is_countable || work > kMaxWork) {
        return unsupported("model BPE with byte_fallback with tokens as long as", piece, "tokens of some characters");
      }
    }
    return {};
  }

  bool is_ordinary(const std::string& piece) const {
    const auto at = ids_.find(piece);
    return at != ids_.end() && (kinds_[at->second] == Kind::kNormal || kinds_[at->second] == Kind::kUserDefined);
  }

  std::optional<size_t> unknown_token() const {
    const std::string name = text_at(tokenizer_["model"], "unk_token");
    const auto at = name.empty() ? ids_.end() : ids_.find(name);
    return at == ids_.end() ? std::nullopt : std::optional<size_t>(at->second);
  }

  // One that is not among the added tokens is no token to a text that holds its name.
  void mark_unknown(size_t id) {
    if (kinds_[id] == Kind::kNormal) metadata_.add("tokenizer.candor.unknown_is_text", true);
    kinds_[id] = Kind::kUnknown;
  }

  void mark_bytes() {
    for (size_t id = 0; id < n_vocab_; ++id) {
      const std::string& piece = pieces_[id];
      if (piece.size() == 6 && piece.starts_with("<0x") && piece.back() == '>') kinds_[id] = Kind::kByte;
    }
  }

  Result<void> read_characters() {
    CANDOR_ASSIGN(CharacterRules rules, read_character_rules(tokenizer_, files_.name));
    add_rules(std::move(rules));
    mark_bytes();
    if (const auto unknown = unknown_token()) mark_unknown(*unknown);
    metadata_.add("tokenizer.candor.fuse_unknown", flag_at(tokenizer_["model"], "fuse_unk", false));
    CANDOR_TRY(check_merges_are_complete());
    std::vector<double> scores(n_vocab_, -1e6);
    for (size_t rank = merges_.size(); rank-- > 0;) {
      scores[ids_.at(merges_[rank].first + merges_[rank].second)] = -static_cast<double>(rank);
    }
    metadata_.add("tokenizer.ggml.scores", MetaArray(std::move(scores)));
    metadata_.add_string("tokenizer.ggml.model", "llama");
    metadata_.add_string("tokenizer.ggml.pre", "default");
    return {};
  }

  // vocab: [["piece", score], ...], the place being the id.
  Result<void> read_unigram(const json& model) {
    CANDOR_ASSIGN(CharacterRules rules, read_character_rules(tokenizer_, files_.name));
    add_rules(std::move(rules));
    if (flag_at(model, "byte_fallback", false)) mark_bytes();
    const auto unknown = model.find("unk_id");
    if (unknown != model.end() && unknown->is_number_unsigned() && unknown->get<uint64_t>() < n_vocab_) {
      mark_unknown(unknown->get<size_t>());
    }
    std::vector<double> scores(n_vocab_, 0.0);
    for (size_t id = 0; id < model["vocab"].size(); ++id) scores[id] = model["vocab"][id][1].get<double>();
    metadata_.add("tokenizer.ggml.scores", MetaArray(std::move(scores)));
    metadata_.add_string("tokenizer.ggml.model", "t5");
    metadata_.add_string("tokenizer.ggml.pre", "default");
    return {};
  }

  // As GGUF files write them: pieces that begin a word behind a mark, others without what tells them there.
  Result<void> read_word_pieces(const json& model) {
    constexpr std::string_view kInside = "##";
    if (text_at(model, "continuing_subword_prefix") != kInside) {
      return unsupported("model WordPiece with continuing_subword_prefix", text_at(model, "continuing_subword_prefix"),
                         kInside);
    }
    CANDOR_ASSIGN(std::vector<std::string> steps, read_word_rules(tokenizer_, files_.name));
    metadata_.add_strings("tokenizer.candor.normalizer", std::move(steps));
    if (const auto unknown = unknown_token()) {
      kinds_[*unknown] = Kind::kUnknown;
      add_id("tokenizer.ggml.unknown_token_id", *unknown);
    }
    const auto most = model.find("max_input_chars_per_word");
    if (most != model.end() && most->is_number_unsigned()) {
      metadata_.add("tokenizer.candor.max_word_characters", most->get<uint64_t>());
    }
    for (size_t id = 0; id < n_vocab_; ++id) {
      if (kinds_[id] != Kind::kNormal) continue;
      pieces_[id] = pieces_[id].starts_with(kInside) ? pieces_[id].substr(kInside.size()) : "\u2581" + pieces_[id];
    }
    metadata_.add_string("tokenizer.ggml.model", "bert");
    metadata_.add_string("tokenizer.ggml.pre", "default");
    return {};
  }

  void write_tokens() {
    std::vector<int64_t> types;
    types.reserve(kinds_.size());
    for (const Kind kind : kinds_) types.push_back(static_cast<int64_t>(kind));
    metadata_.add("tokenizer.ggml.token_type", MetaArray(std::move(types)));
    metadata_.add_strings("tokenizer.ggml.tokens", pieces_);
  }

  // "<s>" or {"content": "<s>"}.
  std::optional<size_t> token_of(const json& config, const char* key) const {
    const auto at = config.find(key);
    if (at == config.end()) return std::nullopt;
    const std::string text = at->is_string() ? at->get<std::string>() : at->is_object() ? text_at(*at, "content") : "";
    const auto id = ids_.find(text);
    return id == ids_.end() ? std::nullopt : std::optional<size_t>(id->second);
  }

  Result<void> read_special() {
    std::optional<size_t> bos;
    std::optional<size_t> eos;
    if (files_.config != nullptr) {
      bos = token_of(*files_.config, "bos_token");
      eos = token_of(*files_.config, "eos_token");
      if (const auto pad = token_of(*files_.config, "pad_token")) add_id("tokenizer.ggml.padding_token_id", *pad);
      if (const auto unk = token_of(*files_.config, "unk_token")) add_id("tokenizer.ggml.unknown_token_id", *unk);
      read_chat_template(*files_.config);
      if (const auto response = files_.config->find("response_template");
          response != files_.config->end() && response->is_object()) {
        metadata_.add_string("tokenizer.response_template", response->dump());
      }
    }
    bool adds_bos = false;
    bool adds_eos = false;
    for (const json& step : steps_of(tokenizer_, "post_processor", "processors")) {
      const std::string type = type_of(step);
      if (type == "ByteLevel") continue;
      if (type == "BertProcessing") {
        CANDOR_TRY(read_pair(step, "cls", bos));
        CANDOR_TRY(read_pair(step, "sep", eos));
        adds_bos = adds_eos = true;
        continue;
      }
      if (type != "TemplateProcessing") {
        return unsupported("post_processor", type, "ByteLevel, TemplateProcessing, BertProcessing");
      }
      CANDOR_TRY(read_template(step, bos, eos, adds_bos, adds_eos));
    }
    if (bos) add_id("tokenizer.ggml.bos_token_id", *bos);
    if (eos) add_id("tokenizer.ggml.eos_token_id", *eos);
    metadata_.add("tokenizer.ggml.add_bos_token", adds_bos);
    metadata_.add("tokenizer.ggml.add_eos_token", adds_eos);
    return read_end_tokens();
  }

  // ["[CLS]", 101]
  Result<void> read_pair(const json& step, const char* key, std::optional<size_t>& id) const {
    const auto pair = step.find(key);
    const bool is_pair = pair != step.end() && pair->is_array() && pair->size() == 2 && (*pair)[1].is_number_unsigned();
    if (!is_pair || (*pair)[1].get<uint64_t>() >= n_vocab_)
      return bad(fmt::format("post_processor.{} names no token", key));
    id = (*pair)[1].get<size_t>();
    return {};
  }

  // The template of one text: at most one special token before it and one behind.
  Result<void> read_template(const json& step, std::optional<size_t>& bos, std::optional<size_t>& eos, bool& adds_bos,
                             bool& adds_eos) const {
    bool is_before = true;
    if (!step.contains("single") || !step["single"].is_array()) return bad("post_processor.single is no array");
    for (const json& item : step["single"]) {
      if (item.is_object() && item.contains("Sequence")) {
        is_before = false;
        continue;
      }
      const std::string name =
          item.is_object() && item.contains("SpecialToken") ? text_at(item["SpecialToken"], "id") : "";
      const auto id = ids_.find(name);
      if (id == ids_.end() || (is_before ? adds_bos : adds_eos)) {
        return unsupported("post_processor.single", step["single"].dump(), "one token before the text, one behind");
      }
      (is_before ? adds_bos : adds_eos) = true;
      (is_before ? bos : eos) = id->second;
    }
    return {};
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
      if (!id.is_number_unsigned() || id.get<uint64_t>() >= n_vocab_) {
        return fail(ErrorKind::kInvalidInput,
                    fmt::format("{}: generation_config.json: \"eos_token_id\" holds {}, expected ids below {}",
                                files_.name, in_quotes(id.dump()), n_vocab_));
      }
      ids.push_back(id.get<int64_t>());
    }
    metadata_.add("tokenizer.candor.end_token_ids", MetaArray(std::move(ids)));
    return {};
  }

  const TokenizerFiles& files_;
  const json& tokenizer_;
  size_t n_vocab_;
  MetaList& metadata_;
  std::vector<std::string> pieces_;  // by id
  std::vector<Kind> kinds_;
  std::unordered_map<std::string, size_t> ids_;
  std::vector<std::pair<std::string, std::string>> merges_;
};

}  // namespace

Result<void> read_tokenizer(const TokenizerFiles& files, int64_t n_vocab, MetaList& metadata) {
  return Reader(files, n_vocab, metadata).read();
}

}  // namespace candor::formats::safetensors
