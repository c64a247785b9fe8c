// One compiler and forks of one constraint on several threads: what requests of a server do. Also run under
// ThreadSanitizer (scripts/test_tsan.sh), which sees our side of the bridge.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "constrain/grammar_constraint.h"
#include "constrain/mask_worker.h"
#include "constrain/masked_constraint.h"
#include "support/patient_helpers.h"
#include "text/small_vocabularies.h"

namespace candor::constrain {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 6;

struct Source {
  GrammarKind kind;
  std::string text;
};

const std::vector<Source>& sources() {
  static const std::vector<Source> all = {
      {GrammarKind::kRegex, "(he|l{1,2}|o)+[a-f]*"},
      {GrammarKind::kGbnf, "root ::= word (\" \" word)*\nword ::= [a-z]{1,4}"},
      {GrammarKind::kJsonSchema, R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x","y"]}}})"},
      {GrammarKind::kChoice, R"(["hello","help","no"])"}};
  return all;
}

class ConstraintThreads : public ::testing::Test {
 protected:
  void SetUp() override {
    tokenizer_ = std::move(*text::Tokenizer::from_model_file(testing::small_bpe("qwen2")));
    compiler_ = std::move(*GrammarCompiler::create(*tokenizer_, helpers_));
  }
  std::unique_ptr<Constraint> compile(const Source& source) const {
    return std::move(*compiler_->compile(source.kind, source.text));
  }
  // Every mask of a walk that takes the first, then the second, then the third ... of the allowed tokens.
  std::vector<std::vector<uint32_t>> masks_of_walk(Constraint& constraint) const {
    std::vector<std::vector<uint32_t>> masks;
    TokenMask mask(tokenizer_->n_vocab());
    for (size_t step = 0; step < 16 && !constraint.must_end() && constraint.mask(mask); ++step) {
      masks.emplace_back(mask.words().begin(), mask.words().end());
      std::vector<TokenId> allowed;
      for (TokenId id = 0; id < tokenizer_->n_vocab(); ++id) {
        if (mask.allows(id) && !tokenizer_->bytes_of(id).empty()) allowed.push_back(id);
      }
      if (allowed.empty() || !constraint.accept(allowed[step % allowed.size()])) break;
    }
    return masks;
  }

  sandbox::HelperPool helpers_{testing::patient_helpers()};
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::unique_ptr<GrammarCompiler> compiler_;
};

TEST_F(ConstraintThreads, one_compiler_serves_several_threads_with_the_same_masks) {
  std::vector<std::vector<std::vector<uint32_t>>> expected;
  for (const Source& source : sources()) expected.push_back(masks_of_walk(*compile(source)));
  std::vector<int> n_equal(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t round = 0; round < kRounds; ++round) {
        const size_t i = (t + round) % sources().size();
        n_equal[t] += masks_of_walk(*compile(sources()[i])) == expected[i] ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_equal, std::vector<int>(kThreads, kRounds));
}

TEST_F(ConstraintThreads, forks_walk_and_are_forked_on_threads_of_their_own) {
  for (const Source& source : sources()) {
    const std::unique_ptr<Constraint> first = compile(source);
    const auto expected = masks_of_walk(**first->fork());
    std::vector<std::unique_ptr<Constraint>> forks;
    for (int t = 0; t < kThreads; ++t) forks.push_back(std::move(*first->fork()));
    std::vector<int> n_equal(kThreads);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const std::unique_ptr<Constraint> mine = std::move(forks[t]);
        for (int round = 0; round < kRounds; ++round) {
          n_equal[t] += masks_of_walk(**mine->fork()) == expected ? 1 : 0;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(n_equal, std::vector<int>(kThreads, kRounds));
  }
}

TEST_F(ConstraintThreads, a_constraint_outlives_its_compiler_on_another_thread) {
  std::unique_ptr<Constraint> constraint = compile(sources().front());
  const auto expected = masks_of_walk(**constraint->fork());
  std::vector<std::vector<uint32_t>> masks;
  std::thread other([&, mine = std::move(constraint)] { masks = masks_of_walk(*mine); });
  compiler_.reset();
  other.join();
  EXPECT_EQ(masks, expected);
}

// As where memory runs out before the worker is told, or the step finds time after all.
TEST_F(ConstraintThreads, a_token_that_was_to_be_accepted_ahead_and_is_accepted_at_once_counts_once) {
  const Source& words = sources()[1];
  const auto masked = MaskedConstraint::start(compile(words), tokenizer_->n_vocab());
  const std::unique_ptr<Constraint> plain = compile(words);
  TokenMask mask(tokenizer_->n_vocab());
  ASSERT_TRUE(plain->mask(mask));
  TokenId token = 0;
  while (!mask.allows(token) || tokenizer_->bytes_of(token).empty()) ++token;
  ASSERT_TRUE(plain->accept(token) && plain->mask(mask));
  MaskWorker worker([] {});
  worker.allow_waiting(20'000'000'000);
  worker.want_ahead(masked, token);
  ASSERT_TRUE(masked->accept(token));
  ASSERT_TRUE(worker.has(masked));
  EXPECT_FALSE(masked->is_ahead());
  const TokenMask& got = **masked->mask();
  for (TokenId id = 0; id < tokenizer_->n_vocab(); ++id) ASSERT_EQ(got.allows(id), mask.allows(id)) << id;
}

}  // namespace
}  // namespace candor::constrain
