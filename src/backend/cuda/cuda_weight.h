#pragma once
// A weight of the CUDA backend: packed panels on the device, exactly as the CPU has them; vectors on both sides; tables
// that are looked up by the row on the host, which knows a step's tokens. Constant after upload, but for what steps
// keep with a weight. One thread.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_weight.h"
#include "backend/cpu/weight_memory.h"
#include "backend/cuda/device.h"
#include "backend/cuda/kernels/product_args.h"
#include "backend/op_specs.h"
#include "backend/op_terms.h"
#include "kernels/packed_weight.h"
#include "platform/thread_pool.h"
#include "tensor/tensor_view.h"

namespace candor::backend::cuda {

// One matrix of each expert of a layer, by type: a launch multiplies by all of a type.
struct ExpertMatrices {
  struct OfType {
    kernels::WeightShape shape{};
    const ProductMatrix* matrices = nullptr;  // [E], of the device; without panels where an expert's has another type
  };
  std::vector<OfType> types{};
  DeviceMemory memory{};
};

class CudaWeight final : public Weight {
 public:
  CudaWeight(const kernels::WeightShape& shape, std::unique_ptr<cpu::CpuWeight> host, DeviceMemory memory)
      : shape_(shape), host_(std::move(host)), memory_(std::move(memory)) {}

  int64_t n_rows() const override { return shape_.n_out; }
  int64_t n_cols() const override { return shape_.n_in; }
  size_t n_bytes() const override { return memory_.size() + (host_ == nullptr ? 0 : host_->n_bytes()); }

  const kernels::WeightShape& shape() const { return shape_; }
  // Of the device. REQUIRES: role kLinear or kEmbeddingAndLinear.
  const std::byte* panels() const { return memory_.data(); }
  // [n_cols], of the device. REQUIRES: role kVector.
  const float* values() const { return memory_.as<const float>(); }
  // REQUIRES: any role but kLinear.
  const cpu::CpuWeight& host() const { return *host_; }
  // Those of the experts among which this is the first's; nullptr until somebody keeps them here, where they live as
  // long as it.
  std::unique_ptr<ExpertMatrices>& experts() const { return experts_; }

 private:
  kernels::WeightShape shape_;
  std::unique_ptr<cpu::CpuWeight> host_;  // nullptr for kLinear
  DeviceMemory memory_;                   // empty for kEmbedding
  mutable std::unique_ptr<ExpertMatrices> experts_;
};

// REQUIRES: a weight that this backend made.
inline const CudaWeight& own(const Weight& weight) {
  return static_cast<const CudaWeight&>(weight);
}
// Of the device, or nullptr.
inline const float* values_of(const Weight* weight) {
  return weight == nullptr ? nullptr : own(*weight).values();
}

// Checks and packs as the CPU does, then copies. kept: where what stays on the host lies.
Result<std::unique_ptr<CudaWeight>> upload_weight(const TensorView& tensor, WeightRole role, Device& device,
                                                  cpu::WeightMemory& kept, platform::ThreadPool& pool);

}  // namespace candor::backend::cuda
