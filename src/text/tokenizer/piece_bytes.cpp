#include "text/tokenizer/piece_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include "text/tokenizer/byte_piece.h"
#include "text/tokenizer/space_rules.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text {

Result<void> check_piece_lengths(const Vocabulary& vocabulary) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.kind(id) == TokenKind::kUnused || vocabulary.piece(id).size() <= kMaxPieceBytes) continue;
    return fail(ErrorKind::kUnsupported, fmt::format("tokenizer.ggml.tokens[{}]: a piece of {} bytes, at most {}", id,
                                                     vocabulary.piece(id).size(), kMaxPieceBytes));
  }
  return {};
}

Result<PieceBytes> PieceBytes::read(const formats::ModelFile& file, const Vocabulary& vocabulary) {
  CANDOR_TRY(check_piece_lengths(vocabulary));
  PieceBytes pieces;
  CANDOR_ASSIGN(const auto is_text, formats::meta_bool(file, "tokenizer.candor.unknown_is_text"));
  CANDOR_ASSIGN(const auto fuses, formats::meta_bool(file, "tokenizer.candor.fuse_unknown"));
  CANDOR_ASSIGN(const auto unknown_text, formats::meta_string(file, "tokenizer.candor.unknown_text"));
  pieces.unknown_is_text_ = is_text.value_or(false);
  pieces.fuses_unknown_ = fuses.value_or(true);
  CANDOR_TRY(pieces.read_byte_tokens(vocabulary));
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view piece = vocabulary.piece(id);
    switch (vocabulary.kind(id)) {
      case TokenKind::kControl:
        pieces.bytes_.push_back({});
        break;
      case TokenKind::kUnknown:
        pieces.bytes_.push_back(unknown_text.value_or(" \u2047 "));
        break;
      case TokenKind::kByte: {
        const char byte = parse_byte_piece(piece).value_or('\0');
        pieces.bytes_.push_back(std::string_view(&byte, 1));
        break;
      }
      default:
        pieces.bytes_.push_back(unescape_spaces(piece));
    }
  }
  return pieces;
}

Result<void> PieceBytes::read_byte_tokens(const Vocabulary& vocabulary) {
  byte_tokens_.fill(kNoToken);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.kind(id) == TokenKind::kUnknown && unknown_ == kNoToken) unknown_ = id;
    if (vocabulary.kind(id) != TokenKind::kByte) continue;
    const std::optional<char> byte = parse_byte_piece(vocabulary.piece(id));
    if (!byte) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("tokenizer.ggml.tokens[{}]: byte token {}, expected <0x00> to <0xFF>", id,
                              quoted_piece(vocabulary.piece(id))));
    }
    byte_tokens_[static_cast<uint8_t>(*byte)] = id;
  }
  return {};
}

Missing PieceBytes::append_unknown(std::string_view text, std::vector<TokenId>& out) const {
  const auto token_of = [this](char byte) { return byte_tokens_[static_cast<uint8_t>(byte)]; };
  const auto absent = std::ranges::find(text, kNoToken, token_of);
  if (absent == text.end()) {
    std::ranges::transform(text, std::back_inserter(out), token_of);
    return {};
  }
  if (unknown_ != kNoToken) {
    out.push_back(unknown_);
    return {};
  }
  return missing_byte_at(text, static_cast<size_t>(absent - text.begin()));
}

}  // namespace candor::text
