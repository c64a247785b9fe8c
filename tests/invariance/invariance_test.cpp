// The numerics contract as its users would check it: every answer is computed under many conditions that must not
// matter, and compared with the one computed alone, tokens and logprobs bit for bit. A backend that breaks one rule on
// purpose must be caught, else the comparison proves nothing.

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "backend/cpu/cpu_backend.h"
#include "candor/kv_type.h"
#include "engine/engine_impl.h"
#include "engine/open/device_choice.h"
#include "engine_fixture.h"
#include "formats/model_file.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "support/broken_backend.h"
#include "support/shared_data.h"
#include "support/with_head.h"
#include "tensor/dtype.h"

namespace candor {
namespace {

using testing::complete;
using testing::Crowd;
using testing::sampled;
using testing::token_prompt;

constexpr int64_t kNewTokens = 8;
const std::vector<int32_t> kPromptTokens = {3, 31, 33, 90, 150};
constexpr int32_t kShortPrompt = 31;
constexpr int32_t kLongPrompt = 600;
constexpr int32_t kBlockTokens = 32;
// Requests that outgrow the blocks that were free when they were admitted.
constexpr int kGrowingRequests = 10;
constexpr int64_t kGrowingTokens = 70;

// Which of the requests a condition is tried with.
enum class Which : uint8_t {
  kGeneral,  // greedy and sampled, 3 to 600 tokens
  kShort,    // those of few tokens, for what is slow
  kGrowing,  // for small pools
};

// A condition that must not change an answer: how the engine is opened, how many requests share it, in which order.
struct Condition {
  std::string name;
  std::function<void(EngineOptions&)> change;
  size_t n_together = 1;
  bool is_shuffled = false;
  Which which = Which::kGeneral;
  std::string isa = {};  // a kernel table, as CANDOR_ISA would choose it; "" = the default
  // What drafts is a head of the model, which this writes.
  std::filesystem::path (*write_head)(const std::filesystem::path& model, const std::filesystem::path& path) = nullptr;
};

// Rows that cost nothing, so that as much is drafted as can be.
void draft(EngineOptions& options, Speculation speculation = Speculation::kNgram, bool ngrams_beside = false) {
  options.speculation = speculation;
  options.ngrams_beside = ngrams_beside;
  options.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};
}

void with_small_pool(EngineOptions& options) {
  options.n_ctx = 128;
  options.kv_blocks = 6;
}

// Those with a head that drafts.
std::vector<Condition> head_conditions() {
  return {
      {"drafts of a head",
       [](EngineOptions& o) { draft(o, Speculation::kDraft); },
       1,
       false,
       Which::kGeneral,
       {},
       testing::write_head},
      {"drafts of a head, 16 at once, 2 threads",
       [](EngineOptions& o) {
         draft(o, Speculation::kDraft);
         o.n_threads = 2;
       },
       16,
       false,
       Which::kGeneral,
       {},
       testing::write_head},
      {"drafts of a head, a small pool, prefix cache",
       [](EngineOptions& o) {
         draft(o, Speculation::kDraft);
         with_small_pool(o);
         o.prefix_cache = true;
       },
       16,
       false,
       Which::kGrowing,
       {},
       testing::write_head},
      {"drafts of a head and n-grams, 16 at once",
       [](EngineOptions& o) { draft(o, Speculation::kDraft, true); },
       16,
       false,
       Which::kGeneral,
       {},
       testing::write_head},
  };
}

std::vector<Condition> eagle_conditions() {
  return {
      {"drafts of an EAGLE-3 head and n-grams, a small pool, prefix cache",
       [](EngineOptions& o) {
         draft(o, Speculation::kEagle, true);
         with_small_pool(o);
         o.prefix_cache = true;
       },
       16,
       false,
       Which::kGrowing,
       {},
       testing::write_eagle},
      {"drafts of an EAGLE-3 head, 7 at once, chunks of 64",
       [](EngineOptions& o) {
         draft(o, Speculation::kEagle);
         o.max_rows = 64;
         o.prefix_cache = true;
       },
       7,
       false,
       Which::kGeneral,
       {},
       testing::write_eagle},
      {"drafts of an EAGLE-3 head, a small pool",
       [](EngineOptions& o) {
         draft(o, Speculation::kEagle);
         with_small_pool(o);
       },
       16,
       false,
       Which::kGrowing,
       {},
       testing::write_eagle},
  };
}

std::vector<Condition> conditions() {
  std::vector<Condition> all = {
      {"alone again", [](EngineOptions&) {}},
      {"2 at once", [](EngineOptions& o) { o.max_running = 2; }, 2},
      {"7 at once", [](EngineOptions& o) { o.max_running = 7; }, 7},
      {"16 at once", [](EngineOptions&) {}, 16},
      {"16 at once, shuffled", [](EngineOptions&) {}, 16, true},
      {"chunks of 16", [](EngineOptions& o) { o.max_rows = 16; }},
      {"chunks of 64", [](EngineOptions& o) { o.max_rows = 64; }},
      {"chunks of 512", [](EngineOptions& o) { o.max_rows = 512; }},
      {"16 at once in chunks of 16", [](EngineOptions& o) { o.max_rows = 32, o.prefill_rows = 16; }, 16},
      {"2 threads", [](EngineOptions& o) { o.n_threads = 2; }},
      {"2 threads, 16 at once", [](EngineOptions& o) { o.n_threads = 2; }, 16},
      {"drafts", [](EngineOptions& o) { draft(o); }},
      {"drafts, 16 at once", [](EngineOptions& o) { draft(o); }, 16},
      {"drafts of a draft model", [](EngineOptions& o) { draft(o, Speculation::kDraft); }},
      {"drafts of a draft model, 16 at once", [](EngineOptions& o) { draft(o, Speculation::kDraft); }, 16},
      {"drafts of a draft model and n-grams, 7 at once", [](EngineOptions& o) { draft(o, Speculation::kDraft, true); },
       7},
      {"prefix cache, 2 at once", [](EngineOptions& o) { o.prefix_cache = true; }, 2},
      {"prefix cache, 16 at once", [](EngineOptions& o) { o.prefix_cache = true; }, 16},
      {"chunks as the costs allow",
       [](EngineOptions& o) {
         o.costs = StepCosts{.points = {{1, 1.0}, {4, 1.2}, {64, 20.0}}, .attend_ns = 100};
       },
       16},
      {"steps of a given time",
       [](EngineOptions& o) {
         o.costs = StepCosts{.points = {{1, 1.0}, {64, 64.0}}, .attend_ns = 0};
         o.step_ms = 25;
       },
       7},
      {"a small pool", with_small_pool, 16, false, Which::kGrowing},
      {"a small pool, shuffled", with_small_pool, 16, true, Which::kGrowing},
      {"a small pool, 2 threads, chunks of 16",
       [](EngineOptions& o) {
         with_small_pool(o);
         o.n_threads = 2;
         o.prefill_rows = 16;
       },
       16, false, Which::kGrowing},
  };
  for (Condition& condition : head_conditions()) all.push_back(std::move(condition));
  for (Condition& condition : eagle_conditions()) all.push_back(std::move(condition));
  return all;
}

// The instruction sets beside the default one. Plain C++ computes a hundred times as long.
std::vector<Condition> isa_conditions() {
  std::vector<Condition> conditions;
  const auto tables = kernels::runnable_tables();
  for (const kernels::KernelTable* table : tables) {
    if (table == tables.back()) continue;
    const bool is_plain = table->name == "portable";
    conditions.push_back({std::string(table->name), [](EngineOptions&) {}, is_plain ? size_t{1} : size_t{7}, false,
                          is_plain ? Which::kShort : Which::kGeneral, std::string(table->name)});
  }
  return conditions;
}

// Requests by what they are for, and the answers to some of them.
struct Requests {
  std::vector<Request> all;
  size_t n_short = 0;
  size_t n_general = 0;

