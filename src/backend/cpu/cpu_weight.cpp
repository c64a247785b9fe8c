#include "backend/cpu/cpu_weight.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "backend/cpu/weight_check.h"
#include "base/error.h"
#include "tensor/dtype.h"

namespace candor::backend::cpu {
namespace {

using kernels::WeightShape;
using platform::UnitRange;

// Bytes of the file that a thread takes at once: a few stay in its second-level cache.
constexpr int64_t kGrainBytes = 256 << 10;

std::string place_of(const TensorView& tensor) {
  return "tensor \"" + std::string(tensor.name) + "\"";
}

bool is_vector_dtype(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

Result<void> check_dtype(const TensorView& tensor, WeightRole role) {
  const DTypeInfo& info = dtype_info(tensor.dtype);
  const std::string seen = place_of(tensor) + ": type " + std::string(info.name) + " ";
  if (!info.is_weight) {
    return fail(ErrorKind::kUnsupported,
                seen + "can't be computed with, expected one of " + std::string(weight_dtype_names()));
  }
  if (role == WeightRole::kVector && !is_vector_dtype(tensor.dtype))
    return fail(ErrorKind::kUnsupported, seen + "can't hold a vector, expected F32, F16 or BF16");
  return {};
}

Result<WeightShape> check_shape(const TensorView& tensor, WeightRole role) {
  const DTypeInfo& info = dtype_info(tensor.dtype);
  const bool is_vector = role == WeightRole::kVector;
  const int64_t n_in = is_vector ? tensor.shape.n_elements() : tensor.shape.row_elements();
  const int64_t n_out = is_vector ? 1 : tensor.shape.n_rows();
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (n_in < 1 || n_out < 1 || n_in > kMax || n_out > kMax || n_in % info.block_elements != 0) {
    return fail(ErrorKind::kInvalidInput, place_of(tensor) + ": shape " + to_string(tensor.shape) + " of type " +
                                              std::string(info.name) +
                                              " can't be computed with, expected 1 to 2147483647 rows of whole blocks "
                                              "of " +
                                              std::to_string(info.block_elements));
  }
  const size_t n_bytes = static_cast<size_t>(tensor.shape.n_rows()) * tensor.row_bytes();
  if (tensor.n_bytes < n_bytes) {
    return fail(ErrorKind::kInvalidInput, place_of(tensor) + ": has " + std::to_string(tensor.n_bytes) +
                                              " bytes, shape " + to_string(tensor.shape) + " needs " +
                                              std::to_string(n_bytes));
  }
  return WeightShape{tensor.dtype, n_out, n_in};
}

// The lowest bad row that any thread saw.
class BadRow {
 public:
  void check(const TensorView& tensor, int64_t begin, int64_t end) {
    const auto bad = first_bad_row(tensor, begin, std::min(end, tensor.shape.n_rows()));
    if (!bad) return;
    int64_t seen = row_.load();
    while (*bad < seen && !row_.compare_exchange_weak(seen, *bad)) {
    }
  }
  Result<void> result(const TensorView& tensor) const {
    if (row_.load() == kNone) return {};
    return describe_bad_row(tensor, row_.load());
  }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> row_{kNone};
};

int64_t grain_of(size_t unit_bytes) {
  return std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, static_cast<int64_t>(unit_bytes)));
}

Result<void> check_packable(const TensorView& tensor, const WeightShape& shape) {
  if (kernels::can_pack(shape)) return {};
  return fail(ErrorKind::kUnsupported, place_of(tensor) + ": no matrix kernel for type " +
                                           std::string(dtype_info(shape.dtype).name) + " with shape " +
                                           to_string(tensor.shape));
}

Result<WeightBytes> pack_matrix(const TensorView& tensor, const WeightShape& shape, WeightMemory& memory,
                                platform::ThreadPool& pool) {
  CANDOR_TRY(check_packable(tensor, shape));
  CANDOR_ASSIGN(WeightBytes packed, memory.take(kernels::packed_bytes(shape), place_of(tensor)));
  BadRow bad;
  pool.parallel_for({.n_units = kernels::n_panels(shape), .grain = grain_of(kernels::panel_bytes(shape))},
                    [&](UnitRange range) {
                      bad.check(tensor, range.begin * kernels::kPanelRows, range.end * kernels::kPanelRows);
                      kernels::pack_panels(shape, tensor.data, range.begin, range.end, packed.data);
                    });
  CANDOR_TRY(bad.result(tensor));
  return packed;
}

Result<WeightBytes> copy_rows(const TensorView& tensor, const WeightShape& shape, WeightMemory& memory,
                              platform::ThreadPool& pool) {
  const size_t row_bytes = tensor.row_bytes();
  CANDOR_ASSIGN(WeightBytes rows, memory.take(static_cast<size_t>(shape.n_out) * row_bytes, place_of(tensor)));
  BadRow bad;
  pool.parallel_for({.n_units = shape.n_out, .grain = grain_of(row_bytes)}, [&](UnitRange range) {
    bad.check(tensor, range.begin, range.end);
    std::memcpy(rows.data + static_cast<size_t>(range.begin) * row_bytes, tensor.row(range.begin),
                static_cast<size_t>(range.end - range.begin) * row_bytes);
  });
  CANDOR_TRY(bad.result(tensor));
  return rows;
}

Result<WeightBytes> widen_vector(const TensorView& tensor, const WeightShape& shape, WeightMemory& memory) {
  if (const auto bad = first_bad_row(tensor, 0, tensor.shape.n_rows())) return describe_bad_row(tensor, *bad);
  const size_t n = static_cast<size_t>(shape.n_in);
  CANDOR_ASSIGN(WeightBytes values, memory.take(n * sizeof(float), place_of(tensor)));
  decode_elements(tensor.dtype, tensor.data, shape.n_in, reinterpret_cast<float*>(values.data));
  return values;
}

Result<WeightBytes> convert(const TensorView& tensor, WeightRole role, const WeightShape& shape, WeightMemory& memory,
                            platform::ThreadPool& pool) {
  switch (role) {
    case WeightRole::kVector:
      return widen_vector(tensor, shape, memory);
    case WeightRole::kEmbedding:
      return copy_rows(tensor, shape, memory, pool);
    case WeightRole::kLinear:
    case WeightRole::kEmbeddingAndLinear:
      break;
  }
  return pack_matrix(tensor, shape, memory, pool);
}

}  // namespace

