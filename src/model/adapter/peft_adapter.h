#pragma once
// Adapters in PEFT's folders: adapter_config.json (peft_config.h) and adapter_model.safetensors, whose tensors are
// named by the modules of the base model's checkpoint:
//
//   base_model.model.MODULE.lora_A.weight [rank, in], .lora_B.weight [out, rank], .lora_magnitude_vector [out]
//   base_model.model.MODULE.lora_embedding_A [rank, V], .lora_embedding_B [D, rank]
//   base_model.model.MODULE.base_layer.weight: the base model's own, beside thin ones of its embedding or head
//   base_model.model.MODULE.weight: another embedding or head ("modules_to_save")
//   base_model.model.EXPERTS.lora_A.weight [experts * rank, in], .lora_B.weight [out, rank * experts]: of the tensors
//     gate_up_proj and down_proj of all experts ("target_parameters"); of the first of two with ".base_layer" before
//
// Rows are brought to GGUF's order as those of the base model's checkpoint are (hub/hub_form.h).

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/adapter/adapter_file.h"
#include "model/adapter/part_list.h"
#include "model/adapter/peft_config.h"
#include "model/families/families.h"
#include "model/hub/hub_names.h"

namespace candor::model {

class PeftReader {
 public:
  // Borrowed. form: of the base model's checkpoint, or nullptr: of a GGUF file, whose family's forms are tried.
  PeftReader(const std::filesystem::path& folder, const ArchSpec& spec, const Family& family, const HubForm* form)
      : folder_(folder), spec_(spec), family_(family), form_(form), list_(spec, family, folder) {}

  Result<std::unique_ptr<AdapterFile>> read();

 private:
  // Tensors of one module.
  struct Module {
    const TensorView* down = nullptr;
    const TensorView* up = nullptr;
    const TensorView* table_down = nullptr;
    const TensorView* table_up = nullptr;
    const TensorView* magnitudes = nullptr;
    const TensorView* whole = nullptr;
    const TensorView* base = nullptr;  // W itself, as PEFT saves it beside thin matrices of embeddings and heads
  };
  struct Place {
    const HubTensor* row = nullptr;
    Match match{};
  };

  Result<void> open_weights();
  Result<void> sort_tensor(const TensorView& tensor);
  std::optional<Place> place_in(const HubForm& form, std::string_view module) const;
  void choose_form();
  Result<void> read_module(const std::string& name, const Module& module);
  Result<AdapterPart> part_of(const std::string& name, const Module& module);
  Result<void> add_changed(const Place& place, AdapterPart part);
  Result<void> reorder(AdapterPart& part, const RowOrder& order, std::string_view name);
  Result<void> tile(const Place& place, AdapterPart part);
  Result<void> add_experts(const std::string& name, const Module& module);
  Result<void> add_expert_matrix(const std::string& name, const Module& module, bool is_down, int32_t layer);
  bool alternates(std::string_view parameter) const;
  std::string named(std::string_view name) const;

  TensorView new_tensor(const TensorView& like, const Shape& shape);
  std::byte* bytes_of(const TensorView& made) { return const_cast<std::byte*>(made.data); }

  const std::filesystem::path& folder_;
  const ArchSpec& spec_;
  const Family& family_;
  const HubForm* form_;
  PartList list_;
  PeftConfig config_;
  std::map<std::string, Module, std::less<>> modules_;
  std::unique_ptr<AdapterFile> file_;
};

}  // namespace candor::model
