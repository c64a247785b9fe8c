// Rows of an image by Candor and by llama.cpp, each with an mmproj file: of each of ours the nearest of theirs.
//   candor_compare_llama MMPROJ LLAMA_MMPROJ TEXT_MODEL.gguf WIDTH HEIGHT RGB_FILE
// A developer's program, for compare_llama.py. A size that needs no resize gives both the same pixels.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "backend/all/make_backend.h"
#include "image/prepare.h"
#include "llama.h"
#include "model/hub/hub_folder.h"
#include "model/model.h"
#include "mtmd.h"
#include "platform/float_mode.h"
#include "vision/encoder.h"
#include "vision/vision_files.h"

using namespace candor;

namespace {

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

template <class T>
T must(Result<T> result) {
  if (!result) stop(result.error().message);
  return std::move(*result);
}

image::Image read_image(const char* path, int32_t width, int32_t height) {
  std::ifstream file(path, std::ios::binary);
  image::Image image{width, height, {std::istreambuf_iterator<char>(file), {}}};
  if (image.rgb.size() != size_t{3} * width * height) stop(std::string(path) + " is not of that size");
  return image;
}

std::vector<float> rows_of_candor(const char* mmproj, const char* text_path, const image::Image& image) {
  const platform::ScopedFloatMode mode;
  const auto file = must(vision::open_mmproj(mmproj));
  const auto text = must(model::open_model(text_path));
  const auto spec = must(vision::read_vision(*file, must(model::read_arch(*text))));
  const auto prepared = must(image::prepare(image, spec.recipe));
  const auto encoder = must(vision::Encoder::load(*file, spec, must(backend::make_backend("cpu", {.n_threads = 1}))));
  vision::EncodedImage rows;
  for (const image::Tile& tile : prepared.tiles) {
    if (const auto done = encoder->encode(tile, rows); !done) stop(done.error().message);
  }
  encoder->finish(prepared, rows);
  return rows.rows;
}

struct LlamaRows {
  std::vector<float> rows{};
  size_t width = 0;
};

// llama.cpp says itself what is wrong.
LlamaRows rows_of_llama(const char* mmproj, const char* text_path, const image::Image& image) {
  llama_model_params of_model = llama_model_default_params();
  of_model.n_gpu_layers = 0;
  llama_model* model = llama_model_load_from_file(text_path, of_model);
  mtmd_context_params of_tower = mtmd_context_params_default();
  of_tower.use_gpu = false;
  of_tower.warmup = false;
  of_tower.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  mtmd_context* tower = model == nullptr ? nullptr : mtmd_init_from_file(mmproj, model, of_tower);
  if (tower == nullptr) stop("llama.cpp does not load them");
  const std::string marker = mtmd_get_marker(tower);
  const mtmd_input_text text{marker.c_str(), marker.size(), true, true};
  const mtmd_bitmap* bitmap =
      mtmd_bitmap_init(static_cast<uint32_t>(image.width), static_cast<uint32_t>(image.height), image.rgb.data());
  mtmd_input_chunks* chunks = mtmd_input_chunks_init();
  if (mtmd_tokenize(tower, chunks, &text, &bitmap, 1) != 0) stop("llama.cpp refuses the image");
  LlamaRows all{.width = static_cast<size_t>(llama_model_n_embd_inp(model))};
  for (size_t i = 0; i < mtmd_input_chunks_size(chunks); ++i) {
    const mtmd_input_chunk* chunk = mtmd_input_chunks_get(chunks, i);
    if (mtmd_input_chunk_get_type(chunk) != MTMD_INPUT_CHUNK_TYPE_IMAGE) continue;
    if (mtmd_encode_chunk(tower, chunk) != 0) stop("llama.cpp does not encode the image");
    const float* own = mtmd_get_output_embd(tower);
    all.rows.insert(all.rows.end(), own, own + mtmd_input_chunk_get_n_tokens(chunk) * all.width);
  }
  return all;
}

}  // namespace

// A line for each row: the largest difference, as a share of the largest number, and llama.cpp's row.
int main(int argc, char** argv) {
  if (argc != 7) stop("candor_compare_llama MMPROJ LLAMA_MMPROJ TEXT_MODEL.gguf WIDTH HEIGHT RGB_FILE");
  const image::Image image = read_image(argv[6], std::atoi(argv[4]), std::atoi(argv[5]));
  const auto [theirs, width] = rows_of_llama(argv[2], argv[3], image);
  const std::vector<float> ours = rows_of_candor(argv[1], argv[3], image);
  float largest = 0.0f;
  for (const float x : ours) largest = std::max(largest, std::fabs(x));
  for (size_t i = 0; i < ours.size(); i += width) {
    std::pair<float, size_t> nearest{INFINITY, 0};
    for (size_t j = 0; j < theirs.size(); j += width) {
      float difference = 0.0f;
      for (size_t k = 0; k < width; ++k) difference = std::max(difference, std::fabs(ours[i + k] - theirs[j + k]));
      nearest = std::min(nearest, {difference, j / width});
    }
    std::printf("%.1e %zu\n", nearest.first / largest, nearest.second);
  }
}
