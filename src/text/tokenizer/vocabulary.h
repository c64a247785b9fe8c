#pragma once
// The pieces of a vocabulary with their kinds and scores, copied from a model file and checked. Immutable after
// construction; const methods may be called from any thread. Invariant: no two pieces that text can become are equal.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "formats/model_file.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text {

// Strings by id, in one allocation.
class StringArena {
 public:
  void reserve(size_t n_strings, size_t n_bytes);
  void push_back(std::string_view text);
  std::string_view operator[](size_t i) const {
    return std::string_view(bytes_).substr(begins_[i], begins_[i + 1] - begins_[i]);
  }
  size_t size() const { return begins_.size() - 1; }

 private:
  std::string bytes_;
  std::vector<size_t> begins_ = {0};
};

// Ids by string: open addressing; the strings lie in an arena that outlives the table.
class StringIndex {
 public:
  explicit StringIndex(size_t n_expected);
  // The id that stands for the text already, or nothing and `id` does from now on.
  std::optional<TokenId> insert(const StringArena& arena, TokenId id);
  std::optional<TokenId> find(const StringArena& arena, std::string_view text) const;

 private:
  struct Slot {
    TokenId id = kNoToken;
    uint32_t tag = 0;  // the upper half of the hash: most strings differ there
  };
  // The slot that holds the text, or the free one where it would go.
  size_t slot_of(const StringArena& arena, std::string_view text, uint64_t hash) const;

  std::vector<Slot> slots_;  // a power of two of them, at most half used
};

// The key of the pieces' scores.
inline constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";

class Vocabulary {
 public:
  static Result<Vocabulary> from_model_file(const formats::ModelFile& file);

  int32_t size() const { return static_cast<int32_t>(pieces_.size()); }
  bool contains(TokenId id) const { return id >= 0 && id < size(); }
  std::string_view piece(TokenId id) const { return pieces_[static_cast<size_t>(id)]; }
  TokenKind kind(TokenId id) const { return kinds_[static_cast<size_t>(id)]; }
  // REQUIRES: has_scores().
  float score(TokenId id) const { return scores_[static_cast<size_t>(id)]; }
  bool has_scores() const { return !scores_.empty(); }
  // Instead of the file's scores: the earlier a merge of "tokenizer.ggml.merges" makes a piece, the better it is.
  Result<void> score_by_merges(const formats::ModelFile& file);
  size_t longest_piece() const { return longest_piece_; }
  std::optional<TokenId> find(std::string_view piece) const { return index_.find(pieces_, piece); }

 private:
  Vocabulary() = default;
  Result<void> read_kinds(const formats::ModelFile& file);
  Result<void> read_scores(const formats::ModelFile& file);
  Result<void> index_pieces();

  StringArena pieces_;
  std::vector<TokenKind> kinds_;
  std::vector<float> scores_;
  StringIndex index_{0};
  size_t longest_piece_ = 0;
};

// For error lines: the piece in quotes, cut to a readable length, as valid UTF-8.
std::string quoted_piece(std::string_view piece);

}  // namespace candor::text