  // Their numbers.
  std::vector<size_t> of(Which which) const {
    const size_t begin = which == Which::kGrowing ? n_general : 0;
    const size_t end = which == Which::kShort ? n_short : which == Which::kGeneral ? n_general : all.size();
    std::vector<size_t> numbers(end - begin);
    std::iota(numbers.begin(), numbers.end(), begin);
    return numbers;
  }
};

using Answers = std::map<size_t, Completion>;

Answers answers(Engine& engine, const Requests& requests, const Condition& condition) {
  std::vector<size_t> order = requests.of(condition.which);
  if (condition.is_shuffled) std::reverse(order.begin(), order.end());
  Answers answers;
  for (size_t begin = 0; begin < order.size(); begin += condition.n_together) {
    const size_t end = std::min(begin + condition.n_together, order.size());
    std::vector<Request> group;
    for (size_t i = begin; i < end; ++i) group.push_back(requests.all[order[i]]);
    auto together = Crowd(engine).run(group);
    for (size_t i = begin; i < end; ++i) answers[order[i]] = std::move(together[i - begin]);
  }
  return answers;
}

bool is_same(const Completion& a, const Completion& b) {
  return a.tokens == b.tokens && a.logprobs == b.logprobs && a.top_logprobs == b.top_logprobs;
}

engine::BackendFactory backend_of(const std::string& isa) {
  return [isa](const EngineOptions& options) {
    return backend::make_cpu_backend({.n_threads = options.n_threads, .table = kernels::select_table(isa).value()});
  };
}

engine::BackendFactory broken_backend(testing::BrokenRule rule) {
  return [rule](const EngineOptions& options) { return testing::make_broken_backend(options.n_threads, rule); };
}

class Invariance : public testing::TinyModelTest {
 protected:
  EngineOptions base_options(const std::filesystem::path& path) {
    EngineOptions options = testing::options_for(path);
    options.n_ctx = n_ctx_;
    options.fast_weights = fast_weights_;
    options.kv_type = kv_type_;
    options.kv_blocks = n_ctx_ / kBlockTokens * 16;
    options.prefix_cache = false;
    options.costs = StepCosts{.points = {{1, 0.0}}, .attend_ns = 0};
    return options;
  }

