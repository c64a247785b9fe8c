#include "backend/ranks/rank_ops.h"

#include <algorithm>
#include <cstring>
#include <variant>

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
  const Activation own = local(x);
  state.is_split = false;
  if (x.n_rows == 0) return;
  HostRows rows(inner_, x);
  exchange(rows.read(own).data(), x.n_rows, state.share.bounds, comm::Receivers::kAll, static_cast<uint64_t>(x.slot));
  rows.write(x);
}

void RankOps::make_split(Activation x, const OutputShare& share) {
  Slot& state = slot(x);
  if (state.is_split) return CANDOR_CHECK(state.share.begin == share.begin && state.share.end == share.end);
  const auto n_all = static_cast<size_t>(x.n_cols);
  const auto n_own = static_cast<size_t>(share.width());
  HostRows held(inner_, x);
  float* rows = held.read(x).data();
  for (size_t i = 0; i < static_cast<size_t>(x.n_rows); ++i) {
    std::memmove(rows + i * n_own, rows + i * n_all + static_cast<size_t>(share.begin), n_own * sizeof(float));
  }
  set_split(x, share);
  held.write(local(x));
}

void RankOps::run(const Op& operation) {
  std::visit([this](const auto& each) { compute(each); }, operation);
}

// Rank 0 has all columns, and sends them when they are read. Vectors come with the step.
void RankOps::compute(const op::Embed& call) {
  if (call.table == nullptr) {
    set_whole(call.dst);
    return inner_.ops().run(call);
  }
  share_.bounds.assign(static_cast<size_t>(size_) + 1, call.dst.n_cols);
  share_.bounds.front() = 0;
  share_.begin = rank_ == 0 ? 0 : call.dst.n_cols;
  share_.end = call.dst.n_cols;
  set_split(call.dst, share_);
  if (rank_ == 0)
    inner_.ops().run(
        op::Embed{call.dst, rank_weight(*call.table).rows(), call.scale, call.takes_vectors, call.vector_token});
}

void RankOps::compute(const op::AddPositions& call) {
  CANDOR_CHECK(slot(call.dst).is_split && slot(call.dst).share.bounds[1] == call.dst.n_cols);
  if (rank_ == 0) inner_.ops().run(op::AddPositions{call.dst, rank_weight(*call.table).rows()});
}

void RankOps::compute(const op::AddTypes& call) {
  CANDOR_CHECK(slot(call.dst).is_split && slot(call.dst).share.bounds[1] == call.dst.n_cols);
  if (rank_ == 0) inner_.ops().run(op::AddTypes{call.dst, rank_weight(*call.table).rows()});
}

void RankOps::compute(const op::AddVectors& call) {
  make_whole(call.dst);
  if (!is_lost_) inner_.ops().run(call);
}

// Of rows that are heads: each by itself.
void RankOps::compute(const op::Norm& call) {
  const Slot& state = slot(call.src);
  if (state.is_split && call.src.n_rows != n_rows_) {
    CANDOR_CHECK(call.dst.slot == call.src.slot && state.share.width() % call.src.n_cols == 0);
    const Activation own{call.src.slot, n_rows_ * (state.share.width() / call.src.n_cols), call.src.n_cols};
    return inner_.ops().run(op::Norm{own, own, parts_of(call.weights), call.spec});
  }
  make_whole(call.src);
  set_whole(call.dst);
  inner_.ops().run(op::Norm{call.dst, call.src, parts_of(call.weights), call.spec});
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
  HostRows rows(inner_, src);
  encoded_.encode(encoding, slot(src).share.bounds, rows.read(local(src)).data(), src.n_rows, rank_);
  const comm::RowSlices slices = encoded_.slices();
  exchange(slices.rows, slices.n_rows, slices.bounds, comm::Receivers::kAll, static_cast<uint64_t>(src.slot));
  return encoded_.put_together();
}

void RankOps::compute(const op::Linear& call) {
  const auto encoding = encoding_between(call.terms, call.src);
  const std::byte* encoded = encoding ? exchange_encoded(*encoding, call.src) : nullptr;
  if (!encoding) make_whole(call.src);
  terms_.clear();
  for (const LinearTerm& term : call.terms) {
    const RankWeight& weight = rank_weight(*term.weight);
    set_product(term.dst, weight);
    if (weight.part() != nullptr) terms_.push_back({weight.part(), part_of(term.bias), local(term.dst)});
  }
  if (terms_.empty() || is_lost_) return;
  encoding ? encoded_linear_->linear_encoded(terms_, call.src.n_rows, encoded)
           : inner_.ops().run(op::Linear{terms_, call.src});
}

