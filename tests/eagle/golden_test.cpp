// EAGLE-3 heads against a script of their published description (make_goldens.py): what they compute, in the forms in
// which they are published, and what they draft.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/all/make_backend.h"
#include "base/sha256.h"
#include "draft/head_drafter.h"
#include "eagle_golden.h"
#include "kernels/kernels.h"
#include "model/draft_head.h"
#include "model/eagle.h"
#include "model/model.h"

namespace candor::testing {
namespace {

constexpr int32_t kBlocks = 4;

// The target and a head of it, on one backend.
struct Pair {
  std::unique_ptr<formats::ModelFile> target_file = open_file(eagle_target());
  std::unique_ptr<formats::ModelFile> head_file;
  std::unique_ptr<backend::Backend> backend;
  std::unique_ptr<model::Model> target;
  std::unique_ptr<model::Model> head;
  std::unique_ptr<backend::KvStore> target_kv;
  std::unique_ptr<backend::KvStore> head_kv;
  std::vector<TokenId> tokens;  // of the head's logits

  Pair(const std::string& name, const char* backend_name) : head_file(open_file(eagle_folder(name))) {
    backend = std::move(backend::make_backend(backend_name, {.n_threads = 2}).value());
    target = std::move(model::Model::load(*target_file, *backend, {}).value());
    auto loaded = model::Model::load_head(*head_file, *target, *backend);
    EXPECT_TRUE(loaded) << loaded.error().message;
    head = std::move(*loaded);
    tokens = model::drafted_tokens(*head_file, head->spec()).value();
    for (auto [model, kv] : {std::pair{target.get(), &target_kv}, {head.get(), &head_kv}}) {
      *kv = std::move(backend->make_kv(model->kv_layout(backend->info().default_kv), {kBlocks, 0}).value());
    }
    backend::ArenaLayout layout = model::arena_layout(target->spec(), 64, 64, 0);
    const backend::ArenaLayout other = model::arena_layout(head->spec(), 64, 64, 0);
    for (size_t i = 0; i < layout.slot_cols.size(); ++i) {
      layout.slot_cols[i] = std::max(layout.slot_cols[i], other.slot_cols[i]);
    }
    layout.max_input_cols = std::max(layout.max_input_cols, other.max_input_cols);
    EXPECT_TRUE(backend->reserve_arena(layout));
  }

  // One slice behind n_past tokens, with logits of its last row.
  std::vector<float> run(model::Model& model, backend::KvStore& kv, const std::vector<TokenId>& read, int32_t n_past,
                         std::span<const float> vectors = {}) {
    const auto n = static_cast<int32_t>(read.size());
    std::vector<int32_t> positions(read.size());
    std::iota(positions.begin(), positions.end(), n_past);
    std::vector<int32_t> all(read.size());
    std::iota(all.begin(), all.end(), 0);
    const std::vector<BlockId> blocks = {2, 0, 1, 3};
    const backend::SeqSlice slice{0, n, n_past};
    const std::vector<int32_t> out = {n - 1};
    const backend::StepBatch batch{.tokens = read,
                                   .positions = positions,
                                   .seqs = std::span(&slice, 1),
                                   .block_table = blocks,
                                   .max_blocks = kBlocks,
                                   .out_rows = out,
                                   .vector_rows = vectors.empty() ? std::span<const int32_t>() : all,
                                   .vectors = vectors};
    const auto row = backend->read_logits(model.launch(batch, kv)).row(0);
    return {row.begin(), row.end()};
  }
  // What the target kept of the tokens.
  std::vector<float> vectors_of(const std::vector<TokenId>& read) {
    run(*target, *target_kv, read, 0);
    const backend::RowsView rows = target->kept_rows(static_cast<int32_t>(read.size()));
    return {rows.data, rows.data + static_cast<size_t>(rows.n_rows) * static_cast<size_t>(rows.n_cols)};
  }
  // The logits behind the prompt and behind each draft but the last, which are given.
  std::vector<std::vector<float>> logits_of(const EagleGolden& golden) {
    std::vector<float> vectors = vectors_of(golden.read);
    vectors.resize(vectors.size() / golden.read.size() * (golden.read.size() - 1));
    std::vector<std::vector<float>> rows = {
        run(*head, *head_kv, {golden.read.begin() + 1, golden.read.end()}, 0, vectors)};
    for (size_t i = 0; i + 1 < golden.drafts.size(); ++i) {
      const auto given = head->hidden(1).row(0);
      const std::vector<float> own(given.begin(), given.end());
      rows.push_back(run(*head, *head_kv, {golden.drafts[i]}, static_cast<int32_t>(golden.read.size() - 1 + i), own));
    }
    return rows;
  }
};

using Rows = std::vector<std::vector<float>>;

float largest_difference(const Rows& a, const Rows& b) {
  float most = 0.0f;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a[i].size(); ++j) most = std::max(most, std::fabs(a[i][j] - b[i][j]));
  }
  return most;
}