  // Greedy and sampled, short and long, with and without shared beginnings, by beams and under a constraint.
  Requests make_requests(int32_t n_vocab) {
    Requests requests;
    uint64_t seed = 1;
    for (const int32_t n : kPromptTokens) {
      requests.all.push_back(sampled(token_prompt(n, n_vocab, 7), kNewTokens, seed));
      requests.all.push_back(sampled(token_prompt(n, n_vocab, seed), kNewTokens, seed));
      requests.all.back().sampling.temperature = 0.0;
      if (n <= kShortPrompt) requests.n_short = requests.all.size();
      ++seed;
    }
    const int32_t n_long = std::min(kLongPrompt, n_ctx_ - kBlockTokens);
    requests.all.push_back(sampled(token_prompt(n_long, n_vocab, 7), kNewTokens, seed));
    requests.all.push_back(sampled(token_prompt(kShortPrompt, n_vocab, 5), 2 * kNewTokens, seed));
    requests.all.back().beams = BeamSearch{.width = 2};
    requests.all.push_back(sampled(token_prompt(kShortPrompt, n_vocab, 6), 2 * kNewTokens, seed));
    requests.all.back().constraint = {GrammarKind::kRegex, "[a-z ]{4,40}"};
    requests.n_general = requests.all.size();
    for (int i = 0; i < kGrowingRequests; ++i) {
      ++seed;
      requests.all.push_back(sampled(token_prompt(30, n_vocab, seed), kGrowingTokens, seed));
    }
    for (Request& request : requests.all) request.sampling.ignore_eos = true;
    return requests;
  }

