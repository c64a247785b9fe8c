// A real model file, cut and with bits flipped: never a signal or a hang, and the same verdict for the same bytes.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "formats/gguf/gguf_part.h"
#include "formats/gguf/gguf_reader.h"
#include "support/mutate.h"
#include "support/shared_data.h"

namespace candor::formats {
namespace {

std::filesystem::path story_model() {
  return testing::shared_data() / "models" / "stories260K.gguf";
}

TEST(damaged_model, cut_at_every_byte_of_its_header_is_refused_with_the_reason) {
  CANDOR_REQUIRE_DATA(story_model());
  const std::vector<std::byte> bytes = testing::read_bytes(story_model());
  const auto whole = gguf::parse_part(bytes, "whole.gguf");
  ASSERT_TRUE(whole) << testing::verdict(whole);
  for (size_t n = 0; n <= whole->data_offset; ++n) {
    const testing::CpuTimeLimit seconds(2);
    const auto cut = gguf::GgufFile::parse(std::span(bytes).first(n), "cut.gguf");
    ASSERT_FALSE(cut) << n;
    ASSERT_EQ(cut.error().kind, ErrorKind::kInvalidInput) << testing::verdict(cut);
    ASSERT_NE(cut.error().message.find("'cut.gguf': offset "), std::string::npos) << testing::verdict(cut);
  }
}

TEST(damaged_model, cut_anywhere_in_its_data_says_what_it_has_and_what_it_needs) {
  CANDOR_REQUIRE_DATA(story_model());
  const std::vector<std::byte> bytes = testing::read_bytes(story_model());
  const auto whole = gguf::parse_part(bytes, "whole.gguf");
  ASSERT_TRUE(whole) << testing::verdict(whole);
  for (size_t n = whole->data_offset; n < bytes.size(); n += 9973) {
    const auto cut = gguf::GgufFile::parse(std::span(bytes).first(n), "cut.gguf");
    ASSERT_FALSE(cut) << n;
    const std::string needs = "file has " + std::to_string(n) + " bytes, header needs " + std::to_string(bytes.size());
    ASSERT_NE(cut.error().message.find(needs), std::string::npos) << testing::verdict(cut);
  }
}

TEST(damaged_model, with_a_bit_flipped_gets_the_same_verdict_every_time) {
  CANDOR_REQUIRE_DATA(story_model());
  std::vector<std::byte> bytes = testing::read_bytes(story_model());
  const auto whole = gguf::parse_part(bytes, "whole.gguf");
  ASSERT_TRUE(whole) << testing::verdict(whole);
  const auto bits = testing::bits_to_flip(5000, whole->data_offset, bytes.size(), 2024);
  int n_refused = 0;
  for (const uint64_t bit : bits) {
    testing::flip_bit(bytes, bit);
    const testing::CpuTimeLimit seconds(2);
    const auto first = gguf::GgufFile::parse(bytes, "flipped.gguf");
    const auto second = gguf::GgufFile::parse(bytes, "flipped.gguf");
    ASSERT_EQ(testing::verdict(first), testing::verdict(second)) << "bit " << bit;
    n_refused += first ? 0 : 1;
    testing::flip_bit(bytes, bit);
  }
  EXPECT_GT(n_refused, 100);
  EXPECT_LT(n_refused, 4900);
}

TEST(damaged_model, with_odd_numbers_anywhere_in_its_header_gets_a_verdict_in_time_and_memory) {
  CANDOR_REQUIRE_DATA(story_model());
  const std::vector<std::byte> whole = testing::read_bytes(story_model());
  const auto part = gguf::parse_part(whole, "whole.gguf");
  ASSERT_TRUE(part) << testing::verdict(part);
  constexpr uint64_t kNumbers[] = {
      0,       1,        7,          8,          9,          32,         63,         64,        255,
      65535, 1 << 24, 1u << 31, UINT32_MAX, 1ull << 32, 1ull << 48, 1ull << 63, INT64_MAX, UINT64_MAX};
  testing::SplitMix random(11);
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::byte> bytes = whole;
    const size_t size = random.below(2) == 0 ? 4 : 8;
    const uint64_t number = kNumbers[random.below(std::size(kNumbers))];
    std::memcpy(bytes.data() + random.below(i % 4 == 0 ? 24 : part->data_offset - 8), &number, size);
    const testing::CpuTimeLimit seconds(2);
    const testing::MemoryLimit memory(size_t{512} << 20);
    const auto file = gguf::GgufFile::parse(bytes, "odd.gguf");
    if (!file) {
      ASSERT_EQ(file.error().message.find('\n'), std::string::npos) << file.error().message;
    }
  }
}

}  // namespace
}  // namespace candor::formats
