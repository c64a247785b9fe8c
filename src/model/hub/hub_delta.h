#pragma once
// Reorders tensors of gated delta rule layers between Hugging Face checkpoints and GGUF files, in both directions. A
// checkpoint keeps the value heads of one key head together; GGUF takes them in turn, the first of every key head, then
// the second of every key head, and so on.

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "model/hub/hub_form.h"
#include "model/hub/hub_state.h"
#include "tensor/tensor_view.h"

namespace candor::model {

constexpr bool is_of_delta(HubChange change) {
  return change >= HubChange::kTileRows && change <= HubChange::kRates;
}

struct ValueHeads {
  int64_t n_key = 0;
  int64_t n_value = 0;  // a multiple of n_key
};

constexpr bool are_taps(HubChange change) {
  return change == HubChange::kTileTaps || change == HubChange::kTaps;
}
constexpr bool are_rates(HubChange change) {
  return change == HubChange::kTileRates || change == HubChange::kRates;
}
// Heads of one key head stay where they are.
constexpr ValueHeads heads_of(HubChange change, const ValueHeads& heads) {
  return change == HubChange::kTaps || change == HubChange::kRates ? ValueHeads{1, heads.n_value} : heads;
}

// Value heads of a tensor as pieces: in each of `n_outer` runs of run_bytes, heads of head_bytes from first_byte on.
struct HeadPieces {
  int64_t n_outer = 1;
  size_t run_bytes = 0;
  size_t first_byte = 0;
  size_t head_bytes = 0;
};

// Where the heads of a tensor of `unit` bytes an element lie. Refuses by name a shape that they do not divide.
// v_width: of all value heads.
Result<HeadPieces> head_pieces(const TensorView& tensor, HubChange change, const ValueHeads& heads, int64_t v_width);

// src and dst: the whole tensor, other memory each.
void to_turns(const std::byte* src, const HeadPieces& pieces, const ValueHeads& heads, std::byte* dst);
void to_groups(const std::byte* src, const HeadPieces& pieces, const ValueHeads& heads, std::byte* dst);

// A tensor of a delta rule, as GGUF has it. Taps lose their middle dimension and are, as rates, f32.
Result<void> change_delta(HubChange change, const ValueHeads& heads, int64_t v_width, TensorView& view,
                          const NewCopy& new_copy);

// Rows of kSplitMixed in a checkpoint: for each of n_key heads, k_dim rows of q, k_dim of k, v_rows of v, v_rows of the
// gate.
struct MixedRows {
  int64_t n_key = 0;
  int64_t k_dim = 0;
  int64_t v_rows = 0;
  size_t row_bytes = 0;
  int64_t n_qkv() const { return n_key * (2 * k_dim + v_rows); }
  int64_t n_gate() const { return n_key * v_rows; }
};
// Of a tensor that holds both. v_width: of all value heads. Refuses another shape by name.
Result<MixedRows> mixed_rows(const TensorView& tensor, int64_t n_key, int64_t k_dim, int64_t v_width);
void split_mixed(const std::byte* mixed, const MixedRows& rows, std::byte* qkv, std::byte* gate);
void join_mixed(const std::byte* qkv, const std::byte* gate, const MixedRows& rows, std::byte* mixed);

// -e^x, and back.
void to_rates(float* values, int64_t n);
void from_rates(float* values, int64_t n);

}  // namespace candor::model
