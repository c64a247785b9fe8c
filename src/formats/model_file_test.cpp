#include "formats/model_file.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/quote.h"
#include "support/temp_folder.h"

namespace candor::formats {
namespace {

struct NoModel {
  std::string bytes;
  std::string reason;
};

TEST(open_model_file, says_what_a_file_is_that_is_no_model) {
  const std::string safetensors = std::string("\x10\0\0\0\0\0\0\0", 8) + "{\"a\":{}}        ";
  const NoModel cases[] = {
      {"", "the file is empty"},
      {"GGU", "the file has 3 bytes, too few"},
      {"<!DOCTYPE html><html>", "looks like HTML"},
      {"\xEF\xBB\xBF \n <HTML lang=en>", "looks like HTML"},
      {"<?xml version=\"1.0\"?>", "looks like HTML"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 1\n", "looks like a Git-LFS pointer"},
      {std::string("PK\x03\x04\x14\0", 6) + "archive/data.pkl", "safetensors"},
      {"\x80\x02}q\x01.", "pickle"},
      {safetensors, "safetensors file: give the folder"},
      {"{\"model_type\": \"llama\"}", "JSON text"},
      {"tjgg\1\0\0\0", "ggjt"},
      {std::string(64, '\0'), "it starts with '\\x00\\x00\\x00\\x00', not 'GGUF'"},
      {"GGUF", "the version needs 4 bytes, but 0 remain"},
      {"just some words", "it starts with 'just', not 'GGUF'"},
  };
  const testing::TempFolder folder;
  for (const NoModel& no_model : cases) {
    const auto path = folder.file("some.gguf", no_model.bytes);
    const auto file = open_model_file(path);
    ASSERT_FALSE(file) << no_model.reason;
    EXPECT_NE(file.error().message.find(no_model.reason), std::string::npos) << file.error().message;
    EXPECT_EQ(file.error().message.rfind(in_quotes(path.string()), 0), 0u) << file.error().message;
    EXPECT_EQ(file.error().message.find('\n'), std::string::npos);
  }
}

TEST(open_model_file, refuses_paths_that_are_no_file) {
  const testing::TempFolder folder;
  EXPECT_EQ(open_model_file(folder.path() / "missing.gguf").error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(open_model_file("").error().kind, ErrorKind::kNotFound);
  EXPECT_NE(open_model_file(folder.path()).error().message.find("is a folder"), std::string::npos);
  EXPECT_NE(open_model_file("/dev/random").error().message.find("is a device"), std::string::npos);
  const auto long_name = open_model_file(folder.path() / std::string(300, 'n'));
  ASSERT_FALSE(long_name);
  EXPECT_EQ(long_name.error().kind, ErrorKind::kIo);
}

TEST(in_quotes, keeps_a_message_on_one_line_and_short) {
  EXPECT_EQ(in_quotes("plain"), "'plain'");
  EXPECT_EQ(in_quotes("a\nb\x7f\xff"), "'a\\x0ab\\x7f\\xff'");
  EXPECT_EQ(in_quotes("caf\xC3\xA9"), "'caf\xC3\xA9'");
  EXPECT_LT(in_quotes(std::string(10000, '\n')).size(), 500u);
}

}  // namespace
}  // namespace candor::formats
