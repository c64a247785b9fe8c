#pragma once
// A model in other types: written to a GGUF file, or kept in memory as a ModelFile of its own. Experts that a file
// keeps one by one are written stacked, as GGUF has them. Encoding is shared out over threads; the result does not
// depend on their number. A tensor's values must be finite.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "formats/write_report.h"
#include "quantize/importance.h"
#include "quantize/recipe.h"

namespace candor::quantize {

struct QuantizeOptions {
  std::optional<Recipe> recipe;  // nothing: every tensor keeps its type
  std::vector<Override> overrides;
  // Matrices as int8 with one scale for the whole tensor (its largest magnitude / 127), written as Q8_0 blocks that all
  // have this scale: the baseline that better formats are compared with. recipe is ignored.
  bool naive_int8 = false;
  std::shared_ptr<const Importance> importance;  // nullptr: none. Types without a search do without it.
  int32_t n_threads = 1;
  std::function<bool(uint64_t done_bytes, uint64_t total_bytes)> progress;  // false: stop, nothing is left
};

Result<formats::WriteReport> write_gguf(const formats::ModelFile& file, const std::filesystem::path& path,
                                        const QuantizeOptions& options);

// Of such a file, what stands before the tensors' bytes.
Result<uint64_t> head_bytes(const formats::ModelFile& file, const QuantizeOptions& options);

// The file with its tensors replaced by quantised copies. A matrix is encoded when it is read (make_copy()), and not
// kept.
Result<std::unique_ptr<formats::ModelFile>> quantize_on_load(std::unique_ptr<formats::ModelFile> file,
                                                             const QuantizeOptions& options);

}  // namespace candor::quantize
