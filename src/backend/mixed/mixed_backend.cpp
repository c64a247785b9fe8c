#include "backend/mixed/mixed_backend.h"

#include <utility>

#include "backend/mixed/mixed_weight.h"

namespace candor::backend {
namespace {

constexpr std::array kBothSides{Side::kDevice, Side::kHost};

RowKinds known_to_both(const RowKinds& a, const RowKinds& b) {
  return {.vectors = a.vectors && b.vectors,
          .groups = a.groups && b.groups,
          .axes = a.axes && b.axes,
          .adapters = a.adapters && b.adapters};
}

// Whether a weight goes to a side: a vector goes to both.
bool goes_to(Side side, WeightRole role, Side placed) {
  return role == WeightRole::kVector || side == placed;
}

}  // namespace

MixedBackend::MixedBackend(std::unique_ptr<Backend> device, std::unique_ptr<Backend> host)
    : sides_{std::move(device), std::move(host)}, ops_(backends()) {
  const BackendInfo& first = on(Side::kDevice).info();
  const BackendInfo& second = on(Side::kHost).info();
  info_ = {.name = first.name + "+" + second.name,
           .description = first.description + "; " + second.description,
           .n_threads = second.n_threads,
           .default_kv = first.default_kv,
           .rows = known_to_both(first.rows, second.rows),
           .device_bytes = first.device_bytes,
           .free_bytes = first.free_bytes,
           .uses_host_too = true};
}

Result<std::unique_ptr<Weight>> MixedBackend::upload_split(const TensorView& tensor, WeightRole role,
                                                           const WeightSplit& split) {
  mixed::MixedWeight::OnSides weights;
  for (const Side side : kBothSides) {
    if (!goes_to(side, role, placement_.of(split.place))) continue;
    CANDOR_ASSIGN(weights[static_cast<size_t>(side)], on(side).upload(tensor, role));
  }
  ops_.forget_experts();
  return std::make_unique<mixed::MixedWeight>(std::move(weights));
}

Result<uint64_t> MixedBackend::upload_split_bytes(const TensorView& tensor, WeightRole role,
                                                  const WeightSplit& split) const {
  uint64_t total = 0;
  for (const Side side : kBothSides) {
    if (!goes_to(side, role, placement_.of(split.place))) continue;
    CANDOR_ASSIGN(const uint64_t n_bytes, on(side).upload_bytes(tensor, role));
    total += n_bytes;
  }
  return total;
}

Result<std::unique_ptr<KvStore>> MixedBackend::make_kv(const KvLayout& layout, KvSize size) {
  CANDOR_ASSIGN(std::unique_ptr<KvStore> kv, mixed::MixedKv::make(layout, size, placement_, backends()));
  return kv;
}

Result<void> MixedBackend::reserve_arena(const ArenaLayout& layout) {
  ops_.reserve(layout.slot_cols.size());
  for (const Side side : kBothSides) CANDOR_TRY(on(side).reserve_arena(layout));
  return {};
}

uint64_t MixedBackend::arena_bytes(const ArenaLayout& layout) const {
  return on(Side::kDevice).arena_bytes(layout) + on(Side::kHost).arena_bytes(layout);
}

int64_t MixedBackend::kv_block_bytes_on(Side side, const KvLayout& layout) const {
  const KvLayout own = mixed::layout_on(side, layout, placement_);
  return own.n_layers > 0 ? on(side).kv_block_bytes(own) : 0;
}

int64_t MixedBackend::state_slot_bytes_on(Side side, const KvLayout& layout) const {
  return state_slot_bytes(mixed::layout_on(side, layout, placement_).state);
}

int64_t MixedBackend::kv_block_bytes(const KvLayout& layout) const {
  return kv_block_bytes_on(Side::kDevice, layout) + kv_block_bytes_on(Side::kHost, layout);
}

void MixedBackend::begin_step(const StepBatch& batch, KvStore& kv) {
  const auto& stores = static_cast<mixed::MixedKv&>(kv);
  for (const Side side : kBothSides) on(side).begin_step(batch, stores.on(side));
  ops_.begin(stores);
}

StepTicket MixedBackend::end_step() {
  ops_.finish();
  for (const Side side : kBothSides) tickets_[static_cast<size_t>(side)] = on(side).end_step();
  return {++last_ticket_};
}

LogitsView MixedBackend::read_logits(StepTicket ticket) {
  CANDOR_CHECK(ticket.id == last_ticket_);
  const Side side = ops_.collected_side();
  return on(side).read_logits(tickets_[static_cast<size_t>(side)]);
}

DeviceLogits* MixedBackend::device_logits(StepTicket ticket) {
  CANDOR_CHECK(ticket.id == last_ticket_);
  const Side side = ops_.collected_side();
  return on(side).device_logits(tickets_[static_cast<size_t>(side)]);
}

Result<void> MixedBackend::health() const {
  for (const Side side : kBothSides) CANDOR_TRY(on(side).health());
  return {};
}

}  // namespace candor::backend
