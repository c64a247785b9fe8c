#include "text/tokenizer/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <span>

#include "base/hash.h"
#include "base/utf8.h"

namespace candor::text {
namespace {

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kKindsKey = "tokenizer.ggml.token_type";

// A token that text is searched for is compared at every position: its length bounds that work.
constexpr size_t kMaxSpecialPieceBytes = 1024;

uint64_t hash_text(std::string_view text) {
  return hash_bytes(std::as_bytes(std::span(text.data(), text.size())));
}

// The numbers of tokenizer.ggml.token_type.
std::optional<TokenKind> kind_of(int64_t number) {
  switch (number) {
    case 0:
    case 1:
      return TokenKind::kNormal;
    case 2:
      return TokenKind::kUnknown;
    case 3:
      return TokenKind::kControl;
    case 4:
      return TokenKind::kUserDefined;
    case 5:
      return TokenKind::kUnused;
    case 6:
      return TokenKind::kByte;
    default:
      return std::nullopt;
  }
}

bool is_searched_for(TokenKind kind) {
  return kind == TokenKind::kControl || kind == TokenKind::kUserDefined || kind == TokenKind::kUnknown;
}

}  // namespace

void StringArena::reserve(size_t n_strings, size_t n_bytes) {
  begins_.reserve(n_strings + 1);
  bytes_.reserve(n_bytes);
}

void StringArena::push_back(std::string_view text) {
  bytes_.append(text);
  begins_.push_back(bytes_.size());
}

StringIndex::StringIndex(size_t n_expected) : slots_(std::bit_ceil(2 * n_expected + 2)) {}

size_t StringIndex::slot_of(const StringArena& arena, std::string_view text, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  const uint32_t tag = static_cast<uint32_t>(hash >> 32);
  size_t at = hash & mask;
  for (; slots_[at].id != kNoToken; at = (at + 1) & mask) {
    if (slots_[at].tag == tag && arena[static_cast<size_t>(slots_[at].id)] == text) break;
  }
  return at;
}

std::optional<TokenId> StringIndex::insert(const StringArena& arena, TokenId id) {
  const std::string_view text = arena[static_cast<size_t>(id)];
  const uint64_t hash = hash_text(text);
  Slot& slot = slots_[slot_of(arena, text, hash)];
  if (slot.id != kNoToken) return slot.id;
  slot = {id, static_cast<uint32_t>(hash >> 32)};
  return std::nullopt;
}

std::optional<TokenId> StringIndex::find(const StringArena& arena, std::string_view text) const {
  const Slot& slot = slots_[slot_of(arena, text, hash_text(text))];
  return slot.id == kNoToken ? std::nullopt : std::optional(slot.id);
}

std::string quoted_piece(std::string_view piece) {
  constexpr size_t kShown = 60;
  std::string shown;
  for (const char c : to_valid_utf8(piece.substr(0, kShown))) {
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F) {
      shown += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    } else {
      shown += c;
    }
  }
  return fmt::format("\"{}{}\"", shown, piece.size() > kShown ? "..." : "");
}

Result<Vocabulary> Vocabulary::from_model_file(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const auto* tokens, formats::meta_strings(file, kTokensKey));
  if (tokens == nullptr || tokens->empty()) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: {}; a model file needs at least one token", kTokensKey,
                            tokens == nullptr ? "the key is absent" : "the vocabulary is empty"));
  }
  if (tokens->size() > static_cast<size_t>(std::numeric_limits<TokenId>::max())) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: {} tokens, at most 2^31 - 1", kTokensKey, tokens->size()));
  }
  Vocabulary vocabulary;
  size_t n_bytes = 0;
  for (const std::string_view token : *tokens) n_bytes += token.size();
  vocabulary.pieces_.reserve(tokens->size(), n_bytes);
  for (const std::string_view token : *tokens) {
    vocabulary.pieces_.push_back(token);
    vocabulary.longest_piece_ = std::max(vocabulary.longest_piece_, token.size());
  }
  CANDOR_TRY(vocabulary.read_kinds(file));
  CANDOR_TRY(vocabulary.read_scores(file));
  CANDOR_TRY(vocabulary.index_pieces());
  return vocabulary;
}

