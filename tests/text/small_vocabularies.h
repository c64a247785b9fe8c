#pragma once
// Vocabularies small enough to reason about, as model files: every byte, a few merges, and special tokens.

#include <array>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "support/memory_model_file.h"
#include "text/tokenizer/byte_alphabet.h"

namespace candor::testing {

// Token types of GGUF.
inline constexpr int64_t kNormalType = 1, kUnknownType = 2, kControlType = 3, kUserType = 4, kByteType = 6;

struct SmallVocabulary {
  std::vector<std::string> tokens;
  std::vector<int64_t> types;
  std::vector<double> scores;

  int64_t add(const std::string& token, int64_t type = kNormalType, double score = 0.0) {
    tokens.push_back(token);
    types.push_back(type);
    scores.push_back(score);
    return static_cast<int64_t>(tokens.size()) - 1;
  }
  void write_to(MemoryModelFile& file, const std::string& model) const {
    file.set_string("tokenizer.ggml.model", model);
    file.set_strings("tokenizer.ggml.tokens", tokens);
    file.set_ints("tokenizer.ggml.token_type", types);
  }
};

// Byte-level BPE. Ids: 0 to 255 the bytes, then the merged pieces, then <|im_start|>, <|im_end|> (control), <think>
// (user-defined), and the user-defined piece "::".
inline MemoryModelFile small_bpe(const std::string& pre = "gpt-2") {
  SmallVocabulary vocabulary;
  for (const uint32_t c : text::byte_alphabet()) {
    std::string name;
    append_utf8(name, c);
    vocabulary.add(name);
  }
  const std::string space = "\u0120";
  const std::vector<std::array<std::string, 2>> pairs = {
      {"h", "e"},   {"l", "l"},       {"he", "ll"}, {"hell", "o"}, {space, "w"},   {"a", "a"},
      {"aa", "aa"}, {"aaaa", "aaaa"}, {"1", "2"},   {"<", "|"},    {space, space}, {"\u00C3", "\u00A9"}};
  std::vector<std::string> merges;
  for (const auto& [left, right] : pairs) {
    vocabulary.add(left + right);
    merges.push_back(left + " " + right);
  }
  const int64_t start = vocabulary.add("<|im_start|>", kControlType);
  const int64_t end = vocabulary.add("<|im_end|>", kControlType);
  vocabulary.add("<think>", kUserType);
  vocabulary.add("::", kUserType);
  MemoryModelFile file;
  vocabulary.write_to(file, "gpt2");
  file.set_strings("tokenizer.ggml.merges", merges);
  file.set_string("tokenizer.ggml.pre", pre);
  file.set("tokenizer.ggml.bos_token_id", start);
  file.set("tokenizer.ggml.eos_token_id", end);
  return file;
}

// SentencePiece with byte fallback: 0 <unk>, 1 <s>, 2 </s>, 3 to 258 the bytes, then pieces, the last user-defined.
inline MemoryModelFile small_sentence_piece() {
  SmallVocabulary vocabulary;
  vocabulary.add("<unk>", kUnknownType);
  vocabulary.add("<s>", kControlType);
  vocabulary.add("</s>", kControlType);
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (size_t byte = 0; byte < 256; ++byte) {
    vocabulary.add(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", kByteType);
  }
  const std::vector<std::string> pieces = {"\u2581",
                                           "h",
                                           "e",
                                           "l",
                                           "o",
                                           "s",
                                           "<",
                                           ">",
                                           "/",
                                           "\u00E9",
                                           "a",
                                           "he",
                                           "ll",
                                           "hell",
                                           "hello",
                                           "\u2581hello",
                                           "\u2581\u2581",
                                           "aa",
                                           "aaaa",
                                           "s>",
                                           "</",
                                           "\u2581s"};
  double score = 0.0;
  for (const std::string& piece : pieces) vocabulary.add(piece, kNormalType, score -= 1.0);
  vocabulary.add("[\u2581]", kUserType);
  MemoryModelFile file;
  vocabulary.write_to(file, "llama");
  file.set_floats("tokenizer.ggml.scores", vocabulary.scores);
  file.set("tokenizer.ggml.bos_token_id", int64_t{1});
  file.set("tokenizer.ggml.eos_token_id", int64_t{2});
  return file;
}

// The same pieces and scores as a unigram model, whose words end at spaces.
inline MemoryModelFile small_unigram() {
  MemoryModelFile file = small_sentence_piece();
  file.set_string("tokenizer.ggml.model", "t5");
  file.set("tokenizer.candor.split_at_marks", true);
  return file;
}

}  // namespace candor::testing
