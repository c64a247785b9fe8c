// Batches through a handler of the test: what is asked, how often, and what becomes of the files.

#include "serve/batch/batch.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "obs/log.h"
#include "serve/batch/batch_line.h"
#include "serve/core/json_body.h"
#include "serve/http/exchange.h"
#include "serve/http/fair_budget.h"
#include "serve/http/faults.h"
#include "support/temp_folder.h"

namespace candor::serve {
namespace {

// Answers each request with its own body, on a thread of its own; the first n_refusals find it full.
class Echo final : public http::Handler {
 public:
  explicit Echo(int n_refusals = 0) : n_refusals_(n_refusals) {}
  ~Echo() override {
    for (std::thread& thread : threads_) thread.join();
  }
  http::Faults& faults() override { return faults_; }
  http::FairBudget& bytes() override { return bytes_; }
  std::optional<http::HttpResponse> refuse(http::HttpRequest& /*request*/) override { return std::nullopt; }
  void handle(std::shared_ptr<http::Exchange> exchange) override {
    if (n_refusals_-- > 0) return exchange->respond({.status = 429, .body = "{}"});
    const Json body = Json::parse(exchange->request().body);
    bodies.push_back(body);
    const int delay_ms = body.value("delay", 0);
    const int status = body.value("status", 200);
    threads_.emplace_back([exchange, delay_ms, status, text = exchange->request().body] {
      std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
      exchange->respond({.status = status,
                         .body = R"({"echo":)" + text + R"(,"usage":{"prompt_tokens":2,"completion_tokens":3}})",
                         .headers = {{"x-candor-warnings", R"(["w"])"}}});
    });
  }
  void on_reply(const http::HttpRequest& /*request*/, const http::ReplyRecord& /*record*/) override {}
  void on_socket(const std::shared_ptr<http::WebSocket>& /*socket*/) override {}
  void on_message(const std::shared_ptr<http::WebSocket>& /*socket*/, http::SocketMessage /*message*/) override {}
  void on_socket_closed(const std::shared_ptr<http::WebSocket>& /*socket*/) override {}

  std::vector<Json> bodies;

 private:
  int n_refusals_;
  std::unique_ptr<obs::LogSink> sink_ = obs::make_stderr_sink();
  obs::Log log_{*sink_, obs::LogLevel::kOff};
  http::Faults faults_{log_};
  http::FairBudget bytes_{1 << 20, 0};
  std::vector<std::thread> threads_;
};

class batch_of_requests : public ::testing::Test {
 protected:
  void write_input(const std::string& text) const { std::ofstream(input()) << text; }
  void write_output(const std::string& text) const { std::ofstream(output()) << text; }
  std::filesystem::path input() const { return folder_.path() / "in.jsonl"; }
  std::filesystem::path output() const { return folder_.path() / "out.jsonl"; }
  std::string output_text() const {
    std::ifstream file(output());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<Json> answers() const {
    std::vector<Json> list;
    std::ifstream file(output());
    for (std::string line; std::getline(file, line);) list.push_back(Json::parse(line));
    return list;
  }
  BatchOptions options() const { return {.input = input(), .output = output(), .n_at_once = 3, .model = "m"}; }
  // Whole, or until `most` answers are there.
  static BatchCounts answer(const BatchOptions& options, http::Handler& handler, size_t most = SIZE_MAX) {
    auto batch = Batch::open(options);
    EXPECT_TRUE(batch) << batch.error().message;
    if (!batch) return {};
    const auto result = batch->run(handler, [most](const BatchCounts& counts) { return counts.n_done < most; });
    EXPECT_TRUE(result) << result.error().message;
    return batch->counts();
  }
  std::string refusal() const {
    const auto batch = Batch::open(options());
    return batch ? "" : batch.error().message;
  }

 private:
  candor::testing::TempFolder folder_;
};

std::string numbered(size_t n) {
  std::string text;
  for (size_t i = 0; i < n; ++i)
    text += R"({"custom_id":"c)" + std::to_string(i) + R"(","prompt":"p","delay":)" + std::to_string(i * 7 % 5) + "}\n";
  return text;
}

TEST_F(batch_of_requests, every_request_gets_one_line) {
  write_input(R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"messages":[],"seed":5}})"
              "\n\n\"text \\n more\"\n  \n"
              R"({"input":"e"})"
              "\n"
              R"({"messages":[{"role":"user","content":"x"}],"status":400})");
  Echo handler;
  const BatchCounts counts = answer(options(), handler);
  EXPECT_EQ(counts.n_lines, 4u);
  EXPECT_EQ(counts.n_done, 4u);
  EXPECT_EQ(counts.n_failed, 1u);
  EXPECT_EQ(counts.n_prompt_tokens, 8u);
  EXPECT_EQ(counts.n_answer_tokens, 12u);
  std::map<std::string, Json> by_name;
  for (const Json& line : answers()) by_name[line.at("custom_id")] = line.at("response");
  ASSERT_EQ(by_name.size(), 4u);
  EXPECT_EQ(by_name["a"]["body"]["echo"]["seed"], 5);
  EXPECT_EQ(by_name["line-3"]["body"]["echo"]["prompt"], "text \n more");
  EXPECT_TRUE(by_name["line-3"]["body"]["echo"]["seed"].is_number_unsigned());
  EXPECT_FALSE(by_name["line-5"]["body"]["echo"].contains("seed"));
  EXPECT_EQ(by_name["line-6"]["status_code"], 400);
  EXPECT_EQ(by_name["a"]["warnings"], Json::array({"w"}));
}

