#include "text/tokenizer/sentence_piece_model.h"

#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "text/tokenizer/merge_queue.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text {
namespace {

constexpr uint32_t kNoSymbol = UINT32_MAX;

// A piece of the text in a linked list; a merged one goes on as its left part.
struct Symbol {
  uint32_t begin = 0;
  uint32_t n_bytes = 0;  // 0: merged into its left neighbour
  uint32_t previous = kNoSymbol;
  uint32_t next = kNoSymbol;
  TokenId token = kNoToken;   // that the bytes are
  TokenId joined = kNoToken;  // that they become with the next node
};

// Rises as the score falls, so that the best merge has the lowest key.
uint32_t key_of(float score) {
  const uint32_t bits = std::bit_cast<uint32_t>(score == 0.0f ? 0.0f : score);
  const uint32_t rising = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return ~rising;
}

size_t count_characters(std::string_view text) {
  size_t n = 0;
  for (size_t at = 0; at < text.size(); ++n) at += decode_utf8(text, at).length;
  return n;
}

class Merger {
 public:
  Merger(std::string_view text, const Vocabulary& vocabulary) : text_(text), vocabulary_(vocabulary) {
    nodes_.reserve(count_characters(text));  // a growing list would hold those of a long text twice
    for (uint32_t at = 0; at < text.size();) {
      const uint32_t n_bytes = static_cast<uint32_t>(decode_utf8(text, at).length);
      const uint32_t i = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({at, n_bytes, i == 0 ? kNoSymbol : i - 1, i + 1, token_of(at, n_bytes), kNoToken});
      at += n_bytes;
    }
    nodes_.back().next = kNoSymbol;
  }

  std::vector<Symbol> run() && {
    for (uint32_t i = 0; i < nodes_.size(); ++i) look_right(i);
    while (!queue_.empty()) {
      const MergeQueue::Entry best = queue_.pop();
      const Symbol& node = nodes_[best.position];
      const bool is_pending = node.n_bytes != 0 && node.joined != kNoToken;
      if (is_pending && key_of(vocabulary_.score(node.joined)) == best.key) join(best.position);
    }
    return std::move(nodes_);
  }

 private:
  TokenId token_of(size_t begin, size_t n_bytes) const {
    if (n_bytes > vocabulary_.longest_piece()) return kNoToken;
    const std::optional<TokenId> id = vocabulary_.find(text_.substr(begin, n_bytes));
    if (!id) return kNoToken;
    const TokenKind kind = vocabulary_.kind(*id);
    return kind == TokenKind::kNormal || kind == TokenKind::kUserDefined ? *id : kNoToken;
  }

  void look_right(uint32_t at) {
    Symbol& node = nodes_[at];
    node.joined = node.next == kNoSymbol ? kNoToken : token_of(node.begin, node.n_bytes + nodes_[node.next].n_bytes);
    if (node.joined != kNoToken) queue_.push(key_of(vocabulary_.score(node.joined)), at);
  }

  void join(uint32_t at) {
    Symbol& node = nodes_[at];
    Symbol& right = nodes_[node.next];
    node.n_bytes += right.n_bytes;
    node.token = node.joined;
    right.n_bytes = 0;
    node.next = right.next;
    if (node.next != kNoSymbol) nodes_[node.next].previous = at;
    if (node.previous != kNoSymbol) look_right(node.previous);
    look_right(at);
  }

  std::string_view text_;
  const Vocabulary& vocabulary_;
  std::vector<Symbol> nodes_;
  MergeQueue queue_;
};

}  // namespace

Result<SentencePieceModel> SentencePieceModel::from_model_file(const formats::ModelFile& file,
                                                               const Vocabulary& vocabulary) {
  if (!vocabulary.has_scores()) {
    return fail(ErrorKind::kInvalidInput,
                "tokenizer.ggml.scores: the key is absent; a SentencePiece vocabulary needs a score for each token");
  }
  CANDOR_ASSIGN(const SpaceRules spaces, SpaceRules::from_model_file(file));
  CANDOR_ASSIGN(PieceBytes pieces, PieceBytes::read(file, vocabulary));
  return SentencePieceModel(spaces, std::move(pieces));
}

Missing SentencePieceModel::encode(std::string_view text, FragmentPlace place, const Vocabulary& vocabulary,
                                   std::vector<TokenId>& out) const {
  return spaces_.for_each_word(text, place, [&](std::string_view word) -> Missing {
    const std::vector<Symbol> nodes = Merger(word, vocabulary).run();
    const size_t n_before = out.size();
    for (uint32_t i = 0; i != kNoSymbol; i = nodes[i].next) {
      if (nodes[i].token != kNoToken) {
        out.push_back(nodes[i].token);
        continue;
      }
      const std::string_view piece = word.substr(nodes[i].begin, nodes[i].n_bytes);
      if (Missing missing = pieces_.append_unknown(piece, out)) return missing;
      const bool is_second =
          out.size() >= n_before + 2 && out.back() == pieces_.unknown() && out[out.size() - 2] == out.back();
      if (is_second && pieces_.fuses_unknown()) out.pop_back();
    }
    return {};
  });
}

}  // namespace candor::text
