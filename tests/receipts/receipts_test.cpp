// Receipts of 2 150 requests, of every kind and several models, made eight at a time, and checked alone, with other
// threads, on another kernel table, without speculation and caches, and over ranks: all verify. Forged ones are refused
// where they are wrong.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "candor/verify.h"
#include "engine/engine_impl.h"
#include "kernels/kernels.h"
#include "receipts/answers.h"
#include "support/thread_ranks.h"

namespace candor::testing::receipts {
namespace {

constexpr size_t kOtherTables = 30;

std::unique_ptr<Engine> opened_by(const kernels::KernelTable& table, const EngineOptions& options) {
  setenv("CANDOR_ISA", std::string(table.name).c_str(), 1);
  auto engine = opened(Engine::open(options));
  unsetenv("CANDOR_ISA");
  return engine;
}

// Made once for all tests of a model.
const std::vector<Receipt>& made_receipts(const ModelCase& of) {
  static std::map<std::string, std::vector<Receipt>> made;
  std::vector<Receipt>& receipts = made[of.name];
  if (!receipts.empty()) return receipts;
  const auto engine = opened(Engine::open(options_of(of)));
  if (engine != nullptr) receipts = receipts_of(*engine, made_requests(of));
  return receipts;
}

class Receipts : public ::testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override {
    ASSERT_EQ(made_.size(), static_cast<size_t>(GetParam().n_requests));
    EngineOptions options = options_of(GetParam());
    options.n_threads = 1;
    checker_ = opened(Engine::open(options));
    ASSERT_NE(checker_, nullptr);
  }
  void expect_verified(Engine& engine, const Receipt& receipt, size_t i) {
    const auto parsed = parse_receipt(to_json(receipt));
    ASSERT_TRUE(parsed) << i << ": " << parsed.error().message;
    const auto verdict = verify(engine, *parsed);
    ASSERT_TRUE(verdict) << i << ": " << verdict.error().message;
    EXPECT_FALSE(verdict->difference) << i << ": " << to_string(*verdict, engine) << "\n" << to_json(receipt);
    EXPECT_EQ(verdict->n_verified, verdict->n_tokens) << i;
  }

  const std::vector<Receipt>& made_ = made_receipts(GetParam());
  std::unique_ptr<Engine> checker_;
};

TEST_P(Receipts, verify_alone_and_with_other_threads) {
  for (size_t i = 0; i < made_.size(); ++i) expect_verified(*checker_, made_[i], i);
}

// The portable one is slow.
TEST_P(Receipts, verify_on_every_other_table) {
  for (const kernels::KernelTable* table : kernels::runnable_tables()) {
    const auto engine = opened_by(*table, options_of(GetParam()));
    ASSERT_NE(engine, nullptr);
    for (size_t i = 0; i < made_.size(); i += kOtherTables) expect_verified(*engine, made_[i], i);
  }
}

TEST_P(Receipts, verify_over_ranks) {
  const auto engine = opened(engine::open_with_backend(options_of(GetParam()), thread_ranks(2)));
  ASSERT_NE(engine, nullptr);
  for (size_t i = 0; i < made_.size(); i += 10) expect_verified(*engine, made_[i], i);
}

TEST_P(Receipts, verify_without_speculation_and_prefix_cache) {
  EngineOptions options = options_of(GetParam());
  options.speculation = Speculation::kOff;
  options.prefix_cache = false;
  options.max_rows = 21;
  const auto engine = opened(Engine::open(options));
  ASSERT_NE(engine, nullptr);
  for (size_t i = 0; i < made_.size(); i += 5) expect_verified(*engine, made_[i], i);
}

TEST_P(Receipts, a_wrong_token_is_found_where_it_stands) {
  std::mt19937 random(3);
  for (Receipt receipt : made_) {
    ReceiptAnswer& answer = receipt.answers[random() % receipt.answers.size()];
    if (answer.tokens.empty()) continue;
    const size_t at = random() % answer.tokens.size();
    const TokenId right = answer.tokens[at];
    answer.tokens[at] = (right + 1) % 250;
    const auto verdict = verify(*checker_, receipt);
    ASSERT_TRUE(verdict) << verdict.error().message;
    ASSERT_TRUE(verdict->difference);
    EXPECT_EQ(verdict->difference->field, "tokens");
    EXPECT_EQ(verdict->difference->answer, &answer - receipt.answers.data());
    EXPECT_EQ(verdict->difference->position, static_cast<int64_t>(at));
    EXPECT_EQ(verdict->difference->claimed, answer.tokens[at]);
    EXPECT_EQ(verdict->difference->expected, right);
  }
}

TEST_P(Receipts, one_bit_of_a_logprob_is_found_where_it_stands) {
  std::mt19937 random(4);
  for (Receipt receipt : made_) {
    ReceiptAnswer& answer = receipt.answers[random() % receipt.answers.size()];
    if (answer.logprobs.empty()) continue;
    const size_t at = random() % answer.logprobs.size();
    answer.logprobs[at] = std::bit_cast<float>(std::bit_cast<uint32_t>(answer.logprobs[at]) ^ 1u);
    const auto verdict = verify(*checker_, receipt);
    ASSERT_TRUE(verdict) << verdict.error().message;
    ASSERT_TRUE(verdict->difference);
    EXPECT_EQ(verdict->difference->field, "logprobs");
    EXPECT_EQ(verdict->difference->position, static_cast<int64_t>(at));
  }
}

// Another seed, another parameter: refused unless the same answer follows from it, which is then true.
TEST_P(Receipts, another_seed_or_parameter_is_refused_unless_the_answer_follows_from_it) {
  std::mt19937 random(5);
  int n_refused = 0;
  int n_forged = 0;
  for (size_t i = 0; i < made_.size(); i += 2) {
    Receipt receipt = made_[i];
    SamplingParams& sampling = receipt.sampling;
    switch (random() % 4) {
      case 0:
        *sampling.seed ^= 1;
        break;
      case 1:
        sampling.temperature = sampling.temperature == 0.0 ? 1.5 : 0.0;
        break;
      case 2:
        sampling.repetition_penalty = 1.9;
        break;
      default:
        sampling.max_tokens = static_cast<int64_t>(receipt.answers[0].tokens.size()) + 1;
        break;
    }
    Request request;
    request.prompt = receipt.prompt;
    request.sampling = sampling;
    request.n = receipt.n;
    request.beams = receipt.beams;
    request.constraint = receipt.constraint;
    request.on_context_full = receipt.on_context_full;
    request.receipt = true;
    for (const ReceiptAdapter& adapter : receipt.adapters)
      request.adapters.push_back({adapter.name, static_cast<double>(adapter.scale) / 0.5});
    const Receipt truth = receipts_of(*checker_, {request}).front();
    const auto is_equal = [](const ReceiptAnswer& a, const ReceiptAnswer& b) {
      return a.tokens == b.tokens && a.logprobs == b.logprobs && a.text == b.text && a.finish == b.finish &&
             a.stop_index == b.stop_index && a.score == b.score;
    };
    const bool is_true = std::ranges::equal(truth.answers, receipt.answers, is_equal);
    const auto verdict = verify(*checker_, receipt);
    ASSERT_TRUE(verdict) << verdict.error().message;
    EXPECT_EQ(!verdict->difference, is_true) << to_string(*verdict, *checker_);
    ++n_forged;
    n_refused += is_true ? 0 : 1;
  }
  EXPECT_GT(n_refused, n_forged / 2);
}

INSTANTIATE_TEST_SUITE_P(models, Receipts, ::testing::ValuesIn(model_cases()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace candor::testing::receipts
