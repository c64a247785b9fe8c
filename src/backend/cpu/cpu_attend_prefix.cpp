// attend() for sequences that begin with the same blocks of K/V: these are read once for the rows of all, split by
// split, and each sequence goes on from there with its own. A row's operations are those that it has alone, in their
// order.

#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>

#include "backend/cpu/attend_work.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/shared_prefixes.h"
#include "backend/op_specs.h"
#include "backend/step_batch.h"
#include "base/checked.h"
#include "kernels/attend.h"
#include "kernels/kernels.h"
#include "platform/thread_pool.h"

namespace candor::backend::cpu {
namespace {

using kernels::AttendArgs;
using kernels::kSplitTokens;
using platform::UnitRange;

}  // namespace

// Lists the work with room for its results; false where memory for them can't be had.
bool CpuOps::plan_prefixes(const Attention& a) {
  prefix_units_.clear();
  member_units_.clear();
  size_t n_bytes = 0;
  for (size_t p = 0; p < shared_.prefixes().size(); ++p) {
    const SharedPrefix& prefix = shared_.prefixes()[p];
    for (int32_t head_unit = 0; head_unit < a.n_head_units(); ++head_unit) {
      const size_t first_unit = member_units_.size();
      int32_t n_rows = 0;
      for (size_t m = prefix.begin; m < prefix.end; ++m) {
        member_units_.push_back({p, m, head_unit, n_bytes});
        const AttendArgs args = member_args(a, member_units_.back());
        n_rows += args.n_rows;
        n_bytes += static_cast<size_t>(kernels::splits_of_rows(args).end) *
                   kernels::attend_partial_bytes(args.n_rows * a.unit_heads, args.head_dim);
      }
      for (int32_t split = 0; split * kSplitTokens < prefix.n_tokens; ++split) {
        prefix_units_.push_back({p, head_unit, split, n_bytes, first_unit});
        n_bytes += kernels::attend_partial_bytes(n_rows * a.unit_heads, a.spec->head_dim);
      }
    }
  }
  return reserve_partials(n_bytes);
}

AttendArgs CpuOps::member_args(const Attention& a, const MemberUnit& unit) {
  const size_t seq = shared_.members()[unit.member].seq;
  AttendArgs args = attend_args(a, {seq, 0, batch_.seqs[seq].n_rows}, unit.head_unit);
  args.resume_token = shared_.prefixes()[unit.prefix].n_tokens;
  return args;
}

void CpuOps::attend_prefix(const Attention& a, const PrefixUnit& unit, std::byte* scratch) {
  const SharedPrefix& prefix = shared_.prefixes()[unit.prefix];
  const std::span members = shared_.members().subspan(prefix.begin, prefix.end - prefix.begin);
  const std::span<const int32_t> rows = shared_.rows_of(prefix);
  AttendArgs args = attend_args(a, {members.front().seq, 0, 1}, unit.head_unit);
  args.q -= rows.front() * args.q_stride;
  args.q_rows = rows.data();
  args.n_rows = checked_cast<int32_t>(rows.size());
  args.first_position = prefix.n_tokens - 1;
  args.end_token = prefix.n_tokens;
  const std::byte* from = partials_.data() + unit.partial;
  table_.attend_split(args, unit.split, partials_.data() + unit.partial, scratch);
  for (size_t m = 0; m < members.size(); ++m) {
    const size_t bytes = kernels::attend_partial_bytes(members[m].n_rows * a.unit_heads, args.head_dim);
    const MemberUnit& own = member_units_[unit.first_member_unit + m];
    std::memcpy(partials_.data() + own.partial + static_cast<size_t>(unit.split) * bytes, from, bytes);
    from += bytes;
  }
}

void CpuOps::attend_member(const Attention& a, const MemberUnit& unit, std::byte* scratch) {
  const AttendArgs args = member_args(a, unit);
  const size_t bytes = kernels::attend_partial_bytes(args.n_rows * a.unit_heads, args.head_dim);
  std::byte* partials = partials_.data() + unit.partial;
  for (int32_t split = args.resume_token / kSplitTokens; split < kernels::splits_of_rows(args).end; ++split) {
    table_.attend_split(args, split, partials + static_cast<size_t>(split) * bytes, scratch);
  }
  table_.attend_combine(args, partials, scratch);
}

bool CpuOps::attend_prefixes(const Attention& a, bool stores) {
  const bool sees_all =
      a.spec->window_tokens == 0 && a.spec->chunk_tokens == 0 && a.slopes == nullptr && a.biases == nullptr;
  if (shared_.prefixes().empty() || !batch_.groups.empty() || !sees_all || !plan_prefixes(a)) return false;
  if (stores) store_all(a);
  pool_.parallel_for({.n_units = std::ssize(prefix_units_)}, [&](UnitRange range) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      attend_prefix(a, prefix_units_[static_cast<size_t>(i)], scratch_.of(range.thread));
    }
  });
  pool_.parallel_for({.n_units = std::ssize(member_units_)}, [&](UnitRange range) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      attend_member(a, member_units_[static_cast<size_t>(i)], scratch_.of(range.thread));
    }
  });
  return true;
}

}  // namespace candor::backend::cpu
