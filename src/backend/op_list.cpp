#include "backend/op_list.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace candor::backend {
namespace {

constexpr std::array<std::string_view, kOpKinds> kKindNames{
    "embed", "norm", "linear", "rope", "attend", "gate", "moe", "conv", "delta", "ssm", "add", "gather", "collect"};

uint64_t row_bytes(const Weight& table) {
  return table.n_rows() == 0 ? 0 : table.n_bytes() / static_cast<uint64_t>(table.n_rows());
}

void begin(Operands& operands, std::string_view name, OpKind kind) {
  operands.name = name;
  operands.kind = kind;
  operands.reads.clear();
  operands.writes.clear();
  operands.weight_bytes = 0;
}

void add_weight(Operands& operands, const Weight* weight) {
  if (weight != nullptr) operands.weight_bytes += weight->n_bytes();
}

void fill(const op::Embed& op, Operands& operands) {
  begin(operands, "embed", OpKind::kEmbed);
  operands.writes = {op.dst};
  if (op.table != nullptr) operands.weight_bytes = row_bytes(*op.table) * static_cast<uint64_t>(op.dst.n_rows);
}

void fill(const op::AddPositions& op, Operands& operands) {
  begin(operands, "add_positions", OpKind::kEmbed);
  operands.reads = operands.writes = {op.dst};
  operands.weight_bytes = row_bytes(*op.table) * static_cast<uint64_t>(op.dst.n_rows);
}

void fill(const op::AddTypes& op, Operands& operands) {
  begin(operands, "add_types", OpKind::kEmbed);
  operands.reads = operands.writes = {op.dst};
  operands.weight_bytes = row_bytes(*op.table) * static_cast<uint64_t>(op.dst.n_rows);
}

void fill(const op::AddVectors& op, Operands& operands) {
  begin(operands, "add_vectors", OpKind::kEmbed);
  operands.reads = operands.writes = {op.dst};
}

void fill(const op::Norm& op, Operands& operands) {
  begin(operands, "norm", OpKind::kNorm);
  operands.reads = {op.src};
  operands.writes = {op.dst};
  add_weight(operands, op.weights.gain);
  add_weight(operands, op.weights.bias);
}

void fill(const op::Linear& op, Operands& operands) {
  begin(operands, "linear", OpKind::kLinear);
  operands.reads = {op.src};
  for (const LinearTerm& term : op.terms) {
    operands.writes.push_back(term.dst);
    add_weight(operands, term.weight);
    add_weight(operands, term.bias);
  }
}

void add_adapter(Operands& operands, const AdapterTerm& term) {
  for (const Weight* weight : {term.down, term.up, term.gains}) add_weight(operands, weight);
}

void fill(const op::Adapt& op, Operands& operands) {
  begin(operands, "adapt", OpKind::kLinear);
  operands.reads = {op.src};
  for (const AdapterTerm& term : op.terms) {
    operands.reads.push_back(term.dst);
    operands.writes.push_back(term.dst);
    add_adapter(operands, term);
  }
}

void fill(const op::AdaptEmbedding& op, Operands& operands) {
  begin(operands, "adapt_embedding", OpKind::kEmbed);
  operands.reads = operands.writes = {op.dst};
  for (const AdapterTable& table : op.tables) {
    operands.weight_bytes += row_bytes(*table.down) * static_cast<uint64_t>(op.dst.n_rows);
    add_weight(operands, table.up);
  }
}

void fill(const op::LinearHeads& op, Operands& operands) {
  begin(operands, "linear_heads", OpKind::kLinear);
  operands.reads = {op.src};
  operands.writes = {op.dst};
  add_weight(operands, op.weight);
}

void fill(const op::Rope& op, Operands& operands) {
  begin(operands, "rope", OpKind::kRope);
  operands.reads = operands.writes = {op.x};
}

void fill(const op::Temper& op, Operands& operands) {
  begin(operands, "temper", OpKind::kRope);
  operands.reads = operands.writes = {op.x};
}

void fill(const op::Attend& op, Operands& operands) {
  begin(operands, "attend", OpKind::kAttend);
  operands.reads = {op.term.q};
  for (const Activation& rows : {op.term.k, op.term.v}) {
    if (rows.n_cols > 0) operands.reads.push_back(rows);
  }
  operands.writes = {op.dst};
  add_weight(operands, op.term.sinks);
  add_weight(operands, op.term.biases);
}

void fill(const op::Gate& op, Operands& operands) {
  begin(operands, "gate", OpKind::kGate);
  operands.reads = {op.gate, op.up};
  operands.writes = {op.dst};
}

void fill(const op::Activate& op, Operands& operands) {
  begin(operands, "activate", OpKind::kGate);
  operands.reads = operands.writes = {op.x};
}

void fill(const op::Clamp& op, Operands& operands) {
  begin(operands, "clamp", OpKind::kGate);
  operands.reads = {op.src};
  operands.writes = {op.dst};
}

void fill(const op::Moe& op, Operands& operands) {
  begin(operands, "moe", OpKind::kMoe);
  operands.reads = {op.src, op.term.scores};
  operands.writes = {op.dst, op.term.gate, op.term.up, op.term.outputs};
  const Expert& first = op.term.experts.front();
  for (const Weight* weight : {first.gate, first.up, first.down, first.gate_bias, first.up_bias, first.down_bias})
    add_weight(operands, weight);
  operands.weight_bytes *= static_cast<uint64_t>(op.term.spec.n_used);
}

void fill(const op::CausalConv& op, Operands& operands) {
  begin(operands, "causal_conv", OpKind::kConv);
  operands.reads = operands.writes = {op.term.x};
  add_weight(operands, op.term.taps);
  add_weight(operands, op.term.bias);
}

void fill(const op::DeltaRule& op, Operands& operands) {
  begin(operands, "delta_rule", OpKind::kDelta);
  operands.reads = {op.term.qkv, op.term.alpha, op.term.beta};
  operands.writes = {op.dst};
  add_weight(operands, op.term.rate);
  add_weight(operands, op.term.bias);
}

void fill(const op::SsmScan& op, Operands& operands) {
  begin(operands, "ssm_scan", OpKind::kSsm);
  operands.reads = {op.term.xbc, op.term.dt};
  operands.writes = {op.dst};
  for (const Weight* weight : {op.term.rate, op.term.bias, op.term.skip}) add_weight(operands, weight);
}

void fill(const op::Add& op, Operands& operands) {
  begin(operands, "add", OpKind::kAdd);
  operands.reads = {op.dst, op.src};
  operands.writes = {op.dst};
}

void fill(const op::AddGated& op, Operands& operands) {
  begin(operands, "add_gated", OpKind::kAdd);
  operands.reads = {op.dst, op.src, op.gate};
  operands.writes = {op.dst};
}

void fill(const op::Scale& op, Operands& operands) {
  begin(operands, "scale", OpKind::kAdd);
  operands.reads = operands.writes = {op.x};
  add_weight(operands, op.weight);
}

void fill(const op::Unzip& op, Operands& operands) {
  begin(operands, "unzip", OpKind::kGather);
  operands.reads = {op.src};
  operands.writes = {op.first, op.second};
}

void fill(const op::Zip& op, Operands& operands) {
  begin(operands, "zip", OpKind::kGather);
  operands.reads = {op.first, op.second};
  operands.writes = {op.dst};
}

void fill(const op::Columns& op, Operands& operands) {
  begin(operands, "columns", OpKind::kGather);
  operands.reads = {op.src};
  operands.writes = {op.dst};
}

void fill(const op::Gather& op, Operands& operands) {
  begin(operands, "gather", OpKind::kGather);
  operands.reads = {op.src};
  operands.writes = {op.dst};
}

void fill(const op::Collect& op, Operands& operands) {
  begin(operands, "collect", OpKind::kCollect);
  operands.reads = {op.logits};
}

}  // namespace

std::string_view op_name(OpKind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}

void describe(const Op& operation, Operands& operands) {
  std::visit([&](const auto& each) { fill(each, operands); }, operation);
}

std::string to_text(const Op& operation) {
  Operands operands;
  describe(operation, operands);
  std::string text = fmt::format("{:<13}", operands.name);
  const auto add_all = [&](std::string_view before, const std::vector<Activation>& all) {
    for (const Activation& x : all) {
      fmt::format_to(std::back_inserter(text), "{} x{} [{}, {}]", before, x.slot, x.n_rows, x.n_cols);
      before = ",";
    }
  };
  add_all("", operands.reads);
  add_all(" ->", operands.writes);
  if (operands.weight_bytes > 0) fmt::format_to(std::back_inserter(text), "  weights {} B", operands.weight_bytes);
  return text;
}

}  // namespace candor::backend
