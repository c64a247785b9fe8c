#include "formats/safetensors/other_vocabularies.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "formats/base64.h"
#include "formats/quote.h"
#include "formats/safetensors/tokenizer_steps.h"

namespace candor::formats::safetensors {
namespace {

using nlohmann::json;

constexpr size_t kMaxTokens = size_t{1} << 22;

constexpr const char* kLlama3Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwenWords =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kKimiWords =
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// As ByteLevel writes bytes: GPT-2's alphabet.
std::string alphabet_piece(std::string_view bytes) {
  static const std::vector<std::string> kAlphabet = [] {
    std::vector<std::string> alphabet(256);
    uint32_t n_others = 0;
    for (uint32_t b = 0; b < 256; ++b) {
      const bool is_own = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      append_utf8(alphabet[b], is_own ? b : 0x100 + n_others++);
    }
    return alphabet;
  }();
  std::string piece;
  for (const char byte : bytes) piece += kAlphabet[static_cast<uint8_t>(byte)];
  return piece;
}

json special_token(int64_t id, std::string_view content) {
  return {{"id", static_cast<uint64_t>(id)}, {"content", content}, {"special", true}};
}

// Tokens over bytes, by rank.
class Ranks {
 public:
  Ranks(std::string_view name, std::string_view file) : name_(name), file_(file) {}

  Error bad(const std::string& reason) const {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: {}: {}; download it again", name_, in_quotes(file_), reason));
  }
  const std::map<int64_t, std::string>& tokens() const { return tokens_; }

  Result<void> add(int64_t rank, std::string bytes) {
    if (rank < 0 || rank >= static_cast<int64_t>(kMaxTokens) || bytes.empty()) {
      return bad(fmt::format("rank {}, expected 0 to {} and a token of some bytes", rank, kMaxTokens - 1));
    }
    if (!tokens_.emplace(rank, std::move(bytes)).second) return bad(fmt::format("rank {} appears twice", rank));
    return {};
  }

  // first_id: of rank 0. words: the expression.
  Result<json> tokenizer(int64_t first_id, std::string_view words) const {
    CANDOR_TRY(check_lengths());
    std::unordered_map<std::string_view, int64_t> ranks;
    json vocab = json::object();
    for (const auto& [rank, bytes] : tokens_) {
      if (!ranks.emplace(bytes, rank).second) return bad(fmt::format("the token of rank {} appears twice", rank));
      vocab[alphabet_piece(bytes)] = static_cast<uint64_t>(first_id + rank);
    }
    json merges = json::array();
    for (const auto& [rank, bytes] : tokens_) {
      const std::string_view all = bytes;
      for (size_t cut = 1; cut < all.size(); ++cut) {
        if (!ranks.contains(all.substr(0, cut)) || !ranks.contains(all.substr(cut))) continue;
        merges.push_back(alphabet_piece(all.substr(0, cut)) + " " + alphabet_piece(all.substr(cut)));
      }
    }
    const json split = {{"type", "Split"}, {"pattern", {{"Regex", words}}}, {"behavior", "Isolated"}};
    const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
    json model = {{"type", "BPE"}, {"ignore_merges", true}};
    model["vocab"] = std::move(vocab);
    model["merges"] = std::move(merges);
    return json{{"model", std::move(model)},
                {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}},
                {"decoder", {{"type", "ByteLevel"}}},
                {"added_tokens", json::array()}};
  }

 private:
  // Each cut of a token is looked up: one of n bytes costs n squared. Vocabularies stay a hundred times below.
  Result<void> check_lengths() const {
    constexpr size_t kMaxWork = size_t{1} << 28;
    size_t work = 0;
    for (const auto& [rank, bytes] : tokens_) {
      work += std::min(bytes.size(), kMaxWork) * std::min(bytes.size(), size_t{1} << 20);
      if (work > kMaxWork) return bad("tokens of so many bytes are in no vocabulary");
    }
    return {};
  }

  std::string_view name_;
  std::string_view file_;
  std::map<int64_t, std::string> tokens_;
};

Result<Ranks> read_ranks(std::string_view text, std::string_view name) {
  Ranks ranks(name, "tiktoken file");
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (row.empty()) continue;
    const size_t space = std::min(row.find(' '), row.size());
    std::optional<std::string> bytes = from_base64(row.substr(0, space));
    const std::string_view digits = row.substr(std::min(space + 1, row.size()));
    int64_t rank = -1;
    const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (!bytes || error != std::errc() || rest != digits.data() + digits.size()) {
      return ranks.bad(fmt::format("line {} is no base64 and a rank", line));
    }
    CANDOR_TRY(ranks.add(rank, std::move(*bytes)));
  }
  if (ranks.tokens().empty()) return ranks.bad("it has no tokens");
  return ranks;
}

std::string class_of(const json* config) {
  return config == nullptr ? std::string() : text_at(*config, "tokenizer_class");
}

