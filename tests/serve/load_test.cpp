// Many clients at once: nothing is lost, doubled or mixed up, those who leave cost the others nothing, and those for
// whom there is no room are told so. Short forms; scripts/soak.sh runs the long ones, which also print what they
// measured, by these variables: CANDOR_LOAD_SECONDS, CANDOR_LOAD_ABORTS, CANDOR_LOAD_CROWD.

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <span>
#include <thread>

#include "serve/socket_client.h"

namespace candor::testing {
namespace {

using Clock = std::chrono::steady_clock;

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::max(1, std::atoi(text));
}

double ms_since(Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

int64_t n_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

// Requests with the lengths of real ones where the trace is there, cut so that a test of seconds holds many.
std::vector<Json> requests_like_the_trace(size_t n, int max_prompt, int max_new) {
  std::vector<std::pair<int, int>> lengths;
  std::ifstream trace(shared_data() / "traces" / "AzureLLMInferenceTrace_conv.csv");
  std::string line;
  std::getline(trace, line);
  while (lengths.size() < n && std::getline(trace, line)) {
    int n_prompt = 0, n_new = 0;
    const char* numbers = std::strchr(line.c_str(), ',');
    if (numbers != nullptr && std::sscanf(numbers, ",%d,%d", &n_prompt, &n_new) == 2)
      lengths.emplace_back(n_prompt, n_new);
  }
  while (lengths.size() < n) lengths.emplace_back(static_cast<int>(17 * lengths.size() % 300), 24);
  std::vector<Json> requests;
  std::mt19937 random(7);
  for (const auto& [n_prompt, n_new] : lengths) {
    Json prompt = Json::array();
    for (int i = 0; i < std::clamp(n_prompt, 1, max_prompt); ++i) prompt.push_back(random() % 250);
    requests.push_back({{"prompt", std::move(prompt)},
                        {"max_tokens", std::clamp(n_new, 1, max_new)},
                        {"temperature", 1},
                        {"seed", requests.size()},
                        {"ignore_eos", true},
                        {"stream", true}});
  }
  return requests;
}

std::string streamed_text(const ClientReply& reply) {
  std::string text;
  for (const Json& event : reply.events()) {
    for (const Json& choice : event.value("choices", Json::array())) text += choice.value("text", "");
  }
  return text;
}

// "" unless the reply is one whole text.
std::string plain_text(const ClientReply& reply) {
  const Json body = reply.json();
  if (reply.status != 200 || !body.is_object()) return {};
  return body["choices"][0].value("text", "");
}

// The clients of one load, what they should read, and what they did. The texts are those of plain replies to clients
// who ask alone.
class Crowd {
 public:
  Crowd(uint16_t port, std::vector<Json> requests) : port_(port), requests_(std::move(requests)) {
    for (const Json& request : requests_) texts_.push_back(ask_plainly(request));
    EXPECT_EQ(std::ranges::count(texts_, ""), 0);
  }

  void add_streams(int n, Clock::time_point end) {
    for (int i = 0; i < n; ++i) {
      threads_.emplace_back([this, i, end] {
        for (size_t at = static_cast<size_t>(i); Clock::now() < end; at += 7) {
          const size_t which = at % requests_.size();
          const ClientReply reply = post(port_, "/v1/completions", requests_[which]);
          count(reply.status == 200 && reply.body.ends_with("data: [DONE]\n\n"), streamed_text(reply), which);
        }
      });
    }
  }
  void add_plain(int n, Clock::time_point end) {
    for (int i = 0; i < n; ++i) {
      threads_.emplace_back([this, i, end] {
        for (size_t at = static_cast<size_t>(i); Clock::now() < end; at += 3) {
          const size_t which = at % requests_.size();
          count(true, ask_plainly(requests_[which]), which);
        }
      });
    }
  }
  void add_sockets(int n, Clock::time_point end) {
    for (int i = 0; i < n; ++i) {
      threads_.emplace_back([this, i, end] {
        SocketClient client(port_);
        for (size_t at = static_cast<size_t>(i); Clock::now() < end; at += 5) {
          if (!ask_two(client, at % requests_.size())) return count(false, {}, 0);
        }
      });
    }
  }
  void add_health(Clock::time_point end) {
    threads_.emplace_back([this, end] {
      while (Clock::now() < end) {
        const auto began = Clock::now();
        const bool is_well = ask(port_, "GET", "/health").status == 200;
        const std::lock_guard lock(mutex_);
        n_wrong_ += is_well ? 0 : 1;
        ++health_ms_[std::min(health_ms_.size() - 1, static_cast<size_t>(ms_since(began)))];
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    });
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  int n_right() const { return n_right_; }
  int n_wrong() const { return n_wrong_; }
  // Rounded up.
  size_t health_p99_ms() const {
    const int64_t n = std::accumulate(health_ms_.begin(), health_ms_.end(), int64_t{0});
    size_t ms = 0;
    for (int64_t below = health_ms_[0]; below * 100 < n * 99; below += health_ms_[ms]) ++ms;
    return ms + 1;
  }

 private:
  std::string ask_plainly(Json request) const {
    request["stream"] = false;
    return plain_text(post(port_, "/v1/completions", request));
  }
  // Two generations at once on one socket; false when it did not end well.
  bool ask_two(SocketClient& client, size_t first) {
    const size_t which[] = {first, (first + 1) % requests_.size()};
    for (int i = 0; i < 2; ++i) {
      client.send({{"id", std::to_string(i)}, {"method", "completions"}, {"body", requests_[which[i]]}});
    }
    std::string texts[2];
    for (int n_done = 0; n_done < 2;) {
      const Json frame = client.next_json();
      if (!frame.is_object() || frame["event"] == "error") return false;
      const auto i = static_cast<size_t>(std::stoi(frame["id"].get<std::string>()));
      if (frame["event"] == "chunk") texts[i] += frame["data"]["choices"][0].value("text", "");
      if (frame["event"] == "done") ++n_done;
    }
    for (size_t i = 0; i < 2; ++i) count(true, texts[i], which[i]);
    return true;
  }
  void count(bool is_whole, const std::string& text, size_t which) {
    const bool is_right = is_whole && text == texts_[which];
    const std::lock_guard lock(mutex_);
    ++(is_right ? n_right_ : n_wrong_);
  }

  const uint16_t port_;
  const std::vector<Json> requests_;
  std::vector<std::string> texts_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  int n_right_ = 0;  // these guarded by mutex_
  int n_wrong_ = 0;
  std::array<int64_t, 1000> health_ms_{};  // replies that took so many
};

TEST(load, streamed_plain_and_socket_texts_are_the_same_under_load) {
  const int n_seconds = from_environment("CANDOR_LOAD_SECONDS", 1);
  const bool is_long = n_seconds > 60;
  Running running;
  Crowd crowd(running.port(), requests_like_the_trace(24, is_long ? 240 : 96, is_long ? 256 : 24));
  const auto end = Clock::now() + std::chrono::seconds(n_seconds);
  crowd.add_streams(is_long ? 64 : 12, end);
  crowd.add_sockets(is_long ? 16 : 4, end);
  crowd.add_plain(is_long ? 8 : 2, end);
  crowd.add_health(end);
  int64_t early_bytes = 0;
  if (is_long) {
    std::this_thread::sleep_for(std::chrono::seconds(60));
    early_bytes = trimmed_resident_bytes();
  }
  crowd.join();
  EXPECT_EQ(crowd.n_wrong(), 0);
  EXPECT_GT(crowd.n_right(), 12);
  EXPECT_TRUE(running.becomes_idle());
  if (!is_long) return;
  const double growth = static_cast<double>(trimmed_resident_bytes()) / static_cast<double>(early_bytes);
  std::printf("%d replies right, /health p99 below %zu ms, memory %.3f x that after a minute\n", crowd.n_right(),
              crowd.health_p99_ms(), growth);
  EXPECT_LE(growth, 1.02);
}

// One client that leaves at a stage that its number decides.
void ask_and_leave(uint16_t port, int number) {
  Json body = user_says("Tell me a story" + std::to_string(number % 3), 300);
  body["ignore_eos"] = true;
  const std::string bytes = streaming_request(std::move(body));
  RawClient client(port);
  const int stage = number % 5;
  client.send(stage == 0 ? bytes.substr(0, bytes.size() / 2) : bytes);
  if (stage == 2) client.read_until("data: ");
  for (int i = 0; stage >= 3 && i < 1 + number % 4; ++i) client.read_some();
  if (number % 3 == 0) client.reset();
  if (number % 3 == 1) client.half_close();
}

TEST(load, clients_that_leave_at_any_stage_free_everything_and_disturb_nobody) {
  const int n_aborts = from_environment("CANDOR_LOAD_ABORTS", 60);
  Running running;
  Crowd steady(running.port(), requests_like_the_trace(8, 64, 24));
  std::atomic<int> next{0};
  std::vector<std::thread> leavers;
  for (int i = 0; i < 4; ++i) {
    leavers.emplace_back([&] {
      for (int number = next++; number < n_aborts; number = next++) ask_and_leave(running.port(), number);
    });
  }
  steady.add_streams(n_aborts > 1000 ? 8 : 3, Clock::now() + std::chrono::seconds(n_aborts > 1000 ? 20 : 1));
  for (std::thread& leaver : leavers) leaver.join();
  steady.join();
  EXPECT_EQ(steady.n_wrong(), 0);
  const auto began = Clock::now();
  EXPECT_TRUE(running.becomes_idle());
  if (n_aborts > 1000) std::printf("%d left, all free after %.0f ms\n", n_aborts, ms_since(began));
}

struct TimedReply {
  ClientReply reply;
  double ms = 0;  // from the request's last byte to the reply's first
};

// Sends the bytes over so many connections at once, from one thread, and reads until each is closed.
std::vector<TimedReply> ask_at_once(uint16_t port, const std::string& bytes, size_t n) {
  std::vector<std::unique_ptr<RawClient>> clients;
  for (size_t i = 0; i < n; ++i) clients.push_back(std::make_unique<RawClient>(port));
  std::vector<TimedReply> replies(n);
  std::vector<Clock::time_point> sent(n);
  std::vector<std::string> read(n);
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  for (size_t i = 0; i < n; ++i) {
    clients[i]->send(bytes);
    sent[i] = Clock::now();
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, clients[i]->fd(), &event);
  }
  std::array<epoll_event, 64> events{};
  for (size_t n_open = n; n_open > 0;) {
    const int n_ready = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 60'000);
    if (n_ready <= 0) break;
    for (const epoll_event& event : std::span(events).first(static_cast<size_t>(n_ready))) {
      const size_t i = event.data.u64;
      if (read[i].empty()) replies[i].ms = ms_since(sent[i]);
      const std::string more = clients[i]->read_some();
      read[i] += more;
      if (!more.empty()) continue;
      ::epoll_ctl(epoll, EPOLL_CTL_DEL, clients[i]->fd(), nullptr);
      --n_open;
    }
  }
  ::close(epoll);
  for (size_t i = 0; i < n; ++i) replies[i].reply = parse_reply(read[i]);
  return replies;
}

TEST(load, those_for_whom_there_is_no_room_are_told_at_once) {
  const int n_clients = from_environment("CANDOR_LOAD_CROWD", 150);
  RunningOptions options = Running::defaults();
  options.engine.max_running = 4;
  options.engine.max_queued = 12;
  options.service.max_waiting = 2048;
  options.service.max_per_key = 2048;
  Running running(options);
  std::map<int, int> statuses;
  std::vector<double> refused_ms;
  const std::string text = user_says("Tell me a story", 60).dump();
  const std::string bytes =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: " +
      std::to_string(text.size()) + "\r\n\r\n" + text;
  ask_at_once(running.port(), bytes, 64);  // helpers are started when they are first needed, and stay
  EXPECT_TRUE(running.becomes_idle());
  const int64_t n_before = n_descriptors();
  for (const TimedReply& timed : ask_at_once(running.port(), bytes, static_cast<size_t>(n_clients))) {
    ++statuses[timed.reply.status];
    if (timed.reply.status == 200) continue;
    refused_ms.push_back(timed.ms);
    EXPECT_NE(timed.reply.head.find("retry-after"), std::string::npos) << timed.reply.status << timed.reply.body;
  }
  EXPECT_GE(statuses[200], 16);
  EXPECT_GT(statuses[429] + statuses[503], 0);
  EXPECT_EQ(statuses[200] + statuses[429] + statuses[503], n_clients);
  EXPECT_TRUE(running.becomes_idle());
  for (int i = 0; i < 100 && n_descriptors() > n_before; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LE(n_descriptors(), n_before);
  if (n_clients < 1000) return;
  std::printf("%d answered, %d refused, those after %.1f ms (median) and %.1f ms (p99)\n", statuses[200],
              statuses[429] + statuses[503], percentile(refused_ms, 0.5), percentile(refused_ms, 0.99));
}

TEST(load, as_many_as_there_is_room_for_are_let_in_at_once) {
  RunningOptions options = Running::defaults();
  options.engine.max_running = 4;
  options.engine.max_queued = 12;
  Running running(options);
  const std::string text = user_says("Tell me a story", 60).dump();
  const std::string bytes =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: " +
      std::to_string(text.size()) + "\r\n\r\n" + text;
  for (const TimedReply& timed : ask_at_once(running.port(), bytes, 16)) EXPECT_EQ(timed.reply.status, 200);
}

// The bytes of a completion request; its body has `n_bytes`.
std::string completion_head(size_t n_bytes) {
  return "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(n_bytes) + "\r\n\r\n";
}

TEST(load, without_room_a_request_is_refused_before_its_body_is_read) {
  RunningOptions options = Running::defaults();
  options.engine.max_running = 1;
  options.engine.max_queued = 0;
  Running running(options);
  RawClient inside(running.port());
  begin_story(inside, 400);

  RawClient without_body(running.port());
  without_body.send(completion_head(1'000'000));
  const ClientReply refused = parse_reply(without_body.read_all());
  EXPECT_EQ(refused.status, 429) << refused.body;
  EXPECT_NE(refused.head.find("retry-after"), std::string::npos);
  EXPECT_NE(refused.head.find("connection: close"), std::string::npos);

  // Where the body has come with the head, the connection stays in step.
  const std::string text = R"({"prompt":"a"})";
  RawClient patient(running.port());
  patient.send(completion_head(text.size()) + text);
  const std::string first = patient.read_until("}}");
  EXPECT_EQ(parse_reply(first).status, 429) << first;
  patient.send("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(parse_reply(patient.read_all()).status, 200);
}

}  // namespace
}  // namespace candor::testing
