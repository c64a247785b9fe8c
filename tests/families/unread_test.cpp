// What is refused is refused by metadata, names, shapes and types: no weight is read for it.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "families/changed_golden.h"

namespace candor::testing {
namespace {

// A file whose matrices are nowhere: a thread that reads one ends the process.
class UnreadableFile final : public formats::ModelFile {
 public:
  explicit UnreadableFile(const formats::ModelFile& file) : file_(file) {
    for (TensorView tensor : file.tensors()) {
      if (tensor.shape.n_dims >= 2) tensor.data = nullptr;
      tensors_.push_back(tensor);
    }
  }
  const formats::FileInfo& info() const override { return file_.info(); }
  std::span<const formats::MetaEntry> metadata() const override { return file_.metadata(); }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const formats::MetaValue* meta(std::string_view key) const override { return file_.meta(key); }
  const TensorView* find(std::string_view name) const override {
    const auto at = std::ranges::find(tensors_, name, &TensorView::name);
    return at == tensors_.end() ? nullptr : &*at;
  }

 private:
  const formats::ModelFile& file_;
  std::vector<TensorView> tensors_;
};

using Change = std::function<void(MemoryModelFile&)>;

std::string plan_refusal(const std::string& golden, const Change& change) {
  const auto original = gguf_golden(golden);
  MemoryModelFile file = copy_of_gguf(*original);
  change(file);
  const auto backend = backend::make_backend("cpu", {.n_threads = 1});
  const auto plan = model::plan_model(UnreadableFile(file), **backend);
  return plan ? std::string() : plan.error().message;
}

Change set(const char* key, formats::MetaValue value) {
  return [key, value](MemoryModelFile& file) { file.set(key, value); };
}

// The type alone: no byte of it is looked at.
void give_other_type(MemoryModelFile& file) {
  const TensorView one = *file.find("blk.0.ffn_up_exps.weight");
  const Shape shape{2, {one.shape[1], one.shape[2]}};
  const auto n_experts = one.shape[0];
  file.remove_tensor("blk.0.ffn_up_exps.weight");
  for (int64_t i = 0; i < n_experts; ++i) {
    const bool is_odd = i == 1;
    const size_t n_bytes = static_cast<size_t>(shape.n_elements()) * (is_odd ? 4 : 2);
    file.add_tensor("blk.0.ffn_up." + std::to_string(i) + ".weight", is_odd ? DType::kF32 : DType::kF16, shape,
                    std::vector<std::byte>(n_bytes));
  }
}

struct UnreadCase {
  const char* golden;
  Change change;
  const char* refusal;
};

TEST(unread_weights, what_is_not_computed_or_contradicts_itself_is_refused_without_them) {
  const UnreadCase cases[] = {
      {"qwen3_5_text", set("qwen35.full_attention_interval", uint64_t{5}), "every block is recurrent"},
      {"gpt_oss", set("gpt-oss.expert_gating_func", int64_t{2}), "\"gpt-oss.expert_gating_func\" is set"},
      {"deepseek_v3", set("deepseek2.expert_gating_func", uint64_t{4}), "\"deepseek2.expert_gating_func\" is 4"},
      {"llama", set("llama.rope.scaling.type", std::string_view("spiral")), "spiral"},
      {"granitemoehybrid", set("granitehybrid.ssm.state_size", uint64_t{16}), "\"granitehybrid.ssm.state_size\""},
      {"deepseek_v3", set("deepseek2.attention.kv_lora_rank", uint64_t{40}), "is 40; expected a multiple of 16"},
      {"gpt_oss", [](MemoryModelFile& file) { file.remove_tensor("blk.1.attn_sinks.weight"); },
       "\"blk.1.attn_sinks.weight\" is missing"},
      {"qwen3moe", give_other_type, "experts of one block have one type"},
  };
  for (const UnreadCase& row : cases) {
    EXPECT_EQ(plan_refusal(row.golden, [](MemoryModelFile&) {}), "") << row.golden;
    const std::string refusal = plan_refusal(row.golden, row.change);
    EXPECT_NE(refusal.find(row.refusal), std::string::npos) << row.golden << ": " << refusal;
    EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
  }
}

}  // namespace
}  // namespace candor::testing
