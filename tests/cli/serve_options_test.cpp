// What `candor serve` is told wrongly: each is one line that names it, before a model is read.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/program.h"
#include "support/certificate.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

class serve_options : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = std::filesystem::temp_directory_path() / ("candor-serve-options-" + std::to_string(::getpid()));
  }
  void TearDown() override { std::filesystem::remove_all(file_); }

  static void expect_refused(const std::vector<std::string>& arguments, const std::vector<std::string>& words) {
    const RunResult result = run_candor(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments.back();
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
    EXPECT_LT(result.err.size(), 500u);
    for (const std::string& word : words)
      EXPECT_NE(result.err.find(word), std::string::npos) << word << "\n" << result.err;
  }
  void expect_config_refused(const std::string& content, const std::vector<std::string>& words) {
    std::ofstream(file_, std::ios::binary) << content;
    expect_refused({"serve", "--config", file_.string(), "--print-config"}, words);
  }

  std::filesystem::path file_;
};

TEST_F(serve_options, pages_and_hosts_are_named_one_by_one) {
  expect_refused({"serve", "--allow-origin", "*"}, {"--allow-origin", "\"*\"", "any page"});
  for (const char* origin : {"null", "chat.example.com", "https://chat.example.com/", "https://*.example.com",
                             "https://", "https://a@b", "https://a:99999999", ""}) {
    expect_refused({"serve", "--allow-origin", origin}, {"--allow-origin", "https://chat.example.com"});
  }
  for (const char* host : {"*", "a:80", "http://a", "[::1", "a b", ""})
    expect_refused({"serve", "--allow-host", host}, {"--allow-host"});
}

TEST_F(serve_options, a_key_that_nobody_could_show_is_refused) {
  for (const char* key : {"", " ", "\t", "a b", "a\x01", "\xC2\xA0"})
    expect_refused({"serve", "--api-key", key}, {"key"});
  const std::string name = file_.string();
  std::ofstream(file_) << "alice s3cret\nbob s3cret\n";
  expect_refused({"serve", "--api-key-file", name}, {name, "line 2"});
  std::ofstream(file_) << "# none\n\n   \n";
  expect_refused({"serve", "--api-key-file", name}, {name, "NAME SECRET"});
  std::ofstream(file_) << "alice two words\n";
  expect_refused({"serve", "--api-key-file", name}, {name, "line 1"});
  expect_refused({"serve", "--api-key-file", "/dev/zero"}, {"/dev/zero"});
  expect_refused({"serve", "--api-key-file", "/"}, {"key file"});
}

TEST_F(serve_options, a_config_file_that_is_none_is_refused_with_its_line) {
  expect_config_refused(std::string("\x7f""ELF\0\1\2", 7), {"--config", "not text"});
  expect_config_refused(std::string(2u << 20, '\n'), {"--config", "1 MiB"});
  expect_config_refused("port = 8081\nprot = 1\n", {"line 2", "prot", "did you mean port"});
  expect_config_refused("port = 8081\n\nport = 8082\n", {"line 3", "twice"});
  expect_config_refused("# a\nport = \"many\"\n", {"--port", "many", "line 2"});
  expect_config_refused("port = 70000\n", {"--port", "65535", "line 1"});
  expect_config_refused("strict = 5\n", {"strict", "true nor false", "line 1"});
  expect_config_refused("port = [1, 2]\n", {"port", "2 values"});
  expect_config_refused("host = 127.0.0.1\n", {"line 1", "quotes"});
  expect_config_refused("host = \"a\n", {"line 1", "string"});
  expect_config_refused("host = \"a\" \"b\"\n", {"host", "more than one"});
  expect_config_refused("[serve]\nport = 1\n", {"line 1", "tables"});
  expect_config_refused("port\n", {"line 1", "'='"});
  expect_config_refused("print-config = true\n", {"print-config"});
  expect_config_refused("help = true\n", {"help"});
  expect_config_refused("= 5\n", {"line 1"});
  expect_refused({"serve", "--config", "/", "--print-config"}, {"/"});
  expect_refused({"serve", "--config", "/nowhere", "--print-config"}, {"/nowhere"});
  expect_refused({"serve", "--config", "/dev/zero", "--print-config"}, {"1 MiB"});
}

