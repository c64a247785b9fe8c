#pragma once
// Sequences of random K and V in pages, and attention over them, for tests of kernels.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/attend.h"
#include "kernels/test_support.h"

namespace candor::kernels::testing {

// A sequence of n tokens in pages whose blocks lie in reverse order, with dirt in the memory before.
struct Sequence {
  Sequence(const KernelTable& table, int32_t n_tokens, int32_t dim, KvFormat format = KvFormat::kBf16)
      : n(n_tokens),
        head_dim(dim),
        k(random_row(int64_t{n_tokens} * dim, 1)),
        v(random_row(int64_t{n_tokens} * dim, 2)),
        n_blocks((n_tokens + kPageTokens - 1) / kPageTokens),
        memory(static_cast<size_t>(n_blocks) * 2 * kv_page_bytes(dim, format)) {
    std::memset(memory.data(), 0xff, memory.size());
    for (int32_t i = 0; i < n_blocks; ++i) blocks.push_back(n_blocks - 1 - i);
    const size_t page = kv_page_bytes(dim, format);
    pages = {memory.data(), blocks.data(), 2 * page, 0, page, format};
    if (format == KvFormat::kQ4) pages.rotated_dims = rotated_dims(dim, 0);
    const int32_t cut = n_tokens / 3;
    table.store_kv({pages, k.data(), v.data(), dim, dim, 0, cut});
    table.store_kv({pages, k.data() + cut * dim, v.data() + cut * dim, dim, dim, cut, n_tokens - cut});
  }

  int32_t n;
  int32_t head_dim;
  std::vector<float> k;
  std::vector<float> v;
  int32_t n_blocks;
  Buffer memory;
  std::vector<int32_t> blocks;
  KvPages pages;
};

struct Query {
  int32_t first = 0;
  int32_t n_rows = 1;
  int32_t heads = 1;
  int32_t window = 0;
  float softcap = 0.0f;
  const float* slopes = nullptr;
  const float* sinks = nullptr;
  const float* biases = nullptr;
  int32_t bias_reach = 0;
};

inline std::vector<float> queries(const Sequence& s, const Query& query) {
  std::vector<float> all = random_row(int64_t{s.n} * query.heads * s.head_dim, 3, 2.0f);
  const auto width = static_cast<int64_t>(query.heads) * s.head_dim;
  return {all.begin() + query.first * width, all.begin() + (query.first + query.n_rows) * width};
}

inline AttendArgs args_of(const Sequence& s, const Query& query, const std::vector<float>& q, std::vector<float>& dst) {
  dst.assign(q.size(), -1.0f);
  const int64_t stride = static_cast<int64_t>(query.heads) * s.head_dim;
  return {.pages = s.pages,
          .q = q.data(),
          .q_stride = stride,
          .dst = dst.data(),
          .dst_stride = stride,
          .n_rows = query.n_rows,
          .n_group_heads = query.heads,
          .head_dim = s.head_dim,
          .first_position = query.first,
          .window_tokens = query.window,
          .scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim)),
          .softcap = query.softcap,
          .slopes = query.slopes,
          .sinks = query.sinks,
          .biases = query.biases,
          .bias_reach = query.bias_reach};
}

inline std::vector<float> run(const KernelTable& table, const Sequence& s, const Query& query) {
  const auto q = queries(s, query);
  std::vector<float> dst;
  const AttendArgs args = args_of(s, query, q, dst);
  const Buffer scratch(attend_scratch_bytes(s.head_dim));
  table.attend(args, scratch.data());
  return dst;
}

inline std::vector<float> run_in_splits(const KernelTable& table, const Sequence& s, const Query& query) {
  const auto q = queries(s, query);
  std::vector<float> dst;
  const AttendArgs args = args_of(s, query, q, dst);
  const Buffer scratch(attend_scratch_bytes(s.head_dim));
  const SplitRange range = splits_of_rows(args);
  const size_t bytes = attend_partial_bytes(query.n_rows * query.heads, s.head_dim);
  const Buffer partials(bytes * static_cast<size_t>(range.end - range.first));
  for (int32_t i = range.end; i-- > range.first;) {
    table.attend_split(args, i, partials.data() + static_cast<size_t>(i - range.first) * bytes, scratch.data());
  }
  table.attend_combine(args, partials.data(), scratch.data());
  return dst;
}

// Latent attention: K pages alone.
inline std::vector<float> run_latent(const KernelTable& table, const Sequence& s, const Query& query,
                                     int32_t latent_dim) {
  const size_t page = kv_page_bytes(s.head_dim, s.pages.format);
  const Buffer memory(static_cast<size_t>(s.n_blocks) * page);
  std::memset(memory.data(), 0xff, memory.size());
  KvPages pages = {memory.data(), s.blocks.data(), page, 0, 0, s.pages.format};
  if (pages.format == KvFormat::kQ4) pages.rotated_dims = rotated_dims(s.head_dim, latent_dim);
  table.store_kv({pages, s.k.data(), nullptr, s.head_dim, s.head_dim, 0, s.n});
  const auto q = queries(s, query);
  std::vector<float> dst;
  AttendArgs args = args_of(s, query, q, dst);
  dst.assign(static_cast<size_t>(query.n_rows * query.heads * latent_dim), -1.0f);
  args.pages = pages;
  args.dst = dst.data();
  args.dst_stride = static_cast<int64_t>(query.heads) * latent_dim;
  args.latent_dim = latent_dim;
  const Buffer scratch(attend_scratch_bytes(s.head_dim));
  table.attend(args, scratch.data());
  return dst;
}

}  // namespace candor::kernels::testing