Result<void> Vocabulary::read_kinds(const formats::ModelFile& file) {
  kinds_.assign(pieces_.size(), TokenKind::kNormal);
  CANDOR_ASSIGN(const auto* numbers, formats::meta_ints(file, kKindsKey));
  if (numbers == nullptr) return {};
  if (numbers->size() != pieces_.size()) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: {} entries for {} tokens; convert the model again",
                                                      kKindsKey, numbers->size(), pieces_.size()));
  }
  for (size_t i = 0; i < numbers->size(); ++i) {
    const std::optional<TokenKind> known = kind_of((*numbers)[i]);
    if (!known) {
      return fail(ErrorKind::kInvalidInput, fmt::format("{}[{}]: {}, expected 0 to 6", kKindsKey, i, (*numbers)[i]));
    }
    kinds_[i] = *known;
    if (is_searched_for(*known) && pieces_[i].size() > kMaxSpecialPieceBytes) {
      return fail(ErrorKind::kInvalidInput, fmt::format("{}[{}]: a special token of {} bytes, at most {}", kTokensKey,
                                                        i, pieces_[i].size(), kMaxSpecialPieceBytes));
    }
  }
  return {};
}

Result<void> Vocabulary::read_scores(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const auto* scores, formats::meta_floats(file, kScoresKey));
  if (scores == nullptr) return {};
  if (scores->size() != pieces_.size()) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: {} scores for {} tokens; convert the model again",
                                                      kScoresKey, scores->size(), pieces_.size()));
  }
  scores_.reserve(scores->size());
  for (size_t i = 0; i < scores->size(); ++i) {
    const double score = (*scores)[i];
    if (!(score >= -std::numeric_limits<float>::max() && score <= std::numeric_limits<float>::max())) {
      return fail(ErrorKind::kInvalidInput, fmt::format("{}[{}]: {}, expected a finite number", kScoresKey, i, score));
    }
    scores_.push_back(static_cast<float>(score));
  }
  return {};
}

Result<void> Vocabulary::score_by_merges(const formats::ModelFile& file) {
  constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";
  constexpr float kNeverMade = -1e9f;
  CANDOR_ASSIGN(const auto* merges, formats::meta_strings(file, kMergesKey));
  if (merges == nullptr) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: the key is absent; this tokenizer needs it", kMergesKey));
  }
  scores_.assign(pieces_.size(), kNeverMade);
  for (size_t rank = merges->size(); rank-- > 0;) {
    const std::string_view merge = (*merges)[rank];
    const size_t space = merge.find(' ', 1);
    const bool is_pair = space != std::string_view::npos && space + 1 < merge.size();
    const std::string made = is_pair ? std::string(merge.substr(0, space)).append(merge.substr(space + 1)) : "";
    const std::optional<TokenId> id = is_pair ? find(made) : std::nullopt;
    if (!id) {
      return fail(ErrorKind::kInvalidInput, fmt::format("{}[{}]: {} makes no token; convert the model again",
                                                        kMergesKey, rank, quoted_piece(merge)));
    }
    scores_[static_cast<size_t>(*id)] = -static_cast<float>(rank);
  }
  return {};
}

Result<void> Vocabulary::index_pieces() {
  index_ = StringIndex(pieces_.size());
  for (TokenId id = 0; id < size(); ++id) {
    if (piece(id).empty()) continue;
    const std::optional<TokenId> earlier = index_.insert(pieces_, id);
    if (!earlier) continue;
    if (kind(id) == TokenKind::kUnused || kind(*earlier) == TokenKind::kUnused) continue;
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: token {} appears twice, with ids {} and {}; convert the model again", kTokensKey,
                            quoted_piece(piece(id)), *earlier, id));
  }
  return {};
}

}  // namespace candor::text