AdapterTerm RankOps::part_of_term(const AdapterTerm& term) {
  AdapterTerm own = term;
  own.down = part_of(term.down);
  own.up = part_of(term.up);
  own.gains = part_of(term.gains);
  own.gains_less_one = part_of(term.gains_less_one);
  own.bias = part_of(term.bias);
  return own;
}

// `down` is whole on every rank, `up` has the outputs of the product's own weight.
void RankOps::compute(const op::Adapt& call) {
  slot(call.src).goes_along = false;  // by itself: the products are not done yet
  make_whole(call.src);
  adapter_terms_.clear();
  for (const AdapterTerm& term : call.terms) {
    if (has_none(term.dst)) continue;
    adapter_terms_.push_back(part_of_term(term));
    adapter_terms_.back().dst = local(term.dst);
  }
  if (!adapter_terms_.empty() && !is_lost_) inner_.ops().run(op::Adapt{adapter_terms_, call.src, call.rows});
}

void RankOps::compute(const op::AdaptEmbedding& call) {
  CANDOR_CHECK(slot(call.dst).is_split && slot(call.dst).share.bounds[1] == call.dst.n_cols);
  if (rank_ != 0) return;
  adapter_tables_.clear();
  for (const AdapterTable& table : call.tables) {
    adapter_tables_.push_back(table);
    adapter_tables_.back().down = rank_weight(*table.down).rows();
    adapter_tables_.back().up = part_of(table.up);
  }
  inner_.ops().run(op::AdaptEmbedding{call.dst, adapter_tables_, call.scale});
}

void RankOps::compute(const op::Rope& call) {
  if (has_none(call.x)) return;
  const int32_t n_own = slot(call.x).is_split ? slot(call.x).share.width() / call.head_dim : call.n_heads;
  inner_.ops().run(op::Rope{local(call.x), n_own, call.head_dim, call.spec});
}

