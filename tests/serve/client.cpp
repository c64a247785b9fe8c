#include "serve/client.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "engine/engine_impl.h"
#include "support/patient_helpers.h"
#include "support/resident_memory.h"

namespace candor::testing {
namespace {

class QuietSink final : public obs::LogSink {
 public:
  void write(obs::LogLevel, std::string_view) noexcept override {}
};

std::string joined_chunks(std::string_view bytes) {
  std::string joined;
  while (true) {
    const size_t end = bytes.find("\r\n");
    if (end == std::string_view::npos) return joined;
    const size_t size = std::strtoul(std::string(bytes.substr(0, end)).c_str(), nullptr, 16);
    if (size == 0 || end + 2 + size > bytes.size()) return joined;
    joined += bytes.substr(end + 2, size);
    bytes.remove_prefix(std::min(bytes.size(), end + 2 + size + 2));
  }
}

}  // namespace

std::string repeated(std::string_view text, size_t n) {
  std::string all;
  for (size_t i = 0; i < n; ++i) all += text;
  return all;
}

int64_t trimmed_resident_bytes() {
  malloc_trim(0);
  return resident_bytes();
}

RawClient::RawClient(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
}

RawClient::~RawClient() {
  if (fd_ >= 0) ::close(fd_);
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

std::string RawClient::read_until(std::string_view marker, std::chrono::milliseconds at_most) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  std::string read;
  while (marker.empty() || read.find(marker) == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd waits{.fd = fd_, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&waits, 1, static_cast<int>(left.count())) <= 0) break;
    char buffer[16384];
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n <= 0) break;
    read.append(buffer, static_cast<size_t>(n));
  }
  return read;
}

std::string RawClient::read_some() {
  constexpr auto kPatienceMs = static_cast<int>(std::chrono::milliseconds(kPatience).count());
  pollfd waits{.fd = fd_, .events = POLLIN, .revents = 0};
  if (::poll(&waits, 1, kPatienceMs) <= 0) return {};
  char buffer[16384];
  const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
  return n <= 0 ? std::string() : std::string(buffer, static_cast<size_t>(n));
}

void RawClient::half_close() {
  ::shutdown(fd_, SHUT_WR);
}

void RawClient::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(fd_);
  fd_ = -1;
}

std::vector<Json> ClientReply::events() const {
  std::vector<Json> events;
  for (size_t at = 0; (at = body.find("data: ", at)) != std::string::npos;) {
    const size_t end = body.find("\n\n", at);
    const std::string text = body.substr(at + 6, end - at - 6);
    if (text != "[DONE]") events.push_back(Json::parse(text, nullptr, false));
    at = end;
  }
  return events;
}

std::string streaming_request(Json body) {
  body["stream"] = true;
  const std::string text = body.dump();
  return "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(text.size()) +
         "\r\n\r\n" + text;
}

void begin_story(RawClient& client, int n_tokens) {
  Json body = user_says("Tell me a story", n_tokens);
  body["ignore_eos"] = true;
  client.send(streaming_request(std::move(body)));
  EXPECT_NE(client.read_until("data: ").find("200 OK"), std::string::npos);
}

ClientReply parse_reply(const std::string& bytes) {
  ClientReply reply;
  const size_t end = bytes.find("\r\n\r\n");
  if (end == std::string::npos || !bytes.starts_with("HTTP/1.1 ")) return reply;
  reply.head = bytes.substr(0, end + 2);
  reply.status = std::atoi(bytes.c_str() + 9);
  const std::string_view rest = std::string_view(bytes).substr(end + 4);
  const bool is_chunked = reply.head.find("transfer-encoding: chunked") != std::string::npos;
  reply.body = is_chunked ? joined_chunks(rest) : std::string(rest);
  return reply;
}

ClientReply ask(uint16_t port, const std::string& method, const std::string& path, const std::string& body,
                const Headers& headers) {
  RawClient client(port);
  std::string bytes = method + " " + path + " HTTP/1.1\r\nConnection: close\r\n";
  const auto is_host = [](const std::string& header) { return header.starts_with("Host:"); };
  if (std::ranges::none_of(headers, is_host)) bytes += "Host: 127.0.0.1\r\n";
  for (const std::string& header : headers) bytes += header + "\r\n";
  if (!body.empty() || method == "POST") bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  client.send(bytes + "\r\n" + body);
  return parse_reply(client.read_all());
}

RunningOptions Running::defaults() {
  RunningOptions options;
  options.engine.model_path = project_file("models/pocket/pocket-q8_0.gguf");
  options.engine.n_threads = 1;
  options.server.port = 0;
  options.service.limits.model = "pocket";
  options.service.limits.ranks_by_likeness = true;  // it has no head for it
  options.service.access.hosts = {"localhost", "127.0.0.1"};
  return options;
}

Running::Running(RunningOptions options) : sink_(std::make_unique<QuietSink>()), log_(*sink_, obs::LogLevel::kInfo) {
  auto engine = engine::open_with_helpers(options.engine, patient_helpers());
  if (!engine) throw std::runtime_error(engine.error().message);
  engine_ = std::move(*engine);
  options.service.limits.take_from(engine_->info());
  options.service.n_places = options.engine.max_running + options.engine.max_queued;
  service_ = std::make_unique<serve::Service>(*engine_, options.service, log_);
  auto server = http::Server::start(options.server, *service_);
  if (!server) throw std::runtime_error(server.error().message);
  server_ = std::move(*server);
}

Running::~Running() = default;

bool Running::becomes_idle() {
  for (int i = 0; i < 200; ++i) {
    const EngineStats stats = engine_->stats();
    if (service_->n_jobs() == 0 && stats.n_running + stats.n_waiting == 0 && stats.kv_blocks_used == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace candor::testing
