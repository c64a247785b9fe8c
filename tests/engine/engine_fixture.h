#pragma once
// Engines for tests: opened on generated models or on stories260K, asked in one line, compared bit for bit.

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "candor/engine.h"
#include "formats/model_file.h"
#include "quantize/quantizer.h"
#include "support/random_weights.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace candor::testing {

inline std::filesystem::path stories_path() {
  return shared_data() / "models" / "stories260K.gguf";
}

inline std::unique_ptr<Engine> open_or_fail(const EngineOptions& options) {
  auto engine = Engine::open(options);
  if (engine) return std::move(*engine);
  ADD_FAILURE() << engine.error().message;
  return nullptr;
}

inline EngineOptions options_for(const std::filesystem::path& path) {
  EngineOptions options;
  options.model_path = path;
  options.n_threads = 1;
  return options;
}

inline Request greedy(Prompt prompt, int64_t max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0.0;
  request.sampling.max_tokens = max_tokens;
  return request;
}

inline Request sampled(Prompt prompt, int64_t max_tokens, uint64_t seed) {
  Request request = greedy(std::move(prompt), max_tokens);
  request.sampling.temperature = 1.0;
  request.sampling.seed = seed;
  request.sampling.logprobs = 3;
  return request;
}

inline Completion complete(Engine& engine, const Request& request) {
  auto completion = engine.generate(request);
  if (completion) return std::move(*completion);
  ADD_FAILURE() << completion.error().message;
  return {};
}

// What one answer is, bit for bit.
inline void expect_same(const Completion& a, const Completion& b, const std::string& what) {
  EXPECT_EQ(a.tokens, b.tokens) << what;
  EXPECT_EQ(a.text, b.text) << what;
  EXPECT_EQ(a.finish, b.finish) << what;
  EXPECT_TRUE(a.logprobs == b.logprobs) << what << ": logprobs differ";
  EXPECT_TRUE(a.top_logprobs == b.top_logprobs) << what << ": top logprobs differ";
}

// Submits every request before any has ended and waits for all; completions in the order of the requests.
class Crowd {
 public:
  explicit Crowd(Engine& engine) : engine_(engine) {}

  std::vector<Completion> run(const std::vector<Request>& requests) {
    std::vector<Completion> completions(requests.size());
    n_left_ = requests.size();
    for (size_t i = 0; i < requests.size(); ++i) {
      const auto id = engine_.submit(requests[i], [&, i](const TokenEvent& event) { on_event(completions[i], event); });
      EXPECT_TRUE(id.has_value()) << id.error().message;
      if (!id) on_end();
    }
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return n_left_ == 0; });
    return completions;
  }

 private:
  static CompletedChoice& choice_of(Completion& completion, int32_t choice) {
    if (choice == 0) return completion;
    const auto n = static_cast<size_t>(choice);
    if (completion.more_choices.size() < n) completion.more_choices.resize(n);
    return completion.more_choices[n - 1];
  }
  void on_event(Completion& completion, const TokenEvent& event) {
    CompletedChoice& choice = choice_of(completion, event.choice);
    choice.text += event.text;
    if (event.token >= 0) choice.tokens.push_back(event.token);
    if (event.logprob) choice.logprobs.push_back(*event.logprob);
    if (event.logprob) choice.top_logprobs.push_back(event.top_logprobs);
    if (event.finish) choice.finish = *event.finish;
    if (!event.summary) return;
    completion.summary = *event.summary;
    on_end();
  }
  void on_end() {
    const std::lock_guard lock(mutex_);
    if (--n_left_ == 0) ended_.notify_one();
  }

  Engine& engine_;
  std::mutex mutex_;
  std::condition_variable ended_;
  size_t n_left_ = 0;  // guarded by mutex_
};

// A generated model as a file, and engines on it.
class TinyModelTest : public ::testing::Test {
 protected:
  std::filesystem::path tiny_path(const TinyModelOptions& options) {
    const auto path = folder_.path() / ("tiny" + std::to_string(n_files_++) + ".gguf");
    const auto written = write_model(*make_tiny_model(options), path);
    EXPECT_TRUE(written.has_value()) << written.error().message;
    return path;
  }
  // The model at path, encoded by the recipe, in a file.
  std::filesystem::path quantised_path(const std::filesystem::path& path, const std::string& recipe) {
    const auto file = formats::open_model_file(path);
    const auto written = folder_.path() / (recipe + ".gguf");
    quantize::QuantizeOptions options;
    options.recipe = *quantize::find_recipe(recipe);
    EXPECT_TRUE(file && quantize::write_gguf(**file, written, options));
    return written;
  }
  static TinyModelOptions tiny_options() {
    TinyModelOptions options;
    options.vocab = 320;
    return options;
  }

  TempFolder folder_;
  int n_files_ = 0;
};

inline TokenPrompt token_prompt(int32_t n, int32_t vocab, uint64_t seed) {
  SplitMix random(seed);
  TokenPrompt tokens = {1};
  while (static_cast<int32_t>(tokens.size()) < n) {
    tokens.push_back(static_cast<TokenId>(3 + random.below(static_cast<uint64_t>(vocab - 3))));
  }
  return tokens;
}

}  // namespace candor::testing