std::string content_of(const json& token) {
  return token.is_string() ? token.get<std::string>() : token.is_object() ? text_at(token, "content") : "";
}

// Texts of the tokens that a file names as special.
void add_named(const json* file, std::vector<std::string>& names) {
  if (file == nullptr) return;
  for (const char* key : {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"}) {
    if (file->contains(key)) names.push_back(content_of((*file)[key]));
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    if (!file->contains(key) || !(*file)[key].is_array()) continue;
    for (const json& token : (*file)[key]) names.push_back(content_of(token));
  }
}

// Special tokens that Qwen's first tokenizer has in its code.
json qwen_tokens(int64_t first) {
  json added = json::array();
  for (const char* name : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) added.push_back(special_token(first++, name));
  for (int i = 0; i < 205; ++i) added.push_back(special_token(first++, fmt::format("<|extra_{}|>", i)));
  return added;
}

// Ids behind the tokens that nobody named are reserved ones.
void add_reserved(json& added, int64_t first, int64_t end) {
  std::vector<int64_t> taken;
  for (const json& token : added) taken.push_back(token["id"].get<int64_t>());
  std::ranges::sort(taken);
  for (int64_t id = first; id < end; ++id) {
    if (!std::ranges::binary_search(taken, id)) added.push_back(special_token(id, fmt::format("<|reserved_token_{}|>", id)));
  }
}

}  // namespace

Result<json> added_tokens_of(const VocabularyNotes& notes, const json& vocab) {
  const auto bad = [&](std::string_view file, std::string_view key) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: {}: {} is no token with an id; download it again", notes.name,
                                                      file, in_quotes(key)));
  };
  std::vector<std::string> names;
  add_named(notes.config, names);
  add_named(notes.special, names);
  std::map<int64_t, json> added;
  const json* decoder = notes.config != nullptr && notes.config->contains("added_tokens_decoder")
                            ? &(*notes.config)["added_tokens_decoder"]
                            : nullptr;
  if (decoder != nullptr && decoder->is_object()) {
    for (const auto& [key, token] : decoder->items()) {
      int64_t id = -1;
      const auto [rest, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      const bool is_id = error == std::errc() && rest == key.data() + key.size() && id >= 0;
      if (!is_id || content_of(token).empty()) return bad("tokenizer_config.json: added_tokens_decoder", key);
      json one = token.is_object() ? token : json{{"content", token}, {"special", true}};
      one["id"] = static_cast<uint64_t>(id);
      added[id] = std::move(one);
    }
  }
  if (notes.added != nullptr) {
    for (const auto& [content, id] : notes.added->items()) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() >= kMaxTokens) return bad("added_tokens.json", content);
      const bool is_special = std::ranges::find(names, content) != names.end();
      added.emplace(id.get<int64_t>(), json{{"id", id}, {"content", content}, {"special", is_special}});
    }
  }
  for (const std::string& name : names) {
    const auto at = vocab.find(name);
    if (at != vocab.end() && at->is_number_unsigned()) added.emplace(at->get<int64_t>(), special_token(*at, name));
  }
  json list = json::array();
  for (auto& [id, token] : added) list.push_back(std::move(token));
  return list;
}

Result<json> tokenizer_of_tiktoken(std::string_view text, const VocabularyNotes& notes) {
  const std::string type = class_of(notes.config);
  CANDOR_ASSIGN(const Ranks ranks, read_ranks(text, notes.name));
  const int64_t end = ranks.tokens().rbegin()->first + 1;
  CANDOR_ASSIGN(json added, added_tokens_of(notes, json::object()));
  const char* words = nullptr;
  if (type == "QWenTokenizer") {
    words = kQwenWords;
    if (added.empty()) added = qwen_tokens(end);
  } else if (type == "TikTokenTokenizer") {
    words = kKimiWords;
    add_reserved(added, end, end + 256);
  } else if (type == "PreTrainedTokenizerFast" || type == "TokenizersBackend") {
    words = kLlama3Words;
    add_reserved(added, end, added.empty() ? end : added.back()["id"].get<int64_t>());
  } else {
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}: a tiktoken file does not say how text is cut into words, and tokenizer_config.json's "
                            "\"tokenizer_class\" {} is not known (known: QWenTokenizer, TikTokenTokenizer, "
                            "PreTrainedTokenizerFast, TokenizersBackend); use a folder with tokenizer.json",
                            notes.name, in_quotes(type)));
  }
  CANDOR_ASSIGN(json tokenizer, ranks.tokenizer(0, words));
  tokenizer["added_tokens"] = std::move(added);
  return tokenizer;
}

