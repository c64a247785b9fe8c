#pragma once
// Reads adapters of a model's weights: LoRA (Hu et al., 2021), with gains for each output (DoRA, Liu et al., 2024),
// from PEFT's folders (adapter_config.json, adapter_model.safetensors; https://github.com/huggingface/peft) and from
// GGUF files (llama.cpp's convert_lora_to_gguf.py). What is read has the base model's roles, and rows in the order of
// its GGUF file. Refused by name: what is for another model, and every setting that would change what is computed and
// is not known. Any thread.

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "formats/safetensors/safetensors_file.h"
#include "model/arch_spec.h"
#include "model/tensor_roles.h"
#include "tensor/tensor_view.h"

namespace candor::model {

inline constexpr int64_t kMaxAdapterRank = 4096;
inline constexpr size_t kMaxAdapterParts = 1 << 20;

// Of one matrix W [out, in] of the base model: W + scale * up down; or another W.
struct AdapterPart {
  TensorRole role = TensorRole::kQ;
  int32_t layer = 0;
  int32_t expert = 0;
  TensorView down{};  // [rank, in], of embeddings [V, rank]; no dimensions: `up` is another W
  TensorView up{};    // [out, rank], of embeddings [D, rank]
  float scale = 1.0f;
  std::vector<float> magnitudes{};  // [out]: the length of each row of the sum, or empty
  TensorView base{};                // W as the adapter's file has it, if it does; no part of the hash
  std::string name{};               // in the adapter's file, for errors

  bool is_whole() const { return down.shape.n_dims == 0; }
  int64_t rank() const { return is_whole() ? 0 : up.shape.row_elements(); }
};

class AdapterFile {
 public:
  // base: of which the spec is. task: of a checkpoint's folder that holds several (task_adapter.h).
  static Result<std::unique_ptr<AdapterFile>> open(const std::filesystem::path& path, const ArchSpec& spec,
                                                   const formats::ModelFile& base, std::string_view task = {});

  const std::vector<AdapterPart>& parts() const { return parts_; }
  const std::string& format() const { return format_; }  // "PEFT", "GGUF v3", "task"
  const std::string& prompt() const { return prompt_; }  // that stands before each text, where its file says one
  uint64_t n_bytes() const { return n_bytes_; }
  // Of every part: name, place, scale and all bytes.
  uint64_t hash() const;
  // As ModelFile's.
  Result<void> check_intact() const;

 private:
  friend class PeftReader;
  friend class GgufAdapterReader;
  friend class TaskAdapterReader;

  std::string format_;
  std::string prompt_;
  uint64_t n_bytes_ = 0;
  std::vector<formats::safetensors::SafetensorsFile> shards_;
  std::unique_ptr<formats::ModelFile> gguf_;
  std::deque<std::vector<std::byte>> copies_;
  std::vector<AdapterPart> parts_;
};

// Whether the path is an adapter's: PEFT's folder, or a GGUF file that says so of itself.
bool is_adapter(const std::filesystem::path& path);

}  // namespace candor::model
