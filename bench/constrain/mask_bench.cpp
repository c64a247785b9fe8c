// What a constraint's mask costs at a vocabulary of 128 000, over the course of an output written by random choices.
// The figures to hold: 100 us on average, 1 ms for the 99th of a hundred.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "constrain/grammar_constraint.h"

namespace candor::constrain {
namespace {

constexpr int32_t kVocab = 128000;

// Bytes, then random pieces of two to nine characters such as a trained vocabulary holds, then the end token.
class WideTokenizer final : public text::Tokenizer {
 public:
  WideTokenizer() {
    std::mt19937 random(3);
    const std::string_view common = "eeeettaaooiinnsshhrrdlcumwfgypbvk     etaoinshr0123456789.,\"{}[]:_-ETAOIN";
    for (int i = 0; i < 256; ++i) pieces_.push_back(std::string(1, static_cast<char>(i)));
    while (pieces_.size() + 1 < kVocab) {
      std::string piece;
      for (size_t n = 2 + random() % 8; n > 0; --n) piece += common[random() % common.size()];
      pieces_.push_back(std::move(piece));
    }
    pieces_.emplace_back("<end>");
  }
  Result<std::vector<TokenId>> encode(std::string_view, const text::EncodeOptions&) const override {
    return std::vector<TokenId>{};
  }
  std::string_view bytes_of(TokenId id) const override { return id == kVocab - 1 ? std::string_view{} : piece(id); }
  std::string_view piece(TokenId id) const override { return pieces_[static_cast<size_t>(id)]; }
  text::TokenKind kind(TokenId id) const override {
    return id == kVocab - 1 ? text::TokenKind::kControl : text::TokenKind::kNormal;
  }
  int32_t n_vocab() const override { return kVocab; }
  const text::SpecialTokens& special() const override { return special_; }
  std::span<const TokenId> end_tokens() const override { return ends_; }
  std::optional<TokenId> find(std::string_view) const override { return std::nullopt; }
  std::string description() const override { return "wide"; }
  bool strips_leading_space() const override { return false; }

 private:
  std::vector<std::string> pieces_;
  std::vector<TokenId> ends_ = {kVocab - 1};
  text::SpecialTokens special_;
};

TokenId random_allowed(const TokenMask& mask, std::mt19937& random) {
  const TokenId start = static_cast<TokenId>(random() % kVocab);
  for (TokenId i = 0; i < kVocab; ++i) {
    const TokenId token = (start + i) % kVocab;
    if (mask.allows(token)) return token;
  }
  return kVocab - 1;
}

// Time of every mask over several outputs, in microseconds, ascending.
std::vector<double> mask_times(const Constraint& compiled) {
  std::vector<double> times;
  std::mt19937 random(5);
  TokenMask mask(kVocab);
  while (times.size() < 2000) {
    auto constraint = compiled.fork();
    for (int i = 0; i < 200 && !(*constraint)->must_end(); ++i) {
      const auto begin = std::chrono::steady_clock::now();
      if (!(*constraint)->mask(mask)) return times;
      times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
      const TokenId token = random_allowed(mask, random);
      if (token == kVocab - 1 || !(*constraint)->accept(token)) break;
    }
  }
  std::ranges::sort(times);
  return times;
}

void masks(benchmark::State& state, const GrammarCompiler& compiler, GrammarKind kind, const std::string& source) {
  const auto compiled = compiler.compile(kind, source);
  if (!compiled) return state.SkipWithError(compiled.error().message.c_str());
  std::vector<double> times;
  for (auto _ : state) times = mask_times(**compiled);
  double sum = 0.0;
  for (const double time : times) sum += time;
  const auto at = [&](double share) {
    return times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))];
  };
  state.counters["mean_us"] = sum / static_cast<double>(times.size());
  state.counters["p50_us"] = at(0.5);
  state.counters["p99_us"] = at(0.99);
  state.counters["max_us"] = times.back();
}

constexpr const char* kPerson =
    R"({"type": "object", "additionalProperties": false, "required": ["name", "age", "tags"],
  "properties": {"name": {"type": "string", "maxLength": 40}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
  "email": {"type": "string", "pattern": "^[a-z0-9.]+@[a-z0-9]+\\.[a-z]{2,6}$"},
  "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 8}}})";

}  // namespace
}  // namespace candor::constrain

int main(int argc, char** argv) {
  using namespace candor::constrain;
  using candor::GrammarKind;
  const WideTokenizer tokenizer;
  candor::sandbox::HelperPool helpers;
  const auto compiler = GrammarCompiler::create(tokenizer, helpers);
  if (!compiler) return 1;
  const auto add = [&](const char* name, GrammarKind kind, const char* source) {
    benchmark::RegisterBenchmark(name, [&compiler, kind, text = std::string(source)](benchmark::State& s) {
      masks(s, **compiler, kind, text);
    })->Iterations(1);
  };
  add("schema", GrammarKind::kJsonSchema, kPerson);
  add("json_object", GrammarKind::kJsonObject, "");
  add("regex", GrammarKind::kRegex, "([a-z]+ ){3,20}[0-9]{4}");
  add("gbnf", GrammarKind::kGbnf, "root ::= term ([-+*/] term)*\nterm ::= [0-9]+ | \"(\" root \")\"");
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
