// Exceptions, wherever they are thrown: each ends its request or its connection alone, and is counted.

#include <atomic>
#include <condition_variable>
#include <new>
#include <thread>

#include "serve/core/job.h"
#include "serve/socket_client.h"

namespace candor::testing {
namespace {

using http::FaultPlace;

class NoSink final : public obs::LogSink {
 public:
  void write(obs::LogLevel, std::string_view) noexcept override {}
};

// Throws where the path says so.
class FaultyHandler final : public http::Handler {
 public:
  explicit FaultyHandler(const obs::Log& log) : faults_(log) {}

  std::optional<http::HttpResponse> refuse(http::HttpRequest& request) override {
    if (request.path == "/refuse") throw std::runtime_error("refuse");
    if (request.path == "/refuse-memory") throw std::bad_alloc();
    return std::nullopt;
  }
  void handle(std::shared_ptr<http::Exchange> exchange) override {
    if (exchange->request().path == "/handle") throw 5;
    exchange->respond({.body = "{}"});
  }
  void on_reply(const http::HttpRequest& request, const http::ReplyRecord&) override {
    if (request.path == "/reply") throw std::runtime_error("on_reply");
  }
  void on_socket(const std::shared_ptr<http::WebSocket>& socket) override {
    if (socket->request().query == "open") throw std::runtime_error("on_socket");
  }
  void on_message(const std::shared_ptr<http::WebSocket>& socket, http::SocketMessage) override {
    if (socket->request().query == "message") throw std::runtime_error("on_message");
    socket->send("{}");
  }
  void on_socket_closed(const std::shared_ptr<http::WebSocket>& socket) override {
    ++n_closed_;
    if (socket->request().query == "close") throw std::runtime_error("on_socket_closed");
  }

  http::Faults& faults() override { return faults_; }
  http::FairBudget& bytes() override { return bytes_; }
  int n_closed() const { return n_closed_; }

