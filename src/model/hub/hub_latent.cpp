#include "model/hub/hub_latent.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "formats/quote.h"

namespace candor::model {
namespace {

// fn(element of the joined tensor, element of the keys') of every key; fn(first element of the joined tensor, of the
// values') of every head's rows of values.
template <class Key, class Values>
void for_heads(const LatentHeads& heads, Key&& key, Values&& values) {
  const int64_t n_head = (heads.key_dim + heads.value_dim) * heads.latent_dim;
  for (int64_t head = 0; head < heads.n_heads; ++head) {
    const int64_t joined = head * n_head;
    const int64_t keys = head * heads.key_dim * heads.latent_dim;
    for (int64_t row = 0; row < heads.key_dim; ++row) {
      for (int64_t i = 0; i < heads.latent_dim; ++i) {
        key(joined + row * heads.latent_dim + i, keys + i * heads.key_dim + row);
      }
    }
    values(joined + heads.key_dim * heads.latent_dim, head * heads.value_dim * heads.latent_dim);
  }
}

}  // namespace

Result<void> check_joined(const TensorView& tensor, const LatentHeads& heads) {
  const bool are_sizes = heads.n_heads > 0 && heads.key_dim > 0 && heads.value_dim > 0 && heads.latent_dim > 0;
  if (are_sizes && tensor.shape == heads.joined_shape()) return {};
  return fail(ErrorKind::kInvalidInput,
              fmt::format("tensor {}: shape {}; expected {}: keys of {} and values of {} for each of {} heads, from "
                          "a latent of {}",
                          formats::in_quotes(tensor.name), to_string(tensor.shape), to_string(heads.joined_shape()),
                          heads.key_dim, heads.value_dim, heads.n_heads, heads.latent_dim));
}

DType key_type_of(DType joined) {
  return dtype_info(joined).block_elements == 1 ? joined : DType::kF32;
}

void write_keys(const TensorView& joined, const LatentHeads& heads, std::byte* keys) {
  const bool is_plain = key_type_of(joined.dtype) == joined.dtype;
  const auto unit = static_cast<size_t>(dtype_info(key_type_of(joined.dtype)).block_bytes);
  std::vector<float> row(static_cast<size_t>(heads.latent_dim));
  for (int64_t head = 0; head < heads.n_heads; ++head) {
    for (int64_t i = 0; i < heads.key_dim; ++i) {
      const int64_t from = head * (heads.key_dim + heads.value_dim) + i;
      const std::byte* src = joined.row(from);
      if (!is_plain) {
        decode_row(joined, from, row.data());
        src = reinterpret_cast<const std::byte*>(row.data());
      }
      for (int64_t at = 0; at < heads.latent_dim; ++at) {
        const int64_t to = (head * heads.latent_dim + at) * heads.key_dim + i;
        std::memcpy(keys + static_cast<size_t>(to) * unit, src + static_cast<size_t>(at) * unit, unit);
      }
    }
  }
}

void write_values(const TensorView& joined, const LatentHeads& heads, std::byte* values) {
  const size_t n_bytes = static_cast<size_t>(heads.value_dim) * joined.row_bytes();
  for (int64_t head = 0; head < heads.n_heads; ++head) {
    const int64_t from = head * (heads.key_dim + heads.value_dim) + heads.key_dim;
    std::memcpy(values + static_cast<size_t>(head) * n_bytes, joined.row(from), n_bytes);
  }
}

void join_latent(const std::byte* keys, const std::byte* values, const LatentHeads& heads, size_t unit,
                 std::byte* joined) {
  const size_t n_values = static_cast<size_t>(heads.value_dim * heads.latent_dim) * unit;
  for_heads(
      heads,
      [&](int64_t there, int64_t here) {
        std::memcpy(joined + static_cast<size_t>(there) * unit, keys + static_cast<size_t>(here) * unit, unit);
      },
      [&](int64_t there, int64_t here) {
        std::memcpy(joined + static_cast<size_t>(there) * unit, values + static_cast<size_t>(here) * unit, n_values);
      });
}

}  // namespace candor::model
