#include "backend/cpu/test_faults.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/exact_math.h"
#include "base/half.h"

namespace candor::backend::cpu {
namespace {

using kernels::AttendArgs;
using kernels::kPageTokens;

float bf16_at(const std::byte* page, size_t index) {
  bf16 value = 0;
  std::memcpy(&value, page + index * sizeof(bf16), sizeof(value));
  return bf16_to_f32(value);
}

const std::byte* block_of(const AttendArgs& a, int32_t position) {
  const size_t block = static_cast<size_t>(a.pages.block_table[position / kPageTokens]);
  return a.pages.base + block * a.pages.block_bytes;
}

// Page layouts: kernels/attend.h.
float key_at(const AttendArgs& a, int32_t position, int32_t dim) {
  const size_t token = static_cast<size_t>(position % kPageTokens);
  const size_t pairs = static_cast<size_t>((a.head_dim + 15) / 16 * 8);
  const size_t pair = (token / 16 * pairs + static_cast<size_t>(dim / 2)) * 16 + token % 16;
  return bf16_at(block_of(a, position) + a.pages.k_offset, 2 * pair + static_cast<size_t>(dim % 2));
}

float value_at(const AttendArgs& a, int32_t position, int32_t dim) {
  const size_t token = static_cast<size_t>(position % kPageTokens);
  const size_t pair = (static_cast<size_t>(dim / 16) * 16 + token / 2) * 16 + static_cast<size_t>(dim % 16);
  return bf16_at(block_of(a, position) + a.pages.v_offset, 2 * pair + token % 2);
}

// Softmax over some of the keys, not yet divided by its sum.
struct Part {
  float largest = -std::numeric_limits<float>::infinity();
  float sum = 0.0f;
  std::vector<float> values;
};

Part attend_part(const AttendArgs& a, const float* q, int32_t begin, int32_t end) {
  Part part;
  part.values.assign(static_cast<size_t>(a.head_dim), 0.0f);
  std::vector<float> scores;
  for (int32_t p = begin; p < end; ++p) {
    float score = 0.0f;
    for (int32_t d = 0; d < a.head_dim; ++d) score += q[d] * key_at(a, p, d);
    scores.push_back(score * a.scale);
    part.largest = std::max(part.largest, scores.back());
  }
  for (int32_t p = begin; p < end; ++p) {
    const float weight = exp_f32(scores[static_cast<size_t>(p - begin)] - part.largest);
    part.sum += weight;
    for (int32_t d = 0; d < a.head_dim; ++d) part.values[static_cast<size_t>(d)] += weight * value_at(a, p, d);
  }
  return part;
}

void attend_row(const AttendArgs& a, int32_t row, int32_t head, int32_t n_parts) {
  const float* q = a.q + row * a.q_stride + head * a.head_dim;
  float* dst = a.dst + row * a.dst_stride + head * a.head_dim;
  const int32_t end = a.first_position + row + 1;
  const int32_t begin = a.window_tokens == 0 ? 0 : std::max(0, end - a.window_tokens);
  std::vector<Part> parts;
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < n_parts; ++i) {
    const int32_t first = begin + static_cast<int32_t>((end - begin) * i / n_parts);
    const int32_t last = begin + static_cast<int32_t>((end - begin) * (i + 1) / n_parts);
    if (first == last) continue;
    parts.push_back(attend_part(a, q, first, last));
    largest = std::max(largest, parts.back().largest);
  }
  float sum = 0.0f;
  std::fill_n(dst, a.head_dim, 0.0f);
  for (const Part& part : parts) {
    const float weight = exp_f32(part.largest - largest);
    sum += part.sum * weight;
    for (int32_t d = 0; d < a.head_dim; ++d) dst[d] += part.values[static_cast<size_t>(d)] * weight;
  }
  for (int32_t d = 0; d < a.head_dim; ++d) dst[d] /= sum;
}

}  // namespace

void attend_in_parts(const AttendArgs& args, int32_t n_parts) {
  CANDOR_CHECK(args.pages.format == kernels::KvFormat::kBf16);
  for (int32_t row = 0; row < args.n_rows; ++row) {
    for (int32_t head = 0; head < args.n_group_heads; ++head) attend_row(args, row, head, n_parts);
  }
}

}  // namespace candor::backend::cpu
