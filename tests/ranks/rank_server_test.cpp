// A server whose model is computed by ranks: what its clients and its operator see when one is lost.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "cli/program.h"
#include "engine_fixture.h"
#include "processes.h"

namespace candor {
namespace {

using std::chrono::milliseconds;
using testing::becomes_true;
using testing::children_of;
using testing::run_candor;
using testing::RunResult;

sockaddr_in address_of(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// One that nobody has at the moment.
uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = address_of(0);
  socklen_t size = sizeof(address);
  EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(socket);
  return ntohs(address.sin_port);
}

// What the server answers until it closes; nothing where nobody listens.
std::string ask(uint16_t port, const std::string& request) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = address_of(port);
  std::string reply;
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      ::send(socket, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
    char bytes[4096];
    for (ssize_t n = 0; (n = ::recv(socket, bytes, sizeof(bytes), 0)) > 0;) reply.append(bytes, static_cast<size_t>(n));
  }
  ::close(socket);
  return reply;
}

std::string get(uint16_t port, const std::string& path) {
  return ask(port, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
}

std::string complete(uint16_t port) {
  const std::string body = R"({"prompt": "hello", "max_tokens": 4000, "ignore_eos": true, "stream": true})";
  return ask(port, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
                   "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

class RankServer : public testing::TinyModelTest {
 protected:
  std::future<RunResult> serve(const std::vector<std::string>& more = {}) {
    testing::TinyModelOptions model = testing::tiny_model_of(DType::kQ4_K, 64, 256);
    model.context_tokens = 8192;
    port_ = free_port();
    std::vector<std::string> arguments = {"serve", "-m", tiny_path(model).string(), "--ranks", "2", "-t", "1", "--no-ui",
                                          "--port", std::to_string(port_)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto result = std::async(std::launch::async, [arguments] { return run_candor(arguments); });
    EXPECT_TRUE(becomes_true([&] { return get(port_, "/health").find("200 OK") != std::string::npos; }));
    return result;
  }
  static pid_t server() { return children_of(::getpid()).at(0); }

  uint16_t port_ = 0;
};

TEST_F(RankServer, ends_with_a_code_of_its_own_and_every_client_is_told) {
  auto result = serve();
  std::vector<std::future<std::string>> answers;
  for (int i = 0; i < 3; ++i) answers.push_back(std::async(std::launch::async, [port = port_] { return complete(port); }));
  std::this_thread::sleep_for(milliseconds(300));
  ::kill(children_of(server()).at(0), SIGKILL);
  for (auto& answer : answers) EXPECT_NE(answer.get().find("has ended"), std::string::npos);
  const RunResult ended = result.get();
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_NE(ended.err.find("rank 1"), std::string::npos) << ended.err;
  EXPECT_EQ(get(port_, "/health"), "");
}

TEST_F(RankServer, starts_its_ranks_again_where_that_is_asked_for) {
  auto result = serve({"--restart"});
  const pid_t rank = children_of(server()).at(0);
  ::kill(rank, SIGKILL);
  EXPECT_TRUE(becomes_true([&] {
    const auto ranks = children_of(server());
    return !ranks.empty() && ranks[0] != rank && get(port_, "/health").find("200 OK") != std::string::npos;
  }));
  ::kill(server(), SIGTERM);
  EXPECT_EQ(result.get().exit_code, 0);
}

}  // namespace
}  // namespace candor
