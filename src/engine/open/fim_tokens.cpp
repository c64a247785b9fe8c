#include "engine/open/fim_tokens.h"

#include <span>
#include <string_view>

namespace candor::engine {
namespace {

struct Mark {
  TokenId FimTokens::*member;
  std::span<const std::string_view> keys;
  std::span<const std::string_view> pieces;
};

// Of Qwen, StarCoder and Granite, DeepSeek, CodeLlama, GLM, Mellum and Codestral, in this order.
constexpr std::string_view kPrefixKeys[] = {"tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"};
constexpr std::string_view kSuffixKeys[] = {"tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"};
constexpr std::string_view kMiddleKeys[] = {"tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"};
constexpr std::string_view kPadKeys[] = {"tokenizer.ggml.fim_pad_token_id"};
constexpr std::string_view kRepoKeys[] = {"tokenizer.ggml.fim_rep_token_id"};
constexpr std::string_view kSeparatorKeys[] = {"tokenizer.ggml.fim_sep_token_id"};

constexpr std::string_view kPrefixPieces[] = {"<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>",
                                              "<\uFF5Cfim\u2581begin\uFF5C>", "\u2581<PRE>", "<PRE>",
                                              "<|code_prefix|>", "[PREFIX]"};
constexpr std::string_view kSuffixPieces[] = {"<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>",
                                              "<\uFF5Cfim\u2581hole\uFF5C>", "\u2581<SUF>", "<SUF>",
                                              "<|code_suffix|>", "[SUFFIX]"};
constexpr std::string_view kMiddlePieces[] = {"<|fim_middle|>", "<fim_middle>", "<fim-middle>",
                                              "<\uFF5Cfim\u2581end\uFF5C>", "\u2581<MID>", "<MID>",
                                              "<|code_middle|>", "[MIDDLE]"};
constexpr std::string_view kPadPieces[] = {"<|fim_pad|>", "<fim_pad>", "<fim-pad>"};
constexpr std::string_view kRepoPieces[] = {"<|repo_name|>", "<|fim_repo|>", "<reponame>", "<repo_name>"};
constexpr std::string_view kSeparatorPieces[] = {"<|file_sep|>", "<file_sep>", "<filename>"};

constexpr Mark kMarks[] = {
    {&FimTokens::prefix, kPrefixKeys, kPrefixPieces}, {&FimTokens::suffix, kSuffixKeys, kSuffixPieces},
    {&FimTokens::middle, kMiddleKeys, kMiddlePieces}, {&FimTokens::pad, kPadKeys, kPadPieces},
    {&FimTokens::repo, kRepoKeys, kRepoPieces},       {&FimTokens::separator, kSeparatorKeys, kSeparatorPieces},
};

TokenId find_mark(const Mark& mark, const formats::ModelFile& file, const text::Tokenizer& tokenizer) {
  for (const std::string_view key : mark.keys) {
    const auto id = formats::meta_int(file, key);
    if (id && *id && **id >= 0 && **id < tokenizer.n_vocab()) return static_cast<TokenId>(**id);
  }
  for (const std::string_view piece : mark.pieces) {
    const auto id = tokenizer.find(piece);
    if (id && tokenizer.kind(*id) != text::TokenKind::kNormal) return *id;
  }
  return kNoToken;
}

}  // namespace

FimTokens find_fim_tokens(const formats::ModelFile& file, const text::Tokenizer& tokenizer) {
  FimTokens tokens;
  for (const Mark& mark : kMarks) tokens.*mark.member = find_mark(mark, file, tokenizer);
  return tokens;
}

}  // namespace candor::engine