 private:
  http::Faults faults_;
  http::FairBudget bytes_{1 << 20, 0};
  std::atomic<int> n_closed_{0};
};

class faults : public ::testing::Test {
 protected:
  faults() {
    http::ServerOptions options;
    options.port = 0;
    server_ = std::move(*http::Server::start(options, handler_));
  }
  uint64_t count(FaultPlace place) { return handler_.faults().count(place); }
  bool becomes(FaultPlace place, uint64_t n) {
    for (int i = 0; i < 400 && count(place) < n; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return count(place) == n;
  }
  int status(const std::string& path) { return ask(server_->port(), "GET", path).status; }

  NoSink sink_;
  obs::Log log_{sink_, obs::LogLevel::kInfo};
  FaultyHandler handler_{log_};
  std::unique_ptr<http::Server> server_;
};

TEST_F(faults, of_a_handler_end_its_request_alone) {
  EXPECT_EQ(status("/refuse"), 500);
  EXPECT_EQ(status("/refuse-memory"), 503);
  EXPECT_EQ(status("/handle"), 500);
  EXPECT_EQ(count(FaultPlace::kHandler), 3u);
  EXPECT_EQ(status("/reply"), 200);
  EXPECT_TRUE(becomes(FaultPlace::kConnection, 1));
  EXPECT_EQ(status("/"), 200);
}

TEST_F(faults, of_a_web_socket_end_it_alone) {
  uint64_t n = 0;
  for (const char* where : {"open", "message", "close"}) {
    {
      SocketClient client(server_->port(), std::string("/?") + where);
      EXPECT_TRUE(client.is_open) << where;
      client.send({{"id", "a"}});
      if (std::string_view(where) != "close") {
        EXPECT_EQ(client.close_code(), 0) << where;
      }
    }
    ++n;
    for (int i = 0; i < 400 && handler_.n_closed() < static_cast<int>(n); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(handler_.n_closed(), static_cast<int>(n)) << where;
  }
  EXPECT_TRUE(becomes(FaultPlace::kWebSocket, 2));
  EXPECT_TRUE(becomes(FaultPlace::kConnection, 1));
  SocketClient client(server_->port(), "/");
  client.send({{"id", "a"}});
  EXPECT_EQ(client.next_json(), Json::object());
}

TEST_F(faults, of_a_task_end_it_alone) {
  std::mutex mutex;
  std::condition_variable done;
  bool is_done = false;
  http::WorkerPool pool({.n_threads = 1, .max_waiting = 10}, handler_.faults());
  EXPECT_TRUE(pool.try_post({.run = [] { throw std::runtime_error("task"); }}));
  EXPECT_TRUE(pool.try_post({.run = [] { throw 5; }}));
  EXPECT_TRUE(pool.try_post({.run = [&] {
    const std::lock_guard lock(mutex);
    is_done = true;
    done.notify_one();
  }}));
  std::unique_lock lock(mutex);
  EXPECT_TRUE(done.wait_for(lock, kPatience, [&] { return is_done; }));
  EXPECT_EQ(count(FaultPlace::kWorker), 2u);
}

struct NoPlaces final : serve::Ticket {
  void free_places() noexcept override {}
};

// What a job told its client, in one word each.
struct ToldWords {
  std::mutex mutex;
  std::string words;
  void add(const std::string& word) {
    const std::lock_guard lock(mutex);
    words += word + " ";
  }
  std::string all() {
    const std::lock_guard lock(mutex);
    return words;
  }
};

class TellingSink final : public serve::Sink {
 public:
  TellingSink(ToldWords& told, std::string throws_at) : told_(told), throws_at_(std::move(throws_at)) {}
  void open_stream() override { tell("open"); }
  void chunk(const Json&) override { tell("chunk"); }
  void end_stream() override { tell("end"); }
  void whole(const std::string&) override { tell("whole"); }
  void fail(const Error& error) override { tell("fail" + std::to_string(http::words_for(error).status)); }
  void cut() noexcept override { told_.add("cut"); }

 private:
  void tell(const std::string& word) {
    if (word == throws_at_) throw std::bad_alloc();
    told_.add(word);
  }
  ToldWords& told_;
  const std::string throws_at_;
};

class FaultyReply final : public serve::Reply {
 public:
  explicit FaultyReply(std::string throws_at) : throws_at_(std::move(throws_at)) {}
  void open(size_t, const Emit& emit) override {
    meet("open");
    emit(Json::object());
  }
  void on_event(size_t, const TokenEvent&, const Emit&) override { meet("event"); }
  Json whole() override { return meet("whole"), Json::object(); }
  void close(const Emit&) override { meet("close"); }

 private:
  void meet(const std::string& place) const {
    if (place == throws_at_) throw std::runtime_error(place);
  }
  const std::string throws_at_;
};

class job_faults : public faults {
 protected:
  static void SetUpTestSuite() { engine_ = std::move(*Engine::open(Running::defaults().engine)); }
  static void TearDownTestSuite() { engine_.reset(); }

  // What the client is told when that part of the reply, or that call of the sink, throws; the ticket is free then.
  std::string told_when(bool is_stream, const std::string& reply_part, const std::string& sink_part = {}) {
    ToldWords told;
    auto ticket = std::make_shared<NoPlaces>();
    const std::weak_ptr<NoPlaces> ticket_held = ticket;
    {
      http::WorkerPool workers({.n_threads = 1}, handler_.faults());
      serve::ApiRequest request;
      request.stream = is_stream;
      Request one;
      one.prompt = TextPrompt{.text = "Once upon a time"};
      one.sampling.max_tokens = 4;
      request.requests.push_back(one);
      const auto job = std::make_shared<serve::Job>(*engine_, workers, std::make_unique<FaultyReply>(reply_part),
                                                     std::make_unique<TellingSink>(told, sink_part), std::move(ticket));
      job->start(request);
      const auto is_over = [&] {
        const EngineStats stats = engine_->stats();
        return job.use_count() == 1 && stats.n_running + stats.n_waiting == 0;
      };
      for (int i = 0; i < 4000 && !is_over(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(ticket_held.expired()) << reply_part << sink_part;
    return told.all();
  }

  static inline std::unique_ptr<Engine> engine_;
};

TEST_F(job_faults, end_the_reply_with_an_error_wherever_they_are) {
  EXPECT_EQ(told_when(true, ""), "open chunk end ");
  EXPECT_EQ(told_when(true, "open"), "open fail500 ");
  EXPECT_EQ(told_when(true, "event"), "open chunk fail500 ");
  EXPECT_EQ(told_when(true, "close"), "open chunk fail500 ");
  EXPECT_EQ(told_when(false, ""), "whole ");
  EXPECT_EQ(told_when(false, "event"), "fail500 ");
  EXPECT_EQ(told_when(false, "whole"), "fail500 ");
  EXPECT_EQ(told_when(true, "", "open"), "fail503 ");
  EXPECT_EQ(told_when(true, "", "chunk"), "open fail503 ");
  EXPECT_EQ(told_when(true, "", "end"), "open chunk fail503 ");
  EXPECT_EQ(told_when(false, "", "whole"), "fail503 ");
  EXPECT_EQ(told_when(false, "event", "fail500"), "cut ");
  EXPECT_EQ(count(FaultPlace::kReply), 10u);
}

TEST(fault_metrics, are_counted_by_place) {
  Running running;
  const std::string page = ask(running.port(), "GET", "/metrics").body;
  for (const char* place : {"network", "accept", "connection", "websocket", "handler", "worker", "reply"}) {
    EXPECT_NE(page.find("candor_faults_total{place=\"" + std::string(place) + "\"} 0"), std::string::npos) << place;
  }
}

}  // namespace
}  // namespace candor::testing
