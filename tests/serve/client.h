#pragma once
// A server in this process on a port of its own, and clients that send it exact bytes.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "candor/engine.h"
#include "obs/log.h"
#include "serve/http/server.h"
#include "serve/service.h"
#include "support/shared_data.h"

namespace candor::testing {

using Json = nlohmann::ordered_json;

// How long a client waits for a server that says nothing: longer than any reply takes on a busy machine.
inline constexpr std::chrono::seconds kPatience{120};

// One TCP connection to 127.0.0.1.
class RawClient {
 public:
  explicit RawClient(uint16_t port);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // False once the other side is gone.
  bool send(std::string_view bytes);
  // Until `marker` was read, the other side closed, or the time is over: everything read since the last call.
  std::string read_until(std::string_view marker, std::chrono::milliseconds at_most = kPatience);
  // What has come, or "" when nothing comes for a while or the other side is gone.
  std::string read_some();
  // Until the other side closes.
  std::string read_all(std::chrono::milliseconds at_most = kPatience) { return read_until("", at_most); }
  void half_close();
  int fd() const { return fd_; }
  // Ends the connection by RST.
  void reset();

 private:
  int fd_ = -1;
};

struct ClientReply {
  int status = 0;
  std::string head;
  std::string body;  // chunks joined
  Json json() const { return Json::parse(body, nullptr, false); }
  // The chunks of a stream, without [DONE].
  std::vector<Json> events() const;
};

// The bytes of a chat request that asks for a stream.
std::string streaming_request(Json body);
// A streamed story of n_tokens, whose end nobody waits for: returns when it has begun.
void begin_story(RawClient& client, int n_tokens);

std::string repeated(std::string_view text, size_t n);
// Of this process, without what workers and clients have given back.
int64_t trimmed_resident_bytes();

// From the bytes of one reply.
ClientReply parse_reply(const std::string& bytes);

using Headers = std::vector<std::string>;  // "name: value"
ClientReply ask(uint16_t port, const std::string& method, const std::string& path, const std::string& body = {},
                const Headers& headers = {});
inline ClientReply post(uint16_t port, const std::string& path, const Json& body, const Headers& headers = {}) {
  return ask(port, "POST", path, body.dump(), headers);
}

struct RunningOptions {
  EngineOptions engine{};
  serve::ServiceOptions service{};
  http::ServerOptions server{};
};

// The shipped model behind a server.
class Running {
 public:
  static RunningOptions defaults();
  explicit Running(RunningOptions options = defaults());
  ~Running();

  uint16_t port() const { return server_->port(); }
  Engine& engine() { return *engine_; }
  http::Server& server() { return *server_; }
  serve::Service& service() { return *service_; }
  // Within a second nothing is in work, and no K/V block is held.
  bool becomes_idle();

 private:
  std::unique_ptr<obs::LogSink> sink_;
  obs::Log log_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<serve::Service> service_;
  std::unique_ptr<http::Server> server_;
};

// One server for all tests of a suite.
class ServerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { running_ = std::make_unique<Running>(); }
  static void TearDownTestSuite() { running_.reset(); }
  static uint16_t port() { return running_->port(); }
  static Running& running() { return *running_; }
  static inline std::unique_ptr<Running> running_;
};

// Asks with one seed after the other until the answer is not cut: a small model may fill a constraint's free places
// with spaces for ever.
inline ClientReply post_until_whole(uint16_t port, Json body) {
  ClientReply reply;
  body["temperature"] = 0.7;
  for (int seed = 1; seed <= 30; ++seed) {
    body["seed"] = seed;
    reply = post(port, "/v1/chat/completions", body);
    if (reply.body.find("\"finish_reason\":\"length\"") == std::string::npos) break;
  }
  return reply;
}

inline Json user_says(const std::string& text, int max_tokens = 8) {
  return {{"messages", Json::array({{{"role", "user"}, {"content", text}}})},
          {"max_tokens", max_tokens},
          {"temperature", 0}};
}

}  // namespace candor::testing
