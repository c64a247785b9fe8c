#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "base/error.h"
#include "candor/kv_type.h"

namespace candor {
namespace {

Result<int> positive(int value) {
  if (value > 0) return value;
  return fail(ErrorKind::kInvalidInput, "value is " + std::to_string(value) + ", expected more than 0", "value");
}

Result<std::unique_ptr<const int>> boxed(int value) {
  CANDOR_ASSIGN(const int checked, positive(value));
  return std::make_unique<int>(checked);
}

Result<void> twice(int first, int second) {
  CANDOR_TRY(positive(first));
  CANDOR_TRY(positive(second));
  return {};
}

TEST(result, holds_what_converts_to_its_value) {
  const auto box = boxed(7);
  ASSERT_TRUE(box.has_value());
  EXPECT_EQ(**box, 7);
  const Result<std::optional<int>> none = std::nullopt;
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
  const Result<std::string> text = "text";
  EXPECT_EQ(*text, "text");
}

TEST(result, an_error_keeps_kind_message_and_field_on_its_way_up) {
  const auto box = boxed(-3);
  ASSERT_FALSE(box.has_value());
  EXPECT_EQ(box.error().kind, ErrorKind::kInvalidInput);
  EXPECT_EQ(box.error().message, "value is -3, expected more than 0");
  EXPECT_EQ(box.error().field, "value");
  EXPECT_TRUE(twice(1, 2));
  EXPECT_FALSE(twice(0, 2));
  EXPECT_FALSE(twice(1, 0));
}

TEST(result, another_field_may_be_named) {
  const Error error = fail(positive(0).error(), "other");
  EXPECT_EQ(error.field, "other");
  EXPECT_EQ(error.message, "value is 0, expected more than 0");
}

TEST(kv_type, every_type_is_found_by_its_name) {
  for (const KvType type : {KvType::kF32, KvType::kBf16, KvType::kQ8_0, KvType::kQ4}) EXPECT_EQ(find_kv_type(name_of(type)), type);
  EXPECT_EQ(name_of(KvType::kQ8_0), "q8_0");
  EXPECT_EQ(find_kv_type("auto"), std::nullopt);
}

}  // namespace
}  // namespace candor
