// What a user can get wrong on the command line: one line that names the thing, and exit 2.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "formats/gguf/gguf_writer.h"
#include "program.h"
#include "support/shared_data.h"

namespace candor::testing {
namespace {

class BadInput : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("candor-cli-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }

  static void expect_refused(const std::vector<std::string>& arguments, const std::vector<std::string>& words,
                             const RunInput& input = {}) {
    const RunResult result = run_candor(arguments, input);
    EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
    for (const std::string& word : words)
      EXPECT_NE(result.err.find(word), std::string::npos) << word << " not in: " << result.err;
  }

  std::filesystem::path folder_;
};

TEST_F(BadInput, an_unknown_option_names_the_nearest_one) {
  expect_refused({"run", "--temprature", "1", "hi"}, {"--temprature", "did you mean --temperature"});
  expect_refused({"rnu", "hi"}, {"rnu", "did you mean run"});
  expect_refused({"run", "--qqqqqqq", "hi"}, {"--qqqqqqq", "--help"});
}

TEST_F(BadInput, a_line_names_its_command_once_and_says_where_its_help_is) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--bogus"}, "candor: unknown option --bogus; 'candor --help' lists them\n"},
      {{"chat", "--bogus"}, "candor: chat: unknown option --bogus; 'candor chat --help' lists them\n"},
      {{"bench", "serve", "--bogus"},
       "candor: bench serve: unknown option --bogus; 'candor bench serve --help' lists them\n"},
      {{"pull", "a/b", "c"}, "candor: pull: what is \"c\"? 'candor pull --help' shows what goes where\n"},
      {{"pull"}, "candor: pull: model is required; 'candor pull --help' shows what goes where\n"},
      {{"bench"}, "candor: bench: A subcommand is required; 'candor bench --help' shows what goes where\n"},
      {{"bench", "srve"},
       "candor: bench: unknown command \"srve\" (did you mean serve?); 'candor bench --help' lists them\n"},
      {{"pull", "--bogus"}, "candor: pull: unknown option --bogus; 'candor pull --help' lists them\n"},
      {{"quantize", "a"}, "candor: quantize: result is required; 'candor quantize --help' shows what goes where\n"},
  };
  for (const auto& [arguments, line] : cases) {
    const RunResult result = run_candor(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err, line);
  }
}

TEST_F(BadInput, fast_weights_of_a_model_without_q4_k_say_what_there_is_instead) {
  for (const char* command : {"run", "fit", "eval"}) {
    std::vector<std::string> arguments = {command, "--fast-weights"};
    if (command != std::string("fit")) arguments.push_back("hello there");
    expect_refused(arguments, {"nothing to rebase", "--fast-weights", "F32, Q8_0", "--quantize q4_k_m"});
  }
}

TEST_F(BadInput, numbers_out_of_range_show_the_range) {
  expect_refused({"run", "-n", "abc", "hi"}, {"-n", "abc", "from 1 to"});
  expect_refused({"run", "-t", "0", "hi"}, {"-t", "from 1 to 1024"});
  expect_refused({"run", "-t", "100000", "hi"}, {"-t", "from 1 to 1024"});
  expect_refused({"run", "-c", "-1", "hi"}, {"-c", "from 1 to"});
  expect_refused({"run", "--temperature", "-1", "hi"}, {"--temperature", "from 0 to 100"});
  expect_refused({"run", "--temperature", "nan", "hi"}, {"--temperature", "from 0 to 100"});
  expect_refused({"run", "--temperature", "1e308", "hi"}, {"--temperature", "from 0 to 100"});
  expect_refused({"run", "--top-p", "1.5", "hi"}, {"--top-p", "from 0 to 1"});
  expect_refused({"run", "--top-k", "-2147483648", "hi"}, {"--top-k", "from 0 to"});
  expect_refused({"run", "--seed", "1180591620717411303424", "hi"}, {"--seed"});
  expect_refused({"run", "--preset", "wild", "hi"}, {"wild", "creative"});
  expect_refused({"run", "hi"}, {"--threads", "from 1 to 1024"}, {.environment = {"CANDOR_THREADS=0"}});
}

