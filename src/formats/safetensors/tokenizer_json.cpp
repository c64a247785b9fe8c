#include "formats/safetensors/tokenizer_json.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/base64.h"
#include "formats/model_file.h"
#include "formats/quote.h"
#include "formats/safetensors/other_vocabularies.h"
#include "formats/safetensors/sentencepiece_proto.h"
#include "formats/safetensors/tokenizer_special.h"
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
    if (files_.pieces != nullptr) return read_sentence_piece(*files_.pieces);
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
    return read_special_tokens(files_, {ids_, n_vocab_}, metadata_);
  }

  // The file's own scores, kinds and rules; tokenizer.json holds the tokens that were added to it.
  Result<void> read_sentence_piece(const SentencePieceFile& file) {
    CANDOR_TRY(start_vocabulary());
    std::vector<double> scores(n_vocab_, 0.0);
    for (size_t id = 0; id < file.pieces.size(); ++id) {
      CANDOR_TRY(place(file.pieces[id].text, json(id), static_cast<Kind>(file.pieces[id].type)));
      scores[id] = file.pieces[id].score;
    }
    CANDOR_TRY(read_added());
    std::vector<std::string> steps;
    if (!file.charsmap.empty()) steps.insert(steps.end(), {"charsmap", to_base64(file.charsmap), "longest"});
    if (file.squeezes_spaces) steps.insert(steps.end(), {"squeeze", " ", "", "strip", "both", "spaces"});
    add_normalizer(std::move(steps));
    metadata_.add("tokenizer.ggml.add_space_prefix", file.adds_space);
    if (file.adds_space) metadata_.add_string("tokenizer.candor.space_prefix", "before_tokens");
    if (file.unk_id >= 0) add_id("tokenizer.ggml.unknown_token_id", static_cast<size_t>(file.unk_id));
    metadata_.add("tokenizer.ggml.scores", MetaArray(std::move(scores)));
    metadata_.add_string("tokenizer.ggml.model", file.is_unigram ? "t5" : "llama");
    metadata_.add_string("tokenizer.ggml.pre", "default");
    write_tokens();
    return read_special_tokens(files_, {ids_, n_vocab_}, metadata_);
  }

 private:
  Error bad(const std::string& reason) const {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: {}: {}; download it again", files_.name, files_.vocabulary, reason));
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
    json tokens = tokenizer_.contains("added_tokens") ? tokenizer_["added_tokens"] : json::array();
    CANDOR_TRY(add_later_tokens(tokens));
    std::vector<int64_t> strips_left;
    std::vector<int64_t> strips_right;
    for (const json& token : tokens) {
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

  // Tokens that tokenizer_config.json alone names.
  Result<void> add_later_tokens(json& tokens) const {
    const bool is_whole = files_.config != nullptr && files_.vocabulary == "tokenizer.json";
    if (is_whole && flag_at(*files_.config, "split_special_tokens", false)) {
      return fail(ErrorKind::kUnsupported,
                  fmt::format("{}: tokenizer_config.json: \"split_special_tokens\" true, by which prompts could not hold "
                              "special tokens, is not supported; set it to false",
                              files_.name));
    }
    if (!is_whole || !files_.config->contains("added_tokens_decoder") || !tokens.is_array()) return {};
    CANDOR_ASSIGN(const json listed, added_tokens_of({.name = files_.name, .config = files_.config}, json::object()));
    std::set<std::string> known;
    for (const json& token : tokens) known.insert(token.is_object() ? text_at(token, "content") : std::string());
    for (const json& token : listed) {
      const std::string content = text_at(token, "content");
      const auto id = token["id"].get<size_t>();
      if (known.contains(content) || ids_.contains(content) || id >= n_vocab_) continue;
      if (kinds_[id] != Kind::kUnused) {
        return fail(ErrorKind::kInvalidInput,
                    fmt::format("{}: tokenizer_config.json: added_tokens_decoder gives {} the id {}, which tokenizer.json "
                                "has for another token; download both again",
                                files_.name, in_quotes(content), id));
      }
      tokens.push_back(token);
    }
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
    if (files_.ranks_are_ids) metadata_.add("tokenizer.candor.ranks_are_ids", true);
    return {};
  }

  void add_split_rules(SplitRules rules) {
    metadata_.add_string("tokenizer.ggml.pre", std::move(rules.name));
    if (rules.is_general) metadata_.add_strings("tokenizer.candor.splits", std::move(rules.steps));
    if (rules.whole_first) metadata_.add("tokenizer.candor.whole_piece_first", *rules.whole_first);
  }

  void add_id(const char* key, size_t id) { metadata_.add(key, static_cast<uint64_t>(id)); }

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
  // In text a special one stands for nothing, any other for its name (the library's decode, skip_special_tokens).
  void mark_unknown(size_t id) {
    if (kinds_[id] == Kind::kNormal) metadata_.add("tokenizer.candor.unknown_is_text", true);
    metadata_.add_string("tokenizer.candor.unknown_text", kinds_[id] == Kind::kControl ? "" : pieces_[id]);
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
    obey_class(files_, rules);
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
      const bool is_named = kinds_[*unknown] == Kind::kControl;
      metadata_.add_string("tokenizer.candor.unknown_text", is_named ? std::string() : " " + pieces_[*unknown]);
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
