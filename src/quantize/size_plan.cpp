#include "quantize/size_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "formats/gguf/gguf_format.h"
#include "formats/quote.h"
#include "platform/thread_pool.h"
#include "quantize/search.h"
#include "quantize/type_plan.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::quantize {
namespace {

// From the fewest bits to the most.
constexpr std::array kTypes = {DType::kIQ2_XXS, DType::kIQ2_XS, DType::kIQ2_S,  DType::kQ2_K,
                               DType::kIQ3_XXS, DType::kIQ3_S,  DType::kIQ4_XS, DType::kQ4_K,
                               DType::kQ5_K,    DType::kQ6_K,   DType::kQ8_0};
constexpr int64_t kSampledRows = 32;  // of a matrix, at even distances
constexpr int kHalvings = 60;
constexpr double kPartsOfBlock = 4.0;  // measured: docs/models.md

// A type that a matrix may have.
struct Candidate {
  DType dtype = DType::kF32;
  uint64_t bytes = 0;
  double error = 0;
};

struct Matrix {
  const Item* item = nullptr;
  std::vector<Candidate> candidates{};  // by size
  size_t chosen = 0;
};

uint64_t padded(uint64_t n_bytes) {
  return ceil_div(n_bytes, uint64_t{formats::gguf::kDefaultAlignment}) * formats::gguf::kDefaultAlignment;
}

class SizePlanner {
 public:
  SizePlanner(const formats::ModelFile& file, const QuantizeOptions& options, platform::ThreadPool& pool)
      : file_(file), options_(options), pool_(pool), items_(file, options_), shape_(shape_of(file)) {
    options_.recipe = Recipe{"Q8_0", DType::kQ8_0, 7};
  }

  Result<void> measure() {
    CANDOR_TRY(items_.make());
    CANDOR_ASSIGN(head_bytes_, head_bytes(file_, options_));
    for (const Item& item : items_.items()) {
      n_weights_ += static_cast<uint64_t>(item.view.shape.n_elements());
      if (is_free(item)) {
        matrices_.push_back({&item, candidates_of(item)});
      } else {
        fixed_bytes_ += padded(bytes_of(item));
      }
    }
    uint64_t n_done = 0;
    for (Matrix& matrix : matrices_) {
      CANDOR_TRY(measure_errors(matrix));
      const bool goes_on = !options_.progress || options_.progress(++n_done, matrices_.size());
      if (!goes_on) return fail(ErrorKind::kCancelled, "interrupted; nothing was written");
    }
    return {};
  }

  Result<SizePlan> choose(const SizeTarget& target) {
    const uint64_t most = bytes_within(target);
    choose_by(INFINITY);
    if (total_bytes() > most) return too_small(target);
    double low = 0.0;
    double high = 1.0;  // of error for a byte; beyond it the smallest types are chosen
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = 0.5 * (low + high);
      choose_by(middle);
      (total_bytes() > most ? low : high) = middle;
    }
    choose_by(high);
    while (grow(most)) continue;
    return plan();
  }

 private:
  // What is left to the plan: matrices that a recipe would encode, and no override names.
  bool is_free(const Item& item) const {
    if (item.dtype == DType::kF32) return false;
    return type_for({"F16", DType::kF16, 1}, options_.overrides, shape_, item.view) == DType::kF16;
  }

  std::vector<Candidate> candidates_of(const Item& item) const {
    std::vector<Candidate> candidates;
    for (const DType wanted : kTypes) {
      const Override own{std::string(item.view.name), wanted};
      Item typed = item;
      typed.dtype = type_for({"F16", DType::kF16, 1}, std::span(&own, 1), shape_, item.view);
      const bool is_new = std::ranges::find(candidates, typed.dtype, &Candidate::dtype) == candidates.end();
      if (is_new) candidates.push_back({typed.dtype, padded(bytes_of(typed)), 0.0});
    }
    std::ranges::sort(candidates, {}, &Candidate::bytes);
    return candidates;
  }

