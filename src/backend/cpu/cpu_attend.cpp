// attend(): work units are (group of rows of one sequence, kv head). When there are fewer units than threads want and
// the context is long, the fixed splits of the context are shared out instead; the bits are the same either way.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "backend/cpu/attend_work.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/cpu_weight.h"
#include "backend/op_specs.h"
#include "backend/op_terms.h"
#include "backend/step_batch.h"
#include "kernels/attend.h"
#include "kernels/kernels.h"
#include "platform/huge_buffer.h"
#include "platform/thread_pool.h"

namespace candor::backend::cpu {
namespace {

using kernels::AttendArgs;
using kernels::KernelTable;
using kernels::SplitRange;
using platform::UnitRange;

constexpr int32_t kQueriesPerUnit = 64;  // rows x heads that share a kv head: four tiles of 16
constexpr int32_t kMostLatentHeads = 32;  // of a unit
constexpr int32_t kLeastLatentHeads = 8;
constexpr int64_t kAttendSpeed = 16;     // products per nanosecond
constexpr int64_t kStoreSpeed = 2;       // elements per nanosecond

int64_t attend_ns(const AttendArgs& a) {
  const int64_t keys = kernels::seen_end(a, a.first_position + a.n_rows - 1);
  const int32_t most = a.window_tokens + a.chunk_tokens;
  const int64_t seen = most == 0 ? keys : std::min<int64_t>(keys, most + a.n_rows);
  return std::max<int64_t>(1, seen * 2 * a.head_dim * a.n_rows * a.n_group_heads / kAttendSpeed);
}

}  // namespace

const float* CpuOps::slopes_of(const AttnSpec& spec) {
  if (spec.max_alibi_bias == 0.0f) return nullptr;
  const int32_t n_all = std::max(spec.n_heads, spec.n_all_heads);
  if (slopes_bias_ != spec.max_alibi_bias || slopes_.size() != static_cast<size_t>(n_all)) {
    slopes_ = alibi_slopes(n_all, spec.max_alibi_bias);
    slopes_bias_ = spec.max_alibi_bias;
  }
  return slopes_.data() + spec.first_head;
}

// All that share a kv head, which for a latent are all there are: then as many as leave a unit for every thread. Few
// heads in a unit make its values more often, and many rows bring as many queries together.
int32_t CpuOps::unit_heads(const AttnSpec& spec) const {
  int32_t heads = spec.n_heads / spec.n_kv_heads;
  if (spec.latent_dim == 0) return heads;
  const auto is_halved = [&] { return spec.n_heads / heads < pool_.n_threads() || heads > kMostLatentHeads; };
  while (heads % 2 == 0 && heads > kLeastLatentHeads && is_halved()) heads /= 2;
  return heads;
}

void CpuOps::make_row_groups(int32_t heads, bool without_members, bool sees_groups) {
  const int32_t rows = std::max(1, kQueriesPerUnit / heads);
  groups_.clear();
  for (size_t seq = 0; seq < batch_.seqs.size(); ++seq) {
    if (without_members && shared_.is_member(seq)) continue;
    const SeqSlice& slice = batch_.seqs[seq];
    for (int32_t first = 0; first < slice.n_rows; first += groups_.back().n_rows) {
      const AlikeRows alike = sees_groups ? alike_rows(slice, first) : AlikeRows{slice.n_rows, 0};
      groups_.push_back({seq, first, std::min(rows, alike.end - first), alike.seen_end});
    }
  }
}

// Rows of a slice from `first` on that see up to the same position, or each up to itself.
CpuOps::AlikeRows CpuOps::alike_rows(const SeqSlice& slice, int32_t first) const {
  const VisibleGroup* group = batch_.group_from(slice.first_row + first);
  if (group == nullptr) return {slice.n_rows, 0};
  const int32_t begin = group->first_row - slice.first_row;
  if (begin > first) return {std::min(begin, slice.n_rows), 0};
  return {begin + group->n_rows, slice.n_past + begin + group->n_rows};
}

AttendArgs CpuOps::attend_args(const Attention& a, const RowGroup& group, int32_t head_unit) {
  const SeqSlice& slice = batch_.seqs[group.seq];
  const int32_t row = slice.first_row + group.first;
  const int32_t head = head_unit * a.unit_heads;
  const int32_t kv_head = head / (a.spec->n_heads / a.spec->n_kv_heads);
  return {.pages = kv_->pages(batch_.blocks_of(group.seq), a.layer, kv_head),
          .q = arena_.row(a.q, row) + head * a.spec->head_dim,
          .q_stride = a.q.n_cols,
          .dst = arena_.row(a.dst, row) + head * a.spec->value_dim(),
          .dst_stride = a.dst.n_cols,
          .n_rows = group.n_rows,
          .n_group_heads = a.unit_heads,
          .head_dim = a.spec->head_dim,
          .first_position = slice.n_past + group.first,
          .window_tokens = a.spec->window_tokens,
          .scale = a.spec->scale,
          .softcap = a.spec->softcap,
          .slopes = a.slopes == nullptr ? nullptr : a.slopes + head,
          .sinks = a.sinks == nullptr ? nullptr : a.sinks + head,
          .latent_dim = a.spec->latent_dim,
          .chunk_tokens = a.spec->chunk_tokens,
          .group_end = group.seen_end,
          .ahead_tokens = a.spec->is_two_sided ? a.spec->window_tokens : 0,
          .biases = a.biases == nullptr ? nullptr : a.biases + int64_t{head} * (2 * a.spec->bias_reach + 1),
          .bias_reach = a.spec->bias_reach};
}

// Units run over the groups, and within a group over the heads.
AttendArgs CpuOps::unit_args(const Attention& a, int64_t unit) {
  const int32_t n_each = a.n_head_units();
  return attend_args(a, groups_[static_cast<size_t>(unit / n_each)], static_cast<int32_t>(unit % n_each));
}

void CpuOps::store(const Attention& a, size_t seq, int32_t kv_head) {
  const SeqSlice& slice = batch_.seqs[seq];
  const int32_t head = kv_head * a.spec->head_dim;
  table_.store_kv({.pages = kv_->pages(batch_.blocks_of(seq), a.layer, kv_head),
                   .k = arena_.row(a.k, slice.first_row) + head,
                   .v = a.spec->latent_dim > 0 ? nullptr : arena_.row(a.v, slice.first_row) + head,
                   .stride = a.k.n_cols,
                   .head_dim = a.spec->head_dim,
                   .first_position = slice.n_past,
                   .n_rows = slice.n_rows});
}

void CpuOps::store_all(const Attention& a) {
  const int64_t n_kv_heads = a.spec->n_kv_heads;
  const int64_t n_seqs = static_cast<int64_t>(batch_.seqs.size());
  const int64_t elements = int64_t{2} * batch_.n_rows() * a.spec->head_dim / n_seqs;
  pool_.parallel_for({.n_units = n_seqs * n_kv_heads, .unit_cost = std::max<int64_t>(1, elements / kStoreSpeed)},
                     [&](UnitRange range) {
                       for (int64_t unit = range.begin; unit < range.end; ++unit)
                         store(a, static_cast<size_t>(unit / n_kv_heads), static_cast<int32_t>(unit % n_kv_heads));
                     });
}

// store_first: a unit is all of its sequence's rows and a kv head's heads, so it stores what it then attends to.
void CpuOps::attend_groups(const Attention& a, bool store_first) {
  const int64_t n_units = static_cast<int64_t>(groups_.size()) * a.n_head_units();
  const int64_t cost = attend_ns(unit_args(a, n_units - 1));
  pool_.parallel_for({.n_units = n_units, .unit_cost = cost}, [&](UnitRange range) {
    for (int64_t unit = range.begin; unit < range.end; ++unit) {
      if (store_first) {
        const size_t seq = groups_[static_cast<size_t>(unit / a.spec->n_kv_heads)].seq;
        store(a, seq, static_cast<int32_t>(unit % a.spec->n_kv_heads));
      }
      table_.attend(unit_args(a, unit), scratch_.of(range.thread));
    }
  });
}

// Lists the splits of every unit, with room for their results. False where sharing whole units is as good, or where
// memory for the results can't be had.
bool CpuOps::plan_splits(const Attention& a) {
  const int64_t n_units = static_cast<int64_t>(groups_.size()) * a.n_head_units();
  if (pool_.n_threads() == 1 || n_units >= int64_t{2} * pool_.n_threads()) return false;
  splits_.clear();
  first_partial_.clear();
  size_t n_bytes = 0;
  for (int64_t unit = 0; unit < n_units; ++unit) {
    const AttendArgs args = unit_args(a, unit);
    const SplitRange range = kernels::splits_of_rows(args);
    const size_t partial = kernels::attend_partial_bytes(args.n_rows * args.n_group_heads, args.head_dim);
    first_partial_.push_back(n_bytes);
    for (int32_t split = range.first; split < range.end; ++split) {
      splits_.push_back({unit, split, n_bytes});
      n_bytes += partial;
    }
  }
  if (static_cast<int64_t>(splits_.size()) == n_units) return false;
  return reserve_partials(n_bytes);
}

bool CpuOps::reserve_partials(size_t n_bytes) {
  if (partials_.size() >= n_bytes) return true;
  auto grown = platform::HugeBuffer::allocate(2 * n_bytes, "partial results of attention");
  if (!grown) return false;
  partials_ = std::move(*grown);
  return true;
}

void CpuOps::attend_in_splits(const Attention& a) {
  const int64_t n_units = static_cast<int64_t>(first_partial_.size());
  pool_.parallel_for({.n_units = static_cast<int64_t>(splits_.size())}, [&](UnitRange range) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      const SplitUnit& unit = splits_[static_cast<size_t>(i)];
      table_.attend_split(unit_args(a, unit.group_unit), unit.split, partials_.data() + unit.partial,
                          scratch_.of(range.thread));
    }
  });
  pool_.parallel_for({.n_units = n_units}, [&](UnitRange range) {
    for (int64_t unit = range.begin; unit < range.end; ++unit) {
      table_.attend_combine(unit_args(a, unit), partials_.data() + first_partial_[static_cast<size_t>(unit)],
                            scratch_.of(range.thread));
    }
  });
}

