#include "model/hub/hub_rows.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "formats/quote.h"

namespace candor::model {
namespace {

template <class Move>
void for_rows(const RowOrder& order, Move&& move) {
  for (int64_t head = 0; head < order.heads; ++head) {
    for (int64_t part = 0; part < order.parts; ++part) {
      for (int64_t i = 0; i < order.size; ++i) {
        move(static_cast<size_t>(order.place_here(head, part, i)),
             static_cast<size_t>(order.place_there(head, part, i)));
      }
    }
  }
}

}  // namespace

void transpose_elements(const std::byte* src, size_t n_rows, size_t n_cols, size_t unit, std::byte* dst) {
  for (size_t row = 0; row < n_rows; ++row) {
    for (size_t col = 0; col < n_cols; ++col) {
      std::memcpy(dst + (col * n_rows + row) * unit, src + (row * n_cols + col) * unit, unit);
    }
  }
}

void swap_halves(const std::byte* src, size_t n_rows, size_t row_bytes, std::byte* dst) {
  const size_t half = row_bytes / 2;
  for (size_t row = 0; row < n_rows; ++row) {
    std::memcpy(dst + row * row_bytes, src + row * row_bytes + half, half);
    std::memcpy(dst + row * row_bytes + half, src + row * row_bytes, half);
  }
}

void swap_halves_of(const TensorView& from, std::byte* to) {
  swap_halves(from.data, static_cast<size_t>(from.shape[0]), from.row_bytes(), to);
}

void rows_to_here(const std::byte* src, const RowOrder& order, size_t row_bytes, std::byte* dst) {
  for_rows(order, [&](size_t here, size_t there) {
    std::memcpy(dst + here * row_bytes, src + there * row_bytes, row_bytes);
  });
}

void rows_to_there(const std::byte* src, const RowOrder& order, size_t row_bytes, std::byte* dst) {
  for_rows(order, [&](size_t here, size_t there) {
    std::memcpy(dst + there * row_bytes, src + here * row_bytes, row_bytes);
  });
}

Result<size_t> fit_rows(const TensorView& view, RowOrder& order) {
  TensorView rows = view;
  if (view.shape.n_dims == 1) rows.shape = {2, {view.shape[0], 1}};
  if (rows.shape.n_dims != 2 || order.heads < 1 || rows.shape[0] % (order.heads * order.parts) != 0) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("tensor {}: shape {}; expected rows of {} heads in {} parts", formats::in_quotes(view.name),
                            to_string(view.shape), order.heads, order.parts));
  }
  order.size = rows.shape[0] / (order.heads * order.parts);
  return rows.row_bytes();
}

}  // namespace candor::model
