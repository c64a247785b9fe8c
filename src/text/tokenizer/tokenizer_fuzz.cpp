// Text of any bytes through small vocabularies: what comes back is what went in. First byte: which vocabulary and
// whether control tokens are parsed; second byte: where a break lies.
#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "fuzz/fuzz_budget.h"
#include "text/detokenizer.h"
#include "text/small_vocabularies.h"
#include "text/stop_strings.h"
#include "text/tokenizer/split_rule.h"
#include "text/tokenizer/tokenizer.h"

namespace {

using candor::TokenId;
using candor::text::Tokenizer;

std::unique_ptr<Tokenizer> open(const candor::testing::MemoryModelFile& file) {
  auto tokenizer = Tokenizer::from_model_file(file);
  CANDOR_CHECK(tokenizer.has_value());
  return std::move(*tokenizer);
}

const Tokenizer& tokenizer_of(size_t choice) {
  static const std::vector<std::unique_ptr<Tokenizer>> tokenizers = [] {
    std::vector<std::unique_ptr<Tokenizer>> made;
    made.push_back(open(candor::testing::small_sentence_piece()));
    made.push_back(open(candor::testing::small_unigram()));
    for (const candor::text::PreTokenizer& pre : candor::text::pre_tokenizers()) {
      if (pre.name == "default" || pre.rule->name == pre.name || pre.whole_piece_first) {
        made.push_back(open(candor::testing::small_bpe(std::string(pre.name))));
      }
    }
    return made;
  }();
  return *tokenizers[choice % tokenizers.size()];
}

// Everything that a token shows, control tokens too.
std::string written(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens) {
  std::string text;
  for (const TokenId id : tokens) text += tokenizer.bytes_of(id).empty() ? tokenizer.piece(id) : tokenizer.bytes_of(id);
  return text;
}

void check_stream(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens) {
  candor::text::Detokenizer output(tokenizer, true);
  candor::text::StopStrings stops({"\n\n", "hello", "</s>"});
  std::string text;
  for (const TokenId id : tokens) {
    const candor::text::StopResult result = stops.push(output.push(id));
    text += result.text;
    if (result.hit) break;
  }
  CANDOR_CHECK(text.find("hello") == std::string::npos && text.find("\n\n") == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const Tokenizer& tokenizer = tokenizer_of(data[0] >> 1);
  const candor::testing::FuzzBudget budget(size);
  const std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
  const std::array<size_t, 1> breaks = {data[1]};
  const bool parse = (data[0] & 1) != 0;
  const auto tokens = *tokenizer.encode(text, {.add_special = false, .parse_special = parse, .breaks = breaks});
  check_stream(tokenizer, tokens);
  if (tokenizer.strips_leading_space()) {
    const bool is_exact = !parse && text.find("\u2581") == std::string_view::npos;
    CANDOR_CHECK(!is_exact || candor::text::detokenize(tokenizer, tokens, true) == text);
  } else {
    CANDOR_CHECK(written(tokenizer, tokens) == text);
  }
  return 0;
}
