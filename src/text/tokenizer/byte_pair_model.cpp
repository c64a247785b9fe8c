#include "text/tokenizer/byte_pair_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "base/utf8.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/byte_piece.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text {
namespace {

constexpr std::string_view kPreKey = "tokenizer.ggml.pre";
constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";

std::string known_names() {
  std::string names;
  for (const PreTokenizer& pre : pre_tokenizers()) names += fmt::format("{}{}", names.empty() ? "" : ", ", pre.name);
  return names;
}

Result<const PreTokenizer*> read_pre_tokenizer(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const std::optional<std::string_view> name, formats::meta_string(file, kPreKey));
  if (!name) {
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("{}: the key is absent, so the rule that cuts text into words is unknown; convert the model "
                    "again (known: {})",
                    kPreKey, known_names()));
  }
  const PreTokenizer* const pre = find_pre_tokenizer(*name);
  if (pre == nullptr) {
    return fail(ErrorKind::kUnsupported, fmt::format("{}: pre-tokenizer {} is not known (known: {})", kPreKey,
                                                     quoted_piece(*name), known_names()));
  }
  return pre;
}

}  // namespace

Result<BytePairModel> BytePairModel::from_model_file(const formats::ModelFile& file, const Vocabulary& vocabulary) {
  CANDOR_ASSIGN(const auto* merges, formats::meta_strings(file, kMergesKey));
  if (merges == nullptr) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: the key is absent; a byte-level BPE vocabulary needs its merges", kMergesKey));
  }
  if (merges->size() > MergeTable::kMaxMerges) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: {} merges, at most {}", kMergesKey, merges->size(), MergeTable::kMaxMerges));
  }
  BytePairModel model(merges->size());
  CANDOR_TRY(model.read_rule(file));
  CANDOR_ASSIGN(const std::optional<bool> by_id, formats::meta_bool(file, "tokenizer.candor.ranks_are_ids"));
  CANDOR_TRY(model.read_byte_tokens(vocabulary));
  CANDOR_TRY(model.read_unknown(file, vocabulary));
  CANDOR_TRY(model.read_merges(*merges, by_id.value_or(false), vocabulary));
  model.read_bytes(vocabulary);
  return model;
}

Result<void> BytePairModel::read_rule(const formats::ModelFile& file) {
  CANDOR_ASSIGN(general_, GeneralSplit::from_model_file(file));
  if (!general_) {
    CANDOR_ASSIGN(pre_, read_pre_tokenizer(file));
  }
  CANDOR_ASSIGN(const std::optional<bool> whole, formats::meta_bool(file, "tokenizer.candor.whole_piece_first"));
  whole_piece_first_ = whole.value_or(pre_ != nullptr && pre_->whole_piece_first);
  return {};
}

std::string BytePairModel::rule_name() const {
  if (!general_) return std::string(pre_->name);
  return fmt::format("{} split{} in the general engine", general_->n_steps(), general_->n_steps() == 1 ? "" : "s");
}

Result<void> BytePairModel::read_byte_tokens(const Vocabulary& vocabulary) {
  byte_tokens_.fill(kNoToken);
  for (size_t byte = 0; byte < byte_tokens_.size(); ++byte) {
    std::string name;
    append_utf8(name, byte_alphabet()[byte]);
    const std::optional<TokenId> id = vocabulary.find(name);
    if (id && vocabulary.kind(*id) != TokenKind::kControl) byte_tokens_[byte] = *id;
  }
  const bool has_any = std::ranges::any_of(byte_tokens_, [](TokenId id) { return id != kNoToken; });
  if (has_any) return {};
  return fail(ErrorKind::kInvalidInput,
              "tokenizer.ggml.tokens: no token for any of the 256 bytes, so that this is no byte-level BPE vocabulary; "
              "convert the model again");
}

Result<void> BytePairModel::read_unknown(const formats::ModelFile& file, const Vocabulary& vocabulary) {
  constexpr std::string_view kUnknownKey = "tokenizer.candor.unknown_byte_id";
  CANDOR_ASSIGN(const std::optional<int64_t> id, formats::meta_int(file, kUnknownKey));
  CANDOR_ASSIGN(const std::optional<bool> fuses, formats::meta_bool(file, "tokenizer.candor.fuse_unknown"));
  fuses_unknown_ = fuses.value_or(false);
  if (!id) return {};
  if (*id < 0 || *id >= vocabulary.size()) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: {}, expected a token id from 0 to {}; convert the model again", kUnknownKey, *id,
                            vocabulary.size() - 1));
  }
  unknown_ = static_cast<TokenId>(*id);
  return {};
}

