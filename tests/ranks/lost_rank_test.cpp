// What a rank computes when another one is lost in the middle of a step: nothing more. However long the rest would
// take, clients are told in time.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/rank_backend.h"
#include "backend/wrap/forwarding_backend.h"
#include "comm/communicator.h"
#include "engine/engine_impl.h"
#include "engine_fixture.h"
#include "formats/model_file.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "model/score.h"
#include "rank_requests.h"

namespace candor {
namespace {

using backend::Activation;

// When the peer is lost, and what happens behind that.
struct Loss {
  int n_sound = 0;  // exchanges before
  bool is_there = false;
  int n_late = 0;  // operations that take long
};

// Of two ranks the first, whose peer answers nothing.
class LosingCommunicator final : public comm::Communicator {
 public:
  explicit LosingCommunicator(Loss& loss) : loss_(loss) {}
  int32_t rank() const override { return 0; }
  int32_t size() const override { return 2; }
  Result<void> gather(const comm::RowSlices&, comm::Receivers, uint64_t) override {
    loss_.is_there = loss_.is_there || loss_.n_sound-- == 0;
    return health();
  }
  Result<void> broadcast(std::vector<std::byte>&) override { return health(); }
  Result<void> barrier() override { return health(); }
  void say_failed(const Error&) override {}
  Result<void> health() const override {
    if (loss_.is_there) return comm::lost_rank("rank 1 has ended");
    return {};
  }
  comm::Traffic traffic() const override { return {}; }

 private:
  Loss& loss_;
};

class CountingOps final : public backend::Ops {
 public:
  CountingOps(backend::Ops& inner, Loss& loss) : inner_(inner), loss_(loss) {}
  void run(const backend::Op& operation) override {
    backend::Operands operands;
    backend::describe(operation, operands);
    if (is_work(operands.kind)) loss_.n_late += loss_.is_there ? 1 : 0;
    inner_.run(operation);
  }

 private:
  static bool is_work(backend::OpKind kind) {
    using enum backend::OpKind;
    return kind == kLinear || kind == kAttend || kind == kConv || kind == kDelta || kind == kSsm;
  }
  backend::Ops& inner_;
  Loss& loss_;
};

class CountingBackend final : public backend::ForwardingBackend {
 public:
  CountingBackend(std::unique_ptr<backend::Backend> cpu, Loss& loss)
      : ForwardingBackend(std::move(cpu)), ops_(inner().ops(), loss) {}
  backend::Ops& ops() override { return ops_; }

 private:
  CountingOps ops_;
};

Result<std::unique_ptr<backend::Backend>> losing_backend(Loss& loss) {
  CANDOR_ASSIGN(auto cpu, backend::make_cpu_backend({.n_threads = 1}));
  CANDOR_ASSIGN(const kernels::KernelTable* table, kernels::select_table_from_environment());
  const auto gather_group = [&loss]() -> Result<backend::RankGroup> {
    return backend::RankGroup{nullptr, std::make_unique<LosingCommunicator>(loss)};
  };
  return std::make_unique<backend::RankBackend>(
      std::make_unique<CountingBackend>(std::move(cpu), loss),
      backend::RankOptions{.rank = 0, .size = 2, .table = table, .gather_group = gather_group});
}

class LostRank : public testing::TinyModelTest {
 protected:
  // A model's first step, of which an exchange fails.
  static void expect_early_end(const std::filesystem::path& path, int n_sound) {
    Loss loss{.n_sound = n_sound};
    const auto engine = engine::open_with_backend(testing::rank_test_options(path),
                                                  [&loss](const EngineOptions&) { return losing_backend(loss); });
    ASSERT_TRUE(engine.has_value()) << path << ": " << engine.error().message;
    const auto answer = (*engine)->generate(testing::rank_test_requests((*engine)->info()).front());
    ASSERT_FALSE(answer.has_value()) << path;
    EXPECT_EQ(answer.error().message, "rank 1 has ended");
    EXPECT_TRUE(loss.is_there);
    EXPECT_EQ(loss.n_late, 0) << path << ", " << n_sound << " exchanges";
  }
  std::filesystem::path small_path() { return tiny_path(testing::tiny_model_of(DType::kQ4_K, 64, 256)); }
};

TEST_F(LostRank, ends_the_step_without_computing_the_rest_of_it) {
  for (const int n_sound : {0, 1, 2, 3, 4}) expect_early_end(small_path(), n_sound);
}

// Experts, states and latent attention as well.
TEST_F(LostRank, ends_the_step_of_every_family) {
  for (const auto& entry : std::filesystem::directory_iterator(testing::goldens())) {
    const auto path = entry.path() / "model.gguf";
    if (!std::filesystem::exists(path)) continue;
    for (const int n_sound : {0, 3}) expect_early_end(path, n_sound);
  }
}

// What candor eval would print of it means nothing.
TEST_F(LostRank, ends_the_scores_of_a_text_with_an_error) {
  Loss loss{.n_sound = 5};
  auto backend = losing_backend(loss);
  ASSERT_TRUE(backend);
  const auto file = formats::open_model_file(small_path());
  ASSERT_TRUE(file);
  const auto model = model::Model::load(**file, **backend, {});
  ASSERT_TRUE(model) << model.error().message;
  const auto scorer = model::Scorer::make(**model, **backend, {.max_tokens = 64});
  ASSERT_TRUE(scorer) << scorer.error().message;
  const auto scores = (*scorer)->logprobs(testing::token_prompt(40, 384, 1));
  ASSERT_FALSE(scores);
  EXPECT_EQ(scores.error().message, "rank 1 has ended");
}

}  // namespace
}  // namespace candor
