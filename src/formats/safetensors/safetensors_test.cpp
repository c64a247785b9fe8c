// safetensors files and what stands beside them, well formed and not.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/json_text.h"
#include "formats/safetensors/safetensors_file.h"
#include "formats/safetensors/tokenizer_json.h"
#include "support/mutate.h"
#include "support/temp_folder.h"

namespace candor::formats::safetensors {
namespace {

using candor::testing::TempFolder;
using nlohmann::json;

std::string file_bytes(const std::string& header, size_t n_data, uint64_t stated_length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &stated_length, 8);
  return bytes + header + std::string(n_data, 'x');
}
std::string file_bytes(const std::string& header, size_t n_data) {
  return file_bytes(header, n_data, header.size());
}

// The refusal of a file with these bytes; "" if it opens.
std::string refusal(const std::string& bytes) {
  const TempFolder folder;
  const auto file = SafetensorsFile::open(folder.file("model.safetensors", std::string_view(bytes)));
  return file ? std::string() : file.error().message;
}

const std::string kGood = R"({"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
                          R"("b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]}})";

TEST(safetensors, tensors_are_views_in_the_order_of_their_data) {
  const TempFolder folder;
  const auto file = SafetensorsFile::open(folder.file("m.safetensors", std::string_view(file_bytes(kGood, 20))));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->tensors()[0].name, "a");
  EXPECT_EQ(file->tensors()[0].dtype, DType::kBF16);
  EXPECT_EQ(to_string(file->tensors()[0].shape), "[2, 3]");
  EXPECT_EQ(file->tensors()[1].data - file->tensors()[0].data, 12);
}

TEST(safetensors, more_than_four_dimensions_are_folded_into_the_outermost) {
  const TempFolder folder;
  const std::string bytes = file_bytes(R"({"a":{"dtype":"F32","shape":[2,3,1,1,2],"data_offsets":[0,48]}})", 48);
  const auto file = SafetensorsFile::open(folder.file("m.safetensors", std::string_view(bytes)));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(to_string(file->tensors()[0].shape), "[6, 1, 1, 2]");
}