TEST_F(batch_of_requests, an_interrupted_one_goes_on_and_asks_nothing_twice) {
  write_input(numbered(40));
  std::set<std::string> asked;
  size_t n_asked_twice = 0;
  for (size_t before = 0; before < 40;) {
    Echo handler;
    answer(options(), handler, 7);
    const auto now = answers();
    ASSERT_GT(now.size(), before);
    before = now.size();
  }
  for (const Json& line : answers()) n_asked_twice += !asked.insert(line.at("custom_id").get<std::string>()).second;
  EXPECT_EQ(asked.size(), 40u);
  EXPECT_EQ(n_asked_twice, 0u);
}

TEST_F(batch_of_requests, a_torn_last_line_is_asked_again) {
  write_input(numbered(5));
  Echo handler;
  answer(options(), handler);
  const std::string whole = output_text();
  const size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (size_t size = last; size < whole.size(); size += size < last + 20 ? 1 : 37) {
    write_output(whole.substr(0, size));
    Echo again;
    answer(options(), again);
    EXPECT_EQ(again.bodies.size(), 1u) << size;
    EXPECT_EQ(output_text(), whole) << size;
  }
}

TEST_F(batch_of_requests, a_full_disk_keeps_the_lines_before) {
  write_input(numbered(30));
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
  const auto on_too_large = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 2000, .rlim_max = usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Echo handler;
  const auto result = [&]() -> Result<void> {
    CANDOR_ASSIGN(Batch first, Batch::open(options()));
    return first.run(handler, [](const BatchCounts&) { return true; });
  }();
  setrlimit(RLIMIT_FSIZE, &usual);
  std::signal(SIGXFSZ, on_too_large);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("the same batch goes on"), std::string::npos) << result.error().message;
  const size_t n_written = answers().size();  // whole lines: each is read
  EXPECT_GT(n_written, 0u);
  Echo again;
  const BatchCounts counts = answer(options(), again);
  EXPECT_EQ(counts.n_before, n_written);
  EXPECT_EQ(answers().size(), 30u);
}

TEST_F(batch_of_requests, in_order_is_the_order_of_the_input) {
  write_input(numbered(30));
  Echo handler;
  BatchOptions ordered = options();
  ordered.in_order = true;
  answer(ordered, handler);
  const auto list = answers();
  ASSERT_EQ(list.size(), 30u);
  for (size_t i = 0; i < list.size(); ++i) EXPECT_EQ(list[i].at("custom_id"), "c" + std::to_string(i));
}

TEST_F(batch_of_requests, a_full_engine_is_asked_again_later) {
  write_input(numbered(6));
  Echo handler(4);
  const BatchCounts counts = answer(options(), handler);
  EXPECT_EQ(counts.n_done, 6u);
  EXPECT_EQ(counts.n_failed, 0u);
  EXPECT_EQ(handler.bodies.size(), 6u);
}

