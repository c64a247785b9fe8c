#include "text/tokenizer/word_piece_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>

#include "text/tokenizer/space_rules.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text {
namespace {

constexpr std::string_view kUnknownKey = "tokenizer.ggml.unknown_token_id";
constexpr std::string_view kMaxCharactersKey = "tokenizer.candor.max_word_characters";
constexpr int64_t kMostCharacters = 256;  // each cut of a word is looked up

// The library's tables are those of Unicode 8: what has become punctuation since, and what was it then.
struct CodeRange {
  uint32_t first;
  uint32_t last;
};
constexpr CodeRange kNewPunctuation[] = {
    {0x61D, 0x61D},     {0x9FD, 0x9FD},     {0xA76, 0xA76},     {0xC77, 0xC77},     {0xC84, 0xC84},     {0x1B7D, 0x1B7E},
    {0x2E43, 0x2E4F},   {0x2E52, 0x2E5D},   {0x10EAD, 0x10EAD}, {0x10F55, 0x10F59}, {0x10F86, 0x10F89}, {0x1144B, 0x1144F},
    {0x1145A, 0x1145B}, {0x1145D, 0x1145D}, {0x11660, 0x1166C}, {0x116B9, 0x116B9}, {0x1183B, 0x1183B}, {0x11944, 0x11946},
    {0x119E2, 0x119E2}, {0x11A3F, 0x11A46}, {0x11A9A, 0x11A9C}, {0x11A9E, 0x11AA2}, {0x11B00, 0x11B09}, {0x11C41, 0x11C45},
    {0x11C70, 0x11C71}, {0x11EF7, 0x11EF8}, {0x11F43, 0x11F4F}, {0x11FFF, 0x11FFF}, {0x12FF1, 0x12FF2}, {0x16E97, 0x16E9A},
    {0x16FE2, 0x16FE2}, {0x1E95E, 0x1E95F}};
constexpr uint32_t kOldPunctuation[] = {0x166D, 0x111C9};

bool is_mark(const Character& character) {
  if (std::ranges::find(kOldPunctuation, character.code_point) != std::end(kOldPunctuation)) return true;
  if ((character.flags & (kPunctuation | kAsciiPunctuation)) == 0) return false;
  const auto* range = std::ranges::lower_bound(kNewPunctuation, character.code_point, {}, &CodeRange::last);
  return range == std::end(kNewPunctuation) || character.code_point < range->first;
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
