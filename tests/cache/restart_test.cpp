// An engine with a cache on disk gives the answers of one without, bit for bit: after restarts, with little memory,
// with damaged files; and a scope finds nothing of another's.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "candor/engine.h"
#include "kernels/kernels.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace candor::testing::restarts {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string name;
  fs::path path;
  KvType kv_type = KvType::kBf16;
};

const std::vector<Case>& cases() {
  const auto golden = [](const char* name) { return goldens() / name; };
  static const std::vector<Case> all = {{"pocket", project_file("models/pocket/pocket-q8_0.gguf")},
                                        {"pocket_f32", project_file("models/pocket/pocket-q8_0.gguf"), KvType::kF32},
                                        {"pocket_q8", project_file("models/pocket/pocket-q8_0.gguf"), KvType::kQ8_0},
                                        {"pocket_q4", project_file("models/pocket/pocket-q8_0.gguf"), KvType::kQ4},
                                        {"gemma3", golden("gemma3")},
                                        {"gpt_oss", golden("gpt_oss")},
                                        {"deepseek_v3", golden("deepseek_v3")},
                                        {"qwen3_next", golden("qwen3_next")},
                                        {"qwen3_next_f32", golden("qwen3_next"), KvType::kF32},
                                        {"nemotron_h", golden("nemotron_h")}};
  return all;
}

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  int64_t n_disk = 0;
  bool operator==(const Answer& other) const { return tokens == other.tokens && logprobs == other.logprobs; }
};

