#pragma once
// Receipts (candor/receipt.h) as JSON, their signatures, and checking one on an engine that has its model: the answers
// are computed again, at the pace of reading them. Any thread but the engine's own.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "candor/ids.h"
#include "candor/receipt.h"
#include "candor/result.h"

namespace candor {

class Engine;

inline constexpr std::int32_t kReceiptVersion = 2;  // 1 where the prompt has no images
inline constexpr std::size_t kMaxReceiptBytes = std::size_t{64} << 20;

// Of its bytes.
std::string logprobs_digest(const ReceiptAnswer& answer);

// One line of JSON, always the same for the same receipt.
std::string to_json(const Receipt& receipt);
// Refuses what it does not know: a later version, a field that this one does not have, digests that do not fit.
Result<Receipt> parse_receipt(std::string_view json);

// An Ed25519 key in PEM, as `openssl genpkey -algorithm ed25519` writes it.
Result<void> sign(Receipt& receipt, std::string_view private_key_pem);
// Whether the signature is that of this key (PEM, public or private). An error where it has none, another signer's, or
// one that does not fit.
Result<void> check_signature(const Receipt& receipt, std::string_view key_pem);
// Whether the signature fits whoever signed; nothing to check where there is none.
Result<void> check_signature(const Receipt& receipt);

// What differs first, of the first answer in which something does.
struct ReceiptDifference {
  std::string field{};           // "tokens", "logprobs", "text", "finish_reason", "stop_index", "score"
  std::int32_t answer = 0;       // which
  std::int64_t position = 0;     // of the token, from 0
  TokenId claimed = -1;          // what the receipt says; -1: no token
  TokenId expected = -1;         // what the model gives; -1: no token
  double claimed_logprob = 0.0;  // the model's, of both; of a logprob what the receipt says and what it is
  double expected_logprob = 0.0;
};

struct ReceiptVerdict {
  std::int64_t n_tokens = 0;                      // of all answers
  std::int64_t n_verified = 0;                    // that came again, with their logprobs
  bool was_searched = false;                      // beams cannot be read: the search was done again
  std::optional<ReceiptDifference> difference{};  // absent: verified
};

// Computes prompt and answers again, reading the answers as far as they are right. Errors say that the receipt can not
// be checked here (another model, K/V type, numerics or context; an adapter that is not loaded; an image that is not
// given). progress: tokens that were verified, of how many, on the engine thread; false ends the check with kCancelled;
// may be empty. images: the files of the prompt's images, found by their digests; others are passed over. Not from a
// callback.
Result<ReceiptVerdict> verify(Engine& engine, const Receipt& receipt,
                              const std::function<bool(std::int64_t, std::int64_t)>& progress = {},
                              std::span<const std::string> images = {});
// "verified: 412 of 412 tokens, logprobs equal", or the first difference.
std::string to_string(const ReceiptVerdict& verdict, const Engine& engine);
// {"verified", "message" (the line above), "tokens", "verified_tokens", "difference" (null, or its members)}
std::string to_json(const ReceiptVerdict& verdict, const Engine& engine);

}  // namespace candor
