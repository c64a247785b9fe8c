#pragma once
// A receipt: everything that an answer follows from, and the answer, so that anyone who has the model can check it by
// reading it (candor/verify.h). docs/receipts.md says what it proves and what its JSON looks like. Plain data; any
// thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "candor/event.h"
#include "candor/ids.h"
#include "candor/request.h"

namespace candor {

struct ReceiptModel {
  std::string name{};  // of its file, for people
  std::string family{};
  std::uint64_t fingerprint = 0;  // ModelInfo::hash
  std::int32_t numerics = 0;      // kNumericsVersion
  std::string kv_type{};
  std::string template_digest{};  // SHA-256 of the chat template, hexadecimal; empty: it has none
  std::int64_t n_ctx = 0;
};

struct ReceiptAdapter {
  std::string name{};  // for people
  std::uint64_t fingerprint = 0;
  float scale = 1.0f;  // the source's times the request's
};

// One image of the prompt, whose rows stand in it as tokens.
struct ReceiptImage {
  std::string digest{};  // SHA-256 of its file, hexadecimal
  std::int32_t width = 0;
  std::int32_t height = 0;
  std::int32_t n_rows = 0;
};

// How images became rows; of a prompt with images.
struct ReceiptVision {
  std::string family{};                // of the projector, for people
  std::uint64_t fingerprint = 0;       // of tower and projector
  std::string preparation{};           // how pixels became patches
  std::vector<ReceiptImage> images{};  // in the order of the prompt
};

struct ReceiptAnswer {
  std::vector<TokenId> tokens{};
  std::vector<float> logprobs{};  // one a token
  std::string text{};
  FinishReason finish = FinishReason::kLength;
  std::optional<std::size_t> stop_index{};
  std::optional<double> score{};  // of a beam search
};

// Ed25519, of the receipt's JSON without it.
struct ReceiptSignature {
  std::array<std::uint8_t, 32> signer{};  // the public key
  std::array<std::uint8_t, 64> value{};
};

struct Receipt {
  std::string made_by{};  // "candor 0.1.0"
  ReceiptModel model{};
  std::vector<ReceiptAdapter> adapters{};  // in the order in which they are added
  std::vector<TokenId> prompt{};           // before anything was dropped because the context was full
  std::optional<ReceiptVision> vision{};
  SamplingParams sampling{};  // with the seed and the order of the stages in effect
  std::int32_t n = 1;
  std::optional<BeamSearch> beams{};
  std::optional<ConstraintSpec> constraint{};
  OnContextFull on_context_full = OnContextFull::kStop;
  std::vector<ReceiptAnswer> answers{};  // n
  std::optional<ReceiptSignature> signature{};
};

}  // namespace candor
