// OpenAI's files and batches: ordered, answered, cancelled, gone on with after a restart, and nobody else's.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "client.h"
#include "serve/batch/batch_store.h"
#include "serve/core/reply.h"
#include "serve/http/access.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

const Headers kForm = {"content-type: multipart/form-data; boundary=XX"};

std::string form_of(const std::string& text, const std::string& purpose = "batch") {
  return "--XX\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\n" + purpose +
         "\r\n--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"in.jsonl\"\r\n"
         "Content-Type: application/octet-stream\r\n\r\n" +
         text + "\r\n--XX--\r\n";
}

std::string chats(int n, int max_tokens) {
  std::string text;
  for (int i = 0; i < n; ++i) {
    const Json body = {{"messages", Json::array({{{"role", "user"}, {"content", "Tell me of " + std::to_string(i)}}})},
                       {"max_tokens", max_tokens},
                       {"seed", i}};
    text +=
        Json{
            {"custom_id", "c" + std::to_string(i)}, {"method", "POST"}, {"url", "/v1/chat/completions"}, {"body", body}}
            .dump() +
        "\n";
  }
  return text;
}

// A server that keeps batches in a folder, and may be started there again.
class batches : public ::testing::Test {
 protected:
  void start(std::vector<http::ApiKey> keys = {}) {
    auto store = serve::BatchStore::open({.folder = folder_.path(), .n_at_once = 4, .model = "m"});
    ASSERT_TRUE(store) << store.error().message;
    store_ = std::move(*store);
    RunningOptions options = Running::defaults();
    options.service.batches = store_.get();
    options.service.access.keys = std::move(keys);
    running_ = std::make_unique<Running>(options);
  }
  void stop() {
    running_.reset();
    store_.reset();
  }
  ~batches() override { stop(); }
  uint16_t port() const { return running_->port(); }

