#include "model/hub/hub_delta.h"

#include <fmt/format.h>

#include <cstring>

#include "base/rounded_math.h"
#include "formats/quote.h"
#include "tensor/dtype.h"

namespace candor::model {
namespace {

template <class Place>
void move_heads(const std::byte* src, const HeadPieces& pieces, const ValueHeads& heads, std::byte* dst, Place place) {
  std::memcpy(dst, src, static_cast<size_t>(pieces.n_outer) * pieces.run_bytes);
  const int64_t n_each = heads.n_value / heads.n_key;
  for (int64_t outer = 0; outer < pieces.n_outer; ++outer) {
    const size_t first = static_cast<size_t>(outer) * pieces.run_bytes + pieces.first_byte;
    for (int64_t key = 0; key < heads.n_key; ++key) {
      for (int64_t i = 0; i < n_each; ++i) {
        const auto [from, to] = place(key * n_each + i, i * heads.n_key + key);
        std::memcpy(dst + first + static_cast<size_t>(to) * pieces.head_bytes,
                    src + first + static_cast<size_t>(from) * pieces.head_bytes, pieces.head_bytes);
      }
    }
  }
}

// fn(row there, row of qkv or of the gate, whether of the gate, rows)
template <class Fn>
void for_mixed(const MixedRows& rows, Fn&& fn) {
  const int64_t n_group = 2 * rows.k_dim + 2 * rows.v_rows;
  for (int64_t head = 0; head < rows.n_key; ++head) {
    const int64_t there = head * n_group;
    fn(there, head * rows.k_dim, false, rows.k_dim);
    fn(there + rows.k_dim, (rows.n_key + head) * rows.k_dim, false, rows.k_dim);
    fn(there + 2 * rows.k_dim, 2 * rows.n_key * rows.k_dim + head * rows.v_rows, false, rows.v_rows);
    fn(there + 2 * rows.k_dim + rows.v_rows, head * rows.v_rows, true, rows.v_rows);
  }
}

struct Move {
  int64_t from;
  int64_t to;
};

}  // namespace

Result<HeadPieces> head_pieces(const TensorView& tensor, HubChange change, const ValueHeads& heads, int64_t v_width) {
  const auto unit = static_cast<size_t>(dtype_info(tensor.dtype).block_bytes);
  const bool is_columns = change == HubChange::kTileColumns;
  const Shape& shape = tensor.shape;
  const int64_t n_rows = shape.n_dims == 0 ? 0 : shape[0];
  const int64_t n_here = is_columns ? shape.row_elements() : n_rows;
  const bool has_first = change == HubChange::kTileValues || are_taps(change);
  const int64_t n_first = has_first ? n_here - v_width : 0;
  const bool is_good = heads.n_key >= 1 && heads.n_value >= heads.n_key && heads.n_value % heads.n_key == 0 &&
                       n_first >= 0 && n_here > 0 && (n_here - n_first) % heads.n_value == 0;
  if (!is_good) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("tensor {}: shape {}; expected {} of {} value heads of {} key heads",
                            formats::in_quotes(tensor.name), to_string(shape), is_columns ? "columns" : "rows",
                            heads.n_value, heads.n_key));
  }
  const size_t step = is_columns ? unit : unit * static_cast<size_t>(shape.n_elements() / n_rows);
  return HeadPieces{.n_outer = is_columns ? shape.n_elements() / n_here : 1,
                    .run_bytes = step * static_cast<size_t>(n_here),
                    .first_byte = step * static_cast<size_t>(n_first),
                    .head_bytes = step * static_cast<size_t>((n_here - n_first) / heads.n_value)};
}

void to_turns(const std::byte* src, const HeadPieces& pieces, const ValueHeads& heads, std::byte* dst) {
  move_heads(src, pieces, heads, dst, [](int64_t grouped, int64_t in_turn) { return Move{grouped, in_turn}; });
}

void to_groups(const std::byte* src, const HeadPieces& pieces, const ValueHeads& heads, std::byte* dst) {
  move_heads(src, pieces, heads, dst, [](int64_t grouped, int64_t in_turn) { return Move{in_turn, grouped}; });
}

Result<void> change_delta(HubChange change, const ValueHeads& heads, int64_t v_width, TensorView& view,
                          const NewCopy& new_copy) {
  if (are_taps(change) && view.shape.n_dims == 3 && view.shape[1] == 1) {
    view.shape = {2, {view.shape[0], view.shape[2]}};
  }
  if (are_taps(change) || are_rates(change)) CANDOR_TRY(widen_elements(view, new_copy));
  CANDOR_ASSIGN(const HeadPieces pieces, head_pieces(view, change, heads, v_width));
  CANDOR_ASSIGN(std::byte * copy, new_copy(view));
  to_turns(view.data, pieces, heads, copy);
  if (are_rates(change)) to_rates(reinterpret_cast<float*>(copy), view.shape.n_elements());
  view.data = copy;
  return {};
}

Result<MixedRows> mixed_rows(const TensorView& tensor, int64_t n_key, int64_t k_dim, int64_t v_width) {
  const int64_t n_rows = 2 * n_key * k_dim + 2 * v_width;
  if (n_key > 0 && v_width % n_key == 0 && tensor.shape.n_dims == 2 && tensor.shape[0] == n_rows) {
    return MixedRows{n_key, k_dim, v_width / n_key, tensor.row_bytes()};
  }
  return fail(ErrorKind::kInvalidInput,
              fmt::format("tensor {}: shape {}; expected {} rows, as the sizes of linear attention in config.json say",
                          formats::in_quotes(tensor.name), to_string(tensor.shape), n_rows));
}

void split_mixed(const std::byte* mixed, const MixedRows& rows, std::byte* qkv, std::byte* gate) {
  for_mixed(rows, [&](int64_t there, int64_t here, bool is_gate, int64_t n) {
    std::memcpy((is_gate ? gate : qkv) + static_cast<size_t>(here) * rows.row_bytes,
                mixed + static_cast<size_t>(there) * rows.row_bytes, static_cast<size_t>(n) * rows.row_bytes);
  });
}

void join_mixed(const std::byte* qkv, const std::byte* gate, const MixedRows& rows, std::byte* mixed) {
  for_mixed(rows, [&](int64_t there, int64_t here, bool is_gate, int64_t n) {
    std::memcpy(mixed + static_cast<size_t>(there) * rows.row_bytes,
                (is_gate ? gate : qkv) + static_cast<size_t>(here) * rows.row_bytes,
                static_cast<size_t>(n) * rows.row_bytes);
  });
}

void to_rates(float* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) values[i] = -static_cast<float>(rounded_exp(static_cast<double>(values[i])));
}

void from_rates(float* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(rounded_log(-static_cast<double>(values[i])));
}

}  // namespace candor::model
