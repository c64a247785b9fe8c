#include "quantize/importance.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "formats/gguf/gguf_writer.h"
#include "formats/quote.h"
#include "tensor/encode.h"

namespace candor::quantize {
namespace {

constexpr std::string_view kSums = ".in_sum2";
constexpr std::string_view kCounts = ".counts";

std::vector<float> floats_of(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape.n_elements()));
  decode_rows(tensor, values.data());
  return values;
}

Result<void> check_kind(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const auto kind, formats::meta_string(file, "general.type"));
  if (kind && *kind == "imatrix") return {};
  return fail(
      ErrorKind::kInvalidInput,
      fmt::format("importance matrix: general.type is {}, expected \"imatrix\": the file is none; llama-imatrix "
                  "writes them as GGUF",
                  kind ? formats::in_quotes(*kind) : "missing"));
}

Error of_another_model(std::string_view name, std::string_view why) {
  return {ErrorKind::kInvalidInput,
          fmt::format("importance matrix: {} {}; it was made with another model", formats::in_quotes(name), why)};
}

}  // namespace

size_t n_matrices_of(const TensorView& tensor) {
  return tensor.shape.n_dims > 2 ? static_cast<size_t>(tensor.shape[0]) : 1;
}

Result<void> write_importance(const std::filesystem::path& path, std::span<const ColumnSums> sums,
                              const ImportanceSource& source) {
  using formats::gguf::GgufArray;
  using formats::gguf::GgufScalar;
  formats::gguf::GgufHeader header;
  CANDOR_TRY(header.add_meta("general.type", GgufScalar(std::string("imatrix"))));
  CANDOR_TRY(header.add_meta("imatrix.datasets", GgufArray(std::vector<std::string>{source.text})));
  CANDOR_TRY(header.add_meta("imatrix.chunk_count", GgufScalar(source.n_windows)));
  CANDOR_TRY(header.add_meta("imatrix.chunk_size", GgufScalar(source.window)));
  for (const ColumnSums& one : sums) {
    const auto n_matrices = static_cast<int64_t>(one.counts.size());
    const Shape squares{2, {n_matrices, static_cast<int64_t>(one.n_in), 0, 0}};
    CANDOR_TRY(header.add_tensor(one.tensor + std::string(kSums), DType::kF32, squares));
    CANDOR_TRY(header.add_tensor(one.tensor + std::string(kCounts), DType::kF32, {2, {n_matrices, 1, 0, 0}}));
  }
  CANDOR_ASSIGN(auto writer, formats::gguf::GgufWriter::create(path, header));
  for (const ColumnSums& one : sums) {
    CANDOR_TRY(writer.write_tensor(std::as_bytes(std::span(one.squares))));
    CANDOR_TRY(writer.write_tensor(std::as_bytes(std::span(one.counts))));
  }
  return writer.finish();
}

Result<Importance::Means> Importance::read_means(const formats::ModelFile& file, const TensorView& sums,
                                                 const TensorView& tensor) {
  const std::string_view name = tensor.name;
  const TensorView* counts = file.find(std::string(name) + std::string(kCounts));
  const auto n_in = static_cast<size_t>(tensor.shape.row_elements());
  const size_t n_matrices = n_matrices_of(tensor);
  if (static_cast<size_t>(sums.shape.n_elements()) != n_in * n_matrices) {
    return of_another_model(name, fmt::format("has {} inputs of all matrices, expected {} of {}",
                                              sums.shape.n_elements(), n_in, n_matrices));
  }
  const auto n_counts = counts == nullptr ? size_t{0} : static_cast<size_t>(counts->shape.n_elements());
  const bool is_complete = counts != nullptr && counts->dtype == DType::kF32 && sums.dtype == DType::kF32 &&
                           (n_counts == n_matrices || n_counts == 1);
  if (!is_complete) {
    return fail(ErrorKind::kInvalidInput, fmt::format("importance matrix: {} lacks its counts, or has them in another "
                                                      "type than F32; the file is damaged",
                                                      formats::in_quotes(name)));
  }
  const std::vector<float> n = floats_of(*counts);
  Means means{n_in, floats_of(sums)};
  for (size_t i = 0; i < means.values.size(); ++i) {
    const float count = n[n_counts == 1 ? 0 : i / n_in];
    if (!(count > 0.0f) || !std::isfinite(count)) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("importance matrix: matrix {} of {} was used {} times; make it again with more text",
                              i / n_in, formats::in_quotes(name), count));
    }
    means.values[i] /= count;
    if (!(means.values[i] >= 0.0f) || !std::isfinite(means.values[i])) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("importance matrix: {} has a sum of squares that is {}; the file is damaged",
                              formats::in_quotes(name), means.values[i]));
    }
  }
  return means;
}

Result<Importance> Importance::read(const formats::ModelFile& file, const formats::ModelFile& model) {
  CANDOR_TRY(check_kind(file));
  Importance importance;
  for (const TensorView& sums : file.tensors()) {
    if (!sums.name.ends_with(kSums)) continue;
    const std::string_view name = sums.name.substr(0, sums.name.size() - kSums.size());
    const TensorView* tensor = model.find(name);
    if (tensor == nullptr) return of_another_model(name, "is no tensor of the model");
    CANDOR_ASSIGN(Means means, read_means(file, sums, *tensor));
    importance.means_.emplace(name, std::move(means));
  }
  CANDOR_TRY(file.check_intact());
  if (importance.means_.empty()) {
    return fail(ErrorKind::kInvalidInput, "importance matrix: it names no matrix; make it again");
  }
  return importance;
}

std::span<const float> Importance::of(std::string_view tensor, size_t matrix) const {
  const auto found = means_.find(tensor);
  if (found == means_.end()) return {};
  const Means& means = found->second;
  return std::span(means.values).subspan(matrix * means.n_in, means.n_in);
}

}  // namespace candor::quantize