TEST(safetensors, every_malformed_kind_is_refused_with_its_reason) {
  const auto entry = [](const std::string& body) { return file_bytes("{\"a\":{" + body + "}}", 12); };
  const std::pair<std::string, const char*> kCases[] = {
      {"abc", "too few"},
      {file_bytes(kGood, 20, 1 << 20), "header of 1048576 bytes"},
      {file_bytes(kGood, 20, UINT64_MAX), "header of 18446744073709551615 bytes"},
      {file_bytes(kGood, 19), "19 bytes follow"},
      {file_bytes(kGood, 21), "describes 20 bytes of data, the file has 21"},
      {file_bytes("[]", 0), "no JSON object"},
      {file_bytes("{\"a\":", 0), "no valid JSON"},
      {file_bytes("{\"a\":1}", 0), "expected an object"},
      {file_bytes(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":1})", 0), "dimension"},
      {file_bytes(R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},)"
                  R"("a":{"dtype":"I8","shape":[4],"data_offsets":[4,8]}})",
                  8),
       "appears twice"},
      {file_bytes("{\"__metadata__\":" + std::string(200, '['), 0), "deeper"},
      {file_bytes(R"({"a":{"dtype":"F32","dtype":"F32"}})", 0), "appears twice"},
      {entry(R"("dtype":"F32","shape":["3"],"data_offsets":[0,12])"), "dimension"},
      {entry(R"("dtype":"F32","shape":[{"x":3}],"data_offsets":[0,12])"), "dimension"},
      {entry(R"("dtype":"F32","shape":[3],"data_offsets":[0,12,13])"), "two numbers"},
      {entry(R"("dtype":"F32","shape":[3],"data_offsets":[0.0,12])"), "two numbers"},
      {"version https://git-lfs.github.com/spec/v1\n", "LFS"},
      {entry(R"("dtype":"F8_E5M2","shape":[12],"data_offsets":[0,12])"), "F8_E5M2"},
      {entry(R"("dtype":"F32","shape":[4],"data_offsets":[0,12])"), "expected those of shape [4]"},
      {entry(R"("dtype":"F32","shape":[-3],"data_offsets":[0,12])"), "dimension"},
      {entry(R"("dtype":"F32","shape":[0],"data_offsets":[0,0])"), "dimension"},
      {entry(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,3],"data_offsets":[0,12])"), "9 dimensions"},
      {entry(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,12])"), "too large"},
      {entry(R"("dtype":"F32","shape":[3],"data_offsets":[12,0])"), "data at 12 to 0"},
      {entry(R"("dtype":"F32","shape":[2],"data_offsets":[4,12])"), "leave a gap"},
      {entry(R"("dtype":"F32","shape":[3],"data_offsets":[0,18446744073709551615])"), "data at 0"},
      {entry(R"("dtype":"F32","shape":[3],"data_offsets":"no")"), "two numbers"},
      {file_bytes(
           R"({"a":{"dtype":"I8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"I8","shape":[8],"data_offsets":[4,12]}})",
           12),
       "overlap"},
  };
  for (const auto& [bytes, reason] : kCases) {
    const std::string message = refusal(bytes);
    EXPECT_NE(message.find(reason), std::string::npos) << reason << " in: " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

// A header of about n_bytes that says the same thing over and over.
std::string long_header(size_t n_bytes, const std::function<std::string(size_t)>& part) {
  std::string header = "{";
  for (size_t i = 0; header.size() < n_bytes; ++i) header += (i == 0 ? "" : ",") + part(i);
  return header + "}";
}

TEST(safetensors, a_header_of_20_mb_takes_neither_seconds_nor_memory) {
  constexpr size_t kHeader = size_t{20} << 20;
  const auto tensor = [](size_t i) {
    return "\"" + std::to_string(i) + "\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}";
  };
  const auto pair = [](size_t i) { return "\"k" + std::to_string(i) + "\":\"v\""; };
  const std::pair<std::string, const char*> kHeaders[] = {
      {long_header(kHeader, tensor), "more than 262144 tensors"},
      {long_header(kHeader, [](size_t) { return std::string("\"__metadata__\":{}"); }), "describes 0 bytes"},
      {"{\"__metadata__\":" + long_header(kHeader, pair) + "}", "describes 0 bytes"},
      {"{\"__metadata__\":[" + std::string(kHeader, ' ') + "]}", "describes 0 bytes"},
      {"{\"a\":{\"shape\":[1" + long_header(kHeader, [](size_t) { return std::string("1"); }).substr(1), "no valid"},
  };
  for (const auto& [header, reason] : kHeaders) {
    const std::vector<std::byte> data(1);
    std::vector<std::string> names;
    const candor::testing::CpuTimeLimit seconds(4);  // a tenth of it is enough
    const candor::testing::MemoryLimit memory(size_t{128} << 20);
    const auto read = read_header(header, data, "'large'", names);
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().message.find(reason), std::string::npos) << read.error().message.substr(0, 200);
  }
}

TEST(safetensors, a_file_cut_anywhere_is_refused) {
  const std::string whole = file_bytes(kGood, 20);
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(refusal(whole.substr(0, n)), "") << n;
  EXPECT_EQ(refusal(whole), "");
}

json byte_level() {
  return json::parse(R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]},
    "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},
    "added_tokens":[{"id":3,"content":"<end>","special":true}],
    "normalizer":null,"post_processor":null,"decoder":{"type":"ByteLevel"}})");
}

std::string tokenizer_refusal(const json& tokenizer) {
  MetaList metadata;
  const auto read = read_tokenizer({.name = "'folder'", .tokenizer = &tokenizer}, 6, metadata);
  return read ? std::string() : read.error().message;
}

TEST(tokenizer_json, becomes_the_metadata_of_a_vocabulary) {
  const json tokenizer = byte_level();
  const json config = {
      {"eos_token", {{"content", "<end>"}}}, {"chat_template", "T"}, {"response_template", {{"fields", 1}}}};
  const json generation = {{"eos_token_id", {3u, 2u}}};
  MetaList metadata;
  const TokenizerFiles files{.name = "f", .tokenizer = &tokenizer, .config = &config, .generation = &generation};
  ASSERT_TRUE(read_tokenizer(files, 6, metadata));
  EXPECT_EQ(std::get<std::string_view>(*metadata.find("tokenizer.ggml.pre")), "gpt-2");
  EXPECT_EQ(std::get<std::string_view>(*metadata.find("tokenizer.chat_template")), "T");
  EXPECT_EQ(std::get<std::string_view>(*metadata.find("tokenizer.response_template")), R"({"fields":1})");
  EXPECT_EQ(std::get<uint64_t>(*metadata.find("tokenizer.ggml.eos_token_id")), 3u);
  const auto& tokens =
      std::get<std::vector<std::string_view>>(std::get<MetaArray>(*metadata.find("tokenizer.ggml.tokens")));
  EXPECT_EQ(tokens[3], "<end>");
  EXPECT_EQ(tokens[5], "[PAD5]");
  const auto& ends =
      std::get<std::vector<int64_t>>(std::get<MetaArray>(*metadata.find("tokenizer.candor.end_token_ids")));
  EXPECT_EQ(ends, (std::vector<int64_t>{3, 2}));
}

