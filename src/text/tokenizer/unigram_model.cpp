#include "text/tokenizer/unigram_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace candor::text {
namespace {

constexpr double kUnknownPenalty = 10.0;

bool is_text(TokenKind kind) {
  return kind == TokenKind::kNormal || kind == TokenKind::kUserDefined;
}

}  // namespace

Expected<UnigramModel> UnigramModel::from_model_file(const formats::ModelFile& file, const Vocabulary& vocabulary) {
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
  CANDOR_ASSIGN(SpaceRules spaces, SpaceRules::from_model_file(file));
  CANDOR_ASSIGN(PieceBytes pieces, PieceBytes::read(vocabulary));
  UnigramModel model(std::move(spaces), std::move(pieces));
  model.add_pieces(vocabulary, *scores);
  return model;
}

void UnigramModel::add_pieces(const Vocabulary& vocabulary, const std::vector<double>& scores) {
  scores_ = scores;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.kind(id) != TokenKind::kUnused)
      unknown_score_ = std::min(unknown_score_, scores_[static_cast<size_t>(id)]);
    if (!is_text(vocabulary.kind(id)) || vocabulary.piece(id).empty()) continue;
    const ByteTrie::Node node = trie_.insert(vocabulary.piece(id));
    tokens_.resize(static_cast<size_t>(trie_.n_nodes()), kNoToken);
    tokens_[static_cast<size_t>(node)] = id;
  }
  tokens_.resize(static_cast<size_t>(trie_.n_nodes()), kNoToken);
  unknown_score_ -= kUnknownPenalty;
}

void UnigramModel::extend(std::string_view word, size_t begin, std::vector<Step>& best) const {
  const double here = best[begin].score;
  const auto offer = [&](size_t end, double score, TokenId token) {
    Step& step = best[end];
    if (step.begin == SIZE_MAX || score > step.score) step = {score, begin, token};
  };
  const size_t next = begin + decode_utf8(word, begin).length;
  bool has_character = false;
  ByteTrie::Node node = ByteTrie::kRoot;
  for (size_t end = begin; end < word.size();) {
    node = trie_.child(node, word[end]);
    if (node == ByteTrie::kNone) break;
    ++end;
    const TokenId token = tokens_[static_cast<size_t>(node)];
    if (token == kNoToken) continue;
    offer(end, scores_[static_cast<size_t>(token)] + here, token);
    has_character |= end == next;
  }
  if (!has_character) offer(next, unknown_score_ + here, kNoToken);
}

void UnigramModel::encode_word(std::string_view word, std::vector<TokenId>& out) const {
  std::vector<Step> best(word.size() + 1);
  best[0].begin = 0;
  for (size_t at = 0; at < word.size(); at += decode_utf8(word, at).length) extend(word, at, best);
  std::vector<size_t> ends;
  for (size_t end = word.size(); end > 0; end = best[end].begin) ends.push_back(end);
  std::ranges::reverse(ends);
  size_t unknown_begin = SIZE_MAX;
  const auto flush_unknown = [&](size_t end) {
    if (unknown_begin != SIZE_MAX) pieces_.append_unknown(word.substr(unknown_begin, end - unknown_begin), out);
    unknown_begin = SIZE_MAX;
  };
  for (const size_t end : ends) {
    const Step& step = best[end];
    if (step.token == kNoToken) {
      unknown_begin = std::min(unknown_begin, step.begin);
      continue;
    }
    flush_unknown(step.begin);
    out.push_back(step.token);
  }
  flush_unknown(word.size());
}

void UnigramModel::encode(std::string_view text, FragmentPlace place, std::vector<TokenId>& out) const {
  spaces_.for_each_word(text, place, [&](std::string_view word) { encode_word(word, out); });
}

}  // namespace candor::text
