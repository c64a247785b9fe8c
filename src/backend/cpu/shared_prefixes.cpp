#include "backend/cpu/shared_prefixes.h"

#include <algorithm>

#include "backend/op_specs.h"
#include "base/checked.h"
#include "base/ids.h"
#include "kernels/attend.h"

namespace candor::backend::cpu {
namespace {

// Tokens of whole blocks, of the first n_past.
int32_t n_shared_tokens(std::span<const BlockId> a, std::span<const BlockId> b, int32_t n_past) {
  const auto n_blocks = static_cast<size_t>(n_past / kBlockTokens);
  const auto ours = a.first(n_blocks);
  const auto end = std::ranges::mismatch(ours, b.first(n_blocks)).in1;
  return checked_cast<int32_t>(end - ours.begin()) * kBlockTokens;
}

}  // namespace

void SharedPrefixes::find(const StepBatch& batch) {
  prefixes_.clear();
  members_.clear();
  rows_.clear();
  candidates_.clear();
  for (size_t seq = 0; seq < batch.seqs.size(); ++seq) {
    const SeqSlice& slice = batch.seqs[seq];
    if (slice.n_rows <= kMostRows && slice.n_past >= kLeastTokens) candidates_.push_back(seq);
  }
  if (candidates_.size() < 2) return;
  is_member_.assign(batch.seqs.size(), false);
  const auto first_block = [&](size_t seq) { return batch.blocks_of(seq).front(); };
  std::ranges::stable_sort(candidates_, {}, first_block);
  for (std::span<const size_t> rest = candidates_; !rest.empty();) {
    const BlockId block = first_block(rest.front());
    const auto end = std::ranges::find_if(rest, [&](size_t seq) { return first_block(seq) != block; });
    const auto n_alike = static_cast<size_t>(end - rest.begin());
    if (n_alike > 1) add(batch, rest.first(n_alike));
    rest = rest.subspan(n_alike);
  }
}

void SharedPrefixes::add(const StepBatch& batch, std::span<const size_t> seqs) {
  int32_t n_tokens = batch.seqs[seqs.front()].n_past;
  for (const size_t seq : seqs) {
    n_tokens = n_shared_tokens(batch.blocks_of(seqs.front()), batch.blocks_of(seq),
                               std::min(n_tokens, batch.seqs[seq].n_past));
  }
  n_tokens -= n_tokens % kernels::kKeyTile;
  if (n_tokens < kLeastTokens) return;
  prefixes_.push_back({members_.size(), members_.size() + seqs.size(), n_tokens});
  for (const size_t seq : seqs) {
    const SeqSlice& slice = batch.seqs[seq];
    is_member_[seq] = true;
    members_.push_back({seq, slice.n_rows, rows_.size()});
    for (int32_t i = 0; i < slice.n_rows; ++i) rows_.push_back(slice.first_row + i);
  }
}

std::span<const int32_t> SharedPrefixes::rows_of(const SharedPrefix& prefix) const {
  const size_t begin = members_[prefix.begin].first_row;
  const size_t end = prefix.end == members_.size() ? rows_.size() : members_[prefix.end].first_row;
  return std::span(rows_).subspan(begin, end - begin);
}

}  // namespace candor::backend::cpu
