// The kinds of memory that layers have, one model each: keys and values with sinks and windows, latents, recurrent
// states with their checkpoints; and experts. Answers are computed alone and cold, then under whatever must not matter,
// above all from beginnings that were read before, and compared bit for bit.

#include <algorithm>
#include <numeric>

#include "backend/cpu/cpu_backend.h"
#include "engine/engine_impl.h"
#include "engine/open/device_choice.h"
#include "engine_fixture.h"
#include "kernels/kernels.h"
#include "support/broken_backend.h"
#include "support/shared_data.h"

namespace candor::memory_kinds {
namespace {

using testing::complete;
using testing::sampled;
using testing::token_prompt;

constexpr int64_t kNew = 40;
constexpr int32_t kBlock = 32;

// What is asked for, by number.
enum Asked : size_t { kChat, kParted, kNextTurn, kForks, kBeams, kConstrained, kShort, kLonger, kAll };
using Numbers = std::vector<size_t>;
const Numbers kEverything = {kChat, kParted, kNextTurn, kForks, kBeams, kConstrained, kShort, kLonger};

bool is_same(const CompletedChoice& a, const CompletedChoice& b) {
  return a.tokens == b.tokens && a.logprobs == b.logprobs && a.top_logprobs == b.top_logprobs;
}

bool is_same_in_all(const Completion& a, const Completion& b) {
  return is_same(a, b) && std::ranges::equal(a.more_choices, b.more_choices, is_same);
}

std::vector<TokenId> joined(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

engine::BackendFactory broken(testing::BrokenRule rule) {
  return [rule](const EngineOptions& options) { return testing::make_broken_backend(options.n_threads, rule); };
}

// How answers are asked for: how many at once, and whether what one leaves behind is there for the next.
struct Way {
  EngineOptions options;
  size_t n_together = 1;
  Numbers order = kEverything;
};

class Memory : public testing::TinyModelTest {
 protected:
  void use(const std::string& family, engine::BackendFactory backend = engine::make_named_backend) {
    path_ = testing::goldens() / family / "model.gguf";
    backend_ = std::move(backend);
    requests_.clear();
    expected_.clear();
    n_compared_ = n_different_ = n_middle_ = 0;
    n_cached_ = n_preempted_ = n_accepted_ = 0;
    const auto cold = open(way().options);
    ASSERT_NE(cold, nullptr);
    ask_alone(*cold);
  }

  Way way(bool is_warm = false) const {
    Way way{testing::options_for(path_)};
    way.options.n_ctx = 256;
    way.options.kv_blocks = 256 / kBlock * 16;
    way.options.prefix_cache = is_warm;
    way.options.costs = StepCosts{.points = {{1, 0.0}}, .attend_ns = 0};
    if (is_warm) way.order.insert(way.order.end(), kEverything.rbegin(), kEverything.rend());
    return way;
  }

  void compare(const Way& way) {
    const auto engine = open(way.options);
    ASSERT_NE(engine, nullptr);
    for (size_t begin = 0; begin < way.order.size(); begin += way.n_together) {
      const size_t end = std::min(begin + way.n_together, way.order.size());
      std::vector<Request> group;
      for (size_t i = begin; i < end; ++i) group.push_back(requests_[way.order[i]]);
      const auto found = testing::Crowd(*engine).run(group);
      for (size_t i = begin; i < end; ++i) count(found[i - begin], expected_[way.order[i]]);
    }
    n_preempted_ += engine->stats().n_preemptions;
    EXPECT_EQ(engine->stats().state_slots_used, 0);
    EXPECT_EQ(engine->stats().kv_blocks_used, 0);
  }

  std::unique_ptr<Engine> open(const EngineOptions& options) const {
    auto engine = engine::open_with_backend(options, backend_);
    EXPECT_TRUE(engine.has_value()) << (engine ? "" : engine.error().message);
    return engine ? std::move(*engine) : nullptr;
  }

  std::filesystem::path path_;
  engine::BackendFactory backend_;
  std::vector<Request> requests_;
  std::vector<Completion> expected_;
  int n_compared_ = 0;
  int n_different_ = 0;
  int n_middle_ = 0;  // answers that began inside of a prompt
  int64_t n_cached_ = 0;
  int64_t n_preempted_ = 0;
  int64_t n_accepted_ = 0;  // drafts

 private:
  void count(const Completion& found, const Completion& expected) {
    const Usage& usage = found.summary.usage;
    ++n_compared_;
    n_different_ += is_same_in_all(found, expected) ? 0 : 1;
    n_middle_ += usage.cached_tokens > 0 && usage.cached_tokens < usage.prompt_tokens - kBlock ? 1 : 0;
    n_cached_ += usage.cached_tokens;
    n_accepted_ += usage.accepted_tokens;
  }

  // Beginnings that are shared, at ends of blocks and inside of them.
  void ask_alone(Engine& cold) {
    const int32_t n_vocab = cold.info().n_vocab;
    const auto own = [&](int32_t n, uint64_t seed) { return token_prompt(n, n_vocab, seed); };
    const auto add = [&](const TokenPrompt& prompt) -> Request& {
      requests_.push_back(sampled(prompt, kNew, requests_.size() + 1));
      requests_.back().sampling.ignore_eos = true;
      return requests_.back();
    };
    const TokenPrompt chat = own(70, 1);
    add(chat);
    const Completion answer = complete(cold, requests_[kChat]);
    add(joined({chat.begin(), chat.begin() + 50}, own(45, 2))).sampling.temperature = 0.0;
    add(joined(joined(chat, answer.tokens), own(12, 3)));
    const TokenPrompt story = own(100, 4);
    add(story).n = 3;
    add(joined({story.begin(), story.begin() + 97}, own(30, 5))).beams = BeamSearch{.width = 2};
    add(chat).constraint = {GrammarKind::kRegex, "[a-z ]{4,40}"};
    add(own(5, 6));
    add(joined(chat, own(60, 7)));
    for (const Request& request : requests_) expected_.push_back(complete(cold, request));
  }
};

class MemoryOf : public Memory, public ::testing::WithParamInterface<const char*> {
 protected:
  void compare_chunks() {
    for (int32_t n_rows = 1; n_rows <= 64; ++n_rows) {
      for (const bool is_warm : {false, true}) {
        Way chunks = way(is_warm);
        chunks.options.max_running = 1;
        chunks.options.max_rows = n_rows;
        chunks.order = is_warm ? Numbers{kChat, kParted, kNextTurn, kLonger} : Numbers{kChat, kForks};
        compare(chunks);
      }
    }
  }
  void compare_company() {
    for (const size_t n_together : {size_t{1}, size_t{2}, size_t{7}, size_t{16}}) {
      for (const int n_threads : {1, 2}) {
        for (const bool is_warm : {false, true}) {
          Way company = way(is_warm);
          company.options.n_threads = n_threads;
          company.n_together = n_together;
          compare(company);
        }
      }
    }
  }
  // Contexts that outgrow the blocks, and slots for hardly a checkpoint.
  void compare_little_room() {
    for (const bool is_warm : {false, true}) {
      for (const int32_t n_blocks : {8, 12}) {
        Way little = way(is_warm);
        little.options.kv_blocks = n_blocks;
        little.options.kept_states = n_blocks - 8;
        little.n_together = 16;
        compare(little);
      }
    }
  }
  void compare_drafts() {
    for (const Speculation speculation : {Speculation::kNgram, Speculation::kDraft}) {
      for (const size_t n_together : {size_t{1}, size_t{16}}) {
        Way drafting = way(true);
        drafting.options.speculation = speculation;
        if (speculation == Speculation::kDraft) drafting.options.draft_path = path_;
        drafting.options.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};
        drafting.n_together = n_together;
        compare(drafting);
      }
    }
  }
  void compare_instruction_sets() {
    for (const kernels::KernelTable* table : kernels::runnable_tables()) {
      backend_ = [table](const EngineOptions& options) {
        return backend::make_cpu_backend({.n_threads = options.n_threads, .table = table});
      };
      Way warm = way(true);
      warm.n_together = 2;
      compare(warm);
    }
  }
};

TEST_P(MemoryOf, gives_every_answer_that_was_given_alone_and_cold) {
  use(GetParam());
  compare_chunks();
  compare_company();
  compare_little_room();
  compare_drafts();
  compare_instruction_sets();
  std::printf("%s: %d comparisons, %d differ; %ld tokens found in the prefix cache, %d answers from inside a prompt, "
              "%ld preemptions, %ld drafts accepted\n",
              GetParam(), n_compared_, n_different_, static_cast<long>(n_cached_), n_middle_,
              static_cast<long>(n_preempted_), static_cast<long>(n_accepted_));
  EXPECT_EQ(n_different_, 0) << "of " << n_compared_;
  EXPECT_GE(n_compared_, 600);
  EXPECT_GE(n_middle_, 100);
  EXPECT_GE(n_preempted_, 10);
  EXPECT_GE(n_accepted_, 100);
}

INSTANTIATE_TEST_SUITE_P(kinds, MemoryOf,
                         ::testing::Values("qwen3_5_text", "qwen3_next", "deepseek_v3", "gpt_oss", "qwen3moe"),
                         [](const auto& family) { return std::string(family.param); });

TEST_F(Memory, a_checkpoint_that_is_one_token_late_or_of_another_text_is_caught) {
  constexpr int kMostRounds = 20;
  for (const auto rule : {testing::BrokenRule::kLateCheckpoints, testing::BrokenRule::kSwapCheckpoints}) {
    use("qwen3_5_text", broken(rule));
    Way warm = way(true);
    warm.n_together = 4;
    // States are swapped only where two requests come to one step, which is up to the threads that ask.
    for (int round = 0; round < kMostRounds && n_different_ == 0; ++round) compare(warm);
    EXPECT_GT(n_different_, 0) << "of " << n_compared_;
  }
  use("qwen3_5_text");
  Way warm = way(true);
  warm.n_together = 4;
  compare(warm);
  EXPECT_EQ(n_different_, 0) << "of " << n_compared_;
}

}  // namespace
}  // namespace candor::memory_kinds
