#include "model/hub/hub_heads.h"

#include <fmt/format.h>

#include <span>
#include <system_error>
#include <utility>

#include "formats/quote.h"
#include "formats/safetensors/safetensors_file.h"
#include "formats/torch/torch_file.h"

namespace candor::model {
namespace {

namespace fs = std::filesystem;
using formats::in_quotes;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// "linear.weight" of a module, "weight" of a layer that was saved by itself.
Result<void> add_layer(std::span<const TensorView> tensors, const HeadFile& head, const AddHeadTensor& add) {
  for (TensorView view : tensors) {
    std::string_view part = view.name;
    constexpr std::string_view kLinear = "linear.";
    if (part.starts_with(kLinear)) part.remove_prefix(kLinear.size());
    if ((part != "weight" && part != "bias") || view.n_bytes == 0) {
      return fail(ErrorKind::kUnsupported, fmt::format("{}: tensor {}, expected the weight and the bias of one layer",
                                                       in_quotes(head.file.string()), in_quotes(view.name)));
    }
    const std::string name = fmt::format("{}.{}", head.stem, part);
    view.name = name;
    CANDOR_TRY(add(view));
  }
  return {};
}

template <typename File>
Result<size_t> read_from(const File& file, const HeadFile& head, const AddHeadTensor& add) {
  const auto added = add_layer(file.tensors(), head, add);
  CANDOR_TRY(file.check_intact());
  if (!added) return added.error();
  return file.n_bytes();
}

}  // namespace

fs::path module_weights(const fs::path& folder, const fs::path& module) {
  const fs::path pickled = module / "pytorch_model.bin";
  const bool is_pickled = !is_there(folder / module / "model.safetensors") && is_there(folder / pickled);
  return is_pickled ? pickled : module / "model.safetensors";
}

std::vector<HeadFile> heads_beside(const fs::path& folder) {
  std::vector<HeadFile> heads;
  for (const auto& [file, stem] :
       {std::pair("sparse_linear.pt", "sparse"), std::pair("colbert_linear.pt", "colbert")}) {
    if (is_there(folder / file)) heads.push_back({file, stem});
  }
  return heads;
}

Result<size_t> read_head(const fs::path& folder, const HeadFile& head, const AddHeadTensor& add) {
  const fs::path path = folder / head.file;
  if (path.extension() == ".safetensors") {
    CANDOR_ASSIGN(const auto file, formats::safetensors::SafetensorsFile::open(path));
    return read_from(file, head, add);
  }
  CANDOR_ASSIGN(const auto file, formats::torch::TorchFile::open(path));
  return read_from(file, head, add);
}

}  // namespace candor::model
