// Receipts of answers to images: they verify with the images' files, and with nothing else.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "candor/receipt.h"
#include "candor/verify.h"
#include "vision_engine.h"

namespace candor::testing {
namespace {

std::vector<std::string> files_of(const ChatPrompt& chat) {
  std::vector<std::string> files;
  for (const Message& message : chat.messages) files.insert(files.end(), message.images.begin(), message.images.end());
  return files;
}

class ImageReceipts : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    engine_ = open(GetParam());
    ASSERT_NE(engine_, nullptr);
    Request request = request_of(long_talk(GetParam(), 2));
    request.receipt = true;
    const auto done = engine_->generate(request);
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_NE(done->summary.receipt, nullptr);
    receipt_ = *done->summary.receipt;
    files_ = files_of(std::get<ChatPrompt>(request.prompt));
  }
  std::string refusal(const Receipt& receipt, const std::vector<std::string>& files) {
    const auto verdict = verify(*engine_, receipt, {}, files);
    EXPECT_FALSE(verdict);
    return verdict ? "" : verdict.error().message;
  }

  std::unique_ptr<Engine> engine_;
  Receipt receipt_;
  std::vector<std::string> files_;
};

TEST_P(ImageReceipts, verify_with_the_files_in_any_order_elsewhere) {
  const auto parsed = parse_receipt(to_json(receipt_));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(to_json(*parsed), to_json(receipt_));
  ASSERT_TRUE(parsed->vision);
  EXPECT_EQ(parsed->vision->images.size(), 2u);
  EXPECT_EQ(parsed->vision->images[0].width, golden_image().width);
  const auto other = open(GetParam(), [](EngineOptions& o) {
    o.n_threads = 1;
    o.prefill_rows = 40;
    o.speculation = Speculation::kOff;
  });
  ASSERT_NE(other, nullptr);
  std::ranges::reverse(files_);
  files_.push_back(other_image(77));  // that nobody needs
  const auto verdict = verify(*other, *parsed, {}, files_);
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_FALSE(verdict->difference) << to_string(*verdict, *other);
  EXPECT_EQ(verdict->n_verified, 12);
}

TEST_P(ImageReceipts, are_refused_without_an_image_by_its_number) {
  EXPECT_NE(refusal(receipt_, {files_[0]}).find("image 2 of the receipt"), std::string::npos);
  EXPECT_NE(refusal(receipt_, {}).find("image 1 of the receipt"), std::string::npos);
  std::vector<std::string> changed = files_;
  changed[1] = other_image(9);
  EXPECT_NE(refusal(receipt_, changed).find("image 2 of the receipt"), std::string::npos);
}

// Another image's answer, under the digest of one that is there.
TEST_P(ImageReceipts, of_another_image_differ) {
  Receipt forged = receipt_;
  std::swap(forged.vision->images[0], forged.vision->images[1]);
  const auto verdict = verify(*engine_, forged, {}, files_);
  if (verdict) {
    EXPECT_TRUE(verdict->difference);
  } else {
    EXPECT_NE(verdict.error().message.find("rows"), std::string::npos) << verdict.error().message;
  }
}

TEST_P(ImageReceipts, of_another_tower_or_preparation_are_refused) {
  Receipt forged = receipt_;
  forged.vision->fingerprint ^= 1;
  EXPECT_NE(refusal(forged, files_).find("another tower"), std::string::npos);
  forged = receipt_;
  forged.vision->preparation += "?";
  EXPECT_NE(refusal(forged, files_).find("prepared in another way"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(all, ImageReceipts, ::testing::ValuesIn(kVisionGoldens),
                         [](const auto& one) { return std::string(one.param); });

TEST(TextReceipts, stay_of_version_1) {
  const auto engine = open("smolvlm");
  ASSERT_NE(engine, nullptr);
  Request request = request_of({.messages = {{.role = "user", .content = "hello"}}});
  request.receipt = true;
  const auto done = engine->generate(request);
  ASSERT_TRUE(done) << done.error().message;
  const std::string json = to_json(*done->summary.receipt);
  EXPECT_TRUE(json.starts_with(R"({"receipt":1,)")) << json;
  EXPECT_EQ(json.find("vision"), std::string::npos);
}

TEST(BrokenReceipts, of_images_are_refused_by_the_place) {
  const auto engine = open("smolvlm");
  ASSERT_NE(engine, nullptr);
  Request request = request_of(question_of("smolvlm"));
  request.receipt = true;
  const auto done = engine->generate(request);
  ASSERT_TRUE(done) << done.error().message;
  const auto whole = nlohmann::json::parse(to_json(*done->summary.receipt));
  EXPECT_EQ(whole.at("receipt"), 2);
  const auto said = [](const nlohmann::json& json) {
    const auto parsed = parse_receipt(json.dump());
    return parsed ? std::string("it is read") : parsed.error().message;
  };
  for (const char* pointer : {"/vision/images/0/sha256", "/vision/fingerprint", "/vision/preparation", "/vision"}) {
    nlohmann::json changed = whole;
    changed[nlohmann::json::json_pointer(pointer)] = 5;
    const std::string message = said(changed);
    EXPECT_NE(message.find(std::string(pointer).substr(1, 6)), std::string::npos) << pointer << ": " << message;
  }
  nlohmann::json none = whole;
  none["vision"]["images"] = nlohmann::json::array();
  EXPECT_NE(said(none).find("1 to 64 images"), std::string::npos) << said(none);
  nlohmann::json older = whole;
  older["receipt"] = 1;
  EXPECT_NE(said(older).find("vision"), std::string::npos) << said(older);
  nlohmann::json later = whole;
  later["receipt"] = 3;
  EXPECT_NE(said(later).find("version 3"), std::string::npos) << said(later);
}

}  // namespace
}  // namespace candor::testing
