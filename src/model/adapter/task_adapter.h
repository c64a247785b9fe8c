#pragma once
// Adapters for tasks that a checkpoint holds beside its own weights, as jina-embeddings-v3 does (Sturua et al., 2024):
// config.json names them ("lora_adaptations") and the text before what is read ("task_instructions"), and
// model.safetensors has for each module
//
//   MODULE.parametrizations.weight.original: the base model's own
//   MODULE.parametrizations.weight.0.lora_A [tasks, rank, in], .lora_B [tasks, out, rank]; of tables of rows
//     [tasks, rows, rank] and [tasks, rank, D]
//
// What is added to the only row of token types goes to the embedding's rows, of which each has it.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/adapter/adapter_file.h"
#include "model/adapter/part_list.h"
#include "model/families/families.h"

namespace candor::model {

class TaskAdapterReader {
 public:
  // Borrowed. task: one of config.json's.
  TaskAdapterReader(const std::filesystem::path& folder, std::string_view task, const ArchSpec& spec,
                    const Family& family)
      : folder_(folder), task_(task), spec_(spec), family_(family), list_(spec, family, folder) {}

  Result<std::unique_ptr<AdapterFile>> read();

 private:
  // Of one module, this task's.
  struct Pair {
    std::string name;
    TensorView down;  // lora_A
    TensorView up;    // lora_B
  };

  Result<void> read_config();
  Result<std::vector<Pair>> pairs();
  Result<void> add(const Pair& pair);
  // Of the embedding and of token types, as one.
  Result<void> add_tables(const Pair& words, const Pair* types);

  const std::filesystem::path& folder_;
  std::string_view task_;
  const ArchSpec& spec_;
  const Family& family_;
  PartList list_;
  std::unique_ptr<AdapterFile> file_;
  int64_t number_ = 0;
  double alpha_ = 1.0;
};

// Whether config.json names tasks.
bool has_tasks(const std::filesystem::path& folder);

}  // namespace candor::model
