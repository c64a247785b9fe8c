#include "text/tokenizer/word_piece_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "text/tokenizer/bert_ranges.h"
#include "text/tokenizer/char_class.h"
#include "text/tokenizer/code_point_ranges.h"
#include "text/tokenizer/space_rules.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text {
namespace {

constexpr std::string_view kUnknownKey = "tokenizer.ggml.unknown_token_id";
constexpr std::string_view kMaxCharactersKey = "tokenizer.candor.max_word_characters";
constexpr int64_t kMostCharacters = 256;  // each cut of a word is looked up

bool is_mark(const Character& character) {
  if (character.code_point < 0x80) return (character.flags & kAsciiPunctuation) != 0;
  return contains(kBertMarks, character.code_point);
}

}  // namespace

Result<WordPieceModel> WordPieceModel::from_model_file(const formats::ModelFile& file, const Vocabulary& vocabulary) {
  CANDOR_ASSIGN(PieceBytes pieces, PieceBytes::read(file, vocabulary));
  WordPieceModel model(std::move(pieces));
  CANDOR_ASSIGN(const std::optional<int64_t> stated, formats::meta_int(file, kUnknownKey));
  model.unknown_ = model.pieces_.unknown();
  if (model.unknown_ == kNoToken) model.unknown_ = vocabulary.find("[UNK]").value_or(kNoToken);
  if (stated && *stated >= 0 && *stated < vocabulary.size()) model.unknown_ = static_cast<TokenId>(*stated);
  if (model.unknown_ == kNoToken) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: the key is absent, and no token is [UNK]; WordPiece needs one", kUnknownKey));
  }
  CANDOR_ASSIGN(const std::optional<int64_t> most, formats::meta_int(file, kMaxCharactersKey));
  if (most && (*most < 1 || *most > kMostCharacters)) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}: {}, expected 1 to {}", kMaxCharactersKey, *most, kMostCharacters));
  }
  if (most) model.max_characters_ = static_cast<size_t>(*most);
  return model;
}

void WordPieceModel::encode_word(std::string_view word, size_t n_characters, const Vocabulary& vocabulary,
                                 std::vector<TokenId>& out) const {
  const size_t n_before = out.size();
  std::string candidate;
  size_t begin = n_characters > max_characters_ ? SIZE_MAX : 0;
  while (begin < word.size()) {
    const std::string_view stem = begin == 0 ? kSpaceMark : std::string_view();
    size_t end = std::min(word.size(), begin + vocabulary.longest_piece());
    std::optional<TokenId> found;
    for (; end > begin && !found; --end) {
      if (end < word.size() && (static_cast<uint8_t>(word[end]) & 0xC0) == 0x80) continue;  // inside of a character
      candidate.assign(stem).append(word.substr(begin, end - begin));
      found = vocabulary.find(candidate);
      if (found && vocabulary.kind(*found) != TokenKind::kNormal) found.reset();
      if (found) break;
    }
    begin = found ? end : SIZE_MAX;
    if (found) out.push_back(*found);
  }
  if (begin != SIZE_MAX) return;
  out.resize(n_before);
  out.push_back(unknown_);
}

Missing WordPieceModel::encode(std::string_view text, const Vocabulary& vocabulary, std::vector<TokenId>& out) const {
  std::vector<Character> characters;
  classify(text, false, characters);
  size_t begin = 0;
  size_t n_characters = 0;
  size_t at = 0;
  const auto end_word = [&](size_t end) {
    if (end > begin) encode_word(text.substr(begin, end - begin), n_characters, vocabulary, out);
    n_characters = 0;
  };
  for (const Character& character : characters) {
    const size_t next = at + character.n_bytes;
    if (in(kSpace).has(character.flags)) {
      end_word(at);
      begin = next;
    } else if (is_mark(character)) {
      end_word(at);
      begin = at;
      n_characters = 1;
      end_word(next);
      begin = next;
    } else {
      ++n_characters;
    }
    at = next;
  }
  end_word(at);
  return {};
}

}  // namespace candor::text
