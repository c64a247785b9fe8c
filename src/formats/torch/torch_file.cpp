#include "formats/torch/torch_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/checked.h"
#include "formats/quote.h"
#include "formats/torch/tensor_pickle.h"
#include "formats/torch/zip_directory.h"
#include "tensor/dtype.h"

namespace candor::formats::torch {
namespace {

constexpr size_t kMostPickleBytes = size_t{16} << 20;

std::string_view text_of(const StoredFile& file) {
  return {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()};
}

Result<TensorView> view_of(const PickledTensor& tensor, std::span<const StoredFile> files, std::string_view folder,
                           std::string_view file_name) {
  const std::string what = fmt::format("{}: tensor {}", file_name, in_quotes(tensor.name));
  const auto storage = std::ranges::find(files, fmt::format("{}data/{}", folder, tensor.storage), &StoredFile::name);
  if (storage == files.end()) return fail(ErrorKind::kInvalidInput, what + ": its bytes are not in the archive");
  const auto element = static_cast<size_t>(dtype_info(tensor.dtype).block_bytes);
  TensorView view{tensor.name, tensor.dtype, tensor.shape, nullptr, 0};
  const auto n_bytes = tensor_bytes_of(view.dtype, view.shape);
  const auto begin = checked_mul(static_cast<size_t>(tensor.offset), element);
  if (!n_bytes || !begin || *begin > storage->bytes.size() || *n_bytes > storage->bytes.size() - *begin) {
    return fail(ErrorKind::kInvalidInput, what + ": passes the end of its bytes: download the file again");
  }
  view.n_bytes = *n_bytes;
  view.data = storage->bytes.data() + *begin;
  return view;
}

}  // namespace

Result<std::vector<TensorView>> read_archive(std::span<const std::byte> archive, std::string_view file_name) {
  CANDOR_ASSIGN(const std::vector<StoredFile> files, read_directory(archive, file_name));
  constexpr std::string_view kPickle = "data.pkl";
  const auto pickle = std::ranges::find_if(files, [&](const StoredFile& file) {
    return file.name == kPickle || file.name.ends_with(fmt::format("/{}", kPickle));
  });
  if (pickle == files.end()) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: is an archive without {}", file_name, kPickle));
  }
  if (pickle->bytes.size() > kMostPickleBytes) {
    return fail(ErrorKind::kUnsupported, fmt::format("{}: its list of tensors has {} bytes, expected at most {}",
                                                     file_name, pickle->bytes.size(), kMostPickleBytes));
  }
  const std::string_view folder = pickle->name.substr(0, pickle->name.size() - kPickle.size());
  const auto order = std::ranges::find(files, fmt::format("{}byteorder", folder), &StoredFile::name);
  if (order != files.end() && text_of(*order) != "little") {
    return fail(ErrorKind::kUnsupported, fmt::format("{}: its numbers are big-endian", file_name));
  }
  CANDOR_ASSIGN(const std::vector<PickledTensor> tensors, read_pickle(text_of(*pickle), file_name));
  std::vector<TensorView> views;
  for (const PickledTensor& tensor : tensors) {
    CANDOR_ASSIGN(views.emplace_back(), view_of(tensor, files, folder, file_name));
  }
  return views;
}

Result<TorchFile> TorchFile::open(const std::filesystem::path& path) {
  CANDOR_ASSIGN(platform::MappedFile map, platform::MappedFile::open(path));
  TorchFile file(std::move(map));
  auto tensors = read_archive(file.map_.bytes(), in_quotes(path.string()));
  CANDOR_TRY(file.check_intact());
  if (!tensors) return std::move(tensors).error();
  file.tensors_ = std::move(*tensors);
  return file;
}

}  // namespace candor::formats::torch