EngineOptions options_of(const Case& of, const fs::path& folder) {
  EngineOptions options;
  options.model_path = of.path;
  options.n_threads = 1;
  options.n_ctx = 256;
  options.max_running = 4;
  options.kv_type = of.kv_type;
  options.cache_dir = folder;
  options.cache_bytes = uint64_t{200} << 20;
  options.costs = StepCosts{.points = {{1, 100.0}, {256, 10'000.0}}};  // slow, so that reading pays
  return options;
}

Request made_request(int i, int length) {
  TokenPrompt prompt;
  for (TokenId at = 0; at < length; ++at) prompt.push_back((7 * at * at + 3 * at + (at < 64 ? 1 : i)) % 250);
  Request request{.prompt = prompt};
  request.sampling.temperature = i % 2 == 0 ? 0.0 : 0.9;
  request.sampling.seed = 11;
  request.sampling.max_tokens = 8;
  request.sampling.logprobs = 0;
  request.sampling.ignore_eos = true;
  return request;
}

std::vector<Request> made_requests() {
  std::vector<Request> requests;
  for (int i = 0; i < 8; ++i) requests.push_back(made_request(i, 100 + 15 * i));
  return requests;
}

std::unique_ptr<Engine> opened(const EngineOptions& options) {
  auto engine = Engine::open(options);
  if (engine) return std::move(*engine);
  ADD_FAILURE() << engine.error().message;
  return nullptr;
}

std::vector<Answer> answers(Engine& engine, const std::vector<Request>& requests) {
  std::vector<Answer> result(requests.size());
  std::vector<std::promise<void>> ends(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto id = engine.submit(requests[i], [&, i](const TokenEvent& event) {
      if (event.error) ADD_FAILURE() << event.error->message;
      if (event.token >= 0) result[i].tokens.push_back(event.token);
      if (event.logprob) result[i].logprobs.push_back(event.logprob->logprob);
      if (!event.summary) return;
      result[i].n_disk = event.summary->usage.disk_tokens;
      ends[i].set_value();
    });
    if (id) continue;
    ADD_FAILURE() << id.error().message;
    ends[i].set_value();
  }
  for (auto& end : ends) end.get_future().get();
  return result;
}

int64_t disk_tokens(const std::vector<Answer>& all) {
  int64_t n = 0;
  for (const Answer& answer : all) n += answer.n_disk;
  return n;
}

class Restarts : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    EngineOptions options = options_of(GetParam(), {});
    options.prefix_cache = false;
    truth_ = answers(*opened(options), requests_);
  }
  const TempFolder folder_;
  const fs::path path_ = folder_.path() / "prefixes";
  const std::vector<Request> requests_ = made_requests();
  std::vector<Answer> truth_;
};

TEST_P(Restarts, answers_after_a_restart_are_the_same_and_begin_on_the_disk) {
  {
    const auto engine = opened(options_of(GetParam(), path_));
    ASSERT_TRUE(engine->disk_cache().is_on) << engine->disk_cache().problem;
    EXPECT_EQ(answers(*engine, requests_), truth_);
    EXPECT_EQ(engine->disk_cache().tokens_restored, 0);
  }
  for (const bool is_one_by_one : {false, true}) {
    const auto engine = opened(options_of(GetParam(), path_));
    std::vector<Answer> again;
    if (is_one_by_one) {
      for (const Request& request : requests_) again.push_back(answers(*engine, {request}).front());
    } else {
      again = answers(*engine, requests_);
    }
    EXPECT_EQ(again, truth_);
    EXPECT_GE(disk_tokens(again), 8 * 32);
    EXPECT_EQ(engine->disk_cache().blocks_damaged, 0);
  }
}

TEST_P(Restarts, what_has_no_room_in_memory_comes_back_from_the_disk) {
  EngineOptions options = options_of(GetParam(), path_);
  options.kv_blocks = 12;
  options.max_running = 1;
  const auto engine = opened(options);
  for (int round = 0; round < 3; ++round) {
    std::vector<Answer> again;
    for (const Request& request : requests_) again.push_back(answers(*engine, {request}).front());
    EXPECT_EQ(again, truth_) << round;
  }
  EXPECT_GT(engine->disk_cache().tokens_restored, 0);
}

// Of another processor, say.
TEST_P(Restarts, blocks_that_one_kernel_table_made_serve_another) {
  const auto tables = kernels::runnable_tables();
  const auto by = [&](const kernels::KernelTable& table) {
    setenv("CANDOR_ISA", std::string(table.name).c_str(), 1);
    auto engine = opened(options_of(GetParam(), path_));
    unsetenv("CANDOR_ISA");
    return answers(*engine, requests_);
  };
  EXPECT_EQ(by(*tables.back()), truth_);
  for (const kernels::KernelTable* table : tables) {
    const std::vector<Answer> again = by(*table);
    EXPECT_EQ(again, truth_) << table->name;
    EXPECT_GE(disk_tokens(again), 8 * 32) << table->name;
  }
}

TEST_P(Restarts, damaged_files_change_no_answer) {
  { answers(*opened(options_of(GetParam(), path_)), requests_); }
  std::mt19937 random(3);
  const fs::path file = path_ / "0000000000000001.blocks";
  std::ifstream stream(file, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  for (int i = 0; i < 6; ++i) {
    std::string flipped = whole;
    for (int bit = 0; bit < 4; ++bit) flipped[random() % flipped.size()] ^= static_cast<char>(1 << random() % 8);
    std::ofstream(file, std::ios::binary | std::ios::trunc) << flipped;
    EngineOptions options = options_of(GetParam(), path_);
    options.cache_bytes = uint64_t{199} << 20;
    EXPECT_EQ(answers(*opened(options), requests_), truth_);
    for (const auto& other : fs::directory_iterator(path_)) {
      if (other.path() != file) fs::remove(other.path());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(models, Restarts, ::testing::ValuesIn(cases()),
                         [](const auto& each) { return each.param.name; });

TEST(disk_cache, a_scope_finds_nothing_of_another) {
  const TempFolder folder;
  const Case& model = cases().front();
  Request request = made_request(0, 200);
  request.scheduling.cache_scope = "mine";
  { answers(*opened(options_of(model, folder.path() / "p")), {request}); }
  const auto engine = opened(options_of(model, folder.path() / "p"));
  request.scheduling.cache_scope = "yours";
  EXPECT_EQ(answers(*engine, {request}).front().n_disk, 0);
  request.scheduling.cache_scope = "";
  EXPECT_EQ(answers(*engine, {request}).front().n_disk, 0);
  EXPECT_EQ(engine->disk_cache().read_bytes, 0) << "not even looked at";
  request.scheduling.cache_scope = "mine";
  EXPECT_GT(answers(*engine, {request}).front().n_disk, 0);
}

TEST(disk_cache, another_kv_type_or_model_finds_nothing) {
  const TempFolder folder;
  const Request request = made_request(0, 200);
  { answers(*opened(options_of(cases()[0], folder.path() / "p")), {request}); }
  EXPECT_EQ(answers(*opened(options_of(cases()[1], folder.path() / "p")), {request}).front().n_disk, 0);
  EXPECT_EQ(answers(*opened(options_of(cases()[5], folder.path() / "p")), {request}).front().n_disk, 0);
  EXPECT_GT(answers(*opened(options_of(cases()[0], folder.path() / "p")), {request}).front().n_disk, 0);
}

TEST(disk_cache, saving_writes_without_an_end) {
  const TempFolder folder;
  const auto engine = opened(options_of(cases().front(), folder.path() / "p"));
  const Request request = made_request(0, 200);
  answers(*engine, {request});
  EXPECT_EQ(engine->disk_cache().folder_blocks, 0);
  const auto n_blocks = engine->save_cache();
  ASSERT_TRUE(n_blocks) << n_blocks.error().message;
  EXPECT_EQ(*n_blocks, 6);
  for (int i = 0; i < 500 && engine->disk_cache().folder_blocks < 6; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(engine->disk_cache().folder_blocks, 6);
  const auto other = opened(options_of(cases().front(), folder.path() / "p"));
  EXPECT_EQ(answers(*other, {request}).front().n_disk, 6 * 32);
}

TEST(disk_cache, what_is_computed_faster_than_it_is_read_is_not_kept) {
  const TempFolder folder;
  EngineOptions options = options_of(cases().front(), folder.path() / "p");
  options.costs = StepCosts{.points = {{1, 1e-6}, {256, 1e-5}}};
  const Request request = made_request(0, 200);
  { answers(*opened(options), {request}); }
  const auto engine = opened(options);
  EXPECT_EQ(engine->disk_cache().folder_blocks, 0);
}

TEST(disk_cache, a_request_that_is_cancelled_while_it_waits_for_the_disk_ends_at_once) {
  const TempFolder folder;
  const Request request = made_request(0, 200);
  { answers(*opened(options_of(cases().front(), folder.path() / "p")), {request}); }
  const auto engine = opened(options_of(cases().front(), folder.path() / "p"));
  for (int i = 0; i < 50; ++i) {
    std::promise<FinishReason> ended;
    const auto id = engine->submit(request, [&](const TokenEvent& event) {
      if (event.finish) ended.set_value(*event.finish);
    });
    ASSERT_TRUE(id);
    static_cast<void>(engine->cancel(*id));
    const FinishReason reason = ended.get_future().get();
    EXPECT_TRUE(reason == FinishReason::kCancelled || reason == FinishReason::kLength);
  }
  EXPECT_GT(answers(*engine, {request}).front().tokens.size(), 0u);
}

TEST(disk_cache, who_cannot_have_one_runs_without_and_says_why) {
  const TempFolder folder;
  const Request request = made_request(0, 100);
  const auto problem_of = [&](auto change) {
    EngineOptions options = options_of(cases().front(), folder.path() / "p");
    change(options);
    const auto engine = opened(options);
    EXPECT_EQ(answers(*engine, {request}).front().tokens.size(), 8u);
    EXPECT_FALSE(engine->disk_cache().is_on);
    EXPECT_FALSE(engine->save_cache());
    return engine->disk_cache().problem;
  };
  std::ofstream(folder.path() / "file") << "x";
  EXPECT_NE(problem_of([&](EngineOptions& o) { o.cache_dir = folder.path() / "file"; }).find("is no folder"),
            std::string::npos);
  EXPECT_NE(problem_of([](EngineOptions& o) { o.cache_bytes = 1; }).find("too few"), std::string::npos);
  EXPECT_NE(problem_of([](EngineOptions& o) { o.cache_bytes = UINT64_MAX; }).find("whose disk has"), std::string::npos);
  EXPECT_NE(
      problem_of([](EngineOptions& o) { o.backend = "reference", o.kv_type = KvType::kF32; }).find("not kept on disk"),
      std::string::npos);
  EXPECT_NE(problem_of([](EngineOptions& o) { o.prefix_cache = false; }).find("no prefix cache"), std::string::npos);
  EXPECT_EQ(problem_of([](EngineOptions& o) { o.cache_dir.clear(); }), "");
}

}  // namespace
}  // namespace candor::testing::restarts
