#pragma once
// Seeded random tensors for tests, in every weight format: the same bytes on every machine.
// Blocks are random bits (so that every code, scale and min occurs) under scales that keep |value| below about
// `amplitude` x 4. Owners keep their bytes at a 64-byte boundary.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/half.h"
#include "support/block_reach.h"
#include "tensor/encode.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_formats.h"

namespace candor::testing {

// Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // In [0, n). REQUIRES: n > 0.
  uint64_t below(uint64_t n) { return next() % n; }
  float uniform(float lo, float hi) { return lo + (hi - lo) * (static_cast<float>(next() >> 40) * 0x1p-24f); }
  // About normal, mean 0, deviation 1: the sum of twelve uniforms.
  float normal() {
    float sum = -6.0f;
    for (int i = 0; i < 12; ++i) sum += uniform(0.0f, 1.0f);
    return sum;
  }

 private:
  uint64_t state_;
};

namespace internal {

struct ScaleFields {
  int first;    // byte offset of the f16 scale, -1 for none
  int second;   // byte offset of the f16 min (dmin, m), -1 for none
  float reach;  // largest |value| for a scale of 1
};

inline ScaleFields scale_fields(DType dtype) {
  ScaleFields fields{-1, -1, reach_of(dtype)};
  with_block(dtype, [&]<class Block>(BlockType<Block>) {
    fields.first = Block::scale_fields().scale;
    fields.second = Block::scale_fields().min;
  });
  return fields;
}

inline void put_f16(std::byte* at, float value) {
  const f16 h = f32_to_f16(value);
  std::memcpy(at, &h, sizeof(h));
}

}  // namespace internal

// One valid block, overwritten. block: [dtype_info(dtype).block_bytes]. REQUIRES: a weight dtype.
inline void random_block(DType dtype, SplitMix& rng, float amplitude, std::byte* block) {
  const DTypeInfo& info = dtype_info(dtype);
  if (info.block_elements == 1) {
    const float value = amplitude * rng.normal();
    encode_elements(dtype, &value, 1, block);
    return;
  }
  for (int i = 0; i < info.block_bytes; ++i) block[i] = static_cast<std::byte>(rng.next() >> 56);
  const internal::ScaleFields fields = internal::scale_fields(dtype);
  const float scale = rng.uniform(0.5f, 3.0f) * amplitude / fields.reach;
  const bool has_min = fields.second >= 0;
  const bool is_k = info.block_elements == 256;
  if (fields.first >= 0) internal::put_f16(block + fields.first, !has_min && rng.below(2) == 0 ? -scale : scale);
  // Mins pull the middle of the codes to about zero: m = -d * reach / 2, dmin = d * q_max / 2.
  if (has_min && !is_k) internal::put_f16(block + fields.second, -0.5f * scale * fields.reach);
  if (has_min && is_k) {
    const float q_max = dtype == DType::kQ2_K ? 3.0f : dtype == DType::kQ5_K ? 31.0f : 15.0f;
    internal::put_f16(block + fields.second, 0.5f * scale * q_max);
  }
  if (dtype == DType::kFP8) {
    const float d = scale / 448.0f;
    for (int i = 4; i < info.block_bytes; ++i) {
      if ((block[i] & std::byte{0x7f}) == std::byte{0x7f}) block[i] ^= std::byte{1};
    }
    std::memcpy(block, &d, sizeof d);
  }
  if (dtype == DType::kFP4) {
    const float d = scale / (6.0f * 448.0f);
    for (int i = 4; i < 12; ++i) block[i] = static_cast<std::byte>(0x50 + rng.below(0x2f));
    std::memcpy(block, &d, sizeof d);
  }
  if (dtype == DType::kIQ1_M) {  // a nibble of its f16 in each of the last four words
    const f16 d = f32_to_f16(scale);
    for (int i = 0; i < 4; ++i) {
      const auto nibble = static_cast<std::byte>(((d >> (4 * i)) & 15) << 4);
      block[49 + 2 * i] = (block[49 + 2 * i] & std::byte{15}) | nibble;
    }
  }
  // The E8M0 exponent: twice the largest code is 12 at 2^(e - 128).
  if (dtype == DType::kMXFP4) {
    block[0] = static_cast<std::byte>(125 + std::ilogb(amplitude) + static_cast<int>(rng.below(2)));
  }
}

// A tensor with its bytes. Movable; views stay valid while it lives at its place or is moved.
class OwnedTensor {
 public:
  OwnedTensor(std::string name, DType dtype, Shape shape) : name_(std::make_unique<std::string>(std::move(name))) {
    const size_t n_bytes = *tensor_bytes_of(dtype, shape);
    bytes_ = Bytes(new (std::align_val_t{64}) std::byte[n_bytes]);
    view_ = {.name = *name_, .dtype = dtype, .shape = shape, .data = bytes_.get(), .n_bytes = n_bytes};
  }

  const TensorView& view() const { return view_; }
  std::byte* bytes() { return bytes_.get(); }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{64}); }
  };
  using Bytes = std::unique_ptr<std::byte[], Free>;

  std::unique_ptr<std::string> name_;
  Bytes bytes_;
  TensorView view_;
};

// dims: outermost first.
inline Shape make_shape(std::initializer_list<int64_t> dims) {
  Shape shape;
  for (const int64_t dim : dims) shape.dims[static_cast<size_t>(shape.n_dims++)] = dim;
  return shape;
}

inline OwnedTensor random_tensor(std::string name, DType dtype, std::initializer_list<int64_t> dims, uint64_t seed,
                                 float amplitude = 1.0f) {
  OwnedTensor tensor(std::move(name), dtype, make_shape(dims));
  SplitMix rng(seed);
  const DTypeInfo& info = dtype_info(dtype);
  const size_t stride = tensor.view().row_bytes();
  const auto block_bytes = static_cast<size_t>(info.block_bytes);
  for (size_t row = 0; row < tensor.view().n_bytes; row += stride) {
    if (info.row_header_bytes > 0) {
      const float scale = rng.uniform(0.5f, 3.0f) * amplitude / 128.0f;
      std::memcpy(tensor.bytes() + row, &scale, sizeof scale);
    }
    for (auto at = static_cast<size_t>(info.row_header_bytes); at < stride; at += block_bytes) {
      random_block(dtype, rng, amplitude, tensor.bytes() + row + at);
    }
  }
  return tensor;
}

// The tensor's values encoded from f32. values: [n_elements].
inline OwnedTensor tensor_of(std::string name, DType dtype, std::initializer_list<int64_t> dims,
                             const std::vector<float>& values) {
  OwnedTensor tensor(std::move(name), dtype, make_shape(dims));
  encode_rows(dtype, values.data(), tensor.view().shape.n_rows(), tensor.view().shape.row_elements(), tensor.bytes());
  return tensor;
}

}  // namespace candor::testing
