#include "text/tokenizer/unigram_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/utf8.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text {
namespace {

constexpr double kUnknownPenalty = 10.0;
constexpr int32_t kMaxNested = 256;  // runs of one character are the longest that are known, below 100

bool is_text(TokenKind kind) {
  return kind == TokenKind::kNormal || kind == TokenKind::kUserDefined;
}

}  // namespace

Result<UnigramModel> UnigramModel::from_model_file(const formats::ModelFile& file, const Vocabulary& vocabulary) {
  CANDOR_ASSIGN(const auto* scores, formats::meta_floats(file, kScoresKey));
  if (scores == nullptr || !vocabulary.has_scores()) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: the key is absent; a unigram vocabulary needs a score for each token", kScoresKey));
  }
  constexpr std::string_view kCharsmapKey = "tokenizer.ggml.precompiled_charsmap";
  if (file.meta(kCharsmapKey) != nullptr && file.meta("tokenizer.candor.normalizer") == nullptr) {
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("{}: rules in this form are not supported; convert the model from its safetensors", kCharsmapKey));
  }
  CANDOR_ASSIGN(const SpaceRules spaces, SpaceRules::from_model_file(file));
  CANDOR_ASSIGN(PieceBytes pieces, PieceBytes::read(file, vocabulary));
  UnigramModel model(spaces, std::move(pieces));
  CANDOR_TRY(model.add_pieces(vocabulary, *scores));
  return model;
}

Result<void> UnigramModel::add_pieces(const Vocabulary& vocabulary, const std::vector<double>& scores) {
  scores_ = scores;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const TokenKind kind = vocabulary.kind(id);
    if (kind != TokenKind::kUnused) unknown_score_ = std::min(unknown_score_, scores_[static_cast<size_t>(id)]);
    const bool is_piece = is_text(kind) || (id == pieces_.unknown() && pieces_.unknown_is_text());
    if (!is_piece || vocabulary.piece(id).empty()) continue;
    const size_t state = static_cast<size_t>(pieces_in_text_.add(vocabulary.piece(id)));
    tokens_.resize(static_cast<size_t>(pieces_in_text_.n_states()), kNoToken);
    tokens_[state] = id;
  }
  tokens_.resize(static_cast<size_t>(pieces_in_text_.n_states()), kNoToken);
  pieces_in_text_.link();
  unknown_score_ -= kUnknownPenalty;
  return check_nesting(vocabulary);
}

Result<void> UnigramModel::check_nesting(const Vocabulary& vocabulary) const {
  std::vector<int32_t> n_nested(tokens_.size(), 0);  // by state: keys that end the one there, with itself
  std::vector<StringAutomaton::State> waiting;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i] == kNoToken) continue;
    auto key = static_cast<StringAutomaton::State>(i);
    for (; key != StringAutomaton::kNone && n_nested[static_cast<size_t>(key)] == 0;
         key = pieces_in_text_.next_key(key)) {
      waiting.push_back(key);
    }
    int32_t n = key == StringAutomaton::kNone ? 0 : n_nested[static_cast<size_t>(key)];
    for (; !waiting.empty(); waiting.pop_back()) n_nested[static_cast<size_t>(waiting.back())] = ++n;
    if (n_nested[i] <= kMaxNested) continue;
    return fail(ErrorKind::kUnsupported,
                fmt::format("tokenizer.ggml.tokens: {} pieces end the piece {}, at most {}", n_nested[i],
                            quoted_piece(vocabulary.piece(tokens_[i])), kMaxNested));
  }
  return {};
}

// By ends of prefixes: pieces that end there, the longest first, and one unknown character where no piece is it.
std::vector<UnigramModel::Step> UnigramModel::best_steps(std::string_view word) const {
  std::vector<Step> best(word.size() + 1);
  best[0].begin = 0;
  StringAutomaton::State state = StringAutomaton::kStart;
  for (size_t begin = 0; begin < word.size();) {
    const size_t end = begin + decode_utf8(word, begin).length;
    for (size_t at = begin; at < end; ++at) state = pieces_in_text_.step(state, word[at]);
    Step& step = best[end];
    bool has_character = false;
    for (auto key = pieces_in_text_.longest_key(state); key != StringAutomaton::kNone;
         key = pieces_in_text_.next_key(key)) {
      const size_t from = end - static_cast<size_t>(pieces_in_text_.depth(key));
      if (best[from].begin == SIZE_MAX) continue;  // inside of a character
      const TokenId token = tokens_[static_cast<size_t>(key)];
      const double score = scores_[static_cast<size_t>(token)] + best[from].score;
      if (step.begin == SIZE_MAX || score > step.score) step = {score, from, token};
      has_character |= from == begin;
    }
    const double unknown = unknown_score_ + best[begin].score;
    if (!has_character && (step.begin == SIZE_MAX || unknown > step.score)) step = {unknown, begin, kNoToken};
    begin = end;
  }
  return best;
}

Missing UnigramModel::encode_word(std::string_view word, std::vector<TokenId>& out) const {
  const std::vector<Step> best = best_steps(word);
  std::vector<size_t> ends;
  for (size_t end = word.size(); end > 0; end = best[end].begin) ends.push_back(end);
  std::ranges::reverse(ends);
  size_t unknown_begin = SIZE_MAX;
  const auto flush_unknown = [&](size_t end) -> Missing {
    const size_t begin = std::exchange(unknown_begin, SIZE_MAX);
    return begin == SIZE_MAX ? Missing() : pieces_.append_unknown(word.substr(begin, end - begin), out);
  };
  for (const size_t end : ends) {
    const Step& step = best[end];
    if (step.token == kNoToken || step.token == pieces_.unknown()) {
      unknown_begin = std::min(unknown_begin, step.begin);
      continue;
    }
    if (Missing missing = flush_unknown(step.begin)) return missing;
    out.push_back(step.token);
  }
  return flush_unknown(word.size());
}

Missing UnigramModel::encode(std::string_view text, FragmentPlace place, std::vector<TokenId>& out) const {
  return spaces_.for_each_word(text, place, [&](std::string_view word) { return encode_word(word, out); });
}

}  // namespace candor::text