TEST_F(serve_options, a_config_file_is_read_as_it_was_printed) {
  std::ofstream(file_)
      << "# comment\nport = 8081  # behind\nhost = '127.0.0.1'\nalias = [\n  \"a\", # one\n  \"b\\\"c\",\n]\n"
         "strict = true\nparallel = 2\nmax-queued = 6\n";
  const RunResult first = run_candor({"serve", "--config", file_.string(), "--print-config"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  for (const char* line : {"port=8081", "strict=true", "max-per-key=8", "max-inflight-mb"})
    EXPECT_NE(first.out.find(line), std::string::npos) << line << "\n" << first.out;
  std::ofstream(file_) << first.out;
  const RunResult second = run_candor({"serve", "--config", file_.string(), "--print-config"});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(second.out, first.out);
}

TEST_F(serve_options, tls_takes_a_certificate_and_its_key) {
  const TempFolder folder;
  write_certificate(folder.path());
  const std::string cert = folder.path() / "cert.pem", key = folder.path() / "key.pem";
  expect_refused({"serve", "--tls-cert", cert}, {"--tls-cert", "--tls-key FILE"});
  expect_refused({"serve", "--tls-key", key}, {"--tls-key", "--tls-cert FILE"});
  expect_refused({"serve", "--tls-cert", cert, "--tls-key", cert}, {"--tls-key", cert, "no private key"});
  expect_refused({"serve", "--tls-cert", "/nowhere", "--tls-key", key}, {"--tls-cert", "/nowhere", "does not exist"});
  std::ofstream(file_) << "tls-cert = \"" << cert << "\"\ntls-key = \"/nowhere\"\n";
  expect_refused({"serve", "--config", file_.string()}, {"--tls-key", "/nowhere"});
}

// The program from its start to its end, with a hang-up between.
RunResult serve_with_tls(const TempFolder& folder, const std::function<void()>& before_hang_up) {
  return run_candor({"serve", "--port", "0", "--tls-cert", folder.path() / "cert.pem", "--tls-key",
                     folder.path() / "key.pem", "--drain-seconds", "0"},
                    {.interrupt_at = "TLS: the", .hang_up_at = "candor serves", .before_hang_up = before_hang_up});
}

TEST_F(serve_options, a_hang_up_reads_the_certificate_again) {
  const TempFolder folder;
  write_certificate(folder.path());
  const RunResult result = serve_with_tls(folder, [&] { write_certificate(folder.path(), {.ends_s = -60}); });
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("at https://127.0.0.1:"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("expired on"), std::string::npos) << result.err;
}

TEST_F(serve_options, a_pair_that_cannot_be_used_leaves_the_old_one) {
  const TempFolder folder;
  write_certificate(folder.path());
  const RunResult result = serve_with_tls(folder, [&] { std::ofstream(folder.path() / "key.pem") << "nothing\n"; });
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("TLS: the pair in use stays"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("no private key"), std::string::npos) << result.err;
}

TEST_F(serve_options, the_bytes_in_flight_hold_at_least_one_body) {
  expect_refused({"serve", "--max-inflight-mb", "8"}, {"--max-inflight-mb 8", "--max-body-mb 16"});
}

TEST_F(serve_options, of_several_models_each_has_a_name_and_a_file) {
  const std::string pocket = project_file("models/pocket/pocket-q8_0.gguf");
  const std::string draft = project_file("models/pocket/pocket-draft-q8_0.gguf");
  const TempFolder folder;
  const std::string empty = folder.path();
  expect_refused({"serve", "-m", pocket, "-m", "/nowhere.gguf"}, {"/nowhere.gguf"});
  expect_refused({"serve", "-m", pocket, "-m", pocket}, {"two models are named", "pocket-q8_0", "NAME="});
  expect_refused({"serve", "-m", "a=" + pocket, "-m", "a=" + draft}, {"two models are named \"a\""});
  expect_refused({"serve", "-m", pocket, "-m", "=" + draft}, {"NAME=FILE"});
  expect_refused({"serve", "-m", pocket, "-m", "a\nb=" + draft}, {"NAME=FILE"});
  expect_refused({"serve", "--models-dir", "/nowhere"}, {"--models-dir", "/nowhere", "no folder"});
  expect_refused({"serve", "--models-dir", empty}, {"there is no model"});
  expect_refused({"serve", "-m", pocket, "-m", draft, "--default", "c"}, {"--default", "\"c\"", "pocket-q8_0"});
  for (const char* time : {"soon", "5 m", "", "5x", "1e9", "--5"})
    expect_refused({"serve", "-m", pocket, "-m", draft, "--keep-alive=" + std::string(time)}, {"--keep-alive"});
  expect_refused({"serve", "-m", pocket, "--keep-alive", "5m"}, {"--keep-alive", "several models"});
  expect_refused({"serve", "-m", pocket, "-m", draft, "--model-id", "x"}, {"--model-id", "NAME=FILE"});
  expect_refused({"serve", "-m", pocket, "-m", draft, "--draft", draft}, {"--draft", "one model"});
}

TEST_F(serve_options, several_models_come_from_a_list_in_the_file) {
  std::ofstream(file_) << "model = [\"a=" << project_file("models/pocket/pocket-q8_0.gguf").string() << "\", \""
                       << project_file("models/pocket/pocket-draft-q8_0.gguf").string() << "\"]\ndefault = \"a\"\n";
  const RunResult result = run_candor({"serve", "--config", file_.string(), "--port", "0", "--drain-seconds", "0"},
                                      {.interrupt_at = "candor serves"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("candor serves 2 models (\"a\" where none is named"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace candor::testing
