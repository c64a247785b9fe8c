#include "text/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <variant>

#include "base/utf8.h"
#include "text/tokenizer/byte_pair_model.h"
#include "text/tokenizer/general_split.h"
#include "text/tokenizer/missing_byte.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/piece_bytes.h"
#include "text/tokenizer/sentence_piece_model.h"
#include "text/tokenizer/space_rules.h"
#include "text/tokenizer/special_matcher.h"
#include "text/tokenizer/special_tokens.h"
#include "text/tokenizer/unigram_model.h"
#include "text/tokenizer/vocabulary.h"
#include "text/tokenizer/word_piece_model.h"

namespace candor::text {
namespace {

constexpr std::string_view kModelKey = "tokenizer.ggml.model";

bool is_control(TokenKind kind) {
  return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
}

// As text writes a special token of a model over characters; empty where text cannot hold it.
std::string written_piece(TokenId id, const Vocabulary& vocabulary, const SpaceRules& rules, const PieceBytes& pieces) {
  if (id == pieces.unknown() && pieces.unknown_is_text()) return {};
  const bool is_text = vocabulary.kind(id) == TokenKind::kUserDefined;
  if (!is_text && !is_control(vocabulary.kind(id))) return {};
  const bool is_literal = !is_text || rules.has_literal_tokens();
  return is_literal ? std::string(vocabulary.piece(id)) : unescape_spaces(vocabulary.piece(id));
}

// from: of the plain text that holds the byte. Where a normaliser made the character, the text does not hold it.
Error missing_error(const MissingByte& missing, std::string_view text, size_t from) {
  const CodePoint point = decode_utf8(missing.character, 0);
  const std::string of = point.valid ? fmt::format(" of U+{:04X}", point.value) : std::string();
  const size_t at = text.find(missing.character, from);
  const std::string place = at == std::string_view::npos ? "" : fmt::format(" at offset {}", at);
  return {ErrorKind::kInvalidInput,
          fmt::format("the text{} holds the byte 0x{:02X}{}, for which this model's vocabulary has no token; leave "
                      "that character out",
                      place, static_cast<uint8_t>(missing.byte), of)};
}

// What a fragment's encoding knows of the text.
struct Context {
  const Vocabulary& vocabulary;
  FragmentPlace place = {};
  uint64_t split_steps = 0;  // that the text may still take
};

class SentencePieceTokenizer final {
 public:
  explicit SentencePieceTokenizer(SentencePieceModel model) : model_(std::move(model)) {}

  Missing encode(std::string_view text, Context& context, std::vector<TokenId>& out) const {
    return model_.encode(text, context.place, context.vocabulary, out);
  }
  const StringArena& bytes() const { return model_.bytes(); }
  std::string description() const { return "SentencePiece"; }
  bool strips_leading_space() const { return model_.spaces().strips_space(); }
  bool prefixes_tokens() const { return model_.spaces().prefixes_tokens(); }
  std::string written(TokenId id, const Vocabulary& vocabulary) const {
    return written_piece(id, vocabulary, model_.spaces(), model_.pieces());
  }

 private:
  SentencePieceModel model_;
};

class UnigramTokenizer final {
 public:
  explicit UnigramTokenizer(UnigramModel model) : model_(std::move(model)) {}

  Missing encode(std::string_view text, Context& context, std::vector<TokenId>& out) const {
    return model_.encode(text, context.place, out);
  }
  const StringArena& bytes() const { return model_.bytes(); }
  std::string description() const { return "unigram"; }
  bool strips_leading_space() const { return model_.spaces().strips_space(); }
  bool prefixes_tokens() const { return model_.spaces().prefixes_tokens(); }
  std::string written(TokenId id, const Vocabulary& vocabulary) const {
    return written_piece(id, vocabulary, model_.spaces(), model_.pieces());
  }

 private:
  UnigramModel model_;
};

class BytePairTokenizer final {
 public:
  explicit BytePairTokenizer(BytePairModel model) : model_(std::move(model)) {}

  Result<Missing> encode(std::string_view text, Context& context, std::vector<TokenId>& out) const {
    return model_.encode(text, context.split_steps, out);
  }
  const StringArena& bytes() const { return model_.bytes(); }
  std::string description() const { return fmt::format("byte-level BPE ({})", model_.rule_name()); }
  bool strips_leading_space() const { return false; }
  bool prefixes_tokens() const { return false; }
  // As text writes a special token; empty where text cannot hold it.
  std::string written(TokenId id, const Vocabulary& vocabulary) const {
    return model_.is_literal(id, vocabulary) ? std::string(vocabulary.piece(id)) : std::string();
  }

 private:
  BytePairModel model_;
};

class WordPieceTokenizer final {
 public:
  explicit WordPieceTokenizer(WordPieceModel model) : model_(std::move(model)) {}

