#include "text/tokenizer/tokenizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <cstdlib>

#include <utility>
#include <variant>

#include "text/tokenizer/byte_pair_model.h"
#include "text/tokenizer/sentence_piece_model.h"
#include "text/tokenizer/special_matcher.h"
#include "text/tokenizer/special_tokens.h"
#include "text/tokenizer/vocabulary.h"

namespace candor::text {
namespace {

constexpr std::string_view kModelKey = "tokenizer.ggml.model";

bool is_control(TokenKind kind) {
  return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
}

// Unicode's normal form C; text that is no valid UTF-8 stays as it is.
std::string compose(std::string_view text) {
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t n_bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &composed, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(composed, &std::free);
  if (n_bytes < 0) return std::string(text);
  return {reinterpret_cast<const char*>(composed), static_cast<size_t>(n_bytes)};
}

class SentencePieceTokenizer final {
 public:
  explicit SentencePieceTokenizer(SentencePieceModel model) : model_(std::move(model)) {}

  void encode(std::string_view text, bool at_start, const Vocabulary& vocabulary, std::vector<TokenId>& out) const {
    model_.encode(text, at_start, vocabulary, out);
  }
  const StringArena& bytes() const { return model_.bytes(); }
  std::string description() const { return "SentencePiece"; }
  bool strips_leading_space() const { return model_.adds_prefix(); }
  // As text writes a special token; empty where text cannot hold it.
  std::string written(TokenId id, const Vocabulary& vocabulary) const {
    const bool is_text = vocabulary.kind(id) == TokenKind::kUserDefined;
    if (!is_text && !is_control(vocabulary.kind(id))) return {};
    return is_text ? unescape_spaces(vocabulary.piece(id)) : std::string(vocabulary.piece(id));
  }

 private:
  SentencePieceModel model_;
};

class BytePairTokenizer final {
 public:
  explicit BytePairTokenizer(BytePairModel model) : model_(std::move(model)) {}

  void encode(std::string_view text, bool, const Vocabulary&, std::vector<TokenId>& out) const {
    model_.encode(text, out);
  }
  const StringArena& bytes() const { return model_.bytes(); }
  std::string description() const { return fmt::format("byte-level BPE ({})", model_.pre_tokenizer().name); }
  bool strips_leading_space() const { return false; }
  std::string written(TokenId id, const Vocabulary& vocabulary) const {
    return model_.is_literal(id, vocabulary) ? std::string(vocabulary.piece(id)) : std::string();
  }

 private:
  BytePairModel model_;
};

using AnyModel = std::variant<SentencePieceTokenizer, BytePairTokenizer>;

class ModelTokenizer final : public Tokenizer {
 public:
  // composes: text is put into normal form C before it is cut.
  ModelTokenizer(Vocabulary vocabulary, SpecialSet special, AnyModel model, bool composes)
      : vocabulary_(std::move(vocabulary)),
        special_(std::move(special)),
        model_(std::move(model)),
        composes_(composes) {
    for (TokenId id = 0; id < vocabulary_.size(); ++id) {
      const std::string text = std::visit([&](const auto& m) { return m.written(id, vocabulary_); }, model_);
      if (!text.empty()) matcher_.add(text, id, is_control(vocabulary_.kind(id)));
    }
  }

  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const override {
    std::vector<TokenId> tokens;
    if (options.add_special && special_.tokens.add_bos) tokens.push_back(special_.tokens.bos);
    bool at_start = true;
    for (const Fragment& fragment : matcher_.split(text, options)) {
      if (fragment.token != kNoToken) {
        tokens.push_back(fragment.token);
        at_start = is_control(vocabulary_.kind(fragment.token));
        continue;
      }
      const std::string composed = composes_ ? compose(fragment.text) : std::string();
      const std::string_view plain = composes_ ? std::string_view(composed) : fragment.text;
      std::visit([&](const auto& m) { m.encode(plain, at_start, vocabulary_, tokens); }, model_);
      at_start = false;
    }
    if (options.add_special && special_.tokens.add_eos) tokens.push_back(special_.tokens.eos);
    return tokens;
  }

