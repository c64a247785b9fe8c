#pragma once
// An operation as one side knows it: with that side's weights, and its numbers of layers. The engine thread.

#include <concepts>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "backend/mixed/mixed_kv.h"
#include "backend/mixed/mixed_weight.h"
#include "backend/op_list.h"
#include "backend/op_terms.h"
#include "backend/operations.h"
#include "backend/placement.h"

namespace candor::backend::mixed {

// Operations on rows alone. A new operation is one of these, or has a home() and a localise().
template <class Each>
concept WithoutWeights = std::same_as<Each, op::AddVectors> || std::same_as<Each, op::Rope> ||
    std::same_as<Each, op::Temper> || std::same_as<Each, op::Gate> || std::same_as<Each, op::Activate> ||
    std::same_as<Each, op::Clamp> || std::same_as<Each, op::Add> || std::same_as<Each, op::AddGated> ||
    std::same_as<Each, op::Unzip> || std::same_as<Each, op::Zip> || std::same_as<Each, op::Columns> ||
    std::same_as<Each, op::Gather> || std::same_as<Each, op::Collect>;

// Where an operation has to run: by its matrices, or by the memory of its layer. None: on any side. REQUIRES: neither
// Linear nor Adapt, whose terms may be on several sides.
std::optional<Side> home_of(const Op& operation, const MixedKv& kv);

class SideOp {
 public:
  // Valid until the next call. REQUIRES: the side has all of the operation's weights.
  const Op& translate(const Op& operation, Side side, const MixedKv& kv);
  // Before the first operation that uses weights which have come since.
  void forget_experts() { experts_.clear(); }

 private:
  // Of a copy of the operation.
  void localise(WithoutWeights auto&) {}
  void localise(op::Embed& call) { call.table = own(call.table); }
  void localise(op::AddPositions& call) { call.table = own(call.table); }
  void localise(op::AddTypes& call) { call.table = own(call.table); }
  void localise(op::Norm& call) { call.weights = {own(call.weights.gain), own(call.weights.bias)}; }
  void localise(op::Linear& call);
  void localise(op::Adapt& call);
  void localise(op::AdaptEmbedding& call);
  void localise(op::LinearHeads& call) { call.weight = own(call.weight); }
  void localise(op::Attend& call);
  void localise(op::Moe& call);
  void localise(op::CausalConv& call);
  void localise(op::DeltaRule& call);
  void localise(op::SsmScan& call);
  void localise(op::Scale& call) { call.weight = own(call.weight); }

  const Weight* own(const Weight* weight) const { return weight_on(side_, weight); }
  AdapterTerm own(AdapterTerm term) const;
  std::span<const Expert> own(std::span<const Expert> experts);

  Side side_ = Side::kDevice;
  const MixedKv* kv_ = nullptr;
  Op operation_;
  std::vector<LinearTerm> terms_;
  std::vector<AdapterTerm> adapter_terms_;
  std::vector<AdapterTable> tables_;
  std::vector<ExpertAdapter> expert_adapters_;
  // By the list that they are in: hundreds of each layer, which are on one side.
  std::unordered_map<const Expert*, std::vector<Expert>> experts_;
};

}  // namespace candor::backend::mixed
