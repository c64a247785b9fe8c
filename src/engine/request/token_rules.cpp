#include "engine/request/token_rules.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sample/bans.h"
#include "sample/penalties.h"

namespace candor::engine {
namespace {

Error refused(const char* param, const std::string& what) {
  return {ErrorKind::kInvalidInput, std::string(param) + what, param};
}

Result<void> check_count(const char* param, size_t n) {
  if (n <= kMaxTokenRules) return {};
  return refused(param, " has " + std::to_string(n) + " entries, expected at most " + std::to_string(kMaxTokenRules));
}

Result<void> check_id(const char* param, TokenId id, const text::Tokenizer& tokenizer) {
  if (id >= 0 && id < tokenizer.n_vocab()) return {};
  return refused(param, " names the token " + std::to_string(id) + ", which is not in the vocabulary, expected 0 to " +
                            std::to_string(tokenizer.n_vocab() - 1));
}

Result<void> check_text(const char* param, const std::string& text) {
  if (!text.empty() && text.size() <= kMaxBadWordBytes) return {};
  return refused(param, " has a text of " + std::to_string(text.size()) + " bytes, expected 1 to " +
                            std::to_string(kMaxBadWordBytes));
}

// As they stand inside of a text. SentencePiece puts a space before what it encodes, which a text may have already.
Result<std::vector<TokenId>> tokens_of(const char* param, std::string_view text, const text::Tokenizer& tokenizer) {
  if (tokenizer.strips_leading_space() && text.size() > 1 && text.front() == ' ') text.remove_prefix(1);
  auto tokens = tokenizer.encode(text, {.add_special = false, .parse_special = false});
  if (!tokens) return refused(param, ": " + tokens.error().message);
  return std::move(*tokens);
}

Result<void> add_biases(const SamplingParams& sampling, const text::Tokenizer& tokenizer, sample::BanParams& bans) {
  if (auto counted = check_count("logit_bias", sampling.logit_bias.size()); !counted) return counted;
  for (const LogitBias& rule : sampling.logit_bias) {
    if (!(rule.bias >= -100.0 && rule.bias <= 100.0)) {
      return refused("logit_bias", " has the value " + std::to_string(rule.bias) + ", expected -100 to 100");
    }
    std::vector<TokenId> tokens = {rule.token};
    if (!rule.text.empty()) {
      if (auto checked = check_text("logit_bias", rule.text); !checked) return checked;
      auto of_text = tokens_of("logit_bias", rule.text, tokenizer);
      if (!of_text) return of_text.error();
      tokens = std::move(*of_text);
    }
    for (const TokenId id : tokens) {
      if (auto checked = check_id("logit_bias", id, tokenizer); !checked) return checked;
      if (rule.ban) {
        bans.banned.push_back(id);
      } else {
        bans.biases.push_back({id, static_cast<float>(rule.bias)});
      }
    }
  }
  return {};
}

Result<void> add_allowed(const SamplingParams& sampling, const text::Tokenizer& tokenizer, sample::BanParams& bans) {
  if (sampling.allowed_token_ids.empty()) return {};
  if (auto counted = check_count("allowed_token_ids", sampling.allowed_token_ids.size()); !counted) return counted;
  bans.allowed.emplace(tokenizer.n_vocab());
  for (const TokenId id : sampling.allowed_token_ids) {
    if (auto checked = check_id("allowed_token_ids", id, tokenizer); !checked) return checked;
    bans.allowed->allow(id);
  }
  return {};
}

Result<void> add_bad_words(const SamplingParams& sampling, const text::Tokenizer& tokenizer, sample::BanParams& bans) {
  if (auto counted = check_count("bad_words", sampling.bad_words.size()); !counted) return counted;
  for (const std::string& word : sampling.bad_words) {
    if (auto checked = check_text("bad_words", word); !checked) return checked;
    for (const std::string& written : {word, " " + word}) {
      auto tokens = tokens_of("bad_words", written, tokenizer);
      if (!tokens) return tokens.error();
      if (!tokens->empty()) bans.bad_words.push_back(std::move(*tokens));
    }
  }
  return {};
}

Result<void> add_breakers(const SamplingParams& sampling, const text::Tokenizer& tokenizer, sample::DryParams& dry) {
  const char* const kField = "dry_sequence_breakers";
  if (sampling.dry_sequence_breakers.size() > kMaxStopStrings) {
    return refused(kField, " has " + std::to_string(sampling.dry_sequence_breakers.size()) +
                               " texts, expected at most " + std::to_string(kMaxStopStrings));
  }
  for (const std::string& text : sampling.dry_sequence_breakers) {
    if (auto checked = check_text(kField, text); !checked) return checked;
  }
  if (!dry.is_on()) return {};
  for (TokenId id = 0; id < tokenizer.n_vocab(); ++id) {
    const std::string_view bytes = tokenizer.bytes_of(id);
    const auto holds = [&](const std::string& text) { return bytes.find(text) != std::string_view::npos; };
    if (std::ranges::any_of(sampling.dry_sequence_breakers, holds)) dry.breakers.push_back(id);
  }
  return {};
}

}  // namespace

Result<void> add_token_rules(const SamplingParams& sampling, const text::Tokenizer& tokenizer,
                             sample::ChainParams& chain) {
  sample::BanParams& bans = chain.bans;
  if (auto added = add_biases(sampling, tokenizer, bans); !added) return added;
  if (auto added = add_allowed(sampling, tokenizer, bans); !added) return added;
  if (auto added = add_bad_words(sampling, tokenizer, bans); !added) return added;
  if (auto added = add_breakers(sampling, tokenizer, chain.dry); !added) return added;
  if (bans.min_tokens == 0) return {};
  bans.ends = sampling.stop_ids;
  if (!sampling.ignore_eos)
    bans.ends.insert(bans.ends.end(), tokenizer.end_tokens().begin(), tokenizer.end_tokens().end());
  return {};
}

}  // namespace candor::engine
