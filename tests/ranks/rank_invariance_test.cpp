// The numerics contract over ranks: whatever their number, answers are those of one rank, bit for bit. A backend that
// sums parts of products, as ranks that split their inputs would, must be caught, else the comparison proves nothing.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "engine/engine_impl.h"
#include "engine_fixture.h"
#include "model/model.h"
#include "model/rank_splits.h"
#include "rank_requests.h"
#include "support/thread_ranks.h"
#include "support/with_head.h"

namespace candor {
namespace {

using testing::Crowd;
using testing::thread_ranks;
using testing::token_prompt;

using Change = std::function<void(EngineOptions&)>;

class RankInvariance : public testing::TinyModelTest {
 protected:
  static std::vector<Completion> answers(const std::filesystem::path& path, const engine::BackendFactory& backend,
                                         const Change& change, bool is_together) {
    EngineOptions options = testing::rank_test_options(path);
    change(options);
    auto engine = engine::open_with_backend(options, backend);
    EXPECT_TRUE(engine.has_value()) << path << ": " << (engine ? "" : engine.error().message);
    if (!engine) return {};
    const std::vector<Request> requests = testing::rank_test_requests((*engine)->info());
    if (is_together) return Crowd(**engine).run(requests);
    std::vector<Completion> all;
    for (const Request& request : requests) all.push_back(testing::complete(**engine, request));
    return all;
  }

