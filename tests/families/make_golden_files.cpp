// Makes whole folders of the goldens as golden_store.py keeps them: make_golden_files STORED MADE. Builds run it, so
// that tests find models as people have them: weights, and GGUF files with the bytes of llama.cpp's converter.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/model_file.h"
#include "made_folder.h"
#include "model/hub/hub_folder.h"
#include "quantize/quantizer.h"

namespace candor::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

[[noreturn]] void fail(const fs::path& path, const std::string& what) {
  fmt::print(stderr, "{}: {}\n", path.string(), what);
  std::exit(1);
}

std::string read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, "cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  if (!file.flush()) fail(path, "cannot be written");
}

void copy_files(const fs::path& from, const fs::path& to) {
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    const std::string name = entry.path().filename().string();
    if (name != "tensors.json" && !name.starts_with("gguf.")) write_bytes(to / name, read_bytes(entry.path()));
  }
}

// F32 first: every tensor begins where its type may.
void write_weights(const fs::path& recipes, const fs::path& path) {
  const json all = json::parse(read_bytes(recipes));
  std::vector<StoredTensor> tensors;
  for (const char* dtype : {"F32", "BF16"}) {
    for (const auto& [name, recipe] : all.items()) {
      if (recipe.at("dtype") != dtype) continue;
      const int64_t count = count_of(recipe.at("shape").get<std::vector<int64_t>>());
      tensors.push_back({name, dtype, recipe.at("shape"),
                         made_bytes(name + recipe.value("salt", ""), dtype, count, recipe.at("centre").get<double>(),
                                    recipe.at("spread").get<double>())});
    }
  }
  write_safetensors(path, tensors);
}

// The tensors' bytes that `candor convert` would write.
std::map<std::string, std::string> converted(const fs::path& folder) {
  const fs::path path = folder / "converted.gguf";
  const auto original = model::open_model(folder);
  if (!original) fail(folder, original.error().message);
  if (const auto written = quantize::write_gguf(**original, path, {}); !written) fail(folder, written.error().message);
  const auto file = formats::open_model_file(path);
  if (!file) fail(path, file.error().message);
  std::map<std::string, std::string> tensors;
  for (const TensorView& tensor : (*file)->tensors()) {
    tensors.emplace(tensor.name, std::string(reinterpret_cast<const char*>(tensor.data), tensor.n_bytes));
  }
  fs::remove(path);
  return tensors;
}

// Those of a safetensors file instead.
void replace_by(const fs::path& path, std::map<std::string, std::string>& tensors) {
  const std::string bytes = read_bytes(path);
  uint64_t n_header = 0;
  bytes.copy(reinterpret_cast<char*>(&n_header), sizeof n_header);
  const json header = json::parse(bytes.substr(8, n_header));
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    const auto begin = tensor.at("data_offsets").at(0).get<size_t>();
    const auto end = tensor.at("data_offsets").at(1).get<size_t>();
    tensors[name] = bytes.substr(8 + n_header + begin, end - begin);
  }
}

// The head says where each tensor is.
void write_gguf_file(const fs::path& stored, const fs::path& folder) {
  const fs::path path = folder / "model.gguf";
  std::string bytes = read_bytes(stored / "gguf.head");
  const size_t begin = bytes.size();
  bytes.resize(json::parse(read_bytes(stored / "gguf.json")).at("bytes").get<size_t>());
  write_bytes(path, bytes);
  std::map<std::string, std::string> tensors = converted(folder);
  if (fs::exists(stored / "gguf.rest")) replace_by(stored / "gguf.rest", tensors);
  const auto file = formats::open_model_file(path);
  if (!file) fail(stored / "gguf.head", file.error().message);
  const std::byte* first = (*file)->tensors().front().data;
  for (const TensorView& tensor : (*file)->tensors()) {
    const std::string& data = tensors[std::string(tensor.name)];
    if (data.size() != tensor.n_bytes) {
      fail(path, fmt::format("{} has {} bytes, and is converted to {}", tensor.name, tensor.n_bytes, data.size()));
    }
    bytes.replace(begin + static_cast<size_t>(tensor.data - first), data.size(), data);
  }
  write_bytes(path, bytes);
}

void make_golden(const fs::path& stored, const fs::path& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  copy_files(stored, folder);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    const bool is_shared = !fs::exists(folder / name) && fs::exists(stored.parent_path() / "llama" / name);
    if (is_shared) write_bytes(folder / name, read_bytes(stored.parent_path() / "llama" / name));
  }
  if (fs::exists(stored / "tensors.json")) write_weights(stored / "tensors.json", folder / "model.safetensors");
  if (fs::exists(stored / "gguf.head")) write_gguf_file(stored, folder);
}

}  // namespace
}  // namespace candor::testing

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  if (argc != 3) {
    std::fputs("usage: make_golden_files STORED MADE\n", stderr);
    return 2;
  }
  const fs::path stored = argv[1], made = argv[2];
  for (const fs::directory_entry& entry : fs::directory_iterator(stored)) {
    candor::testing::make_golden(entry.path(), made / entry.path().filename());
  }
  return 0;
}