double kl_divergence(const std::vector<float>& truth, const std::vector<float>& other) {
  const auto log_sum = [](const std::vector<float>& row) {
    double sum = 0.0;
    for (const float logit : row) sum += std::exp(static_cast<double>(logit));
    return std::log(sum);
  };
  double kl = 0.0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double log_p = static_cast<double>(truth[i]) - log_sum(truth);
    kl += std::exp(log_p) * (log_p - (static_cast<double>(other[i]) - log_sum(other)));
  }
  return kl;
}

class EagleGoldenTest : public ::testing::TestWithParam<const char*> {};

// numerics.md, "How it is held": 1e-4 of the largest logit.
TEST_P(EagleGoldenTest, logits_of_the_reference_are_those_of_the_published_description) {
  const EagleGolden golden = eagle_golden(GetParam());
  Pair pair(GetParam(), "reference");
  const auto seen = pair.logits_of(golden);
  ASSERT_EQ(seen.size(), golden.logits.size());
  ASSERT_EQ(seen.front().size(), static_cast<size_t>(kDraftVocab));
  const Rows zeros(seen.size(), std::vector<float>(static_cast<size_t>(kDraftVocab)));
  EXPECT_LE(largest_difference(seen, golden.logits), 1e-4f * largest_difference(golden.logits, zeros));
}

// numerics.md: mean KL at most 1e-3.
TEST_P(EagleGoldenTest, logits_of_the_cpu_are_near) {
  const EagleGolden golden = eagle_golden(GetParam());
  Pair pair(GetParam(), "cpu");
  const auto seen = pair.logits_of(golden);
  double kl = 0.0;
  for (size_t i = 0; i < seen.size(); ++i) kl += kl_divergence(golden.logits[i], seen[i]);
  EXPECT_LE(kl / static_cast<double>(seen.size()), 1e-3);
}

TEST_P(EagleGoldenTest, the_drafter_drafts_the_same_tokens) {
  const EagleGolden golden = eagle_golden(GetParam());
  Pair pair(GetParam(), "cpu");
  const auto* table = kernels::select_table_from_environment().value();
  draft::HeadDrafter drafter(*pair.backend, *pair.head, *pair.head_kv, {.n_slots = 1, .slot_blocks = kBlocks},
                             {.max_rows = 64, .n_vocab = pair.target->spec().vocab, .tokens = pair.tokens}, *table);
  const std::vector<float> vectors = pair.vectors_of(golden.read);
  const size_t width = draft::vector_width(pair.head->spec());
  ASSERT_EQ(vectors.size(), golden.read.size() * width);
  const auto known = std::span(golden.read).first(golden.read.size() - 1);
  drafter.watch({1, 0, known, std::span(vectors).first(known.size() * width)});
  sample::ChainParams greedy;
  greedy.temperature = 0.0f;
  draft::DraftRequest request{.sequence = 1, .text = golden.read, .chain = &greedy};
  request.n_drafts = static_cast<int32_t>(golden.drafts.size());
  drafter.propose(std::span(&request, 1), nullptr);
  EXPECT_EQ(request.drafts, golden.drafts);
}

// Names, rows in the order of rotary pairs, ids instead of offsets.
TEST_P(EagleGoldenTest, a_folder_has_the_tensors_of_llama_cpps_converter) {
  const auto file = open_file(eagle_folder(GetParam()));
  std::ifstream stream(eagle_folder(GetParam()) / "llama_cpp.json");
  const auto hashes = nlohmann::json::parse(stream);
  EXPECT_EQ(file->tensors().size(), hashes.size());
  for (const auto& [name, expected] : hashes.items()) {
    const TensorView* tensor = file->find(name);
    ASSERT_NE(tensor, nullptr) << name;
    ASSERT_TRUE(file->make_copy(tensor->bytes()));
    std::vector<float> numbers(static_cast<size_t>(tensor->shape.n_elements()));
    const bool is_ids = tensor->dtype == DType::kI64;
    if (!is_ids) decode_elements(tensor->dtype, tensor->data, tensor->shape.n_elements(), numbers.data());
    const auto bytes = is_ids ? tensor->bytes() : std::as_bytes(std::span(numbers));
    EXPECT_EQ(to_hex(sha256(bytes)), expected.get<std::string>()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(heads, EagleGoldenTest, ::testing::Values("specforge", "speculators"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace candor::testing