  Missing encode(std::string_view text, Context& context, std::vector<TokenId>& out) const {
    return model_.encode(text, context.vocabulary, out);
  }
  const StringArena& bytes() const { return model_.bytes(); }
  std::string description() const { return "WordPiece"; }
  bool strips_leading_space() const { return true; }
  bool prefixes_tokens() const { return false; }
  std::string written(TokenId id, const Vocabulary& vocabulary) const {
    const bool is_written = is_control(vocabulary.kind(id)) || vocabulary.kind(id) == TokenKind::kUserDefined;
    return is_written ? std::string(vocabulary.piece(id)) : std::string();
  }

 private:
  WordPieceModel model_;
};

using AnyModel = std::variant<SentencePieceTokenizer, UnigramTokenizer, BytePairTokenizer, WordPieceTokenizer>;

// What is the same for every model.
struct Shared {
  Vocabulary vocabulary;
  SpecialSet special;
  Normalizer normalizer;
};

class ModelTokenizer final : public Tokenizer {
 public:
  ModelTokenizer(Shared shared, AnyModel model)
      : vocabulary_(std::move(shared.vocabulary)),
        special_(std::move(shared.special)),
        normalizer_(std::move(shared.normalizer)),
        model_(std::move(model)) {
    for (TokenId id = 0; id < vocabulary_.size(); ++id) {
      const std::string text = std::visit([&](const auto& m) { return m.written(id, vocabulary_); }, model_);
      if (text.empty()) continue;
      matcher_.add(text, id,
                   {.is_control = is_control(vocabulary_.kind(id)),
                    .strips_left = std::ranges::binary_search(special_.strips_left, id),
                    .strips_right = std::ranges::binary_search(special_.strips_right, id)});
    }
    matcher_.link();
  }

  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options) const override {
    if (text.size() > kMaxTextBytes) {
      return fail(ErrorKind::kInvalidInput, fmt::format("text: {} bytes; {} are read at once at most: split the text",
                                                        text.size(), kMaxTextBytes));
    }
    std::vector<TokenId> tokens;
    if (options.add_special && special_.tokens.add_bos) tokens.push_back(special_.tokens.bos);
    Context context{.vocabulary = vocabulary_, .split_steps = GeneralSplit::budget_of(text)};
    FragmentPlace& place = context.place;
    size_t budget = Normalizer::budget_of(text);
    const auto add_plain = [&](std::string_view plain) {
      return std::visit([&](const auto& m) -> Result<Missing> { return m.encode(plain, context, tokens); },
                        model_);
    };
    for (const Fragment& fragment : matcher_.split(text, options)) {
      if (fragment.token != kNoToken) {
        const bool is_user = vocabulary_.kind(fragment.token) == TokenKind::kUserDefined;
        if (is_user && place.follows_control && prefixes_tokens()) CANDOR_TRY(add_plain(""));
        tokens.push_back(fragment.token);
        place = {.opens_text = false, .follows_control = is_control(vocabulary_.kind(fragment.token))};
        continue;
      }
      std::string changed;
      if (!normalizer_.is_empty()) {
        CANDOR_ASSIGN(changed, normalizer_.apply(fragment.text, budget));
      }
      const std::string_view plain = normalizer_.is_empty() ? fragment.text : std::string_view(changed);
      CANDOR_ASSIGN(const Missing missing, plain.empty() ? Result<Missing>(Missing()) : add_plain(plain));
      if (missing) {
        return missing_error(*missing, text, static_cast<size_t>(fragment.text.data() - text.data()));
      }
      place = {.opens_text = false, .follows_control = false};
    }
    if (options.add_special && special_.tokens.add_eos) tokens.push_back(special_.tokens.eos);
    return tokens;
  }

