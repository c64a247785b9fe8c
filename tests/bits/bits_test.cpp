// The logits of fixed prompts, pinned as hashes of their bits: the same on every instruction set of every architecture,
// today and tomorrow. A change of the order of operations (docs/numerics.md) changes them, and only then may the values
// here be replaced by what the failing test prints.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "backend/cpu/cpu_backend.h"
#include "base/hash.h"
#include "formats/model_file.h"
#include "kernels/kernels.h"
#include "support/model_runner.h"
#include "support/shared_data.h"
#include "support/tiny_model.h"
#include "tensor/weight_formats.h"

namespace candor::testing {
namespace {

constexpr size_t kPromptTokens = 40;
constexpr size_t kNewTokens = 8;

struct Answer {
  uint64_t hash = 0;  // of the bits of every logit of the prompt and of every greedy step
  std::vector<TokenId> tokens;
};

uint64_t add_to_hash(uint64_t hash, const Logits& logits) {
  for (const float logit : logits) hash = hash_mix(hash, std::bit_cast<uint32_t>(logit));
  return hash;
}

Answer answer_of(const formats::ModelFile& file, std::string_view isa) {
  auto backend = backend::make_cpu_backend({.n_threads = 1, .table = kernels::select_table(isa).value()});
  EXPECT_TRUE(backend) << backend.error().message;
  const auto runner = ModelRunner::make(file, std::move(*backend), {});
  Answer answer;
  const auto n_vocab = static_cast<uint32_t>(runner->model().spec().vocab);
  std::vector<TokenId> prompt;
  for (uint32_t i = 0; i < kPromptTokens; ++i) {
    prompt.push_back(static_cast<TokenId>((1 + i * i * 31u + i * 7u) % n_vocab));
  }
  const size_t sequence = runner->new_sequence();
  std::vector<Logits> rows = runner->step({{sequence, prompt}});
  while (true) {
    for (const Logits& row : rows) answer.hash = add_to_hash(answer.hash, row);
    if (answer.tokens.size() == kNewTokens) return answer;
    const Logits& last = rows.back();
    answer.tokens.push_back(static_cast<TokenId>(std::max_element(last.begin(), last.end()) - last.begin()));
    rows = runner->step({{sequence, {answer.tokens.back()}}});
  }
}

struct Pinned {
  DType dtype;
  int32_t head_dim;
  uint64_t hash;
};

constexpr Pinned kPinned[] = {
    {DType::kF32, 64, 0xb293090b4eb0b898ull},       {DType::kF16, 80, 0x75891a62e448beccull},
    {DType::kBF16, 128, 0x0692dbd5c1544826ull},     {DType::kQ8_0, 64, 0x7aa98c383a33ccb9ull},
    {DType::kQ4_0, 80, 0x0343234f01980968ull},      {DType::kQ4_1, 64, 0xff8bde03239559c3ull},
    {DType::kQ5_0, 64, 0x4adfdbeb9a17e885ull},      {DType::kQ5_1, 64, 0xd7d568a99117020eull},
    {DType::kQ2_K, 64, 0x81bc76b06eccdcfaull},      {DType::kQ3_K, 64, 0xa68b33170435a3cfull},
    {DType::kQ4_K, 128, 0x29121798a446d91cull},     {DType::kQ5_K, 64, 0xc3ad182d94214accull},
    {DType::kQ6_K, 80, 0x059f23298ebdb7edull},      {DType::kIQ4_NL, 64, 0xeb8f4a19f8097bd1ull},
    {DType::kIQ4_XS, 64, 0x95201ecfd8b65bacull},    {DType::kMXFP4, 64, 0x9b2db165856bd921ull},
    {DType::kQ4_KFast, 128, 0x319887b8d6279e59ull}, {DType::kW8A8, 64, 0xc0f2bdcb1b573c79ull},
    {DType::kFP8, 64, 0x1e79b10f4b030e16ull},       {DType::kIQ1_S, 64, 0x50aeb8af8f6d6d82ull},
    {DType::kIQ1_M, 64, 0xdb7eabc9638a6e10ull},     {DType::kIQ2_XXS, 64, 0x973a2b194db6ee49ull},
    {DType::kIQ2_XS, 64, 0x3e8c91bcac2fc420ull},    {DType::kIQ2_S, 64, 0x1c1a67f5e3bdbf98ull},
    {DType::kIQ3_XXS, 64, 0x3596fc5ef6aab22eull},   {DType::kIQ3_S, 64, 0xafa962daab3222f5ull},
    {DType::kTQ1_0, 64, 0x140ab9837ab23b97ull},     {DType::kTQ2_0, 64, 0x140ab9837ab23b97ull},
    {DType::kFP4, 64, 0xa925dc1c51e25039ull},       {DType::kQ1_0, 128, 0x5ad5acc146bfddbdull},
    {DType::kQ2_0, 64, 0x98431132ff640aa3ull},
};

template <class... Blocks>
constexpr bool all_are_pinned(BlockList<Blocks...>) {
  return ((std::ranges::find(kPinned, Blocks::kType, &Pinned::dtype) != std::end(kPinned)) && ...);
}
static_assert(all_are_pinned(WeightBlocks{}), "a weight format without pinned bits");

TEST(bits, logits_of_generated_models_are_the_pinned_ones_on_every_instruction_set) {
  for (const Pinned& pinned : kPinned) {
    const auto file = make_tiny_model(tiny_model_of(pinned.dtype, pinned.head_dim, 256));
    for (const kernels::KernelTable* table : kernels::runnable_tables()) {
      EXPECT_EQ(answer_of(*file, table->name).hash, pinned.hash) << dtype_info(pinned.dtype).name << " " << table->name;
    }
  }
}

TEST(bits, logits_and_tokens_of_a_trained_model_are_the_pinned_ones_on_every_instruction_set) {
  const auto path = shared_data() / "models" / "stories260K.gguf";
  CANDOR_REQUIRE_DATA(path);
  const auto file = formats::open_model_file(path);
  ASSERT_TRUE(file) << file.error().message;
  const std::vector<TokenId> tokens = {265, 262, 411, 294, 432, 436, 336, 432};
  for (const kernels::KernelTable* table : kernels::runnable_tables()) {
    const Answer answer = answer_of(**file, table->name);
    EXPECT_EQ(answer.hash, 0xe9aebfca1de2db3dull) << table->name;
    EXPECT_EQ(answer.tokens, tokens) << table->name;
  }
}

}  // namespace
}  // namespace candor::testing
