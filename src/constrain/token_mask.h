#pragma once
// One bit per token: may it come next. Plain data; a token past the end is not allowed.

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace candor::constrain {

class TokenMask {
 public:
  // Nothing is allowed.
  explicit TokenMask(int32_t n_tokens = 0)
      : words_((static_cast<size_t>(n_tokens) + kBits - 1) / kBits), n_tokens_(n_tokens) {}

  bool allows(TokenId token) const {
    if (token < 0 || token >= n_tokens_) return false;
    return (words_[static_cast<size_t>(token) / kBits] >> (static_cast<size_t>(token) % kBits) & 1u) != 0;
  }
  void allow(TokenId token) {
    words_[static_cast<size_t>(token) / kBits] |= 1u << (static_cast<size_t>(token) % kBits);
  }
  void forbid(TokenId token) {
    words_[static_cast<size_t>(token) / kBits] &= ~(1u << (static_cast<size_t>(token) % kBits));
  }
  int32_t n_tokens() const { return n_tokens_; }
  // Bit i % 32 of word i / 32; bits past n_tokens() are 0.
  std::span<uint32_t> words() { return words_; }
  std::span<const uint32_t> words() const { return words_; }

 private:
  static constexpr size_t kBits = 32;
  std::vector<uint32_t> words_;
  int32_t n_tokens_;
};

}  // namespace candor::constrain