TEST_F(BadInput, what_the_sampler_and_the_constraints_refuse_is_named) {
  for (const char* value : {"-3", "2147483648", "9223372036854775808", "1e308", "nan", "x"}) {
    expect_refused({"run", "hi", "--repeat-last-n", value}, {"--repeat-last-n", value, "2147483647"});
    expect_refused({"run", "hi", "--presence-penalty", value}, {"--presence-penalty", value, "2"});
  }
  expect_refused({"run", "hi", "--samplers", "top_k,hot"}, {"samplers", "hot", "temperature"});
  expect_refused({"run", "hi", "--top-k", "3", "--samplers", "temperature,top_p"}, {"samplers", "top_k"});
  expect_refused({"run", "hi", "--logit-bias", "999999999=5"}, {"logit_bias", "999999999"});
  expect_refused({"run", "hi", "--logit-bias", "5=hot"}, {"logit_bias", "-100 to 100"});
  expect_refused({"run", "hi", "--regex", "("}, {"regex"});
  expect_refused({"run", "hi", "--grammar", "start ::= \"a\""}, {"root"});
  expect_refused({"run", "hi", "--json-schema", R"({"type": "stsring"})"}, {"/type", "stsring"});
  expect_refused({"run", "hi", "--json-schema", "@/nowhere.json"}, {"/nowhere.json"});
  expect_refused({"run", "hi", "--json-object", "--regex", "a"}, {"--json-object", "--regex"});
}

TEST_F(BadInput, stop_ids_outside_the_vocabulary_are_refused) {
  expect_refused({"run", "--stop-token", "99999999", "hi"}, {"99999999"});
  expect_refused({"run", "--stop-token", "-5", "hi"}, {"stop"});
  expect_refused({"run", "--stop", "", "hi"}, {"stop"});
}

TEST_F(BadInput, prompts_that_cannot_be_read_are_said) {
  expect_refused({"run", "-f", (folder_ / "absent.txt").string()}, {"absent.txt", "No such file"});
  expect_refused({"run", "-f", folder_.string()}, {"folder"});
  expect_refused({"run", "-f", file("binary", std::string("ab\0cd", 5))}, {"binary", "offset 2"});
  expect_refused({"run", "-f", file("latin1", "caf\xE9")}, {"UTF-8", "0xE9", "offset 3"});
  expect_refused({"run", "caf\xE9"}, {"UTF-8", "offset 3"});
  expect_refused({"run", "one", "two"}, {"2 prompts", "quotes"});
  expect_refused({"run", "-p", "one", "two"}, {"several prompts"});
  const std::string large = file("large", "");
  std::filesystem::resize_file(large, uintmax_t{1} << 30);
  expect_refused({"run", "-f", large}, {"large", "1.07 GB"});
}

TEST_F(BadInput, a_prompt_longer_than_the_context_names_both_numbers) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "the fox ";
  expect_refused({"run", "--raw"}, {"context", "512"}, {.stdin_text = text});
}

