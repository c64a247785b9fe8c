// One answer: a text's vector is the same alone, among others in any order, with any number of threads, by any kernel
// table, and over ranks.

#include <cstdlib>
#include <future>
#include <random>

#include "encoders/golden.h"
#include "engine/engine_impl.h"
#include "kernels/kernels.h"
#include "support/thread_ranks.h"

namespace candor::testing {
namespace {

// Of 1 to 60 words.
std::vector<std::string> made_texts(size_t n) {
  constexpr const char* kWords[] = {"engine", "of", "the", "reads", "a", "text", "step,", "naive", "batch", "why?"};
  std::mt19937 random(7);
  std::vector<std::string> texts(n);
  for (std::string& text : texts) {
    for (unsigned words = 1 + random() % 14; words > 0; --words) text += std::string(kWords[random() % 10]) + " ";
  }
  return texts;
}

Request asked(const std::string& text, bool has_labels) {
  return reading(TextPrompt{.text = text}, has_labels ? Pooling::kLabels : Pooling::kModel);
}

// All at once.
std::vector<std::vector<float>> read_together(Engine& engine, const std::vector<Request>& requests) {
  std::vector<std::promise<std::vector<float>>> promises(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto id = engine.submit(requests[i], [&, i](const TokenEvent& event) {
      if (event.error) ADD_FAILURE() << event.error->message;
      if (event.summary) promises[i].set_value(event.embedding);
    });
    if (!id) {
      ADD_FAILURE() << id.error().message;
      promises[i].set_value({});
    }
  }
  std::vector<std::vector<float>> vectors;
  for (auto& promise : promises) vectors.push_back(promise.get_future().get());
  return vectors;
}

bool labels_texts(const Engine& engine) {
  return !engine.info().reading.labels.empty() && !engine.info().reading.labels_tokens;
}

class EncoderInvariance : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto engine = open_encoder(encoder_path(GetParam()));
    ASSERT_NE(engine, nullptr);
    for (const std::string& text : texts_) {
      requests_.push_back(asked(text, labels_texts(*engine)));
      alone_.push_back(read_text(*engine, requests_.back()));
      ASSERT_FALSE(alone_.back().empty());
    }
  }
  const std::vector<std::string> texts_ = made_texts(64);
  std::vector<Request> requests_;
  std::vector<std::vector<float>> alone_;
};

TEST_P(EncoderInvariance, together_shuffled_and_with_more_threads) {
  for (const int32_t n_threads : {1, 2, 3}) {
    const auto engine = open_encoder(encoder_path(GetParam()), "cpu", n_threads);
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(read_together(*engine, requests_), alone_) << n_threads;
    std::vector<Request> shuffled(requests_.rbegin(), requests_.rend());
    const std::vector<std::vector<float>> reversed(alone_.rbegin(), alone_.rend());
    EXPECT_EQ(read_together(*engine, shuffled), reversed) << n_threads;
  }
}

TEST_P(EncoderInvariance, by_every_kernel_table) {
  for (const kernels::KernelTable* table : kernels::runnable_tables()) {
    setenv("CANDOR_ISA", std::string(table->name).c_str(), 1);
    const auto engine = open_encoder(encoder_path(GetParam()));
    unsetenv("CANDOR_ISA");
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(read_together(*engine, requests_), alone_) << table->name;
  }
}

TEST_P(EncoderInvariance, over_ranks) {
  EngineOptions options;
  options.model_path = encoder_path(GetParam());
  options.n_threads = 1;
  const auto engine = engine::open_with_backend(options, thread_ranks(2));
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_EQ(read_together(**engine, requests_), alone_);
}

INSTANTIATE_TEST_SUITE_P(all, EncoderInvariance, ::testing::ValuesIn(kEncoders));

}  // namespace
}  // namespace candor::testing
