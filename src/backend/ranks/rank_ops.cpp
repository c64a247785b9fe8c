#include "backend/ranks/rank_ops.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace candor::backend {
namespace {

NormWeights parts_of(NormWeights weights) {
  return {part_of(weights.gain), part_of(weights.bias)};
}

}  // namespace

RankOps::RankOps(Backend& inner, const kernels::KernelTable& table, int32_t rank, int32_t size)
    : inner_(inner),
      encoded_linear_(dynamic_cast<EncodedLinear*>(&inner.ops())),
      table_(table),
      rank_(rank),
      size_(size),
      encoded_(table) {}

void RankOps::begin(const StepBatch& batch, const Pass& pass) {
  n_rows_ = batch.n_rows();
  ++n_steps_;
  is_attention_ = pass.is_attention;
}

Activation RankOps::local(Activation x) {
  const Slot& state = slot(x);
  return {x.slot, x.n_rows, state.is_split ? state.share.width() : x.n_cols};
}

bool RankOps::is_split_alike(Activation a, Activation b) {
  return slot(a).is_split && slot(b).is_split && slot(a).share == slot(b).share;
}

// Where every rank has all of the one K/V head, its rows are whole.
void RankOps::set_split(Activation x, const OutputShare& share) {
  if (share.bounds.empty() && share.width() == x.n_cols) return set_whole(x);
  Slot& state = slot(x);
  state.is_split = true;
  state.share = share;
  state.goes_along = false;
}

void RankOps::exchange(float* rows, int32_t n_rows, std::span<const int32_t> bounds, comm::Receivers receivers,
                       uint64_t tag) {
  ++n_exchanges_;
  // The communicator keeps the fault; the wait for the step asks it.
  is_lost_ = !comm_->gather({rows, n_rows, bounds}, receivers, (n_steps_ << 16) | tag);
}

void RankOps::make_whole(Activation x) {
  Slot& state = slot(x);
  if (!state.is_split) return;
  CANDOR_CHECK(!state.share.bounds.empty());
  if (state.goes_along && x.n_rows > 0) return exchange_together({}, static_cast<uint64_t>(x.slot));
  state.is_split = false;
  if (x.n_rows == 0) return;
  exchange(inner_.host_rows(x), x.n_rows, state.share.bounds, comm::Receivers::kAll, static_cast<uint64_t>(x.slot));
}

void RankOps::make_split(Activation x, const OutputShare& share) {
  Slot& state = slot(x);
  if (state.is_split) return CANDOR_CHECK(state.share.begin == share.begin && state.share.end == share.end);
  const auto n_all = static_cast<size_t>(x.n_cols);
  const auto n_own = static_cast<size_t>(share.width());
  float* rows = inner_.host_rows(x);
  for (size_t i = 0; i < static_cast<size_t>(x.n_rows); ++i) {
    std::memmove(rows + i * n_own, rows + i * n_all + static_cast<size_t>(share.begin), n_own * sizeof(float));
  }
  set_split(x, share);
}

// Rank 0 has all columns, and sends them when they are read.
void RankOps::embed(Activation dst, const Weight& table, float scale) {
  share_.bounds.assign(static_cast<size_t>(size_) + 1, dst.n_cols);
  share_.bounds.front() = 0;
  share_.begin = rank_ == 0 ? 0 : dst.n_cols;
  share_.end = dst.n_cols;
  set_split(dst, share_);
  if (rank_ == 0) inner_.ops().embed(dst, *rank_weight(table).rows(), scale);
}

void RankOps::add_positions(Activation dst, const Weight& table) {
  CANDOR_CHECK(slot(dst).is_split && slot(dst).share.bounds[1] == dst.n_cols);
  if (rank_ == 0) inner_.ops().add_positions(dst, *rank_weight(table).rows());
}

// Of rows that are heads: each by itself.
void RankOps::norm(Activation dst, Activation src, NormWeights weights, const NormSpec& spec) {
  const Slot& state = slot(src);
  if (state.is_split && src.n_rows != n_rows_) {
    CANDOR_CHECK(dst.slot == src.slot && state.share.width() % src.n_cols == 0);
    const Activation own{src.slot, n_rows_ * (state.share.width() / src.n_cols), src.n_cols};
    return inner_.ops().norm(own, own, parts_of(weights), spec);
  }
  make_whole(src);
  set_whole(dst);
  inner_.ops().norm(dst, src, parts_of(weights), spec);
}

