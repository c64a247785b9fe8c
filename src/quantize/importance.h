#pragma once
// How much each input of a matrix matters, from an importance matrix: the mean square of what came in when the model
// read a text. Files as llama.cpp's llama-imatrix writes them (GGUF, general.type "imatrix"): for each matrix NAME
// [n_out, n_in] the sums NAME.in_sum2 [n_matrices, n_in] and NAME.counts [n_matrices], where experts are several
// matrices; those of heads may have one count for all. Immutable; any thread.

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"

namespace candor::quantize {

// Those of all experts, or of all heads, are one tensor; of others 1.
size_t n_matrices_of(const TensorView& tensor);

// What `candor imatrix` gathers of a tensor.
struct ColumnSums {
  std::string tensor{};
  size_t n_in = 0;
  std::vector<float> squares{};  // [n_matrices, n_in]
  std::vector<float> counts{};   // [n_matrices]
};

// Of what text, read in how many windows of how many tokens at most: kept in the file, as llama.cpp does.
struct ImportanceSource {
  std::string text{};
  uint32_t n_windows = 0;
  uint32_t window = 0;
};

Result<void> write_importance(const std::filesystem::path& path, std::span<const ColumnSums> sums,
                              const ImportanceSource& source);

class Importance {
 public:
  // Refuses a file that is none, of another model (a matrix that it lacks, or of another width), with a count of 0, and
  // with sums that are below 0 or not finite.
  static Result<Importance> read(const formats::ModelFile& file, const formats::ModelFile& model);

  // [n_in], of one matrix of those that a tensor has; empty: the file says nothing of it.
  std::span<const float> of(std::string_view tensor, size_t matrix) const;

  size_t n_tensors() const { return means_.size(); }

 private:
  struct Means {
    size_t n_in = 0;
    std::vector<float> values;  // of all matrices
  };
  static Result<Means> read_means(const formats::ModelFile& file, const TensorView& sums, const TensorView& tensor);

  std::map<std::string, Means, std::less<>> means_;
};

}  // namespace candor::quantize