Result<json> tokenizer_of_tekken(const json& tekken, std::string_view name) {
  Ranks ranks(name, "tekken.json");
  const json config = tekken.contains("config") ? tekken["config"] : json();
  const auto number = [&](const char* key) -> int64_t {
    const bool is_count = config.is_object() && config.contains(key) && config[key].is_number_unsigned();
    return is_count && config[key] < kMaxTokens ? config[key].get<int64_t>() : -1;
  };
  const int64_t n_vocab = number("default_vocab_size");
  const int64_t n_special = number("default_num_special_tokens");
  const std::string words = config.is_object() ? text_at(config, "pattern") : "";
  const bool has_all = n_special >= 0 && n_vocab > n_special && !words.empty() && tekken.contains("vocab");
  if (!has_all || !tekken["vocab"].is_array()) {
    return ranks.bad("expected config.pattern, config.default_vocab_size above config.default_num_special_tokens, and a "
                     "list \"vocab\"");
  }
  if (words.find("}+") != std::string::npos) return ranks.bad("config.pattern repeats a count, which is read two ways");
  for (const json& token : tekken["vocab"]) {
    const bool is_token = token.is_object() && token.contains("rank") && token["rank"].is_number_unsigned();
    const std::optional<std::string> bytes = is_token ? from_base64(text_at(token, "token_bytes")) : std::nullopt;
    if (!bytes) return ranks.bad("an entry of \"vocab\" has no \"rank\" or no \"token_bytes\"");
    if (token["rank"] < n_vocab - n_special) CANDOR_TRY(ranks.add(token["rank"].get<int64_t>(), *bytes));
  }
  // Files of before 2025 have these in mistral-common's code.
  std::vector<std::string> names = {
      "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
      "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]",
      "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"};
  if (tekken.contains("special_tokens") && tekken["special_tokens"].is_array()) {
    names.clear();
    for (const json& token : tekken["special_tokens"]) {
      const bool is_next = token.is_object() && token.contains("rank") && token["rank"] == names.size();
      if (!is_next || text_at(token, "token_str").empty()) {
        return ranks.bad(fmt::format("special_tokens[{}] has no \"token_str\", or another rank", names.size()));
      }
      names.push_back(text_at(token, "token_str"));
    }
  }
  if (static_cast<int64_t>(names.size()) > n_special) return ranks.bad("more special tokens than config makes room for");
  for (int64_t i = static_cast<int64_t>(names.size()); i < n_special; ++i) names.push_back(fmt::format("<SPECIAL_{}>", i));
  CANDOR_ASSIGN(json tokenizer, ranks.tokenizer(n_special, words));
  for (size_t i = 0; i < names.size(); ++i) {
    tokenizer["added_tokens"].push_back(special_token(static_cast<int64_t>(i), names[i]));
  }
  tokenizer["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}}};
  return tokenizer;
}

Result<json> tokenizer_of_merges(const json& vocab, std::string_view merges, const VocabularyNotes& notes) {
  const std::string type = class_of(notes.config);
  const bool is_gpt2 = type == "GPT2Tokenizer" || type == "GPT2TokenizerFast" || type == "CodeGenTokenizer" ||
                       (type.empty() && notes.is_gpt2_family);
  const bool is_qwen2 = type == "Qwen2Tokenizer" || type == "Qwen2TokenizerFast";
  if (!is_gpt2 && !is_qwen2) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}: vocab.json and merges.txt do not say how text is cut into words, and "
                            "tokenizer_config.json's \"tokenizer_class\" {} is not known (known: GPT2Tokenizer, "
                            "CodeGenTokenizer, Qwen2Tokenizer); use a folder with tokenizer.json",
                            notes.name, in_quotes(type)));
  }
  json list = json::array();
  for (bool is_first = true; !merges.empty(); is_first = false) {
    const size_t end = std::min(merges.find('\n'), merges.size());
    std::string_view row = merges.substr(0, end);
    merges.remove_prefix(std::min(end + 1, merges.size()));
    if (row.ends_with('\r')) row.remove_suffix(1);
    const bool is_header = is_first && row.starts_with("#version");
    if (row.empty() || is_header) continue;
    list.push_back(to_valid_utf8(row));
  }
  CANDOR_ASSIGN(json added, added_tokens_of(notes, vocab));
  const bool adds_space = is_gpt2 && notes.config != nullptr && flag_at(*notes.config, "add_prefix_space", false);
  json words = {{"type", "ByteLevel"}, {"add_prefix_space", adds_space}, {"use_regex", is_gpt2}};
  if (is_qwen2) {
    const json split = {{"type", "Split"}, {"pattern", {{"Regex", kQwenWords}}}, {"behavior", "Isolated"}};
    words = {{"type", "Sequence"}, {"pretokenizers", {split, words}}};
  }
  json model = {{"type", "BPE"}, {"vocab", vocab}};
  model["merges"] = std::move(list);
  json tokenizer = {{"model", std::move(model)}, {"decoder", {{"type", "ByteLevel"}}}};
  tokenizer["pre_tokenizer"] = std::move(words);
  tokenizer["added_tokens"] = std::move(added);
  if (is_qwen2) tokenizer["normalizer"] = {{"type", "NFC"}};
  return tokenizer;
}

}  // namespace candor::formats::safetensors
