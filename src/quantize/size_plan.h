#pragma once
// Types by tensor that keep a file within a size and lose least: of each matrix the errors of all types are measured on
// a sample of its rows, and bits go where they take away most error (Shoham and Gersho, "Efficient bit allocation for
// an arbitrary set of quantizers", 1988). The error of a matrix is the share of its outputs' energy that the encoding
// changes, by the importance of its inputs where that is known. The output matrix counts as four matrices of every
// block, all others alike. Deterministic.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "quantize/quantizer.h"
#include "quantize/recipe.h"

namespace candor::quantize {

// One of them: of the whole file, or of the weights alone.
struct SizeTarget {
  std::optional<uint64_t> bytes{};
  std::optional<double> bits{};  // of a weight, on average over all tensors
};

struct SizePlan {
  Recipe recipe{};                             // of the type that most weights have
  std::vector<Override> overrides{};           // of every matrix
  uint64_t bytes = 0;                          // of the file
  double bits = 0;                             // of a weight
  std::map<std::string, int32_t> n_tensors{};  // matrices of each type
};

// options: importance, overrides (which are kept), threads, progress. Refuses a target that no plan meets, with the
// smallest.
Result<SizePlan> plan_size(const formats::ModelFile& file, const QuantizeOptions& options, const SizeTarget& target);

// "12GB", "700MB", "1.5GiB", "3000000000".
Result<uint64_t> parse_size(std::string_view text);

}  // namespace candor::quantize