  // Of all rows of all parts those at even distances, which stand for the others.
  struct Row {
    const TensorView* part = nullptr;
    int64_t row = 0;
  };
  static std::vector<Row> sample(const Item& item) {
    const int64_t of_part = item.parts.front().shape.n_rows();
    const int64_t n_rows = of_part * std::ssize(item.parts);
    const int64_t n = std::min(n_rows, kSampledRows);
    std::vector<Row> rows;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = i * n_rows / n;
      rows.push_back({&item.parts[static_cast<size_t>(row / of_part)], row % of_part});
    }
    return rows;
  }

  Result<void> measure_errors(Matrix& matrix) {
    const Item& item = *matrix.item;
    for (const TensorView& part : item.parts) CANDOR_TRY(file_.make_copy(part.bytes()));
    const std::vector<Row> rows = sample(item);
    const auto n_types = static_cast<int64_t>(matrix.candidates.size());
    std::vector<double> lost(rows.size() * matrix.candidates.size());
    std::vector<double> energy(rows.size());
    std::vector<Scratch> scratch(static_cast<size_t>(pool_.n_threads()));
    for (Scratch& own : scratch) own.reserve(item.view.shape.row_elements());
    pool_.parallel_for({.n_units = std::ssize(rows) * n_types, .grain = 1, .unit_cost = 1'000'000},
                       [&](platform::UnitRange range) {
                         Scratch& own = scratch[static_cast<size_t>(range.thread)];
                         for (int64_t unit = range.begin; unit < range.end; ++unit) {
                           const Row& row = rows[static_cast<size_t>(unit / n_types)];
                           const Candidate& type = matrix.candidates[static_cast<size_t>(unit % n_types)];
                           lost[static_cast<size_t>(unit)] = own.error_of(row, type.dtype, importance_of(row));
                           energy[static_cast<size_t>(unit / n_types)] = own.energy;
                         }
                       });
    CANDOR_TRY(file_.check_intact());
    for (const TensorView& part : item.parts) file_.has_read(part.bytes());
    double all = 0.0;
    for (const double of_row : energy) all += of_row;
    if (!std::isfinite(all)) {
      return fail(ErrorKind::kInvalidInput, fmt::format("tensor {}: it holds NaN or infinity; expected finite numbers",
                                                        formats::in_quotes(item.view.name)));
    }
    const double weight = weight_of(item);
    for (size_t i = 0; i < lost.size(); ++i) {
      if (all > 0.0) matrix.candidates[i % matrix.candidates.size()].error += weight * lost[i] / all;
    }
    return {};
  }

  // What a block gives is one share of what the output matrix reads, and a matrix makes a part of that share.
  double weight_of(const Item& item) const {
    const bool makes_logits = item.view.name == (shape_.is_tied ? "token_embd.weight" : "output.weight");
    return makes_logits ? kPartsOfBlock * std::max(1, shape_.n_layers) : 1.0;
  }

  const float* importance_of(const Row& row) const {
    if (options_.importance == nullptr) return nullptr;
    const TensorView& part = *row.part;
    const auto matrix =
        part.shape.n_dims > 2 ? static_cast<size_t>(row.row / part.shape[part.shape.n_dims - 2]) : size_t{0};
    const std::span<const float> found = options_.importance->of(part.name, matrix);
    return found.empty() ? nullptr : found.data();
  }

  struct Scratch {
    std::vector<float> row{}, again{};
    std::vector<std::byte> bytes{};
    double energy = 0;

    void reserve(int64_t n) {
      row.resize(static_cast<size_t>(n));
      again.resize(row.size());
      bytes.resize(row.size() * sizeof(float));
    }
    double error_of(const Row& of, DType dtype, const float* importance) {
      const auto n = static_cast<int64_t>(row.size());
      decode_row(*of.part, of.row, row.data());
      energy = 0.0;
      for (size_t i = 0; i < row.size(); ++i) {
        energy += (importance == nullptr ? 1.0 : static_cast<double>(importance[i])) * row[i] * row[i];
      }
      if (!std::isfinite(energy)) return 0.0;
      encode_searched(dtype, row.data(), importance, n, bytes.data());
      decode_elements(dtype, bytes.data(), n, again.data());
      double lost = 0.0;
      for (size_t i = 0; i < row.size(); ++i) {
        const double difference = static_cast<double>(again[i]) - static_cast<double>(row[i]);
        lost += (importance == nullptr ? 1.0 : static_cast<double>(importance[i])) * difference * difference;
      }
      return lost;
    }
  };

  uint64_t bytes_within(const SizeTarget& target) const {
    if (target.bytes) return *target.bytes;
    return head_bytes_ + static_cast<uint64_t>(*target.bits * static_cast<double>(n_weights_) / 8.0);
  }

  uint64_t total_bytes() const {
    uint64_t total = head_bytes_ + fixed_bytes_;
    for (const Matrix& matrix : matrices_) total += matrix.candidates[matrix.chosen].bytes;
    return total;
  }
  double bits_of(uint64_t bytes) const {
    return 8.0 * static_cast<double>(bytes - head_bytes_) / static_cast<double>(n_weights_);
  }

  // The least of error and bytes together, a byte being worth so much error.
  void choose_by(double error_of_byte) {
    for (Matrix& matrix : matrices_) {
      matrix.chosen = 0;
      if (std::isinf(error_of_byte)) continue;
      const auto cost = [&](size_t i) {
        return matrix.candidates[i].error + error_of_byte * static_cast<double>(matrix.candidates[i].bytes);
      };
      for (size_t i = 1; i < matrix.candidates.size(); ++i) {
        if (cost(i) < cost(matrix.chosen)) matrix.chosen = i;
      }
    }
  }

  // One matrix gets the next type that loses less, where most error goes for a byte; false: nothing fits any more.
  bool grow(uint64_t most) {
    const uint64_t left = most - total_bytes();
    Matrix* best = nullptr;
    size_t best_type = 0;
    double best_rate = 0.0;
    for (Matrix& matrix : matrices_) {
      const Candidate& now = matrix.candidates[matrix.chosen];
      for (size_t i = matrix.chosen + 1; i < matrix.candidates.size(); ++i) {
        const Candidate& next = matrix.candidates[i];
        const uint64_t more = next.bytes - now.bytes;
        const double rate = more == 0 ? 0.0 : (now.error - next.error) / static_cast<double>(more);
        if (more > left || rate <= best_rate) continue;
        best = &matrix;
        best_type = i;
        best_rate = rate;
      }
    }
    if (best == nullptr) return false;
    best->chosen = best_type;
    return true;
  }

  Error too_small(const SizeTarget& target) const {
    const uint64_t least = total_bytes();
    const std::string asked =
        target.bytes ? fmt::format("{} bytes", *target.bytes) : fmt::format("{} bits a weight", *target.bits);
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{} can't be met: the smallest that this model takes is {} bytes, {:.2f} bits a weight",
                            asked, least, bits_of(least)));
  }

  SizePlan plan() const {
    SizePlan result;
    std::map<DType, uint64_t> weights;
    for (const Matrix& matrix : matrices_) {
      const DType dtype = matrix.candidates[matrix.chosen].dtype;
      result.overrides.push_back({std::string(matrix.item->view.name), dtype});
      weights[dtype] += static_cast<uint64_t>(matrix.item->view.shape.n_elements());
      ++result.n_tensors[std::string(dtype_info(dtype).name)];
    }
    result.recipe = *options_.recipe;
    uint64_t most = 0;
    for (const auto& [dtype, n] : weights) {
      const auto recipe = std::ranges::find(recipes(), dtype, &Recipe::dtype);
      if (n <= most || recipe == recipes().end()) continue;
      most = n;
      result.recipe = *recipe;
    }
    result.bytes = total_bytes();
    result.bits = bits_of(result.bytes);
    return result;
  }

  const formats::ModelFile& file_;
  QuantizeOptions options_;
  platform::ThreadPool& pool_;
  TypePlan items_;
  const ModelShape shape_;
  std::vector<Matrix> matrices_;
  uint64_t head_bytes_ = 0;
  uint64_t fixed_bytes_ = 0;
  uint64_t n_weights_ = 0;
};

}  // namespace

Result<SizePlan> plan_size(const formats::ModelFile& file, const QuantizeOptions& options, const SizeTarget& target) {
  CANDOR_ASSIGN(auto pool, platform::ThreadPool::start({.n_threads = options.n_threads, .spin = false}));
  SizePlanner planner(file, options, *pool);
  CANDOR_TRY(planner.measure());
  return planner.choose(target);
}

Result<uint64_t> parse_size(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr Unit kUnits[] = {{"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
                             {"TB", 1e12}, {"KIB", 0x1p10}, {"MIB", 0x1p20}, {"GIB", 0x1p30}, {"TIB", 0x1p40}};
  double number = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(at, text.data() + text.size());
  std::erase(unit, ' ');
  std::ranges::transform(unit, unit.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  const auto* known = std::ranges::find(kUnits, unit, &Unit::name);
  const bool is_size = error == std::errc() && known != std::end(kUnits) && number > 0 && number * known->bytes < 1e15;
  if (is_size) return static_cast<uint64_t>(number * known->bytes);
  return fail(ErrorKind::kInvalidInput, fmt::format("size {} is not understood; expected one as 12GB, 700MB or 1.5GiB",
                                                    formats::in_quotes(text)));
}

}  // namespace candor::quantize