  std::string upload(const std::string& text, Headers headers = {}) const {
    headers.insert(headers.end(), kForm.begin(), kForm.end());
    const ClientReply reply = ask(port(), "POST", "/v1/files", form_of(text), headers);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json().value("id", "");
  }
  Json order(const std::string& file, const std::string& url = "/v1/chat/completions",
             const Headers& headers = {}) const {
    return post(port(), "/v1/batches",
                {{"input_file_id", file}, {"endpoint", url}, {"completion_window", "24h"}, {"metadata", {{"a", "b"}}}},
                headers)
        .json();
  }
  Json wait_for(const std::string& id, const std::string& status) const {
    Json batch;
    for (int i = 0; i < 1200; ++i) {
      batch = ask(port(), "GET", "/v1/batches/" + id).json();
      if (batch["status"] == status) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_EQ(batch["status"], status) << batch.dump();
    return batch;
  }
  // custom_id -> what was answered; fails where one appears twice.
  std::map<std::string, Json> output_of(const Json& batch) const {
    std::map<std::string, Json> answers;
    std::istringstream lines(
        ask(port(), "GET", "/v1/files/" + batch["output_file_id"].get<std::string>() + "/content").body);
    for (std::string line; std::getline(lines, line);) {
      const Json json = Json::parse(line);
      EXPECT_TRUE(answers.emplace(json["custom_id"], json["response"]).second) << line;
    }
    return answers;
  }

  TempFolder folder_;
  std::unique_ptr<serve::BatchStore> store_;
  std::unique_ptr<Running> running_;
};

TEST_F(batches, are_answered_as_the_server_answers) {
  start();
  const std::string file = upload(chats(12, 10));
  EXPECT_EQ(ask(port(), "GET", "/v1/files/" + file).json()["filename"], "in.jsonl");
  EXPECT_EQ(ask(port(), "GET", "/v1/files/" + file + "/content").body, chats(12, 10));
  const Json ordered = order(file);
  EXPECT_EQ(ordered["object"], "batch") << ordered.dump();
  const Json batch = wait_for(ordered["id"], "completed");
  EXPECT_EQ(batch["request_counts"], (Json{{"total", 12}, {"completed", 12}, {"failed", 0}}));
  EXPECT_EQ(batch["metadata"], (Json{{"a", "b"}}));
  const auto answers = output_of(batch);
  ASSERT_EQ(answers.size(), 12u);
  std::istringstream lines(chats(12, 10));
  for (std::string line; std::getline(lines, line);) {
    const Json request = Json::parse(line);
    const Json alone = post(port(), "/v1/chat/completions", request["body"]).json();
    EXPECT_EQ(answers.at(request["custom_id"])["body"]["choices"], alone["choices"]);
  }
  EXPECT_EQ(ask(port(), "GET", "/v1/files").json()["data"].size(), 2u);
  EXPECT_EQ(ask(port(), "GET", "/v1/files?purpose=batch&limit=1").json()["data"].size(), 1u);
  EXPECT_EQ(ask(port(), "GET", "/v1/batches").json()["data"].size(), 1u);
  EXPECT_EQ(ask(port(), "DELETE", "/v1/files/" + file).json()["deleted"], true);
  EXPECT_EQ(ask(port(), "GET", "/v1/files/" + file).status, 404);
}

TEST_F(batches, go_on_after_a_restart) {
  start();
  const std::string id = order(upload(chats(40, 60)))["id"];
  for (int i = 0; i < 400 && ask(port(), "GET", "/v1/batches/" + id).json()["request_counts"]["completed"] < 3; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  stop();
  start();
  const Json batch = wait_for(id, "completed");
  EXPECT_EQ(output_of(batch).size(), 40u);
  stop();
  start();
  EXPECT_EQ(ask(port(), "GET", "/v1/batches/" + id).json()["status"], "completed");
}

TEST_F(batches, are_cancelled) {
  start();
  const std::string id = order(upload(chats(200, 200)))["id"];
  wait_for(id, "in_progress");
  EXPECT_EQ(ask(port(), "POST", "/v1/batches/" + id + "/cancel").status, 200);
  const Json batch = wait_for(id, "cancelled");
  EXPECT_LT(batch["request_counts"]["completed"], 200);
  EXPECT_TRUE(running_->becomes_idle());
  EXPECT_EQ(ask(port(), "POST", "/v1/batches/" + id + "/cancel").json()["status"], "cancelled");
}

TEST_F(batches, belong_to_the_key_that_ordered_them) {
  start({http::make_key("a", "secret-a"), http::make_key("b", "secret-b")});
  const Headers a = {"authorization: Bearer secret-a"};
  const Headers b = {"authorization: Bearer secret-b"};
  const std::string file = upload(chats(2, 4), a);
  EXPECT_EQ(ask(port(), "GET", "/v1/files/" + file, {}, b).status, 404);
  EXPECT_EQ(ask(port(), "GET", "/v1/files/" + file + "/content", {}, b).status, 404);
  EXPECT_EQ(ask(port(), "DELETE", "/v1/files/" + file, {}, b).status, 404);
  EXPECT_EQ(ask(port(), "GET", "/v1/files", {}, b).json()["data"].size(), 0u);
  EXPECT_EQ(ask(port(), "GET", "/v1/files", {}).status, 401);
  EXPECT_TRUE(order(file, "/v1/chat/completions", b).contains("error"));
  const std::string id = order(file, "/v1/chat/completions", a)["id"];
  EXPECT_EQ(ask(port(), "GET", "/v1/batches/" + id, {}, b).status, 404);
  EXPECT_EQ(ask(port(), "POST", "/v1/batches/" + id + "/cancel", {}, b).status, 404);
  std::string status;
  for (int i = 0; i < 600 && status != "completed"; ++i) {
    status = ask(port(), "GET", "/v1/batches/" + id, {}, a).json()["status"];
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(status, "completed");
}

TEST_F(batches, an_input_with_faults_fails_and_says_where) {
  start();
  const Json broken = wait_for(order(upload("{\"custom_id\":\"a\"}\n"))["id"], "failed");
  EXPECT_NE(broken["errors"].dump().find("line 1"), std::string::npos) << broken.dump();
  const Json other = wait_for(order(upload(chats(1, 1)), "/v1/embeddings")["id"], "failed");
  EXPECT_NE(other["errors"].dump().find("it asks /v1/chat/completions"), std::string::npos) << other.dump();
}

TEST_F(batches, mistakes_are_told) {
  start();
  const auto upload_status = [this](const std::string& body, const Headers& headers) {
    return ask(port(), "POST", "/v1/files", body, headers).status;
  };
  EXPECT_EQ(upload_status(form_of("x"), {"content-type: application/json"}), 400);
  EXPECT_EQ(upload_status(form_of("x", "assistants"), kForm), 400);
  const std::string form = form_of("some text");
  for (size_t size = 0; size + 4 < form.size(); size += 3) EXPECT_EQ(upload_status(form.substr(0, size), kForm), 400);
  const std::string file = upload(chats(1, 1));
  for (const Json& body : {Json{{"input_file_id", "file-0"}, {"endpoint", "/v1/completions"}},
                           Json{{"input_file_id", file}, {"endpoint", "/v1/models"}},
                           Json{{"input_file_id", 5}, {"endpoint", "/v1/completions"}},
                           Json{{"input_file_id", file}, {"endpoint", "/v1/completions"}, {"completion_window", "1h"}},
                           Json{{"input_file_id", file}, {"endpoint", "/v1/completions"}, {"metadata", 3}}})
    EXPECT_EQ(post(port(), "/v1/batches", body).status, 400) << body.dump();
  for (const char* path : {"/v1/files/../../etc/passwd", "/v1/files/file-0", "/v1/batches/x", "/v1/files/..%2f..%2fx"})
    EXPECT_EQ(ask(port(), "GET", path).status, 404) << path;
  EXPECT_EQ(ask(port(), "GET", "/v1/files?limit=-1").status, 400);
  EXPECT_EQ(ask(port(), "GET", "/v1/files?after=x").status, 404);
}

TEST_F(batches, are_not_taken_without_a_folder) {
  running_ = std::make_unique<Running>();
  const ClientReply reply = ask(port(), "POST", "/v1/files", form_of("x"), kForm);
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("--batch-dir"), std::string::npos) << reply.body;
}

TEST_F(batches, a_folder_with_damaged_files_is_read) {
  std::filesystem::create_directories(folder_.path() / "files");
  std::filesystem::create_directories(folder_.path() / "batches");
  for (const char* text :
       {"", "{", "[]", R"({"id":"bad","status":5})", R"({"id":"bad","status":"completed","n_lines":"x"})",
        R"({"id":"bad","owner":[1],"filename":2})"}) {
    std::ofstream(folder_.path() / "batches" / "bad.json") << text;
    std::ofstream(folder_.path() / "files" / "bad.json") << text;
    start();
    EXPECT_EQ(ask(port(), "GET", "/v1/batches").status, 200);
    EXPECT_EQ(ask(port(), "GET", "/v1/files").status, 200);
    stop();
  }
}

}  // namespace
}  // namespace candor::testing
