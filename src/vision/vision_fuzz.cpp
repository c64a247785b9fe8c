// Any bytes as what a tower is read from: an mmproj file where they begin so, else config.json,
// preprocessor_config.json and model.safetensors, with a zero byte between them. Refused in one line, or read; small
// ones are loaded and see an image.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "backend/all/make_backend.h"
#include "base/error.h"
#include "fuzz/fuzz_budget.h"
#include "fuzz/fuzz_folder.h"
#include "image/prepare.h"
#include "vision/encoder.h"
#include "vision/vision_files.h"

namespace {

namespace vision = candor::vision;
constexpr uint64_t kMostBytes = uint64_t{32} << 20;

candor::Result<void> see(const candor::formats::ModelFile& file) {
  candor::model::ArchSpec text;
  text.dim = 64;
  CANDOR_ASSIGN(vision::VisionSpec spec, vision::read_vision(file, text));
  CANDOR_ASSIGN(auto backend, candor::backend::make_backend("reference", {.n_threads = 1}));
  CANDOR_ASSIGN(const uint64_t n_bytes, vision::planned_bytes(file, spec, *backend));
  if (n_bytes > kMostBytes) return {};
  const candor::image::Image image{8, 8, std::vector<uint8_t>(3 * 8 * 8, 7)};
  CANDOR_ASSIGN(const candor::image::Prepared prepared, candor::image::prepare(image, spec.recipe));
  CANDOR_CHECK(!vision::rows_of_tiles(spec, prepared).empty());
  CANDOR_ASSIGN(auto encoder, vision::Encoder::load(file, std::move(spec), std::move(backend)));
  vision::EncodedImage encoded;
  return encoder->encode(prepared.tiles.front(), encoded);
}

candor::Result<void> read(const candor::testing::FuzzFolder& folder, std::string_view bytes) {
  if (bytes.starts_with("GGUF")) {
    CANDOR_ASSIGN(const auto file, vision::open_mmproj(folder.write("mmproj.gguf", bytes)));
    return see(*file);
  }
  for (const char* name : {"config.json", "preprocessor_config.json", "model.safetensors"}) {
    const size_t end =
        std::string_view(name) == "model.safetensors" ? bytes.size() : std::min(bytes.find('\0'), bytes.size());
    folder.write(name, bytes.substr(0, end));
    bytes.remove_prefix(std::min(bytes.size(), end + 1));
  }
  CANDOR_ASSIGN(const auto file, vision::open_tower_of(folder.path()));
  return file == nullptr ? candor::Result<void>{} : see(*file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const candor::testing::FuzzFolder folder("candor_vision");
  const candor::testing::FuzzBudget budget(size);
  const auto done = read(folder, {reinterpret_cast<const char*>(data), size});
  if (!done) CANDOR_CHECK(done.error().message.find('\n') == std::string::npos);
  return 0;
}