void RankOps::compute(const op::Temper& call) {
  if (!has_none(call.x)) inner_.ops().run(op::Temper{local(call.x), call.spec});
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

void RankOps::compute(const op::Attend& call) {
  // What is read is left over then: its numbers do not matter.
  if (is_attention_) slots_.assign(slots_.size(), {});
  AttnTerm own = call.term;
  own.sinks = part_of(call.term.sinks);
  own.biases = part_of(call.term.biases);
  if (call.spec->latent_dim > 0) {
    for (const Activation x : {call.term.q, call.term.k}) make_whole(x);
    set_whole(call.dst);
    if (!is_lost_) inner_.ops().run(op::Attend{call.dst, own, call.spec});
    return;
  }
  const std::vector<HeadShare>& shares = shares_of(*call.spec);
  const HeadShare& share = shares[static_cast<size_t>(rank_)];
  make_split(call.term.q, query_share(shares, call.spec->head_dim));
  for (Activation* x : {&own.k, &own.v}) {
    if (x->n_cols == 0) continue;  // another block's
    make_split(*x, kv_share(share, call.spec->head_dim));
    *x = local(*x);
  }
  set_split(call.dst, query_share(shares, call.spec->value_dim()));
  own_spec_ = *call.spec;
  own_spec_.n_heads = share.n_heads;
  own_spec_.n_kv_heads = share.n_kv_heads;
  own_spec_.n_all_heads = call.spec->n_heads;
  own_spec_.first_head = share.first_head;
  own.q = local(call.term.q);
  if (!is_lost_) inner_.ops().run(op::Attend{local(call.dst), own, &own_spec_});
}

void RankOps::compute(const op::Gate& call) {
  if (!is_split_alike(call.gate, call.up)) {
    make_whole(call.gate);
    make_whole(call.up);
  }
  if (call.dst.slot != call.up.slot) slot(call.dst) = slot(call.up);
  if (!has_none(call.dst)) inner_.ops().run(op::Gate{local(call.dst), local(call.gate), local(call.up), call.kind});
}

void RankOps::compute(const op::Activate& call) {
  if (!has_none(call.x)) inner_.ops().run(op::Activate{local(call.x), call.kind});
}

void RankOps::compute(const op::Clamp& call) {
  if (call.dst.slot != call.src.slot) slot(call.dst) = slot(call.src);
  if (!has_none(call.dst)) inner_.ops().run(op::Clamp{local(call.dst), local(call.src), call.low, call.high});
}

void RankOps::compute(const op::CausalConv& call) {
  make_whole(call.term.x);
  if (is_lost_) return;
  ConvTerm own = call.term;
  own.taps = part_of(call.term.taps);
  own.bias = part_of(call.term.bias);
  inner_.ops().run(op::CausalConv{own, call.spec});
}

void RankOps::compute(const op::DeltaRule& call) {
  for (const Activation x : {call.term.qkv, call.term.alpha, call.term.beta}) make_whole(x);
  set_whole(call.dst);
  if (is_lost_) return;
  inner_.ops().run(op::DeltaRule{call.dst,
                                 {call.term.qkv, call.term.alpha, call.term.beta, part_of(call.term.rate),
                                  part_of(call.term.bias), call.term.layer},
                                 call.spec});
}

void RankOps::compute(const op::SsmScan& call) {
  for (const Activation x : {call.term.xbc, call.term.dt}) make_whole(x);
  set_whole(call.dst);
  if (is_lost_) return;
  SsmTerm own = call.term;
  own.rate = part_of(call.term.rate);
  own.bias = part_of(call.term.bias);
  own.skip = part_of(call.term.skip);
  inner_.ops().run(op::SsmScan{call.dst, own, call.spec});
}

// Pieces of heads stay with their heads.
void RankOps::compute(const op::Unzip& call) {
  const int32_t other = call.second.n_cols / (call.first.n_cols / call.width);
  const int32_t piece = call.width + other;
  const Slot& state = slot(call.src);
  const auto is_whole_pieces = [&] {
    return std::ranges::all_of(state.share.bounds, [&](int32_t bound) { return bound % piece == 0; });
  };
  if (!state.is_split || state.goes_along || state.share.bounds.empty() || !is_whole_pieces()) {
    make_whole(call.src);
    set_whole(call.first);
    set_whole(call.second);
    return inner_.ops().run(op::Unzip{call.first, call.second, call.src, call.width});
  }
  const auto scaled = [&](int32_t to) {
    share_ = state.share;
    for (int32_t& bound : share_.bounds) bound = bound / piece * to;
    share_.begin = share_.begin / piece * to;
    share_.end = share_.end / piece * to;
    return share_;
  };
  set_split(call.first, scaled(call.width));
  set_split(call.second, scaled(other));
  if (!has_none(call.src))
    inner_.ops().run(op::Unzip{local(call.first), local(call.second), local(call.src), call.width});
}

void RankOps::compute(const op::Zip& call) {
  make_whole(call.first);
  make_whole(call.second);
  set_whole(call.dst);
  inner_.ops().run(op::Zip{call.dst, call.first, call.second, call.width});
}

void RankOps::compute(const op::LinearHeads& call) {
  make_whole(call.src);
  set_whole(call.dst);
  if (!is_lost_) inner_.ops().run(op::LinearHeads{call.dst, call.src, part_of(call.weight), call.n_heads});
}

void RankOps::compute(const op::AddGated& call) {
  make_whole(call.gate);
  if (!is_split_alike(call.dst, call.src)) {
    make_whole(call.dst);
    make_whole(call.src);
  }
  if (!has_none(call.dst)) inner_.ops().run(op::AddGated{local(call.dst), local(call.src), call.gate});
}

void RankOps::compute(const op::Scale& call) {
  if (!has_none(call.x)) inner_.ops().run(op::Scale{local(call.x), call.factor, part_of(call.weight)});
}

// All columns of heads are as split as they were.
void RankOps::compute(const op::Columns& call) {
  if (slot(call.src).is_split && call.dst.n_cols == call.src.n_cols) {
    set_split(call.dst, slot(call.src).share);
    if (!has_none(call.src)) inner_.ops().run(op::Columns{local(call.dst), local(call.src), 0});
    return;
  }
  make_whole(call.src);
  set_whole(call.dst);
  inner_.ops().run(op::Columns{call.dst, call.src, call.first});
}

void RankOps::compute(const op::Add& call) {
  if (!is_split_alike(call.dst, call.src)) {
    make_whole(call.dst);
    make_whole(call.src);
  }
  if (!has_none(call.dst)) inner_.ops().run(op::Add{local(call.dst), local(call.src), call.scale});
}

void RankOps::compute(const op::Gather& call) {
  make_whole(call.src);
  set_whole(call.dst);
  inner_.ops().run(op::Gather{call.dst, call.src});
}

// Tokens are chosen on rank 0: only there are logits wanted.
void RankOps::compute(const op::Collect& call) {
  const Slot& state = slot(call.logits);
  if (state.is_split && call.logits.n_rows > 0) {
    HostRows rows(inner_, call.logits);
    exchange(rows.read(local(call.logits)).data(), call.logits.n_rows, state.share.bounds, comm::Receivers::kFirst,
             static_cast<uint64_t>(call.logits.slot));
    rows.write(call.logits);
  }
  set_whole(call.logits);
  if (rank_ == 0) inner_.ops().run(op::Collect{call.logits, call.spec});
}

}  // namespace candor::backend