  static std::unique_ptr<Engine> open(const EngineOptions& options, const engine::BackendFactory& backend) {
    auto engine = engine::open_with_backend(options, backend);
    EXPECT_TRUE(engine.has_value()) << (engine ? "" : engine.error().message);
    return engine ? std::move(*engine) : nullptr;
  }

  struct Counts {
    int n_compared = 0;
    int n_different = 0;
    int64_t n_preempted = 0;
    int64_t n_cached = 0;
    int64_t n_accepted = 0;  // drafts
  };

  // backend: of the conditions that do not name an instruction set.
  Counts compare(const std::filesystem::path& path, const engine::BackendFactory& backend,
                 const std::vector<Condition>& under) {
    Counts counts;
    const auto alone = open(base_options(path), backend);
    if (alone == nullptr) return counts;
    const Requests requests = make_requests(alone->info().n_vocab);
    Answers expected = answers(*alone, requests, {"alone", {}});
    expected.merge(answers(*alone, requests, {"alone", {}, 1, false, Which::kGrowing}));
    for (const Condition& condition : under) {
      EngineOptions options = base_options(path);
      condition.change(options);
      if (options.speculation == Speculation::kDraft) options.draft_path = draft_path_.empty() ? path : draft_path_;
      if (condition.write_head != nullptr) {
        options.draft_path = condition.write_head(path, folder_.path() / "head.gguf");
      }
      const auto engine = open(options, condition.isa.empty() ? backend : backend_of(condition.isa));
      if (engine == nullptr) return counts;
      for (const auto& [number, found] : answers(*engine, requests, condition)) {
        ++counts.n_compared;
        counts.n_accepted += found.summary.usage.accepted_tokens;
        if (is_same(found, expected.at(number))) continue;
        ++counts.n_different;
        last_difference_ = condition.name + ", request " + std::to_string(number);
      }
      counts.n_preempted += engine->stats().n_preemptions;
      counts.n_cached += engine->stats().cached_tokens;
    }
    return counts;
  }