TEST(tokenizer_json, what_cannot_be_kept_exactly_is_refused_by_name) {
  const auto with = [](const char* pointer, const json& value) {
    json tokenizer = byte_level();
    tokenizer[json::json_pointer(pointer)] = value;
    return tokenizer_refusal(tokenizer);
  };
  EXPECT_EQ(tokenizer_refusal(byte_level()), "");
  EXPECT_EQ(with("/normalizer", {{"type", "NFC"}}), "");
  EXPECT_NE(with("/normalizer", {{"type", "BertNormalizer"}}).find("BertNormalizer"), std::string::npos);
  EXPECT_NE(with("/model/type", "WordPiece").find("WordPiece"), std::string::npos);
  EXPECT_NE(with("/model/dropout", 0.1).find("dropout"), std::string::npos);
  EXPECT_NE(with("/model/merges/0", json::array({"a", "zz"})).find("no token"), std::string::npos);
  EXPECT_NE(with("/model/vocab/q", 6u).find("not below 6"), std::string::npos);
  EXPECT_NE(with("/model/vocab/q", 0u).find("same id"), std::string::npos);
  EXPECT_NE(with("/pre_tokenizer", {{"type", "Whitespace"}}).find("Whitespace"), std::string::npos);
  EXPECT_NE(with("/added_tokens/0/single_word", true).find("single_word"), std::string::npos);
  EXPECT_NE(with("/post_processor", {{"type", "PairProcessing"}}).find("PairProcessing"), std::string::npos);
  EXPECT_NE(with("/post_processor", {{"type", "BertProcessing"}}).find("post_processor.cls names no token"),
            std::string::npos);
}

TEST(tokenizer_json, a_token_of_a_megabyte_is_refused_before_every_way_to_cut_it_is_tried) {
  json tokenizer = byte_level();
  tokenizer["model"]["byte_fallback"] = true;
  tokenizer["model"]["vocab"][std::string(size_t{1} << 20, 'a')] = 4u;
  tokenizer["pre_tokenizer"] = nullptr;
  tokenizer["normalizer"] = {{"type", "Sequence"},
                             {"normalizers",
                              {{{"type", "Prepend"}, {"prepend", "\u2581"}},
                               {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}};
  tokenizer["decoder"] = {{"type", "Sequence"},
                          {"decoders",
                           {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
                            {{"type", "ByteFallback"}},
                            {{"type", "Fuse"}},
                            {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
  const candor::testing::CpuTimeLimit seconds(2);
  EXPECT_NE(tokenizer_refusal(tokenizer).find("tokens as long as"), std::string::npos) << tokenizer_refusal(tokenizer);
}

TEST(json_text, depth_duplicates_and_size_are_bounded) {
  EXPECT_TRUE(parse_json(R"({"a":[1,{"b":2}]})", "t"));
  EXPECT_NE(parse_json(std::string(1000, '[') + std::string(1000, ']'), "t").error().message.find("deeper"),
            std::string::npos);
  EXPECT_NE(parse_json(R"({"a":{"b":1,"b":2}})", "t").error().message.find("'b'"), std::string::npos);
  EXPECT_EQ(parse_json(R"({"a":[1,-2,{"b":null,"c":[[],{}]}],"d":"x"})", "t")->dump(),
            R"({"a":[1,-2,{"b":null,"c":[[],{}]}],"d":"x"})");
  const TempFolder folder;
  EXPECT_NE(read_json_file(folder.file("x.json", std::string(100, ' ')), 50).error().message.find("at most 50"),
            std::string::npos);
}

TEST(json_text, small_values_in_great_numbers_are_refused_before_they_fill_the_memory) {
  constexpr size_t kBytes = size_t{20} << 20;
  for (const std::string one : {"{},", "[],", "\"\",", "0,", "{\"\":0},"}) {
    std::string text = "[";
    while (text.size() < kBytes) text += one;
    text.back() = ']';
    const candor::testing::MemoryLimit memory(size_t{512} << 20);
    const candor::testing::CpuTimeLimit seconds(4);
    const auto value = parse_json(text, "t");
    ASSERT_FALSE(value) << one;
    EXPECT_EQ(value.error().message, "t: takes more than 256 MiB of memory when it is read; download it again");
  }
}

}  // namespace
}  // namespace candor::formats::safetensors