void CpuOps::compute(const op::Attend& call) {
  if (batch_.n_rows() == 0) return;
  const float* sinks = call.spec->has_sinks ? own(*call.term.sinks).values() : nullptr;
  const float* biases = call.spec->bias_reach > 0 ? own(*call.term.biases).values() : nullptr;
  const Attention a{.dst = call.dst,
                    .q = call.term.q,
                    .k = call.term.k,
                    .v = call.term.v,
                    .layer = call.term.layer,
                    .spec = call.spec,
                    .slopes = slopes_of(*call.spec),
                    .sinks = sinks,
                    .biases = biases,
                    .unit_heads = unit_heads(*call.spec)};
  bool stores = call.term.k.n_cols > 0;
  const bool are_members_done = attend_prefixes(a, stores);
  make_row_groups(a.unit_heads, are_members_done, call.spec->sees_groups);
  if (groups_.empty()) return;
  if (are_members_done) stores = false;
  if (plan_splits(a)) {
    if (stores) store_all(a);
    return attend_in_splits(a);
  }
  const bool store_first = stores && every_sequence_is_one_group() && a.n_head_units() == call.spec->n_kv_heads;
  if (stores && !store_first) store_all(a);
  attend_groups(a, store_first);
}

}  // namespace candor::backend::cpu