Result<void> BytePairModel::read_merges(const std::vector<std::string_view>& merges, bool ranks_are_ids,
                                        const Vocabulary& vocabulary) {
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string_view line = merges[i];
    const size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size()) {
      return fail(ErrorKind::kInvalidInput, fmt::format("{}[{}]: {}, expected two pieces with a space between",
                                                        kMergesKey, i, quoted_piece(line)));
    }
    const std::string_view left = line.substr(0, space);
    const std::string_view right = line.substr(space + 1);
    const std::string both = std::string(left) + std::string(right);
    for (const std::string_view piece : {left, right, std::string_view(both)}) {
      if (vocabulary.find(piece)) continue;
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("{}[{}]: {} is no token of the vocabulary; convert the model again", kMergesKey, i,
                              quoted_piece(piece)));
    }
    const TokenId merged = *vocabulary.find(both);
    const uint32_t rank = ranks_are_ids ? static_cast<uint32_t>(merged) : static_cast<uint32_t>(i);
    merges_.insert({*vocabulary.find(left), *vocabulary.find(right), merged}, rank);
  }
  return {};
}

bool BytePairModel::is_literal(TokenId id, const Vocabulary& vocabulary) const {
  const TokenKind kind = vocabulary.kind(id);
  if (kind != TokenKind::kUserDefined) return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
  const std::optional<std::string> bytes = decode_byte_piece(vocabulary.piece(id));
  return !bytes || bytes->size() != 1 || byte_tokens_[static_cast<uint8_t>(bytes->front())] != id ||
         static_cast<uint8_t>(vocabulary.piece(id).front()) < 0x80;
}

void BytePairModel::read_bytes(const Vocabulary& vocabulary) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const TokenKind kind = vocabulary.kind(id);
    const std::string_view piece = vocabulary.piece(id);
    if (kind == TokenKind::kControl || kind == TokenKind::kUnknown) {
      bytes_.push_back({});
    } else if (const auto byte = parse_byte_piece(piece); kind == TokenKind::kByte && byte) {
      bytes_.push_back(std::string_view(&*byte, 1));
    } else if (is_literal(id, vocabulary)) {
      bytes_.push_back(piece);
    } else {
      const std::optional<std::string> bytes = decode_byte_piece(piece);
      bytes_.push_back(bytes ? std::string_view(*bytes) : piece);
    }
  }
  if (!whole_piece_first_) return;
  words_ = StringIndex(bytes_.size());
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.kind(id) == TokenKind::kNormal && !bytes_[static_cast<size_t>(id)].empty())
      words_.insert(bytes_, id);
  }
}

Missing BytePairModel::append_bytes(std::string_view bytes, std::vector<TokenId>& word) const {
  for (size_t at = 0; at < bytes.size(); ++at) {
    const TokenId token = byte_tokens_[static_cast<uint8_t>(bytes[at])];
    if (token != kNoToken) {
      word.push_back(token);
    } else if (unknown_ == kNoToken) {
      return missing_byte_at(bytes, at);
    } else if (!fuses_unknown_ || word.empty() || word.back() != unknown_) {
      word.push_back(unknown_);
    }
  }
  return {};
}

Missing BytePairModel::encode_word(std::string_view bytes, std::vector<TokenId>& word,
                                   std::vector<TokenId>& out) const {
  if (whole_piece_first_) {
    if (const std::optional<TokenId> whole = words_.find(bytes_, bytes)) {
      out.push_back(*whole);
      return {};
    }
  }
  word.clear();
  if (Missing missing = append_bytes(bytes, word)) return missing;
  merges_.merge(word);
  out.insert(out.end(), word.begin(), word.end());
  return {};
}

Result<Missing> BytePairModel::encode(std::string_view text, uint64_t& steps, std::vector<TokenId>& out) const {
  std::vector<TokenId> word;
  if (general_) {
    CANDOR_ASSIGN(const std::vector<std::string_view> words, general_->words_of(text, steps));
    for (const std::string_view bytes : words) {
      if (Missing missing = encode_word(bytes, word, out)) return missing;
    }
    return Missing();
  }
  size_t begin = 0;
  for (const size_t n_bytes : split_words(*pre_->rule, text)) {
    if (Missing missing = encode_word(text.substr(begin, n_bytes), word, out)) return missing;
    begin += n_bytes;
  }
  return Missing();
}

}  // namespace candor::text