TEST_F(batch_of_requests, seeds_follow_from_the_name_alone) {
  const auto one = parse_batch_line(R"({"custom_id":"a","prompt":"x"})", 3, 7, "m");
  const auto same = parse_batch_line(R"({"prompt":"x","custom_id":"a"})", 9, 7, "m");
  const auto other = parse_batch_line(R"({"custom_id":"b","prompt":"x"})", 3, 7, "m");
  const auto later = parse_batch_line(R"({"custom_id":"a","prompt":"x"})", 3, 8, "m");
  ASSERT_TRUE(one && same && other && later);
  EXPECT_EQ(one->body, same->body);
  EXPECT_EQ(one->digest, same->digest);
  EXPECT_NE(one->body, other->body);
  EXPECT_NE(one->body, later->body);
}

TEST_F(batch_of_requests, errors_are_asked_again_where_that_is_wished) {
  write_input("{\"custom_id\":\"a\",\"prompt\":\"x\",\"status\":500}\n{\"custom_id\":\"b\",\"prompt\":\"y\"}\n");
  Echo handler;
  EXPECT_EQ(answer(options(), handler).n_failed, 1u);
  EXPECT_EQ(answer(options(), handler).n_done, 0u);
  write_input("{\"custom_id\":\"a\",\"prompt\":\"mended\"}\n{\"custom_id\":\"b\",\"prompt\":\"y\"}\n");
  EXPECT_NE(refusal().find("line 1"), std::string::npos) << refusal();
  BatchOptions again = options();
  again.retries_errors = true;
  const BatchCounts counts = answer(again, handler);
  EXPECT_EQ(counts.n_done, 1u);
  EXPECT_EQ(counts.n_failed, 0u);
  EXPECT_EQ(answers().size(), 2u);
}

TEST_F(batch_of_requests, an_input_with_faults_is_refused_by_their_lines_and_nothing_is_asked) {
  const std::pair<const char*, const char*> kFaults[] = {
      {"once upon a time", "line 1"},
      {"{\"prompt\":\"a\"}\n{\"prompt\":", "line 2"},
      {"{}", "neither a request"},
      {"[1]", "line 1"},
      {"{\"custom_id\":\"a\",\"prompt\":\"x\"}\n{\"custom_id\":\"a\",\"prompt\":\"y\"}",
       "line 2: custom_id \"a\" is line 1's"},
      {"{\"custom_id\":5,\"prompt\":\"x\"}", "custom_id is 5"},
      {R"({"custom_id":"a","url":"/v1/models","body":{}})", "/v1/models"},
      {R"({"custom_id":"a","method":"GET","url":"/v1/completions","body":{}})", "method is \"GET\""},
      {R"({"custom_id":"a","url":"/v1/completions","body":3})", "body is no object"},
      {R"({"custom_id":"a","url":"/v1/completions","body":{},"max_tokens":1})",
       "\"max_tokens\" stands beside the body"},
      {R"({"prompt":"x","stream":true})", "stream"},
      {"{\"prompt\":\"\xff\"}", "line 1"},
  };
  for (const auto& [text, words] : kFaults) {
    write_input(text);
    EXPECT_NE(refusal().find(words), std::string::npos) << text << " -> " << refusal();
    std::filesystem::remove(output());
  }
}

TEST_F(batch_of_requests, files_that_are_something_else_stay_as_they_are) {
  write_input(numbered(2));
  for (const char* text : {"my notes", "my notes\n", "{\"id\":\"x\"}\n", "{\"id\":\"batch_req_zz\"}\n"}) {
    write_output(text);
    EXPECT_NE(refusal().find("is no answer of a batch"), std::string::npos) << text << refusal();
    EXPECT_EQ(output_text(), text);
  }
  std::filesystem::remove(output());
  Echo handler;
  answer(options(), handler);
  write_input(numbered(1));
  EXPECT_NE(refusal().find("does not ask"), std::string::npos) << refusal();
  write_input(numbered(2));
  BatchOptions other = options();
  other.model = "another";
  EXPECT_FALSE(Batch::open(other));
  BatchOptions itself = options();
  itself.output = itself.input;
  EXPECT_FALSE(Batch::open(itself));
  itself.output = input().parent_path();
  EXPECT_FALSE(Batch::open(itself));
  itself.input = output().parent_path() / "missing";
  EXPECT_FALSE(Batch::open(itself));
  const auto holder = Batch::open(options());
  ASSERT_TRUE(holder);
  EXPECT_NE(refusal().find("another batch writes it"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace candor::serve