TEST_F(BadInput, files_that_are_no_models_are_named_for_what_they_are) {
  expect_refused({"run", "-m", (folder_ / "absent.gguf").string(), "hi"}, {"absent.gguf"});
  expect_refused({"run", (folder_ / "absent.gguf").string(), "hi"}, {"absent.gguf"});
  expect_refused({"run", folder_.string(), "hi"}, {"folder"});
  expect_refused({"run", "/dev/random", "hi"}, {"/dev/random"});
  expect_refused({"run", file("empty.gguf", ""), "hi"}, {"empty.gguf", "empty"});
  expect_refused({"run", file("three.gguf", "GGU"), "hi"}, {"three.gguf", "3 bytes"});
  expect_refused({"run", file("page.gguf", "<!DOCTYPE html><html></html>"), "hi"}, {"HTML"});
  expect_refused(
      {"run", file("pointer.gguf", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"), "hi"},
      {"LFS"});
  expect_refused({"run", file("other.gguf", "something else entirely, long enough"), "hi"}, {"other.gguf"});
  expect_refused({"run", "someone/some-model", "hi"}, {"someone/some-model", "candor pull someone/some-model"});
  expect_refused({"show", file("cut.gguf", std::string("GGUF\x03\0\0\0", 8)), "hi"}, {"show takes one model"});
  expect_refused({"show", file("cut.gguf", std::string("GGUF\x03\0\0\0", 8))}, {"cut.gguf"});
  expect_refused({"show", file("old.gguf", std::string("GGUF\x01\0\0\0", 8) + std::string(64, '\0'))},
                 {"old.gguf", "1"});
}

// A whole directory of tensors of 420 GB in a file without blocks on disk.
std::string hollow_model(const std::filesystem::path& path) {
  using formats::gguf::GgufScalar;
  constexpr int64_t kDim = 16384, kFfn = int64_t{1} << 20, kVocab = 96;
  formats::gguf::GgufHeader header;
  EXPECT_TRUE(header.add_meta("general.architecture", GgufScalar(std::string("llama"))));
  for (const auto& [key, value] : std::vector<std::pair<const char*, uint32_t>>{{"embedding_length", kDim},
                                                                                {"block_count", 2},
                                                                                {"attention.head_count", 128},
                                                                                {"feed_forward_length", kFfn},
                                                                                {"context_length", 512},
                                                                                {"vocab_size", kVocab}})
    EXPECT_TRUE(header.add_meta(std::string("llama.") + key, GgufScalar(value)));
  EXPECT_TRUE(header.add_meta("llama.attention.layer_norm_rms_epsilon", GgufScalar(1e-5f)));
  const auto add = [&](const std::string& name, const Shape& shape) {
    EXPECT_TRUE(header.add_tensor(name, DType::kF32, shape));
  };
  add("token_embd.weight", {2, {kVocab, kDim}});
  add("output_norm.weight", {1, {kDim}});
  for (const std::string block : {"blk.0.", "blk.1."}) {
    for (const char* name : {"attn_norm", "ffn_norm"}) add(block + name + ".weight", {1, {kDim}});
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"})
      add(block + name + ".weight", {2, {kDim, kDim}});
    for (const char* name : {"ffn_gate", "ffn_up"}) add(block + name + ".weight", {2, {kFfn, kDim}});
    add(block + "ffn_down.weight", {2, {kDim, kFfn}});
  }
  const std::vector<std::byte> bytes = header.bytes();
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  uintmax_t size = bytes.size();
  for (const size_t n_bytes : header.tensor_bytes()) size += (n_bytes + 31) / 32 * 32;
  std::filesystem::resize_file(path, size);
  return path.string();
}

TEST_F(BadInput, a_model_larger_than_memory_is_refused_with_both_numbers_before_it_is_read) {
  const std::string model = hollow_model(folder_ / "hollow.gguf");
  expect_refused({"run", model, "hi"}, {"needs 42", "GB of weights", "are available"});
  expect_refused({"bench", "generate", model, "--prompt", "64"}, {"needs 42", "GB of weights", "are available"});
  expect_refused({"eval", model, "some words"}, {"needs 42", "GB of weights", "are available"});
  const RunResult fit = run_candor({"fit", model});
  EXPECT_EQ(fit.exit_code, 2) << fit.err;
  EXPECT_NE(fit.out.find("it does not fit"), std::string::npos) << fit.out;
}

TEST_F(BadInput, an_unreadable_model_is_said) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const std::string path = file("secret.gguf", "GGUF");
  ::chmod(path.c_str(), 0);
  expect_refused({"show", path}, {"secret.gguf", "ermission"});
}

TEST_F(BadInput, two_models_are_said) {
  const std::string model = file("a.gguf", "GGUF");
  expect_refused({"run", "-m", model, file("b.gguf", "GGUF"), "hi"}, {"two models"});
  expect_refused({"run", model, file("b.gguf", "GGUF"), "hi"}, {"two models"});
}

TEST_F(BadInput, a_path_with_spaces_emoji_or_300_bytes_works) {
  const std::filesystem::path source = project_file("models/pocket/pocket-q8_0.gguf");
  CANDOR_REQUIRE_DATA(source);
  const std::filesystem::path deep =
      folder_ / std::string(150, 'd') / (std::string(120, 'e') + " a \xF0\x9F\xA6\x8A fox.gguf");
  std::filesystem::create_directories(deep.parent_path());
  std::filesystem::copy_file(source, deep);
  const RunResult result = run_candor({"tokenize", deep.string(), "a fox", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(BadInput, a_processor_or_backend_that_is_not_here_is_refused_with_the_list) {
  expect_refused({"run", "hi"}, {"CANDOR_ISA", "portable"}, {.environment = {"CANDOR_ISA=quantum"}});
  expect_refused({"run", "--backend", "gpu", "hi"}, {"gpu", "auto, cpu, cuda, reference"});
  expect_refused({"run", "--device", "cpu", "--gpu-layers", "3", "hi"}, {"--gpu-layers", "--device cuda"});
  expect_refused({"run", "--cpu-experts", "-1", "hi"}, {"--cpu-experts"});
}

TEST_F(BadInput, a_server_without_a_key_stays_on_this_machine) {
  expect_refused({"serve", "--host", "0.0.0.0"}, {"0.0.0.0", "--api-key-file", "127.0.0.1"});
  expect_refused({"serve", "--host", "::"}, {"::", "--api-key-file"});
  expect_refused({"serve", "--host", "example.com", "--api-key", "x"}, {"example.com", "IP address"});
  expect_refused({"serve", "--api-key-file", "/nowhere/keys"}, {"/nowhere/keys"});
}

TEST_F(BadInput, a_port_that_is_taken_is_named) {
  const int taken = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(taken, reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(taken, 1), 0);
  ASSERT_EQ(::getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  expect_refused({"serve", "--port", port}, {"127.0.0.1:" + port + " is in use"});
  ::close(taken);
}

}  // namespace
}  // namespace candor::testing
