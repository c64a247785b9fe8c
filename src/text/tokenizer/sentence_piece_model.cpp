#include "text/tokenizer/sentence_piece_model.h"

#include <fmt/format.h>

#include <bit>

#include "base/utf8.h"
#include "text/tokenizer/byte_piece.h"
#include "text/tokenizer/merge_queue.h"

namespace candor::text {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";
constexpr size_t kNowhere = SIZE_MAX;

// A piece of the text in a linked list; a merged one goes on as its left part.
struct Node {
  size_t begin = 0;
  size_t n_bytes = 0;  // 0: merged into its left neighbour
  size_t previous = kNowhere;
  size_t next = kNowhere;
  TokenId token = kNoToken;   // that the bytes are
  TokenId joined = kNoToken;  // that they become with the next node
};

// Rises as the score falls, so that the best merge has the lowest key.
uint32_t key_of(float score) {
  const uint32_t bits = std::bit_cast<uint32_t>(score == 0.0f ? 0.0f : score);
  const uint32_t rising = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return ~rising;
}

class Merger {
 public:
  Merger(std::string_view text, const Vocabulary& vocabulary) : text_(text), vocabulary_(vocabulary) {
    for (size_t at = 0; at < text.size();) {
      const size_t n_bytes = decode_utf8(text, at).length;
      const size_t i = nodes_.size();
      nodes_.push_back({at, n_bytes, i == 0 ? kNowhere : i - 1, i + 1, token_of(at, n_bytes), kNoToken});
      at += n_bytes;
    }
    nodes_.back().next = kNowhere;
  }

  const std::vector<Node>& run() {
    for (size_t i = 0; i < nodes_.size(); ++i) look_right(i);
    while (!queue_.empty()) {
      const MergeQueue::Entry best = queue_.pop();
      const Node& node = nodes_[best.position];
      const bool is_pending = node.n_bytes != 0 && node.joined != kNoToken;
      if (is_pending && key_of(vocabulary_.score(node.joined)) == best.key) join(best.position);
    }
    return nodes_;
  }

 private:
  TokenId token_of(size_t begin, size_t n_bytes) const {
    if (n_bytes > vocabulary_.longest_piece()) return kNoToken;
    const std::optional<TokenId> id = vocabulary_.find(text_.substr(begin, n_bytes));
    if (!id) return kNoToken;
    const TokenKind kind = vocabulary_.kind(*id);
    return kind == TokenKind::kNormal || kind == TokenKind::kUserDefined ? *id : kNoToken;
  }

  void look_right(size_t at) {
    Node& node = nodes_[at];
    node.joined = node.next == kNowhere ? kNoToken : token_of(node.begin, node.n_bytes + nodes_[node.next].n_bytes);
    if (node.joined != kNoToken) queue_.push(key_of(vocabulary_.score(node.joined)), at);
  }

  void join(size_t at) {
    Node& node = nodes_[at];
    Node& right = nodes_[node.next];
    node.n_bytes += right.n_bytes;
    node.token = node.joined;
    right.n_bytes = 0;
    node.next = right.next;
    if (node.next != kNowhere) nodes_[node.next].previous = at;
    if (node.previous != kNowhere) look_right(node.previous);
    look_right(at);
  }

  std::string_view text_;
  const Vocabulary& vocabulary_;
  std::vector<Node> nodes_;
  MergeQueue queue_;
};

}  // namespace

std::string escape_spaces(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 2);
  for (const char c : text) {
    if (c == ' ') {
      escaped += kSpaceMark;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string unescape_spaces(std::string_view piece) {
  std::string text;
  for (size_t at = 0; at < piece.size();) {
    const bool is_mark = piece.substr(at, kSpaceMark.size()) == kSpaceMark;
    text += is_mark ? ' ' : piece[at];
    at += is_mark ? kSpaceMark.size() : 1;
  }
  return text;
}

Expected<SentencePieceModel> SentencePieceModel::from_model_file(const formats::ModelFile& file,
                                                                 const Vocabulary& vocabulary) {
  SentencePieceModel model;
  if (!vocabulary.has_scores()) {
    return fail(ErrorKind::kInvalidInput,
                "tokenizer.ggml.scores: the key is absent; a SentencePiece vocabulary needs a score for each token");
  }
  CANDOR_ASSIGN(const std::optional<bool> adds_prefix, formats::meta_bool(file, "tokenizer.ggml.add_space_prefix"));
  model.adds_prefix_ = adds_prefix.value_or(true);
  CANDOR_ASSIGN(const auto doubles, formats::meta_bool(file, "tokenizer.candor.double_space_prefix"));
  model.doubles_prefix_ = doubles.value_or(true);
  CANDOR_TRY(model.read_byte_tokens(vocabulary));
  model.read_bytes(vocabulary);
  return model;
}

Expected<void> SentencePieceModel::read_byte_tokens(const Vocabulary& vocabulary) {
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

void SentencePieceModel::read_bytes(const Vocabulary& vocabulary) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view piece = vocabulary.piece(id);
    switch (vocabulary.kind(id)) {
      case TokenKind::kControl:
        bytes_.push_back({});
        break;
      case TokenKind::kUnknown:
        bytes_.push_back(" \u2047 ");
        break;
      case TokenKind::kByte: {
        const char byte = parse_byte_piece(piece).value_or('\0');
        bytes_.push_back(std::string_view(&byte, 1));
        break;
      }
      default:
        bytes_.push_back(unescape_spaces(piece));
    }
  }
}

void SentencePieceModel::append_bytes(std::string_view piece, std::vector<TokenId>& out) const {
  if (!has_byte_tokens_) {
    out.push_back(unknown_);
    return;
  }
  for (const char byte : piece) out.push_back(byte_tokens_[static_cast<uint8_t>(byte)]);
}

void SentencePieceModel::encode(std::string_view text, bool add_prefix, const Vocabulary& vocabulary,
                                std::vector<TokenId>& out) const {
  std::string escaped = escape_spaces(text);
  const bool has_prefix = !doubles_prefix_ && escaped.starts_with(kSpaceMark);
  if (add_prefix && adds_prefix_ && !has_prefix) escaped.insert(0, kSpaceMark);
  if (escaped.empty()) return;
  const std::vector<Node> nodes = Merger(escaped, vocabulary).run();
  for (size_t i = 0; i != kNowhere; i = nodes[i].next) {
    if (nodes[i].token != kNoToken) {
      out.push_back(nodes[i].token);
    } else {
      append_bytes(std::string_view(escaped).substr(nodes[i].begin, nodes[i].n_bytes), out);
    }
  }
}

}  // namespace candor::text