// Every rank comes to the same: bounds, types and backends are the same everywhere.
std::optional<kernels::Encoding> RankOps::encoding_between(std::span<const LinearTerm> terms, Activation src) {
  const Slot& state = slot(src);
  if (encoded_linear_ == nullptr || !state.is_split || state.share.bounds.empty() || src.n_rows == 0)
    return std::nullopt;
  const auto encoding_of = [](const LinearTerm& term) {
    return kernels::encoding_of(rank_weight(*term.weight).dtype());
  };
  const kernels::Encoding first = encoding_of(terms.front());
  const auto is_first = [&](const LinearTerm& term) { return encoding_of(term) == first; };
  if (!std::ranges::all_of(terms, is_first) || !EncodedRows::can_send(first, state.share.bounds)) return std::nullopt;
  return first;
}

// The rows themselves stay split.
const std::byte* RankOps::exchange_encoded(kernels::Encoding encoding, Activation src) {
  encoded_.encode(encoding, slot(src).share.bounds, inner_.host_rows(src), src.n_rows, rank_);
  const comm::RowSlices slices = encoded_.slices();
  exchange(slices.rows, slices.n_rows, slices.bounds, comm::Receivers::kAll, static_cast<uint64_t>(src.slot));
  return encoded_.put_together();
}

void RankOps::linear(std::span<const LinearTerm> terms, Activation src) {
  const auto encoding = encoding_between(terms, src);
  const std::byte* encoded = encoding ? exchange_encoded(*encoding, src) : nullptr;
  if (!encoding) make_whole(src);
  terms_.clear();
  for (const LinearTerm& term : terms) {
    const RankWeight& weight = rank_weight(*term.weight);
    set_product(term.dst, weight);
    if (weight.part() != nullptr) terms_.push_back({weight.part(), part_of(term.bias), local(term.dst)});
  }
  if (terms_.empty() || is_lost_) return;
  encoding ? encoded_linear_->linear_encoded(terms_, src.n_rows, encoded) : inner_.ops().linear(terms_, src);
}

void RankOps::rope(Activation x, int32_t n_heads, int32_t head_dim, const RopeSpec& spec) {
  if (has_none(x)) return;
  const int32_t n_own = slot(x).is_split ? slot(x).share.width() / head_dim : n_heads;
  inner_.ops().rope(local(x), n_own, head_dim, spec);
}

void RankOps::temper(Activation x, const TemperSpec& spec) {
  if (!has_none(x)) inner_.ops().temper(local(x), spec);
}

const std::vector<HeadShare>& RankOps::shares_of(const AttnSpec& spec) {
  const HeadCounts heads{spec.n_heads, spec.n_kv_heads};
  for (const auto& [counts, shares] : head_shares_) {
    if (counts == heads) return shares;
  }
  return head_shares_.emplace_back(heads, share_heads(heads, size_)).second;
}

const OutputShare& RankOps::query_share(const std::vector<HeadShare>& shares, int32_t width) {
  share_.bounds.assign(1, 0);
  for (const HeadShare& share : shares) share_.bounds.push_back((share.first_head + share.n_heads) * width);
  share_.begin = share_.bounds[static_cast<size_t>(rank_)];
  share_.end = share_.bounds[static_cast<size_t>(rank_) + 1];
  return share_;
}

const OutputShare& RankOps::kv_share(const HeadShare& share, int32_t width) {
  share_.bounds.clear();
  share_.begin = share.first_kv_head * width;
  share_.end = (share.first_kv_head + share.n_kv_heads) * width;
  return share_;
}

void RankOps::attend(Activation dst, const AttnTerm& term, const AttnSpec& spec) {
  // What is read is left over then: its numbers do not matter.
  if (is_attention_) slots_.assign(slots_.size(), {});
  AttnTerm own = term;
  own.sinks = part_of(term.sinks);
  if (spec.latent_dim > 0) {
    for (const Activation x : {term.q, term.k}) make_whole(x);
    set_whole(dst);
    if (!is_lost_) inner_.ops().attend(dst, own, spec);
    return;
  }
  const std::vector<HeadShare>& shares = shares_of(spec);
  const HeadShare& share = shares[static_cast<size_t>(rank_)];
  make_split(term.q, query_share(shares, spec.head_dim));
  for (Activation* x : {&own.k, &own.v}) {
    if (x->n_cols == 0) continue;  // another block's
    make_split(*x, kv_share(share, spec.head_dim));
    *x = local(*x);
  }
  set_split(dst, query_share(shares, spec.value_dim()));
  own_spec_ = spec;
  own_spec_.n_heads = share.n_heads;
  own_spec_.n_kv_heads = share.n_kv_heads;
  own_spec_.n_all_heads = spec.n_heads;
  own_spec_.first_head = share.first_head;
  own.q = local(term.q);
  if (!is_lost_) inner_.ops().attend(local(dst), own, own_spec_);
}

void RankOps::gate(Activation dst, Activation gate_src, Activation up, GateKind kind) {
  if (!is_split_alike(gate_src, up)) {
    make_whole(gate_src);
    make_whole(up);
  }
  if (dst.slot != up.slot) slot(dst) = slot(up);
  if (!has_none(dst)) inner_.ops().gate(local(dst), local(gate_src), local(up), kind);
}