  // How many answers of the backend are not those of one rank that computes each alone.
  static int count_different(const std::filesystem::path& path, const engine::BackendFactory& backend,
                             const Change& change = [](EngineOptions&) {}, bool is_together = true) {
    const auto one = [](const EngineOptions&) { return backend::make_cpu_backend({.n_threads = 1}); };
    const auto expected = answers(path, one, [](EngineOptions&) {}, false);
    const auto found = answers(path, backend, change, is_together);
    EXPECT_GE(expected.size(), 5u);
    if (found.size() != expected.size()) return static_cast<int>(expected.size());
    int n_different = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      const bool is_same = found[i].tokens == expected[i].tokens && found[i].logprobs == expected[i].logprobs &&
                           found[i].top_logprobs == expected[i].top_logprobs;
      n_different += is_same ? 0 : 1;
    }
    return n_different;
  }
};

struct Shape {
  const char* name;
  int32_t n_heads;
  int32_t n_kv_heads;
  DType dtype;
  bool is_tied = false;
};

class RankInvarianceOf : public RankInvariance, public ::testing::WithParamInterface<Shape> {};

TEST_P(RankInvarianceOf, every_answer_is_that_of_one_rank) {
  const Shape& shape = GetParam();
  testing::TinyModelOptions model = testing::tiny_model_of(shape.dtype, 64, 256);
  model.n_heads = shape.n_heads;
  model.n_kv_heads = shape.n_kv_heads;
  model.is_tied = shape.is_tied;
  model.ffn_dim = 512;
  const auto path = tiny_path(model);
  for (const int32_t n_ranks : {1, 2, 3, 4}) {
    EXPECT_EQ(count_different(path, thread_ranks(n_ranks)), 0) << n_ranks << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(shapes, RankInvarianceOf,
                         ::testing::Values(Shape{"dense", 4, 4, DType::kQ4_K}, Shape{"dense_f32", 4, 4, DType::kF32},
                                           Shape{"unequal_heads", 8, 8, DType::kQ8_0},
                                           Shape{"fewer_kv_heads_than_ranks", 8, 2, DType::kQ4_K, true},
                                           Shape{"one_kv_head", 4, 1, DType::kBF16}),
                         [](const auto& shape) { return std::string(shape.param.name); });

TEST_F(RankInvariance, drafts_chunks_and_preemption_change_nothing) {
  const auto path = tiny_path(testing::tiny_model_of(DType::kQ4_K, 64, 256));
  const auto head = testing::write_head(path, folder_.path() / "head.gguf");
  const auto eagle = testing::write_eagle(path, folder_.path() / "eagle.gguf");
  const std::vector<Change> changes = {
      [](EngineOptions& o) { o.max_rows = 7; },
      [](EngineOptions& o) { o.kv_blocks = 6; },
      [](EngineOptions& o) {
        o.speculation = Speculation::kNgram;
        o.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};
      },
      [&path](EngineOptions& o) {
        o.speculation = Speculation::kDraft;
        o.draft_path = path;
        o.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};
      },
      [&head](EngineOptions& o) {
        o.speculation = Speculation::kDraft;
        o.draft_path = head;
        o.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};
      },
      [&eagle](EngineOptions& o) {
        o.speculation = Speculation::kEagle;
        o.draft_path = eagle;
        o.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) EXPECT_EQ(count_different(path, thread_ranks(2), changes[i]), 0) << i;
}

TEST_F(RankInvariance, ranks_may_have_different_instruction_sets) {
  const auto path = tiny_path(testing::tiny_model_of(DType::kQ4_K, 64, 256));
  EXPECT_EQ(count_different(path, thread_ranks(3, testing::cpu_backend_of_each_isa())), 0);
}

// Experts, sinks, biases, windows, norms of whole rows, ALiBi, learned positions, side by side, recurrent, latent.
class RankInvarianceOfFamily : public RankInvariance, public ::testing::WithParamInterface<std::string> {};

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(testing::goldens())) {
    if (std::filesystem::exists(entry.path() / "model.gguf")) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

TEST_P(RankInvarianceOfFamily, every_answer_is_that_of_one_rank) {
  const auto path = testing::goldens() / GetParam() / "model.gguf";
  const auto file = formats::open_model_file(path);
  ASSERT_TRUE(file);
  const auto spec = model::read_arch(**file);
  ASSERT_TRUE(spec);
  for (const int32_t n_ranks : {2, 3}) {
    if (n_ranks > model::most_ranks(*spec)) continue;
    EXPECT_EQ(count_different(path, thread_ranks(n_ranks)), 0) << n_ranks << " ranks";
  }
}

TEST_P(RankInvarianceOfFamily, so_is_it_with_drafts_of_a_head) {
  const auto path = testing::goldens() / GetParam() / "model.gguf";
  const auto file = formats::open_model_file(path);
  ASSERT_TRUE(file);
  const auto spec = model::read_arch(**file);
  ASSERT_TRUE(spec);
  // Vectors of each token for each block are no part of a head.
  if (model::most_ranks(*spec) < 2 || spec->embed.layer_dim > 0) return;
  const auto head = testing::write_head(path, folder_.path() / "head.gguf");
  const auto change = [&head](EngineOptions& o) {
    o.speculation = Speculation::kDraft;
    o.draft_path = head;
    o.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};
  };
  EXPECT_EQ(count_different(path, thread_ranks(2), change), 0);
}

INSTANTIATE_TEST_SUITE_P(families, RankInvarianceOfFamily, ::testing::ValuesIn(families()),
                         [](const auto& family) { return family.param; });

TEST_F(RankInvariance, sums_of_parts_are_caught) {
  const auto path = tiny_path(testing::tiny_model_of(DType::kF32, 64, 256));
  const auto summing = [](const EngineOptions&) { return testing::summing_backend(2)(0); };
  EXPECT_GT(count_different(path, summing), 0);
  const auto sound = [](const EngineOptions&) { return testing::summing_backend(1)(0); };
  EXPECT_EQ(count_different(path, sound), 0);
}

