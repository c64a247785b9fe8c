// Lengths of the rows of adapted matrices, in double, each row by one thread.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "formats/quote.h"
#include "model/adapter/adapter.h"
#include "model/families/families.h"
#include "model/role_traits.h"
#include "tensor/dtype.h"

namespace candor::model {
namespace {

std::vector<float> decode_all(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape.n_elements()));
  decode_rows(tensor, values.data());
  return values;
}

struct Matrices {
  const TensorView& base;
  std::span<const float> down;  // [rank, in]
  std::span<const float> up;    // [out, rank]
  float scale;
};

// scratch: [in].
float length_of(const Matrices& of, int64_t row, std::vector<float>& scratch) {
  const size_t n_in = scratch.size();
  const size_t rank = of.down.size() / n_in;
  decode_row(of.base, row, scratch.data());
  for (size_t k = 0; k < rank; ++k) {
    const float factor = of.scale * of.up[static_cast<size_t>(row) * rank + k];
    const float* from = of.down.data() + k * n_in;
    for (size_t i = 0; i < n_in; ++i) scratch[i] += factor * from[i];
  }
  double sum = 0.0;
  for (const float x : scratch) sum += static_cast<double>(x) * static_cast<double>(x);
  return static_cast<float>(std::sqrt(sum));
}

std::vector<float> lengths_of(const AdapterPart& part, const TensorView& base) {
  const std::vector<float> down = decode_all(part.down), up = decode_all(part.up);
  const Matrices matrices{base, down, up, part.scale};
  std::vector<float> lengths(static_cast<size_t>(base.shape[0]));
  const auto work = [&](size_t first, size_t step) {
    std::vector<float> scratch(static_cast<size_t>(base.shape[1]));
    for (size_t row = first; row < lengths.size(); row += step) {
      lengths[row] = length_of(matrices, static_cast<int64_t>(row), scratch);
    }
  };
  const size_t n_threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 16);
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < n_threads; ++i) threads.emplace_back(work, i, n_threads);
  work(0, n_threads);
  return lengths;
}

bool has_gains(const AdapterPart& part) {
  return !part.magnitudes.empty();
}
bool has_base(const AdapterPart& part) {
  return part.base.shape.n_dims > 0;
}

Error refused(const AdapterPart& part, std::string_view reason) {
  return fail(ErrorKind::kInvalidInput, fmt::format("adapter: {} {}", formats::in_quotes(part.name), reason),
              "adapters");
}

Result<void> check_base(const AdapterPart& part, const TensorView& base) {
  constexpr double kRounding = 0.01, kQuantising = 0.35;
  if (part.base.shape != base.shape) {
    return refused(part, fmt::format("is for a weight of shape {}, and this model's has {}: the adapter is for another "
                                     "model",
                                     to_string(part.base.shape), to_string(base.shape)));
  }
  double distance = 0.0, size = 0.0;
  const auto n_cols = static_cast<size_t>(base.shape[1]);
  std::vector<float> here(n_cols), there(n_cols);
  for (int64_t row = 0; row < base.shape[0]; ++row) {
    decode_row(base, row, here.data());
    decode_row(part.base, row, there.data());
    for (size_t i = 0; i < n_cols; ++i) {
      const double x = static_cast<double>(there[i]), off = static_cast<double>(here[i]) - x;
      distance += off * off;
      size += x * x;
    }
  }
  const bool is_quantised = dtype_info(base.dtype).block_elements > 1;
  const double most = is_quantised ? kQuantising : kRounding;
  if (distance <= most * most * size) return {};
  return refused(part,
                 "has its own base weight beside thin matrices, and this model's is another: the adapter is for "
                 "another model, or was trained beside a whole weight; merge it with other tools");
}

Result<void> check_lengths(const AdapterPart& part, std::span<const float> lengths) {
  const bool are_good =
      std::ranges::all_of(lengths, [](float length) { return length > 0.0f && std::isfinite(length); });
  return are_good ? Result<void>{} : refused(part, "has a row whose length is 0 or no number");
}

}  // namespace

const Binding& binding_of(const AdapterPart& part, const ArchSpec& spec, const std::vector<Binding>& bindings) {
  const bool is_tied = part.role == TensorRole::kHead && spec.head.tied;
  const auto binding = std::ranges::find_if(bindings, [&](const Binding& each) {
    return each.role == (is_tied ? TensorRole::kEmbedding : part.role) && each.layer == part.layer &&
           each.expert == part.expert;
  });
  CANDOR_CHECK(binding != bindings.end());
  return *binding;
}

bool reads_base(const AdapterFile& adapter) {
  return std::ranges::any_of(adapter.parts(), [](const auto& part) { return has_gains(part) || has_base(part); });
}

Result<std::vector<std::vector<float>>> row_lengths(const AdapterFile& adapter, const ArchSpec& spec,
                                                    const formats::ModelFile& base) {
  std::vector<std::vector<float>> all(adapter.parts().size());
  if (!reads_base(adapter)) return all;
  CANDOR_ASSIGN(const std::vector<Binding> bindings, bind_tensors(base, *find_family(spec.family), spec));
  for (size_t i = 0; i < all.size(); ++i) {
    const AdapterPart& part = adapter.parts()[i];
    if (!has_gains(part) && !has_base(part)) continue;
    const TensorView& weight = binding_of(part, spec, bindings).view;
    CANDOR_TRY(base.make_copy(weight.bytes()));
    if (has_base(part)) CANDOR_TRY(check_base(part, weight));
    if (!has_gains(part)) continue;
    all[i] = lengths_of(part, weight);
    CANDOR_TRY(check_lengths(part, all[i]));
  }
  CANDOR_TRY(base.check_intact());
  return all;
}

}  // namespace candor::model
