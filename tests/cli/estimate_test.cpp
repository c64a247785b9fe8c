// The paper arithmetic, by its worked numbers, and what the command says of them.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "program.h"

namespace candor::testing {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

Words with(Words first, const Words& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

Json estimate(const Words& options) {
  const RunResult result = run_candor(with({"estimate", "--json"}, options));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return Json::parse(result.out, nullptr, false);
}

const Words kPaper = {"--parameters", "7e9", "--flops", "312e12", "--bandwidth", "2e12"};

TEST(estimate, a_model_of_seven_billion_on_paper) {
  const Json e = estimate(kPaper);
  EXPECT_DOUBLE_EQ(e["prefill_matrix_flops"], 7.168e12);
  EXPECT_DOUBLE_EQ(e["decode_matrix_flops"], 1.792e12);
  EXPECT_NEAR(e["ttft_ms"].get<double>(), 23.0, 0.3) << "attention is a hundredth of it";
  EXPECT_DOUBLE_EQ(e["weight_bytes"], 14e9);
  EXPECT_DOUBLE_EQ(e["itl_weights_only_ms"], 7.0);
  EXPECT_GT(e["itl_ms"].get<double>(), 7.0);
}

TEST(estimate, a_gpu_as_the_kernels_of_this_program_use_it) {
  const Words card = {"--parameters", "8e9", "--hardware", "h200", "--device", "cuda", "--bits"};
  const Json ints = estimate(with(card, {"8"})), floats = estimate(with(card, {"16"}));
  EXPECT_EQ(ints["hardware_rates"], "1.98 POP/s in matrices, 67 TOP/s in attention, 4.8 TB/s");
  EXPECT_EQ(floats["hardware_rates"], "67 TOP/s in matrices, 4.8 TB/s");
  EXPECT_EQ(ints["hardware_description"], "NVIDIA H200 SXM, as published");
  EXPECT_NEAR(ints["itl_weights_only_ms"].get<double>(), 8e9 / 4.8e9, 1e-6);
  EXPECT_GT(floats["ttft_ms"].get<double>(), 10 * ints["ttft_ms"].get<double>());
  const RunResult refused =
      run_candor({"estimate", "--parameters", "8e9", "--hardware", "tpu-v5e", "--device", "cuda"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("there are no kernels for tpu-v5e; there are for a100, h100, h200"), std::string::npos)
      << refused.err;
}

TEST(estimate, memory_of_weights_and_of_keys_and_values) {
  for (const auto& [bits, bytes] :
       {std::pair{"32", 280e9}, std::pair{"16", 140e9}, std::pair{"8", 70e9}, std::pair{"4", 35e9}})
    EXPECT_DOUBLE_EQ(estimate({"--parameters", "70e9", "--bits", bits, "--hardware", "h100"})["weight_bytes"], bytes);
  const Json e = estimate({"--parameters", "70e9", "--layers", "80", "--heads", "64", "--kv-heads", "64", "--head-dim",
                           "128", "--prompt", "4000", "--new", "96", "--hardware", "h100"});
  EXPECT_NEAR(e["kv_bytes_per_token"].get<double>() / 1e6, 2.62, 0.005);
  EXPECT_NEAR(e["kv_bytes"].get<double>() / 1e9, 10.7, 0.05);
}

TEST(estimate, a_cache_saves_projections_and_the_loop_without_one_is_told) {
  for (const auto& [prompt, times] :
       {std::pair{"100", 291.2}, std::pair{"500", 374.8}, std::pair{"1000", 416.5}, std::pair{"2000", 449.9}})
    EXPECT_NEAR(estimate(with(kPaper, {"--prompt", prompt, "--new", "500"}))["kv_cache_saves"].get<double>(), times,
                0.06);
  const Json e = estimate(with(kPaper, {"--prompt", "100", "--new", "20"}));
  EXPECT_NEAR(e["naive_flops"].get<double>(), 14e9 * (21 * 100 + 210), 0.01 * 14e9 * 2310) << "of 21 passes";
  EXPECT_GT(estimate(with(kPaper, {"--prompt", "2000", "--new", "500"}))["naive_times"].get<double>(), 10);
  const std::string page = run_candor(with({"estimate"}, with(kPaper, {"--prompt", "100", "--new", "20"}))).out;
  EXPECT_NE(page.find("100..119"), std::string::npos) << page;
  EXPECT_NE(page.find("O(T^2)"), std::string::npos) << page;
}

TEST(estimate, attention_is_most_of_a_long_prompt) {
  const Words like = {"--like", "llama-2-7b", "--hardware", "a100"};
  const auto share = [](const Json& e) {
    return e["prefill_attention_flops"].get<double>() / e["prefill_flops"].get<double>();
  };
  EXPECT_LT(share(estimate(like)), 0.03);
  EXPECT_GT(share(estimate(with(like, {"--prompt", "131072"}))), 0.6);
}

TEST(estimate, a_named_model_has_its_own_shape) {
  const Json e = estimate({"--like", "llama-2-7b", "--hardware", "a100"});
  EXPECT_DOUBLE_EQ(e["kv_bytes_per_token"], 2.0 * 32 * 32 * 128 * 2);
  EXPECT_FALSE(e.contains("assumed"));
  const std::string page = run_candor({"estimate", "--like", "llama-2-7b", "--hardware", "a100"}).out;
  EXPECT_NE(page.find("2 x 32 layers x 32 heads x 128 x 2 bytes"), std::string::npos) << page;
  const Json experts = estimate({"--like", "mixtral-8x7b", "--hardware", "a100"});
  EXPECT_LT(experts["used_parameters"].get<double>(), 0.3 * experts["parameters"].get<double>());
}

TEST(estimate, devices_are_counted_by_their_memory) {
  const auto devices = [](const Words& options) { return estimate(options)["devices"]; };
  EXPECT_EQ(devices({"--like", "llama-3.1-70b", "--hardware", "a100"}), 2);
  EXPECT_EQ(devices({"--like", "llama-3.1-70b", "--hardware", "a100", "--bits", "8"}), 1);
  EXPECT_EQ(devices({"--like", "llama-3.1-70b", "--hardware", "rtx4090", "--memory-gb", "48"}), 3);
  EXPECT_EQ(devices(kPaper), nullptr) << "nobody said what one holds";
  const Json one = estimate({"--like", "llama-2-7b", "--hardware", "a100", "--price-per-hour", "2"});
  const double rate = one["decode_tokens_per_second"];
  EXPECT_NEAR(one["price_per_million_tokens"].get<double>(), 2e6 / 3600 / rate, 1e-9);
}

TEST(estimate, batches_reached_shares_and_overheads_count) {
  const Json alone = estimate(kPaper);
  const Json together = estimate(with(kPaper, {"--batch", "32"}));
  EXPECT_GT(together["decode_tokens_per_second"].get<double>(), 10 * alone["decode_tokens_per_second"].get<double>());
  EXPECT_DOUBLE_EQ(together["kv_bytes"].get<double>(), 32 * alone["kv_bytes"].get<double>());
  EXPECT_NEAR(together["ttft_ms"].get<double>(), 32 * alone["ttft_ms"].get<double>(), 1e-6);
  const Json half = estimate(with(kPaper, {"--efficiency", "0.5", "--overhead-ms", "3"}));
  EXPECT_NEAR(half["itl_ms"].get<double>(), 2 * alone["itl_ms"].get<double>() + 3, 1e-9);
  EXPECT_NEAR(half["ttft_ms"].get<double>(), 2 * alone["ttft_ms"].get<double>() + 3, 1e-9);
}

TEST(estimate, is_of_this_machine_where_none_is_named_and_can_be_measured_beside) {
  const RunResult result = run_candor({"estimate", "--prompt", "32", "--new", "8", "--measure", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json e = Json::parse(result.out);
  EXPECT_EQ(e["hardware"], "this");
  for (const char* key :
       {"ttft_ms", "itl_ms", "answer_ms", "decode_tokens_per_second", "naive_ms", "weight_bytes", "kv_bytes"})
    EXPECT_GT(e["measured"][key].get<double>(), 0) << key;
}

TEST(estimate, a_page_fits_eighty_columns_and_short_times_are_in_microseconds) {
  const Words kCases[] = {
      {},
      {"--measure"},
      {"--prompt", "16", "--new", "4", "--measure"},
      {"--like", "deepseek-v3", "--hardware", "h100", "--prompt", "131072", "--batch", "128"},
      {"--like", "qwen3-next-80b-a3b", "--hardware", "tpu-v5e"},
      {"--parameters", "405e9", "--hardware", "m1-ultra", "--price-per-hour", "3", "--efficiency", "0.4"},
      {"--like", "gpt2", "--hardware", "h100"}};
  std::string last;
  for (const Words& options : kCases) {
    last = run_candor(with({"estimate"}, options)).out;
    std::istringstream lines(last);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
    EXPECT_GT(count_lines(last), 15) << last;
  }
  EXPECT_NE(last.find(" us"), std::string::npos) << last;
}

TEST(estimate, mistakes_are_told_in_one_line) {
  const std::pair<Words, std::string> kCases[] = {
      {{"--like", "llama-9"}, "llama-2-7b"},
      {{"--like", "gpt2", "--parameters", "7e9"}, "give one"},
      {{"--like", "gpt2", "--layers", "12"}, "--parameters"},
      {{"--bits", "4"}, "--like"},
      {{"--hardware", "abacus"}, "this, a100"},
      {{"--parameters", "7e9", "--heads", "8", "--kv-heads", "16"}, "--kv-heads 16"},
      {{"--like", "gpt2", "--measure"}, "give its file"},
      {{"--hardware", "a100", "--measure"}, "--measure runs here"},
      {{"--measure", "--prompt", "600"}, "512 tokens that the model was made for"},
      {{"--efficiency", "2"}, "0.001"},
      {{"--batch", "0"}, "1"},
      {{"what is this"}, "one model"},
  };
  for (const auto& [options, words] : kCases) {
    const RunResult result = run_candor(with({"estimate"}, options));
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

}  // namespace
}  // namespace candor::testing
