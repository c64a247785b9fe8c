#include "backend/reference/reference_backend.h"

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/op_specs.h"
#include "backend/op_terms.h"
#include "backend/reference/reference_ops.h"
#include "backend/step_batch.h"
#include "base/checked.h"
#include "base/error.h"

namespace candor::backend {
namespace {

using reference::ReferenceKv;
using reference::ReferenceOps;
using reference::ReferenceWeight;

// n floats, zeroed, or the reason why not. `what` names the purpose.
Result<std::vector<float>> allocate(int64_t n, const std::string& what) {
  try {
    return std::vector<float>(static_cast<size_t>(n));
  } catch (const std::exception&) {
    return fail(ErrorKind::kOutOfMemory, what + " needs " + std::to_string(n) +
                                             " x 4 bytes on the reference backend, "
                                             "which decodes everything to f32: use a smaller model or context, or "
                                             "the cpu backend");
  }
}

bool is_vector_dtype(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

Result<void> check_dtype(const TensorView& tensor, WeightRole role) {
  const DTypeInfo& info = dtype_info(tensor.dtype);
  const std::string place = "tensor \"" + std::string(tensor.name) + "\": dtype " + std::string(info.name);
  if (!info.is_weight) {
    return fail(ErrorKind::kUnsupported,
                place + " cannot hold weights here (expected one of " + std::string(weight_dtype_names()) + ")");
  }
  if (role == WeightRole::kVector && !is_vector_dtype(tensor.dtype)) {
    return fail(ErrorKind::kUnsupported, place + " cannot hold a vector (expected F32, F16 or BF16)");
  }
  return {};
}

class ReferenceBackend final : public Backend {
 public:
  ReferenceBackend() {
    info_ = {"reference", "f32 scalar, 1 thread", 1, KvType::kF32};
    info_.rows = reference::kKnownRows;
  }

  const BackendInfo& info() const override { return info_; }
  Result<std::unique_ptr<Weight>> upload(const TensorView& tensor, WeightRole role) override;
  Result<std::unique_ptr<KvStore>> make_kv(const KvLayout& layout, KvSize size) override;
  Result<void> reserve_arena(const ArenaLayout& layout) override;
  Result<uint64_t> upload_bytes(const TensorView& tensor, WeightRole role) const override;
  uint64_t arena_bytes(const ArenaLayout& layout) const override;

  Ops& ops() override { return ops_; }
  void begin_step(const StepBatch& batch, KvStore& kv) override { ops_.begin(batch, static_cast<ReferenceKv&>(kv)); }
  StepTicket end_step() override { return {++last_ticket_}; }
  LogitsView read_logits(StepTicket ticket) override {
    CANDOR_CHECK(ticket.id == last_ticket_);
    return ops_.logits();
  }
  RowsView read_rows(Activation x) override { return ops_.read_rows(x); }
  float* host_rows(Activation x) override { return ops_.host_rows(x); }

 private:
  BackendInfo info_;
  ReferenceOps ops_;
  int64_t last_ticket_ = 0;
};

Result<std::unique_ptr<Weight>> ReferenceBackend::upload(const TensorView& tensor, WeightRole role) {
  CANDOR_TRY(check_dtype(tensor, role));
  const int64_t n_rows = tensor.shape.n_rows();
  const int64_t n_cols = tensor.shape.row_elements();
  CANDOR_ASSIGN(std::vector<float> values, allocate(n_rows * n_cols, "tensor \"" + std::string(tensor.name) + "\""));
  for (int64_t i = 0; i < n_rows; ++i) decode_row(tensor, i, values.data() + i * n_cols);
  return std::make_unique<ReferenceWeight>(n_rows, n_cols, std::move(values));
}

Result<std::unique_ptr<KvStore>> ReferenceBackend::make_kv(const KvLayout& layout, KvSize size) {
  const int32_t n_blocks = size.n_blocks;
  if (layout.type != KvType::kF32) {
    return fail(ErrorKind::kUnsupported, "the reference backend keeps K and V in f32 only; " + std::string(name_of(layout.type)) +
                                             " was asked for: choose f32, or the cpu backend");
  }
  const std::optional<int64_t> n_bytes = checked_mul<int64_t>(kv_pool_block_bytes(layout), n_blocks);
  if (n_blocks < 0 || !n_bytes) {
    return fail(ErrorKind::kOutOfMemory, "a K/V pool of " + std::to_string(n_blocks) + " blocks does not fit memory");
  }
  CANDOR_ASSIGN(std::vector<float> values,
                allocate(*n_bytes / 4, "a K/V pool of " + std::to_string(n_blocks) + " blocks"));
  const std::optional<int64_t> n_state = checked_mul<int64_t>(layout.state.slot_floats(), size.n_states);
  if (!n_state) return fail(ErrorKind::kOutOfMemory, "recurrent states do not fit memory");
  CANDOR_ASSIGN(std::vector<float> states, allocate(*n_state, "recurrent states"));
  return std::make_unique<ReferenceKv>(layout, size, std::move(values), std::move(states));
}

Result<void> ReferenceBackend::reserve_arena(const ArenaLayout& layout) {
  std::vector<std::vector<float>> slots;
  for (size_t i = 0; i < layout.slot_cols.size(); ++i) {
    const int64_t n_rows = layout.slot_is_output[i] ? layout.max_out_rows : layout.max_rows;
    CANDOR_ASSIGN(std::vector<float> slot, allocate(n_rows * layout.slot_cols[i], "a step's activations"));
    slots.push_back(std::move(slot));
  }
  ops_.reserve(std::move(slots));
  return {};
}

Result<uint64_t> ReferenceBackend::upload_bytes(const TensorView& tensor, WeightRole role) const {
  CANDOR_TRY(check_dtype(tensor, role));
  return static_cast<uint64_t>(tensor.shape.n_elements()) * sizeof(float);
}

uint64_t ReferenceBackend::arena_bytes(const ArenaLayout& layout) const {
  uint64_t n_floats = 0;
  for (size_t i = 0; i < layout.slot_cols.size(); ++i) {
    const int32_t n_rows = layout.slot_is_output[i] ? layout.max_out_rows : layout.max_rows;
    n_floats += static_cast<uint64_t>(n_rows) * static_cast<uint64_t>(layout.slot_cols[i]);
  }
  return n_floats * sizeof(float);
}

}  // namespace

std::unique_ptr<Backend> make_reference_backend() {
  return std::make_unique<ReferenceBackend>();
}

}  // namespace candor::backend