  std::string_view bytes_of(TokenId id) const override {
    return std::visit([&](const auto& m) { return m.bytes()[static_cast<size_t>(id)]; }, model_);
  }
  std::string_view piece(TokenId id) const override { return vocabulary_.piece(id); }
  TokenKind kind(TokenId id) const override { return vocabulary_.kind(id); }
  int32_t n_vocab() const override { return vocabulary_.size(); }
  const SpecialTokens& special() const override { return special_.tokens; }
  std::span<const TokenId> end_tokens() const override { return special_.end_tokens; }
  std::optional<TokenId> find(std::string_view piece) const override { return vocabulary_.find(piece); }
  std::string description() const override {
    return std::visit([](const auto& m) { return m.description(); }, model_);
  }
  bool strips_leading_space() const override {
    return std::visit([](const auto& m) { return m.strips_leading_space(); }, model_);
  }

 private:
  Vocabulary vocabulary_;
  SpecialSet special_;
  AnyModel model_;
  bool composes_;
  SpecialMatcher matcher_;
};

TokenId if_kind(const Vocabulary& vocabulary, TokenId id, TokenKind kind) {
  return vocabulary.contains(id) && vocabulary.kind(id) == kind ? id : kNoToken;
}

// SentencePiece's own ids, where the tokens there are what they should be.
SpecialTokens sentence_piece_defaults(const Vocabulary& vocabulary) {
  SpecialTokens defaults;
  defaults.unk = if_kind(vocabulary, 0, TokenKind::kUnknown);
  defaults.bos = if_kind(vocabulary, 1, TokenKind::kControl);
  defaults.eos = if_kind(vocabulary, 2, TokenKind::kControl);
  defaults.add_bos = true;
  return defaults;
}

constexpr std::string_view kNormalizerKey = "tokenizer.candor.normalizer";

Expected<bool> reads_composed(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const std::optional<std::string_view> name, formats::meta_string(file, kNormalizerKey));
  if (!name || *name == "nfc") return name.has_value();
  return fail(ErrorKind::kUnsupported,
              fmt::format("{}: {} is not supported (supported: nfc)", kNormalizerKey, quoted_piece(*name)));
}

using TokenizerResult = Expected<std::unique_ptr<Tokenizer>>;

TokenizerResult make_sentence_piece(const formats::ModelFile& file, Vocabulary vocabulary) {
  CANDOR_ASSIGN(SentencePieceModel model, SentencePieceModel::from_model_file(file, vocabulary));
  CANDOR_ASSIGN(SpecialSet special, read_special_tokens(file, vocabulary, sentence_piece_defaults(vocabulary)));
  return std::make_unique<ModelTokenizer>(std::move(vocabulary), std::move(special),
                                          SentencePieceTokenizer(std::move(model)), false);
}

TokenizerResult make_byte_pair(const formats::ModelFile& file, Vocabulary vocabulary) {
  CANDOR_ASSIGN(BytePairModel model, BytePairModel::from_model_file(file, vocabulary));
  SpecialTokens defaults;
  defaults.add_bos = model.pre_tokenizer().adds_bos;
  CANDOR_ASSIGN(SpecialSet special, read_special_tokens(file, vocabulary, defaults));
  CANDOR_ASSIGN(const bool composes, reads_composed(file));
  return std::make_unique<ModelTokenizer>(std::move(vocabulary), std::move(special),
                                          BytePairTokenizer(std::move(model)), composes);
}

}  // namespace

TokenizerResult Tokenizer::from_model_file(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const std::optional<std::string_view> name, formats::meta_string(file, kModelKey));
  if (!name) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: the key is absent; the file has no tokenizer", kModelKey));
  }
  const auto make = *name == "llama" ? &make_sentence_piece : *name == "gpt2" ? &make_byte_pair : nullptr;
  if (make == nullptr) {
    return fail(ErrorKind::kUnsupported, fmt::format("{}: tokenizer {} is not supported (supported: llama, gpt2)",
                                                     kModelKey, quoted_piece(*name)));
  }
  CANDOR_ASSIGN(Vocabulary vocabulary, Vocabulary::from_model_file(file));
  return make(file, std::move(vocabulary));
}

}  // namespace candor::text
