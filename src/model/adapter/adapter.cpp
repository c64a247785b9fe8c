#include "model/adapter/adapter.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "model/rank_splits.h"
#include "model/role_traits.h"

namespace candor::model {
namespace {

using backend::AdapterTerm;
using backend::Weight;
using backend::WeightRole;

TensorView vector_view(std::span<const float> values, std::string_view name) {
  const auto bytes = std::as_bytes(values);
  return {name, DType::kF32, {1, {static_cast<int64_t>(values.size())}}, bytes.data(), bytes.size()};
}

const Projection& projection_of(const AdapterPart& part, const ModelWeights& weights) {
  if (part.role == TensorRole::kHead) return weights.head;
  const RoleTraits& traits = traits_of(part.role);
  const BlockWeights& block = weights.blocks[static_cast<size_t>(part.layer)];
  if (traits.expert != nullptr) return block.experts[static_cast<size_t>(part.expert)].*traits.expert;
  return block.*traits.projection;
}

backend::ExpertPart expert_part(TensorRole role) {
  if (role == TensorRole::kExpertGate) return backend::ExpertPart::kGate;
  return role == TensorRole::kExpertUp ? backend::ExpertPart::kUp : backend::ExpertPart::kDown;
}

// fn(tensor, packing, split) for each matrix and vector that is uploaded. gains: of the part's size, or empty.
template <class Fn>
Result<void> for_tensors(const AdapterPart& part, const ArchSpec& spec, std::span<const float> gains, Fn&& fn) {
  const backend::WeightSplit split = split_of(part.role, spec, part.layer);
  const backend::WeightSplit whole{.place = split.place};
  if (part.role == TensorRole::kEmbedding) {
    CANDOR_TRY(fn(part.is_whole() ? part.up : part.down, WeightRole::kEmbedding, whole));
    return part.is_whole() ? Result<void>{} : fn(part.up, WeightRole::kLinear, whole);
  }
  if (!part.is_whole()) CANDOR_TRY(fn(part.down, WeightRole::kLinear, whole));
  CANDOR_TRY(fn(part.up, WeightRole::kLinear, split));
  if (gains.empty()) return {};
  CANDOR_TRY(fn(vector_view(gains, part.name), WeightRole::kVector, split));
  return fn(vector_view(gains, part.name), WeightRole::kVector, split);
}

}  // namespace

Result<uint64_t> upload_bytes(const AdapterFile& adapter, const ArchSpec& spec, const backend::Backend& backend) {
  uint64_t total = 0;
  for (const AdapterPart& part : adapter.parts()) {
    CANDOR_TRY(for_tensors(part, spec, part.magnitudes,
                           [&](const TensorView& tensor, WeightRole role, const auto& split) -> Result<void> {
                             CANDOR_ASSIGN(const uint64_t n_bytes, backend.upload_split_bytes(tensor, role, split));
                             total += n_bytes;
                             return {};
                           }));
  }
  return total;
}

Result<const Weight*> Adapter::keep(Result<WeightPtr> weight) {
  if (!weight) return fail(std::move(weight).error(), "adapters");
  n_bytes_ += (*weight)->n_bytes();
  return weights_.emplace_back(std::move(*weight)).get();
}

Result<std::unique_ptr<Adapter>> Adapter::upload(const AdapterFile& file, std::span<const std::vector<float>> lengths,
                                                 const AdapterBase& base, backend::Backend& backend) {
  auto adapter = std::make_unique<Adapter>();
  for (size_t i = 0; i < file.parts().size(); ++i) {
    CANDOR_TRY(adapter->add_part(file.parts()[i], lengths[i], base, backend));
  }
  for (auto& [weight, experts] : adapter->experts_) {
    std::ranges::sort(experts, {}, [](const auto& each) { return std::tuple(each.expert, each.part); });
  }
  return adapter;
}

Result<void> Adapter::add_part(const AdapterPart& part, std::span<const float> lengths, const AdapterBase& base,
                               backend::Backend& backend) {
  if (part.role == TensorRole::kEmbedding) return add_table(part, base, backend);
  const backend::WeightSplit split = split_of(part.role, base.spec, part.layer);
  AdapterTerm term{.scale = part.scale};
  if (!part.is_whole()) {
    CANDOR_ASSIGN(term.down, keep(backend.upload_split(part.down, WeightRole::kLinear, {.place = split.place})));
  }
  CANDOR_ASSIGN(term.up, keep(backend.upload_split(part.up, WeightRole::kLinear, split)));
  if (!lengths.empty()) CANDOR_TRY(add_gains(part, lengths, split, backend, term));
  const Projection& projection = projection_of(part, base.weights);
  term.bias = projection.bias.get();
  const Weight* weight = projection.weight.get();
  if (weight == nullptr) weight = base.weights.embedding.get();  // a tied head
  if (!is_expert(part.role)) {
    terms_.emplace(weight, term);
    return {};
  }
  const BlockWeights& block = base.weights.blocks[static_cast<size_t>(part.layer)];
  experts_[block.experts.front().up.weight.get()].push_back({part.expert, expert_part(part.role), term});
  return {};
}

Result<void> Adapter::add_gains(const AdapterPart& part, std::span<const float> lengths,
                                const backend::WeightSplit& split, backend::Backend& backend, AdapterTerm& term) {
  std::vector<float> gains(lengths.size());
  for (size_t i = 0; i < gains.size(); ++i) gains[i] = part.magnitudes[i] / lengths[i];
  CANDOR_ASSIGN(term.gains, keep(backend.upload_split(vector_view(gains, part.name), WeightRole::kVector, split)));
  for (float& gain : gains) gain -= 1.0f;
  CANDOR_ASSIGN(term.gains_less_one,
                keep(backend.upload_split(vector_view(gains, part.name), WeightRole::kVector, split)));
  return {};
}

Result<void> Adapter::add_table(const AdapterPart& part, const AdapterBase& base, backend::Backend& backend) {
  const backend::WeightSplit whole{.place = split_of(part.role, base.spec, part.layer).place};
  backend::AdapterTable table{.scale = part.scale};
  CANDOR_ASSIGN(table.down,
                keep(backend.upload_split(part.is_whole() ? part.up : part.down, WeightRole::kEmbedding, whole)));
  if (!part.is_whole()) {
    CANDOR_ASSIGN(table.up, keep(backend.upload_split(part.up, WeightRole::kLinear, whole)));
  }
  tables_.emplace(base.weights.embedding.get(), table);
  return {};
}

const AdapterTerm* Adapter::term_of(const Weight* weight) const {
  const auto at = terms_.find(weight);
  return at == terms_.end() ? nullptr : &at->second;
}

const backend::AdapterTable* Adapter::table_of(const Weight* table) const {
  const auto at = tables_.find(table);
  return at == tables_.end() ? nullptr : &at->second;
}

std::span<const backend::ExpertAdapter> Adapter::experts_of(const Weight* first_up) const {
  const auto at = experts_.find(first_up);
  return at == experts_.end() ? std::span<const backend::ExpertAdapter>() : at->second;
}

}  // namespace candor::model
