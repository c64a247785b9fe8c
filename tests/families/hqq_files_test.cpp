// Matrices as HQQ quantises them mean the numbers that it makes of them (make_hqq_parts.py), and what does not fit
// together is refused.

#include <gtest/gtest.h>

#include <cstring>
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

class HqqFiles : public ::testing::Test {
 protected:
  HqqFiles() : cases_(*formats::read_json_file(project_file("tests/families/hqq_parts.json"), 1 << 20)) {}

  void put(const json& parts) {
    const std::map<std::string, DType> types = {
        {"U8", DType::kI8}, {"I32", DType::kI32}, {"I64", DType::kI64}, {"BF16", DType::kBF16}, {"F16", DType::kF16}};
    for (const auto& [part, tensor] : parts.items()) {
      const auto at =
          bytes_.insert_or_assign("a." + part, *formats::from_base64(tensor["data"].get<std::string>())).first;
      Shape shape{static_cast<int32_t>(tensor["shape"].size()), {}};
      for (size_t i = 0; i < tensor["shape"].size(); ++i) shape.dims[i] = tensor["shape"][i];
      views_["a." + part] = {at->first, types.at(tensor["dtype"]), shape,
                             reinterpret_cast<const std::byte*>(at->second.data()), at->second.size()};
    }
  }
  Result<std::optional<model::JoinedWeight>> join() {
    return model::join_weight({.form = model::HubWeightForm::kHqq}, views_["a.W_q"], [this](const std::string& name) {
      return views_.contains(name) ? &views_[name] : nullptr;
    });
  }
  std::string refusal() {
    const auto joined = join();
    return joined ? "" : joined.error().message;
  }

  const json cases_;
  std::map<std::string, std::string> bytes_;
  std::map<std::string, TensorView> views_;
};

TEST_F(HqqFiles, mean_the_numbers_that_the_library_makes_of_them) {
  for (const auto& [name, one] : cases_.items()) {
    put(one["parts"]);
    const auto joined = join();
    ASSERT_TRUE(joined && *joined) << name << ": " << refusal();
    EXPECT_EQ((*joined)->name, "a.weight");
    EXPECT_EQ((*joined)->shape, (Shape{2, {12, 256}}));
    const std::string expected = *formats::from_base64(one["numbers"].get<std::string>());
    std::vector<std::byte> made(expected.size());
    (*joined)->fill(made.data());
    EXPECT_EQ(std::memcmp(made.data(), expected.data(), made.size()), 0) << name;
  }
}

TEST_F(HqqFiles, parts_that_do_not_fit_are_named) {
  put(cases_["4_bits"]["parts"]);
  const auto expect = [&](const char* words, const std::string& part, const std::string& bytes) {
    const std::string kept = bytes_[part];
    std::memcpy(bytes_[part].data(), bytes.data(), bytes.size());
    EXPECT_NE(refusal().find(words), std::string::npos) << words << " is not in: " << refusal();
    bytes_[part] = kept;
    put(cases_["4_bits"]["parts"]);
  };
  expect("5 bits, axis 1", "a.nbits", std::string("\5\0\0\0", 4));
  expect("axis 2", "a.axis", std::string("\2\0\0\0", 4));
  expect("groups of 0", "a.group_size", std::string("\0\0\0\0", 4));
  expect("it is -1", "a.shape", std::string(8, '\xff'));
  expect("'a.W_q': I8 of shape [24, 64] does not fit its matrix, expected [12, 128]", "a.group_size",
         std::string("\200\0\0\0", 4));
  expect("quantised too", "a.quant_scale", "\1");
  views_.erase("a.zero");
  EXPECT_NE(refusal().find("'a.zero' is missing"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace candor::testing
