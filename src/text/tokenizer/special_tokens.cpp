#include "text/tokenizer/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace candor::text {
namespace {

// Names under which published vocabularies write the end of a turn, of a message to a tool, and of a text.
constexpr std::array<std::string_view, 23> kEndPieces = {"<|eot_id|>",
                                                         "<|im_end|>",
                                                         "<|end|>",
                                                         "<|return|>",
                                                         "<|call|>",
                                                         "<|flush|>",
                                                         "<|calls|>",
                                                         "<end_of_turn>",
                                                         "<|endoftext|>",
                                                         "</s>",
                                                         "<|eom_id|>",
                                                         "<EOT>",
                                                         "_<EOT>",
                                                         "[EOT]",
                                                         "[EOS]",
                                                         "<|end_of_text|>",
                                                         "<end_of_utterance>",
                                                         "<eos>",
                                                         "<turn|>",
                                                         "<|tool_response>",
                                                         "<|eot|>",
                                                         "[e~[",
                                                         "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"};

// The same for the end of a turn alone, the likeliest first.
constexpr std::array<std::string_view, 10> kTurnPieces = {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>",
                                                          "<EOT>",      "_<EOT>",     "[EOT]",   "<end_of_utterance>",
                                                          "<turn|>",    "<|eot|>"};

// A vocabulary has a token of this name that is not an ordinary piece of text.
TokenId find_special(const Vocabulary& vocabulary, std::string_view piece) {
  const std::optional<TokenId> id = vocabulary.find(piece);
  if (!id) return kNoToken;
  const TokenKind kind = vocabulary.kind(*id);
  return kind == TokenKind::kControl || kind == TokenKind::kUserDefined ? *id : kNoToken;
}

Result<TokenId> read_id(const formats::ModelFile& file, const Vocabulary& vocabulary, std::string_view key,
                        TokenId fallback) {
  CANDOR_ASSIGN(const std::optional<int64_t> id, formats::meta_int(file, key));
  if (!id) return fallback;
  constexpr int64_t kAbsent = std::numeric_limits<uint32_t>::max();
  if (*id == kAbsent || *id == -1) return kNoToken;
  if (*id < 0 || *id >= vocabulary.size()) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: {}, expected a token id from 0 to {}; convert the model again", key, *id,
                            vocabulary.size() - 1));
  }
  return static_cast<TokenId>(*id);
}

Result<bool> read_rule(const formats::ModelFile& file, std::string_view key, bool fallback) {
  CANDOR_ASSIGN(const std::optional<bool> rule, formats::meta_bool(file, key));
  return rule.value_or(fallback);
}

Result<void> check_rule(bool adds, TokenId id, std::string_view rule_key, std::string_view id_key) {
  if (!adds || id != kNoToken) return {};
  return fail(ErrorKind::kInvalidInput,
              fmt::format("{}: the vocabulary adds this token to every text, but {} names none", rule_key, id_key));
}

std::vector<TokenId> collect_end_tokens(const Vocabulary& vocabulary, std::vector<TokenId> ends) {
  for (const std::string_view piece : kEndPieces) ends.push_back(find_special(vocabulary, piece));
  // Where messages end with <|return|> or <|call|>, <|end|> only closes one of several messages of the same answer.
  const bool many_messages =
      find_special(vocabulary, "<|call|>") != kNoToken && find_special(vocabulary, "<|return|>") != kNoToken;
  const TokenId message_end = many_messages ? find_special(vocabulary, "<|end|>") : kNoToken;
  std::erase_if(ends, [message_end](TokenId id) { return id == kNoToken || id == message_end; });
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

// Ascending ids; those that are none are left out.
Result<std::vector<TokenId>> read_ids(const formats::ModelFile& file, const Vocabulary& vocabulary,
                                      std::string_view key) {
  CANDOR_ASSIGN(const std::vector<int64_t>* listed, formats::meta_ints(file, key));
  std::vector<TokenId> ids;
  if (listed == nullptr) return ids;
  for (const int64_t id : *listed) {
    if (id >= 0 && id < vocabulary.size()) ids.push_back(static_cast<TokenId>(id));
  }
  std::ranges::sort(ids);
  return ids;
}

}  // namespace