  int32_t n_ctx_ = 640;
  bool fast_weights_ = false;
  std::optional<KvType> kv_type_;
  std::filesystem::path draft_path_;  // empty: the model itself
  std::string last_difference_;
};

struct Weights {
  DType dtype;
  int32_t head_dim;
  bool is_fast = false;  // read as --fast-weights asks
  std::optional<KvType> kv_type{};
};

class InvarianceOf : public Invariance, public ::testing::WithParamInterface<Weights> {};

TEST_P(InvarianceOf, every_answer_is_the_one_given_alone) {
  testing::TinyModelOptions model = testing::tiny_model_of(GetParam().dtype, GetParam().head_dim);
  model.context_tokens = 1024;
  model.ffn_dim = model.dim;
  fast_weights_ = GetParam().is_fast;
  kv_type_ = GetParam().kv_type;
  testing::TinyModelOptions draft;
  draft.vocab = model.vocab;
  draft_path_ = tiny_path(draft);
  std::vector<Condition> under = conditions();
  for (Condition& condition : isa_conditions()) under.push_back(std::move(condition));
  const Counts counts = compare(tiny_path(model), engine::make_named_backend, under);
  EXPECT_EQ(counts.n_different, 0) << "of " << counts.n_compared << "; the last: " << last_difference_;
  EXPECT_GE(counts.n_compared, 180);
  EXPECT_GE(counts.n_preempted, 20);
  EXPECT_GT(counts.n_cached, 0);
  RecordProperty("compared", counts.n_compared);
  RecordProperty("preempted", static_cast<int>(counts.n_preempted));
}

std::string weights_name(const ::testing::TestParamInfo<Weights>& info) {
  return std::string(info.param.is_fast ? "fast_" : "") + std::string(dtype_info(info.param.dtype).name) +
         "_heads_of_" + std::to_string(info.param.head_dim) +
         (info.param.kv_type ? "_kv_" + std::string(name_of(*info.param.kv_type)) : "");
}

INSTANTIATE_TEST_SUITE_P(
    weights, InvarianceOf,
    ::testing::Values(Weights{DType::kF32, 64}, Weights{DType::kF16, 128}, Weights{DType::kBF16, 128},
                      Weights{DType::kQ8_0, 64}, Weights{DType::kQ4_0, 80}, Weights{DType::kQ4_K, 128},
                      Weights{DType::kQ6_K, 80}, Weights{DType::kMXFP4, 64}, Weights{DType::kFP8, 64},
                      Weights{DType::kFP4, 64}, Weights{DType::kQ4_K, 64, true},
                      Weights{DType::kF32, 64, false, KvType::kQ8_0}, Weights{DType::kF32, 80, false, KvType::kQ4}),
    weights_name);

TEST_F(Invariance, a_backend_that_splits_attention_by_threads_or_rows_is_caught) {
  const auto path = tiny_path(testing::tiny_model_of(DType::kF32, 64, 256));
  n_ctx_ = 512;
  const std::vector<Condition> under = {{"2 threads, 16 at once", [](EngineOptions& o) { o.n_threads = 2; }, 16}};
  for (const auto rule : {testing::BrokenRule::kSplitKeysByThreads, testing::BrokenRule::kSplitKeysByRows}) {
    const Counts counts = compare(path, broken_backend(rule), under);
    EXPECT_GT(counts.n_different, 0) << "of " << counts.n_compared;
  }
  EXPECT_EQ(compare(path, engine::make_named_backend, under).n_different, 0);
}

TEST_F(Invariance, a_backend_that_goes_on_from_the_state_of_another_sequence_is_caught) {
  const auto path = testing::goldens() / "qwen3_5_text/model.gguf";
  n_ctx_ = 256;
  const std::vector<Condition> under = {{"16 at once", [](EngineOptions&) {}, 16}};
  EXPECT_GT(compare(path, broken_backend(testing::BrokenRule::kSwapStates), under).n_different, 0);
  EXPECT_EQ(compare(path, engine::make_named_backend, under).n_different, 0);
}

TEST_F(Invariance, the_trained_model_gives_every_answer_alone_and_in_company) {
  CANDOR_REQUIRE_DATA(testing::stories_path());
  n_ctx_ = 512;
  std::vector<Condition> under = conditions();
  for (Condition& condition : isa_conditions()) under.push_back(std::move(condition));
  const Counts counts = compare(testing::stories_path(), engine::make_named_backend, under);
  EXPECT_EQ(counts.n_different, 0) << "of " << counts.n_compared << "; the last: " << last_difference_;
  EXPECT_GT(counts.n_accepted, 50);
}

// Attention with sinks and windows, experts with biases in MXFP4; attention and feed-forward side by side; recurrent
// states, without and with experts; gated convolutions; state spaces with experts, beside attention and in blocks of
// one layer; gates for each channel beside latents.
class InvarianceOfFamily : public Invariance, public ::testing::WithParamInterface<const char*> {};

TEST_P(InvarianceOfFamily, every_answer_is_the_one_given_alone) {
  n_ctx_ = 256;
  std::vector<Condition> under = conditions();
  for (Condition& condition : isa_conditions()) under.push_back(std::move(condition));
  const auto path = testing::goldens() / GetParam() / "model.gguf";
  const Counts counts = compare(path, engine::make_named_backend, under);
  EXPECT_EQ(counts.n_different, 0) << "of " << counts.n_compared << "; the last: " << last_difference_;
  EXPECT_GE(counts.n_compared, 180);
  EXPECT_GE(counts.n_preempted, 20);
  EXPECT_GT(counts.n_cached, 0);
}

INSTANTIATE_TEST_SUITE_P(families, InvarianceOfFamily,
                         ::testing::Values("gpt_oss", "cohere2", "qwen3_5_text", "qwen3_next", "deepseek_v2",
                                           "deepseek_v3", "ministral3", "lfm2", "granitemoehybrid", "falcon_h1_norm",
                                           "nemotron_h_moe", "kimi_linear"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace candor