  Result<EncodedPair> encode_pair(std::string_view first, std::string_view second) const override {
    const SpecialTokens& special = special_.tokens;
    if (!special.add_eos || special.eos == kNoToken) {
      return fail(ErrorKind::kUnsupported,
                  "this model's vocabulary has no mark between two texts: a pair is read by "
                  "models that were made for it");
    }
    const EncodeOptions plain{.add_special = false};
    CANDOR_ASSIGN(const std::vector<TokenId> a, encode(first, plain));
    CANDOR_ASSIGN(const std::vector<TokenId> b, encode(second, plain));
    EncodedPair pair;
    if (special.add_bos) pair.tokens.push_back(special.bos);
    pair.tokens.insert(pair.tokens.end(), a.begin(), a.end());
    pair.tokens.insert(pair.tokens.end(), static_cast<size_t>(special_.pair.n_between), special.eos);
    pair.second_begin = static_cast<int32_t>(pair.tokens.size());
    pair.has_types = special_.pair.has_types;
    pair.tokens.insert(pair.tokens.end(), b.begin(), b.end());
    pair.tokens.push_back(special.eos);
    return pair;
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
  bool prefixes_tokens() const {
    return std::visit([](const auto& m) { return m.prefixes_tokens(); }, model_);
  }

  Vocabulary vocabulary_;
  SpecialSet special_;
  Normalizer normalizer_;
  AnyModel model_;
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

using TokenizerResult = Result<std::unique_ptr<Tokenizer>>;

TokenizerResult finish(const formats::ModelFile& file, Vocabulary vocabulary, const SpecialTokens& defaults,
                       AnyModel model) {
  CANDOR_ASSIGN(SpecialSet special, read_special_tokens(file, vocabulary, defaults));
  const bool is_bert = std::holds_alternative<WordPieceTokenizer>(model);
  CANDOR_ASSIGN(Normalizer normalizer, is_bert ? Normalizer::of_bert(file) : Normalizer::from_model_file(file));
  Shared shared{std::move(vocabulary), std::move(special), std::move(normalizer)};
  return std::make_unique<ModelTokenizer>(std::move(shared), std::move(model));
}

TokenizerResult make_sentence_piece(const formats::ModelFile& file, Vocabulary vocabulary) {
  CANDOR_ASSIGN(SentencePieceModel model, SentencePieceModel::from_model_file(file, vocabulary));
  const SpecialTokens defaults = sentence_piece_defaults(vocabulary);
  return finish(file, std::move(vocabulary), defaults, SentencePieceTokenizer(std::move(model)));
}

// Merges over characters that a SentencePiece model was written out as.
TokenizerResult make_merged_pieces(const formats::ModelFile& file, Vocabulary vocabulary) {
  CANDOR_TRY(vocabulary.score_by_merges(file));
  CANDOR_ASSIGN(SentencePieceModel model, SentencePieceModel::from_model_file(file, vocabulary));
  SpecialTokens defaults;
  defaults.add_bos = true;
  return finish(file, std::move(vocabulary), defaults, SentencePieceTokenizer(std::move(model)));
}

TokenizerResult make_unigram(const formats::ModelFile& file, Vocabulary vocabulary) {
  CANDOR_ASSIGN(UnigramModel model, UnigramModel::from_model_file(file, vocabulary));
  return finish(file, std::move(vocabulary), {}, UnigramTokenizer(std::move(model)));
}

TokenizerResult make_byte_pair(const formats::ModelFile& file, Vocabulary vocabulary) {
  CANDOR_ASSIGN(BytePairModel model, BytePairModel::from_model_file(file, vocabulary));
  SpecialTokens defaults;
  defaults.add_bos = model.adds_bos();
  return finish(file, std::move(vocabulary), defaults, BytePairTokenizer(std::move(model)));
}

// [CLS] before a text and [SEP] behind it, where the file has them.
TokenizerResult make_word_piece(const formats::ModelFile& file, Vocabulary vocabulary) {
  CANDOR_ASSIGN(WordPieceModel model, WordPieceModel::from_model_file(file, vocabulary));
  SpecialTokens defaults;
  defaults.bos = if_kind(vocabulary, vocabulary.find("[CLS]").value_or(kNoToken), TokenKind::kControl);
  defaults.eos = if_kind(vocabulary, vocabulary.find("[SEP]").value_or(kNoToken), TokenKind::kControl);
  defaults.add_bos = defaults.bos != kNoToken;
  defaults.add_eos = defaults.eos != kNoToken;
  return finish(file, std::move(vocabulary), defaults, WordPieceTokenizer(std::move(model)));
}

struct NamedModel {
  std::string_view name;
  TokenizerResult (*make)(const formats::ModelFile& file, Vocabulary vocabulary);
};
constexpr NamedModel kModels[] = {{"llama", &make_sentence_piece},
                                  {"gpt2", &make_byte_pair},
                                  {"t5", &make_unigram},
                                  {"gemma4", &make_merged_pieces},
                                  {"bert", &make_word_piece}};

}  // namespace

TokenizerResult Tokenizer::from_model_file(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const std::optional<std::string_view> name, formats::meta_string(file, kModelKey));
  if (!name) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: the key is absent; the file has no tokenizer", kModelKey));
  }
  const auto* known = std::ranges::find(kModels, *name, &NamedModel::name);
  if (known == std::end(kModels)) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}: tokenizer {} is not supported (supported: llama, gpt2, t5, gemma4, bert)", kModelKey,
                            quoted_piece(*name)));
  }
  CANDOR_ASSIGN(Vocabulary vocabulary, Vocabulary::from_model_file(file));
  return known->make(file, std::move(vocabulary));
}

}  // namespace candor::text