Result<SpecialSet> read_special_tokens(const formats::ModelFile& file, const Vocabulary& vocabulary,
                                       const SpecialTokens& defaults) {
  constexpr std::string_view kBosKey = "tokenizer.ggml.bos_token_id";
  constexpr std::string_view kEosKey = "tokenizer.ggml.eos_token_id";
  constexpr std::string_view kAddBosKey = "tokenizer.ggml.add_bos_token";
  constexpr std::string_view kAddEosKey = "tokenizer.ggml.add_eos_token";
  SpecialSet set{.tokens = defaults};
  SpecialTokens& tokens = set.tokens;
  TokenId turn = kNoToken;
  for (const std::string_view piece : kTurnPieces) {
    if (turn == kNoToken) turn = find_special(vocabulary, piece);
  }
  CANDOR_ASSIGN(tokens.bos, read_id(file, vocabulary, kBosKey, defaults.bos));
  CANDOR_ASSIGN(tokens.eos, read_id(file, vocabulary, kEosKey, defaults.eos));
  CANDOR_ASSIGN(tokens.eot, read_id(file, vocabulary, "tokenizer.ggml.eot_token_id", turn));
  CANDOR_ASSIGN(const TokenId eom, read_id(file, vocabulary, "tokenizer.ggml.eom_token_id", kNoToken));
  CANDOR_ASSIGN(tokens.unk, read_id(file, vocabulary, "tokenizer.ggml.unknown_token_id", defaults.unk));
  CANDOR_ASSIGN(tokens.pad, read_id(file, vocabulary, "tokenizer.ggml.padding_token_id", defaults.pad));
  CANDOR_ASSIGN(tokens.add_bos, read_rule(file, kAddBosKey, defaults.add_bos));
  CANDOR_ASSIGN(tokens.add_eos, read_rule(file, kAddEosKey, defaults.add_eos));
  CANDOR_TRY(check_rule(tokens.add_bos, tokens.bos, kAddBosKey, kBosKey));
  CANDOR_TRY(check_rule(tokens.add_eos, tokens.eos, kAddEosKey, kEosKey));
  CANDOR_ASSIGN(std::vector<TokenId> ends, read_ids(file, vocabulary, "tokenizer.candor.end_token_ids"));
  ends.insert(ends.end(), {tokens.eos, tokens.eot, eom});
  // RoBERTa's kind has two marks; files of WordPiece, and of others that say so, have one.
  CANDOR_ASSIGN(const auto marks, formats::meta_int(file, "tokenizer.candor.pair_marks"));
  CANDOR_ASSIGN(const auto has_sep, formats::meta_bool(file, "tokenizer.ggml.add_sep_token"));
  CANDOR_ASSIGN(const auto model, formats::meta_string(file, "tokenizer.ggml.model"));
  const bool has_one = model == "bert" || has_sep.value_or(false);
  CANDOR_ASSIGN(const auto has_types, formats::meta_bool(file, "tokenizer.candor.pair_types"));
  set.pair.has_types = has_types.value_or(model == "bert");
  set.pair.n_between = marks ? (*marks == 1 ? 1 : 2) : has_one ? 1 : 2;
  set.end_tokens = collect_end_tokens(vocabulary, std::move(ends));
  CANDOR_ASSIGN(set.strips_left, read_ids(file, vocabulary, "tokenizer.candor.lstrip_ids"));
  CANDOR_ASSIGN(set.strips_right, read_ids(file, vocabulary, "tokenizer.candor.rstrip_ids"));
  return set;
}

}  // namespace candor::text