void RankOps::activate(Activation x, GateKind kind) {
  if (!has_none(x)) inner_.ops().activate(local(x), kind);
}

void RankOps::causal_conv(const ConvTerm& term, const ConvSpec& spec) {
  make_whole(term.x);
  if (is_lost_) return;
  ConvTerm own = term;
  own.taps = part_of(term.taps);
  own.bias = part_of(term.bias);
  inner_.ops().causal_conv(own, spec);
}

void RankOps::delta_rule(Activation dst, const DeltaTerm& term, const DeltaSpec& spec) {
  for (const Activation x : {term.qkv, term.alpha, term.beta}) make_whole(x);
  set_whole(dst);
  if (is_lost_) return;
  inner_.ops().delta_rule(dst, {term.qkv, term.alpha, term.beta, part_of(term.rate), part_of(term.bias), term.layer},
                          spec);
}

void RankOps::ssm_scan(Activation dst, const SsmTerm& term, const SsmSpec& spec) {
  for (const Activation x : {term.xbc, term.dt}) make_whole(x);
  set_whole(dst);
  if (is_lost_) return;
  SsmTerm own = term;
  own.rate = part_of(term.rate);
  own.bias = part_of(term.bias);
  own.skip = part_of(term.skip);
  inner_.ops().ssm_scan(dst, own, spec);
}

// Pieces of heads stay with their heads.
void RankOps::unzip(Activation first, Activation second, Activation src, int32_t width) {
  const int32_t other = second.n_cols / (first.n_cols / width);
  const int32_t piece = width + other;
  const Slot& state = slot(src);
  const auto is_whole_pieces = [&] {
    return std::ranges::all_of(state.share.bounds, [&](int32_t bound) { return bound % piece == 0; });
  };
  if (!state.is_split || state.goes_along || state.share.bounds.empty() || !is_whole_pieces()) {
    make_whole(src);
    set_whole(first);
    set_whole(second);
    return inner_.ops().unzip(first, second, src, width);
  }
  const auto scaled = [&](int32_t to) {
    share_ = state.share;
    for (int32_t& bound : share_.bounds) bound = bound / piece * to;
    share_.begin = share_.begin / piece * to;
    share_.end = share_.end / piece * to;
    return share_;
  };
  set_split(first, scaled(width));
  set_split(second, scaled(other));
  if (!has_none(src)) inner_.ops().unzip(local(first), local(second), local(src), width);
}

void RankOps::zip(Activation dst, Activation first, Activation second, int32_t width) {
  make_whole(first);
  make_whole(second);
  set_whole(dst);
  inner_.ops().zip(dst, first, second, width);
}

void RankOps::linear_heads(Activation dst, Activation src, const Weight& weight, int32_t n_heads) {
  make_whole(src);
  set_whole(dst);
  if (!is_lost_) inner_.ops().linear_heads(dst, src, *part_of(&weight), n_heads);
}

void RankOps::add_gated(Activation dst, Activation src, Activation gate) {
  make_whole(gate);
  if (!is_split_alike(dst, src)) {
    make_whole(dst);
    make_whole(src);
  }
  if (!has_none(dst)) inner_.ops().add_gated(local(dst), local(src), gate);
}

void RankOps::scale(Activation x, float factor, const Weight* weight) {
  if (!has_none(x)) inner_.ops().scale(local(x), factor, part_of(weight));
}

// All columns of heads are as split as they were.
void RankOps::columns(Activation dst, Activation src, int32_t first) {
  if (slot(src).is_split && dst.n_cols == src.n_cols) {
    set_split(dst, slot(src).share);
    if (!has_none(src)) inner_.ops().columns(local(dst), local(src), 0);
    return;
  }
  make_whole(src);
  set_whole(dst);
  inner_.ops().columns(dst, src, first);
}

void RankOps::add(Activation dst, Activation src, float scale) {
  if (!is_split_alike(dst, src)) {
    make_whole(dst);
    make_whole(src);
  }
  if (!has_none(dst)) inner_.ops().add(local(dst), local(src), scale);
}

void RankOps::gather(Activation dst, Activation src) {
  make_whole(src);
  set_whole(dst);
  inner_.ops().gather(dst, src);
}

// Tokens are chosen on rank 0: only there are logits wanted.
void RankOps::collect(Activation logits, const LogitSpec& spec) {
  const Slot& state = slot(logits);
  if (state.is_split && logits.n_rows > 0) {
    exchange(inner_.host_rows(logits), logits.n_rows, state.share.bounds, comm::Receivers::kFirst,
             static_cast<uint64_t>(logits.slot));
  }
  set_whole(logits);
  if (rank_ == 0) inner_.ops().collect(logits, spec);
}

}  // namespace candor::backend
