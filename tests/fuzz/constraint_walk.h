#pragma once
// Any bytes as the source of a constraint over a small vocabulary: refused in one line, or compiled and then walked, as
// an engine would walk it, by tokens that the input itself chooses. Masks allow what accept() takes and nothing else;
// forks give the same masks.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "constrain/grammar_constraint.h"
#include "fuzz/fuzz_budget.h"
#include "text/small_vocabularies.h"

namespace candor::testing {

class ConstraintWalk {
 public:
  ConstraintWalk() {
    const MemoryModelFile file = small_bpe("qwen2");
    auto tokenizer = text::Tokenizer::from_model_file(file);
    CANDOR_CHECK(tokenizer.has_value());
    tokenizer_ = std::move(*tokenizer);
    auto compiler = constrain::GrammarCompiler::create(*tokenizer_, helpers_);
    CANDOR_CHECK(compiler.has_value());
    compiler_ = std::move(*compiler);
    CANDOR_CHECK(compiler_->compile(GrammarKind::kRegex, "a*").has_value());
  }

  // on_end: called with every text that the constraint lets end.
  void run(GrammarKind kind, std::string_view source,
           const std::function<void(std::string_view text)>& on_end = {}) const {
    FuzzBudget budget(source.size(), {.cpu_s = 3});
    auto constraint = compiler_->compile(kind, source);
    if (!constraint) {
      return expect_one_line(constraint.error().message);
    }
    budget.allow({.cpu_s = 6, .more_bytes = int64_t{256} << 20});
    uint64_t random = 1469598103934665603u;
    for (const char c : source) random = (random ^ static_cast<uint8_t>(c)) * 1099511628211u;
    for (int i = 0; i < kWalks; ++i) {
      auto copy = (*constraint)->fork();
      CANDOR_CHECK(copy.has_value());
      walk(**copy, random, on_end);
    }
  }

 private:
  static constexpr int kWalks = 2;
  static constexpr int kSteps = 40;
  static constexpr int kForkAt = 7;

  static void expect_one_line(const std::string& message) {
    if (!message.empty() && message.find('\n') == std::string::npos) return;
    std::fprintf(stderr, "fuzz: the error is not one line: \"%s\"\n", message.c_str());
    std::abort();
  }

  static uint64_t next(uint64_t& state) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
  }

  void walk(constrain::Constraint& constraint, uint64_t& random,
            const std::function<void(std::string_view text)>& on_end) const {
    std::string text;
    constrain::TokenMask mask(tokenizer_->n_vocab());
    for (int step = 0; step < kSteps && !constraint.must_end(); ++step) {
      if (!constraint.mask(mask)) return;
      if (step == kForkAt) check_fork(constraint, mask);
      check_refused(constraint, mask, next(random));
      const std::vector<TokenId> allowed = text_tokens(mask);
      if (constraint.may_end() && on_end) on_end(text);
      if (allowed.empty()) return;
      const TokenId token = allowed[next(random) % allowed.size()];
      if (!constraint.accept(token)) return check_stopped(constraint);
      text += tokenizer_->bytes_of(token);
    }
  }

  // A token that the mask allows may only be refused by a limit, which stops the constraint for good.
  static void check_stopped(const constrain::Constraint& constraint) { CANDOR_CHECK(constraint.must_end()); }

  void check_refused(constrain::Constraint& constraint, const constrain::TokenMask& mask, uint64_t choice) const {
    const auto token = static_cast<TokenId>(choice % static_cast<uint64_t>(tokenizer_->n_vocab()));
    if (!mask.allows(token)) CANDOR_CHECK(!constraint.accept(token).has_value());
  }

  void check_fork(const constrain::Constraint& constraint, const constrain::TokenMask& mask) const {
    const auto copy = constraint.fork();
    CANDOR_CHECK(copy.has_value());
    constrain::TokenMask again(tokenizer_->n_vocab());
    if (!(*copy)->mask(again)) return;
    for (TokenId token = 0; token < tokenizer_->n_vocab(); ++token) {
      CANDOR_CHECK(again.allows(token) == mask.allows(token));
    }
  }

  std::vector<TokenId> text_tokens(const constrain::TokenMask& mask) const {
    std::vector<TokenId> tokens;
    for (TokenId token = 0; token < tokenizer_->n_vocab(); ++token) {
      if (mask.allows(token) && !tokenizer_->bytes_of(token).empty()) tokens.push_back(token);
    }
    return tokens;
  }

  mutable sandbox::HelperPool helpers_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::unique_ptr<constrain::GrammarCompiler> compiler_;
};

// One for all inputs of a program.
inline const ConstraintWalk& constraint_walk() {
  static const ConstraintWalk walk;
  return walk;
}

}  // namespace candor::testing
