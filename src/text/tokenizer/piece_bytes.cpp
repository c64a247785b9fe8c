#include "text/tokenizer/piece_bytes.h"

#include <fmt/format.h>

#include "text/tokenizer/byte_piece.h"
#include "text/tokenizer/space_rules.h"

namespace candor::text {

Expected<PieceBytes> PieceBytes::read(const Vocabulary& vocabulary) {
  PieceBytes pieces;
  CANDOR_TRY(pieces.read_byte_tokens(vocabulary));
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view piece = vocabulary.piece(id);
    switch (vocabulary.kind(id)) {
      case TokenKind::kControl:
        pieces.bytes_.push_back({});
        break;
      case TokenKind::kUnknown:
        pieces.bytes_.push_back(" \u2047 ");
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

Expected<void> PieceBytes::read_byte_tokens(const Vocabulary& vocabulary) {
  size_t n_found = 0;
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
    TokenId& slot = byte_tokens_[static_cast<uint8_t>(*byte)];
    if (slot == kNoToken) ++n_found;
    slot = id;
  }
  has_byte_tokens_ = n_found == byte_tokens_.size();
  if (n_found != 0 && !has_byte_tokens_) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("tokenizer.ggml.tokens: {} of 256 byte tokens; expected all or none", n_found));
  }
  if (n_found == 0 && unknown_ == kNoToken) {
    return fail(ErrorKind::kInvalidInput,
                "tokenizer.ggml.tokens: neither byte tokens nor an unknown token, so that some text has no tokens");
  }
  return {};
}

void PieceBytes::append_unknown(std::string_view text, std::vector<TokenId>& out) const {
  if (!has_byte_tokens_) {
    out.push_back(unknown_);
    return;
  }
  for (const char byte : text) out.push_back(byte_tokens_[static_cast<uint8_t>(byte)]);
}

}  // namespace candor::text
