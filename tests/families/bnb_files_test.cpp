// Matrices as bitsandbytes quantises them mean the numbers that it makes of them (make_bnb_parts.py), and what does not
// fit together is refused.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/base64.h"
#include "formats/json_text.h"
#include "model/hub/hub_weights.h"
#include "support/shared_data.h"

namespace candor::testing {
namespace {

using nlohmann::json;

class BnbFiles : public ::testing::TestWithParam<const char*> {
 protected:
  BnbFiles()
      : cases_(*formats::read_json_file(project_file("tests/families/bnb_parts.json"), 1 << 20)),
        n_out_(cases_["n_out"]),
        n_in_(cases_["n_in"]) {}
  void put(const std::string& name, DType dtype, Shape shape, const std::string& coded) {
    const auto at = bytes_.insert_or_assign(name, *formats::from_base64(coded)).first;
    auto* data = reinterpret_cast<std::byte*>(at->second.data());
    views_[name] = {at->first, dtype, shape, data, at->second.size()};
  }
  void put_four_bits(const json& parts) {
    for (const auto& [end, coded] : parts.items()) {
      const std::string bytes = *formats::from_base64(coded.get<std::string>());
      const bool is_float = end.ends_with("quant_map") || end == ".nested_absmax" ||
                            (end == ".absmax" && !parts.contains(".nested_absmax"));
      const auto n = static_cast<int64_t>(bytes.size()) / (is_float ? 4 : 1);
      const Shape shape = end.empty() ? Shape{2, {n, 1}} : Shape{1, {n}};
      put("a.weight" + end, is_float ? DType::kF32 : DType::kI8, shape, coded);
    }
  }
  Result<std::optional<model::JoinedWeight>> join() {
    return model::join_weight(
        {.form = model::HubWeightForm::kBitsAndBytes}, views_["a.weight"],
        [this](const std::string& name) { return views_.contains(name) ? &views_[name] : nullptr; });
  }
  std::string refusal() {
    const auto joined = join();
    return joined ? "" : joined.error().message;
  }
  void expect_numbers(const model::JoinedWeight& joined, const std::string& coded) {
    const std::string expected = *formats::from_base64(coded);
    EXPECT_EQ(joined.shape, (Shape{2, {n_out_, n_in_}}));
    std::vector<std::byte> made(expected.size());
    joined.fill(made.data());
    EXPECT_EQ(std::memcmp(made.data(), expected.data(), made.size()), 0);
  }

  const json cases_;
  const int64_t n_out_, n_in_;
  std::map<std::string, std::string> bytes_;
  std::map<std::string, TensorView> views_;
};

TEST_P(BnbFiles, mean_the_numbers_that_the_library_makes_of_them) {
  const json& one = cases_["four_bits"][GetParam()];
  put_four_bits(one["parts"]);
  const auto joined = join();
  ASSERT_TRUE(joined && *joined) << refusal();
  EXPECT_EQ((*joined)->dtype, one["dtype"] == "bfloat16" ? DType::kBF16 : DType::kF16);
  expect_numbers(**joined, one["numbers"]);
}

INSTANTIATE_TEST_SUITE_P(types, BnbFiles, ::testing::Values("nf4_nested", "nf4", "fp4_nested"),
                         [](const auto& type) { return std::string(type.param); });

using BnbRows = BnbFiles;

TEST_F(BnbRows, of_int8_mean_the_numbers_that_the_library_makes_of_them) {
  const json& rows = cases_["int8"];
  put("a.weight", DType::kI8, {2, {n_out_, n_in_}}, rows["codes"]);
  put("a.SCB", DType::kF32, {1, {n_out_}}, rows["scales"]);
  const auto joined = join();
  ASSERT_TRUE(joined && *joined) << refusal();
  const std::string expected = *formats::from_base64(rows["numbers"].get<std::string>());
  std::vector<std::byte> made(expected.size());
  (*joined)->fill(made.data());
  EXPECT_EQ((*joined)->dtype, DType::kF16);
  EXPECT_EQ(std::memcmp(made.data(), expected.data(), made.size()), 0);
  views_["a.SCB"].shape = {1, {n_out_ - 1}};
  EXPECT_NE(refusal().find("'a.SCB': F32 of shape [11] does not fit its matrix, expected [12]"), std::string::npos)
      << refusal();
}

TEST_F(BnbRows, that_are_floats_are_left_alone) {
  put("a.weight", DType::kF32, {2, {1, 1}}, formats::to_base64("abcd"));
  const auto joined = join();
  EXPECT_TRUE(joined && !*joined);
}

TEST_F(BnbRows, parts_that_do_not_fit_are_named) {
  const auto refused_with = [&](const std::function<void()>& change) {
    views_.clear();
    put_four_bits(cases_["four_bits"]["nf4_nested"]["parts"]);
    change();
    return refusal();
  };
  const std::string state = "a.weight.quant_state.bitsandbytes__nf4";
  const auto state_of = [&](const std::string& text) {
    put(state, DType::kI8, {1, {static_cast<int64_t>(text.size())}}, formats::to_base64(text));
  };
  const auto expect = [&](const char* words, const std::function<void()>& change) {
    const std::string message = refused_with(change);
    EXPECT_NE(message.find(words), std::string::npos) << words << " is not in: " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  };
  expect("'a.weight.quant_map' is missing", [&] { views_.erase("a.weight.quant_map"); });
  expect("'a.weight.nested_absmax' is missing", [&] { views_.erase("a.weight.nested_absmax"); });
  expect("of shape [36] does not fit its matrix", [&] {
    state_of(
        R"({"blocksize": 32, "dtype": "bfloat16", "shape": [12, 192], "nested_blocksize": 256, "nested_offset": 0})");
  });
  expect("holds no 4 bits for each of [12, 190]", [&] {
    state_of(
        R"({"blocksize": 64, "dtype": "bfloat16", "shape": [12, 190], "nested_blocksize": 256, "nested_offset": 0})");
  });
  expect("\"blocksize\" is no number",
         [&] { state_of(R"({"blocksize": 0, "dtype": "bfloat16", "shape": [12, 192]})"); });
  expect("\"dtype\" is", [&] { state_of(R"({"blocksize": 64, "dtype": "int4", "shape": [12, 192]})"); });
  expect("\"shape\" is", [&] { state_of(R"({"blocksize": 64, "dtype": "float16", "shape": [12]})"); });
  expect("nested_blocksize", [&] {
    state_of(
        R"({"blocksize": 64, "dtype": "float16", "shape": [12, 192], "nested_blocksize": -1, "nested_offset": 0})");
  });
  expect("quant_state", [&] { state_of("{"); });
}

}  // namespace
}  // namespace candor::testing