const std::byte* CpuWeight::panels() const {
  CANDOR_DCHECK(role_ == WeightRole::kLinear || role_ == WeightRole::kEmbeddingAndLinear);
  return bytes_.data;
}

const float* CpuWeight::values() const {
  CANDOR_DCHECK(role_ == WeightRole::kVector);
  return reinterpret_cast<const float*>(bytes_.data);
}

void CpuWeight::decode_row(int64_t row, float* dst) const {
  CANDOR_CHECK(row >= 0 && row < shape_.n_out);
  if (role_ == WeightRole::kEmbeddingAndLinear) return kernels::decode_packed_row(shape_, bytes_.data, row, dst);
  CANDOR_DCHECK(role_ == WeightRole::kEmbedding);
  const size_t row_bytes = bytes_.size / static_cast<size_t>(shape_.n_out);
  decode_elements(shape_.dtype, bytes_.data + static_cast<size_t>(row) * row_bytes, shape_.n_in, dst);
}

Result<uint64_t> upload_bytes(const TensorView& tensor, WeightRole role) {
  CANDOR_TRY(check_dtype(tensor, role));
  CANDOR_ASSIGN(const WeightShape shape, check_shape(tensor, role));
  switch (role) {
    case WeightRole::kVector:
      return static_cast<uint64_t>(shape.n_in) * sizeof(float);
    case WeightRole::kEmbedding:
      return static_cast<uint64_t>(shape.n_out) * tensor.row_bytes();
    case WeightRole::kLinear:
    case WeightRole::kEmbeddingAndLinear:
      break;
  }
  CANDOR_TRY(check_packable(tensor, shape));
  return kernels::packed_bytes(shape);
}

Result<std::unique_ptr<CpuWeight>> upload_weight(const TensorView& tensor, WeightRole role, WeightMemory& memory,
                                                 platform::ThreadPool& pool) {
  CANDOR_TRY(check_dtype(tensor, role));
  CANDOR_ASSIGN(const WeightShape shape, check_shape(tensor, role));
  CANDOR_ASSIGN(WeightBytes bytes, convert(tensor, role, shape, memory, pool));
  return std::make_unique<CpuWeight>(role, shape, std::move(bytes));
}

}  // namespace candor::backend::cpu
