// Images on the command line: what they cost on paper, where tokens look, and receipts of answers to them.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.h"
#include "support/temp_folder.h"
#include "vision/vision_golden.h"

namespace candor::testing::command_line_images {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

std::string model(const char* name = "smolvlm") {
  return vision_golden(name).string();
}
std::string image(const char* name = "smolvlm") {
  return (vision_golden(name) / "image.png").string();
}

const Words kMachine = {"--flops", "1e12", "--bandwidth", "1e11"};

RunResult estimate(Words words) {
  words.insert(words.begin(), "estimate");
  words.insert(words.end(), kMachine.begin(), kMachine.end());
  return run_candor(words);
}
Json estimated(Words words) {
  words.push_back("--json");
  const RunResult result = estimate(std::move(words));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return Json::parse(result.out, nullptr, false);
}

// Rows as the engine has them; each linear map counts two operations for each weight and row.
TEST(estimate_images, count_rows_patches_and_operations) {
  for (const char* name : kVisionGoldens) {
    const Json with = estimated({model(name), "--image", image(name), "--prompt", "20"});
    const Json& seen = with.at("image");
    EXPECT_EQ(seen["width"], golden_image().width) << name;
    EXPECT_EQ(seen["rows"], expected_of(name).at("n_rows")) << name;
    EXPECT_EQ(with["prompt"].get<double>(), 20 + seen["rows"].get<double>()) << name;
    EXPECT_GE(seen["patches"], seen["rows"]) << name;
    EXPECT_EQ(seen["encode_attention_flops"].get<double>() > 0, std::string(name) != "gemma4_unified") << name;
    EXPECT_DOUBLE_EQ(seen["encode_flops"].get<double>(),
                     seen["encode_matrix_flops"].get<double>() + seen["encode_attention_flops"].get<double>());
    EXPECT_DOUBLE_EQ(seen["encode_read_bytes"].get<double>(),
                     seen["tiles"].get<double>() * seen["weight_bytes"].get<double>())
        << name;
    const double most =
        std::max(seen["encode_flops"].get<double>() / 1e12, seen["encode_read_bytes"].get<double>() / 1e11);
    EXPECT_NEAR(with["encode_ms"].get<double>(), 1e3 * most, 1e-9) << name;
    const Json text = estimated({model(name), "--prompt", std::to_string(with["prompt"].get<int>())});
    EXPECT_FALSE(text.contains("image"));
    EXPECT_NEAR(with["ttft_ms"].get<double>(), text["ttft_ms"].get<double>() + with["encode_ms"].get<double>(), 1e-9);
    EXPECT_DOUBLE_EQ(with["memory_bytes"].get<double>(),
                     text["memory_bytes"].get<double>() + seen["weight_bytes"].get<double>());
  }
}

TEST(estimate_images, take_a_size_for_a_file) {
  const std::string size = std::to_string(golden_image().width) + "x" + std::to_string(golden_image().height);
  EXPECT_EQ(estimated({model(), "--image", size}), estimated({model(), "--image", image()}));
  const std::string page = estimate({model(), "--image", "640x480"}).out;
  for (const char* words : {"640 x 480", "tiles", "rows", "time to encode it, at least"})
    EXPECT_NE(page.find(words), std::string::npos) << words << " not in:\n" << page;
}

TEST(estimate_images, two_prompts_take_twice_the_time) {
  const double one = estimated({model(), "--image", "64x64"})["encode_ms"];
  EXPECT_NEAR(estimated({model(), "--image", "64x64", "--batch", "2"})["encode_ms"].get<double>(), 2 * one, 1e-12);
}

TEST(estimate_images, are_measured_here) {
  const RunResult result = run_candor({"estimate", model(), "--image", "64x48", "--prompt", "8", "--new", "4",
                                       "--measure", "--threads", "1", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_GT(json["measured"]["encode_ms"].get<double>(), 0);
  EXPECT_GT(json["measured"]["ttft_ms"].get<double>(), json["measured"]["encode_ms"].get<double>());
}

struct Refusal {
  Words words;
  const char* named;
};

TEST(estimate_images, that_cannot_be_are_refused_by_name) {
  const std::string text_model = (goldens() / "llama").string();
  for (const Refusal& each : std::vector<Refusal>{{{model(), "--image", "0x10"}, "0 x 10"},
                                                  {{model(), "--image", "640x"}, "640x"},
                                                  {{model(), "--image", "5x-5"}, "5 x -5"},
                                                  {{model(), "--image", "99999x99999"}, "99999 x 99999"},
                                                  {{model(), "--image", "no such file.png"}, "does not exist"},
                                                  {{model(), "--image", model() + "/config.json"}, "config.json"},
                                                  {{text_model, "--image", "64x64"}, "takes no images"},
                                                  {{"--like", "llama-2-7b", "--image", "64x64"}, "--like"}}) {
    const RunResult result = estimate(each.words);
    EXPECT_EQ(result.exit_code, 2) << each.named << ": " << result.out;
    EXPECT_NE(result.err.find(each.named), std::string::npos) << result.err;
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
  }
}

Words explain(const Words& more) {
  Words words = {"explain", model(), "what is it?", "-n", "3", "--temperature", "0"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(explain_images, show_where_tokens_look) {
  const RunResult page = run_candor(explain({"--image", image(), "--attention"}));
  ASSERT_EQ(page.exit_code, 0) << page.err;
  for (const char* words : {"attention of the prompt's last token, the mean of all heads and layers",
                            "image 1, 50 x 37 pixels", "row ", "column ", "  |"})
    EXPECT_NE(page.out.find(words), std::string::npos) << words << " not in:\n" << page.out;
  const RunResult whole = run_candor(explain({"--image", image(), "--attention", "--json"}));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const Json json = Json::parse(whole.out);
  for (const Json& token : json["tokens"]) {
    ASSERT_EQ(token.at("images").size(), 1u);
    size_t n_shares = 0;
    for (const Json& tile : token["images"][0]["tiles"]) n_shares += tile["shares"].size();
    EXPECT_EQ(n_shares, expected_of("smolvlm").at("n_rows").get<size_t>());
  }
  const RunResult plain = run_candor(explain({"--image", image(), "--json"}));
  const Json other = Json::parse(plain.out);
  EXPECT_FALSE(other["tokens"][0].contains("images"));
  EXPECT_EQ(other["tokens"][0]["token"], json["tokens"][0]["token"]);
}

TEST(explain_images, that_cannot_be_are_refused_by_name) {
  for (const Refusal& each : std::vector<Refusal>{{{"--image", "no such.png"}, "does not exist"},
                                                  {{"--image", image(), "--raw"}, "--raw"},
                                                  {{"--image", image(), "--layers"}, "--layers"}}) {
    const RunResult result = run_candor(explain(each.words));
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_NE(result.err.find(each.named), std::string::npos) << result.err;
  }
}

TEST(receipts_of_images, verify_with_the_image) {
  const TempFolder folder;
  const std::string file = (folder.path() / "answer.json").string();
  const RunResult made = run_candor({"run", model(), "what is it?", "--image", image(), "-n", "6", "--receipt", file});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const RunResult good = run_candor({"verify", file, model(), "--image", image()});
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  EXPECT_NE(good.out.find("verified: 6 of 6 tokens"), std::string::npos) << good.out;
  const RunResult blind = run_candor({"verify", file, model()});
  EXPECT_EQ(blind.exit_code, 2) << blind.out;
  EXPECT_NE(blind.err.find("image 1 of the receipt"), std::string::npos) << blind.err;
  const RunResult missing = run_candor({"verify", file, model(), "--image", "no such.png"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("does not exist"), std::string::npos) << missing.err;
}

}  // namespace
}  // namespace candor::testing::command_line_images