// What two ranks said for some decoded tokens of a model.
backend::RankTraffic traffic_of(const std::filesystem::path& path, int64_t n_tokens, int32_t n_vocab = 384) {
  backend::Backend* ranks = nullptr;
  const auto make = thread_ranks(2);
  const auto engine = engine::open_with_backend(testing::rank_test_options(path), [&](const EngineOptions& options) {
    auto made = make(options);
    if (made) ranks = made->get();
    return made;
  });
  if (!engine) return ADD_FAILURE() << engine.error().message, backend::RankTraffic{};
  const backend::RankTraffic before = ranks->rank_traffic();
  Request request = testing::sampled(token_prompt(8, n_vocab, 1), n_tokens, 1);
  request.sampling.ignore_eos = true;
  testing::complete(**engine, request);
  const backend::RankTraffic after = ranks->rank_traffic();
  return {after.n_exchanges - before.n_exchanges, after.n_bytes - before.n_bytes};
}

// Four a layer; the embedding's rows and the logits beside them.
TEST_F(RankInvariance, a_layer_has_four_exchanges) {
  constexpr int64_t kTokens = 5;
  const auto traffic = traffic_of(tiny_path(testing::tiny_model_of(DType::kQ4_K, 64, 256)), kTokens);
  EXPECT_EQ(traffic.n_exchanges, kTokens * (4 * 2 + 2));
  EXPECT_GT(traffic.n_bytes, 0u);
}

// Where more than four are needed, and why, is what docs/distributed.md says.
TEST_F(RankInvariance, every_familys_layers_have_four_exchanges_at_most_but_for_five_families) {
  constexpr int64_t kTokens = 6;
  std::vector<std::string> with_more;
  for (const std::string& family : families()) {
    const auto path = testing::goldens() / family / "model.gguf";
    const auto file = formats::open_model_file(path);
    ASSERT_TRUE(file) << family;
    const auto spec = model::read_arch(**file);
    ASSERT_TRUE(spec) << family;
    const int64_t of_layers = model::exchanges_of_layers(*spec);
    const int64_t beside = spec->embed.layer_dim > 0 ? 3 : 2;  // the embedding's rows, those of all layers, logits
    EXPECT_EQ(traffic_of(path, kTokens, spec->vocab).n_exchanges, kTokens * (of_layers + beside)) << family;
    if (of_layers > 4 * std::ssize(spec->blocks)) with_more.push_back(family);
    EXPECT_LE(of_layers, 5 * std::ssize(spec->blocks)) << family;
  }
  EXPECT_EQ(with_more,
            (std::vector<std::string>{"falcon_h1", "falcon_h1_norm", "minimax_m2", "olmo2", "olmo3", "olmoe"}));
}

// Gated rows travel as `down` wants them where its encoding has fewer bytes, and as many exchanges as ever.
TEST_F(RankInvariance, rows_travel_as_their_product_encodes_them) {
  constexpr int64_t kTokens = 5;
  const auto traffic = [&](DType dtype) {
    testing::TinyModelOptions model = testing::tiny_model_of(dtype, 64, 256);
    model.ffn_dim = 1024;
    return traffic_of(tiny_path(model), kTokens);
  };
  const auto as_numbers = traffic(DType::kF32);
  for (const DType dtype : {DType::kQ4_K, DType::kQ8_0}) {
    const auto encoded = traffic(dtype);
    EXPECT_EQ(encoded.n_exchanges, as_numbers.n_exchanges);
    // At least 70 % of 512 floats of each layer and row: of 8 rows of the prompt, and of all tokens but the last.
    EXPECT_LT(encoded.n_bytes + 2 * (8 + kTokens - 1) * 512 * 4 * 7 / 10, as_numbers.n_bytes)
        << static_cast<int>(dtype);
  }
}

TEST_F(RankInvariance, more_ranks_than_heads_are_refused_with_what_can_be_used) {
  const auto path = tiny_path(testing::tiny_model_of(DType::kQ8_0, 64, 256));
  const auto engine = engine::open_with_backend(testing::rank_test_options(path), thread_ranks(5));
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("5 ranks were asked for, and this model of family llama can use 4"),
            std::string::npos)
      << engine.error().message;
}

}  // namespace
}  // namespace candor
