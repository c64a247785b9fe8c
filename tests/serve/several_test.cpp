// Several models behind one server: loaded when they are asked for, let go when others need the room.

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "serve/client.h"
#include "serve/responses_client.h"

namespace candor::testing {
namespace {

EngineOptions engine_of(const std::string& file) {
  EngineOptions options;
  options.model_path = project_file("models/pocket/" + file);
  options.n_threads = 1;
  options.n_ctx = 256;
  options.costs = StepCosts{.points = {{1, 0.1}, {256, 1}}};
  return options;
}

// Real models by name, with a door before each that a test may hold shut.
class TestLoader final : public serve::ModelLoader {
 public:
  TestLoader() {
    add("pocket", "pocket-q8_0.gguf");
    add("draft", "pocket-draft-q8_0.gguf");
  }
  void add(const std::string& name, const std::string& file) {
    const std::lock_guard lock(mutex_);
    sources_.push_back({.name = name, .path = engine_of(file).model_path, .file_bytes = 1});
    files_[name] = file;
  }
  void remove(const std::string& name) {
    const std::lock_guard lock(mutex_);
    std::erase_if(sources_, [&](const auto& one) { return one.name == name; });
  }
  uint64_t bytes_of(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return Engine::plan(engine_of(files_.at(name)))->total_bytes();
  }
  void shut() { is_shut_ = true; }
  void unlock() { is_shut_ = false; }

  std::vector<serve::ModelSource> list() override {
    const std::lock_guard lock(mutex_);
    return sources_;
  }
  Result<uint64_t> plan(const serve::ModelSource& source) override {
    CANDOR_ASSIGN(const MemoryPlan plan, Engine::plan(options_of(source)));
    return plan.total_bytes();
  }
  Result<serve::OpenedModel> open(const serve::ModelSource& source, const std::atomic<bool>& stop) override {
    ++n_opened;
    while (is_shut_ && !stop) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (stop) return fail(ErrorKind::kCancelled, "stopped");
    auto engine = Engine::open(options_of(source));
    if (!engine) return engine.error();
    return serve::OpenedModel{.engine = std::move(*engine)};
  }

  std::atomic<int> n_opened{0};

 private:
  EngineOptions options_of(const serve::ModelSource& source) {
    const std::lock_guard lock(mutex_);
    return engine_of(files_.at(source.name));
  }

  std::atomic<bool> is_shut_{false};
  std::mutex mutex_;
  std::vector<serve::ModelSource> sources_;
  std::map<std::string, std::string> files_;
};

class Several {
 public:
  explicit Several(serve::ModelsOptions models = {}, std::chrono::milliseconds quiet = std::chrono::seconds(5)) {
    RunningOptions options = Running::defaults();
    options.service.quiet = quiet;
    models.list_age = std::chrono::milliseconds(0);
    service_ = std::make_unique<serve::Service>(loader, models, options.service, log_);
    auto server = http::Server::start(options.server, *service_);
    EXPECT_TRUE(server.has_value());
    server_ = std::move(*server);
  }
  uint16_t port() const { return server_->port(); }
  serve::Service& service() { return *service_; }
  std::string loaded() {
    std::string names;
    for (const auto& model : service_->models().list()) names += model.is_loaded ? model.name + " " : "";
    return names;
  }
  bool becomes(const std::function<bool()>& is_so) {
    for (int i = 0; i < 5000 && !is_so(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return is_so();
  }

  TestLoader loader;

 private:
  class Quiet final : public obs::LogSink {
    void write(obs::LogLevel, std::string_view) noexcept override {}
  };
  Quiet sink_;
  obs::Log log_{sink_, obs::LogLevel::kInfo};
  std::unique_ptr<serve::Service> service_;
  std::unique_ptr<http::Server> server_;
};

Json asked(const std::string& model, const std::string& text, int max_tokens = 6) {
  Json body = user_says(text, max_tokens);
  body["model"] = model;
  return body;
}

std::string content_of(const ClientReply& reply) {
  const Json json = reply.json();
  return json.is_object() && json.contains("choices") ? json["choices"][0]["message"].dump() : reply.body;
}

std::string question(int i) {
  return "Tell me about number " + std::to_string(i % 7);
}

// Both never fit together.
serve::ModelsOptions room_for_one() {
  TestLoader loader;
  return {.memory_bytes = std::max(loader.bytes_of("pocket"), loader.bytes_of("draft")) + 1};
}

TEST(several, two_models_in_turns_within_the_plan_answer_as_servers_of_their_own) {
  std::map<std::string, std::string> alone;
  for (const auto& [name, file] :
       {std::pair("pocket", "pocket-q8_0.gguf"), std::pair("draft", "pocket-draft-q8_0.gguf")}) {
    RunningOptions options = Running::defaults();
    options.engine = engine_of(file);
    options.service.limits.model = name;
    Running running(options);
    for (int i = 0; i < 7; ++i)
      alone[name + question(i)] = content_of(post(running.port(), "/v1/chat/completions", asked(name, question(i))));
  }
  Several several(room_for_one());
  std::atomic<int> next{0}, n_right{0};
  std::atomic<bool> is_done{false}, is_bounded{true};
  std::thread watcher([&] {
    while (!is_done) {
      if (several.loaded() == "pocket draft ") is_bounded = false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      for (int i = next++; i < 200; i = next++) {
        const std::string name = i % 2 == 0 ? "pocket" : "draft";
        const ClientReply reply = post(several.port(), "/v1/chat/completions", asked(name, question(i)));
        if (reply.status == 200 && content_of(reply) == alone[name + question(i)]) ++n_right;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  is_done = true;
  watcher.join();
  EXPECT_EQ(n_right, 200);
  EXPECT_TRUE(is_bounded) << "two models were loaded where one fits";
  EXPECT_GE(several.loader.n_opened, 2);
}

TEST(several, a_model_is_loaded_once_for_all_who_wait) {
  Several several;
  several.loader.shut();
  std::vector<std::future<int>> replies;
  for (int i = 0; i < 8; ++i) {
    replies.push_back(std::async(std::launch::async, [&] {
      return post(several.port(), "/v1/chat/completions", asked("pocket", "hi", 2)).status;
    }));
  }
  ASSERT_TRUE(several.becomes([&] { return several.service().n_jobs() == 8; }));
  EXPECT_EQ(several.loaded(), "");
  several.loader.unlock();
  for (auto& reply : replies) EXPECT_EQ(reply.get(), 200);
  EXPECT_EQ(several.loader.n_opened, 1);
}

TEST(several, while_a_model_is_loaded_every_stream_says_that_it_goes_on) {
  struct Case {
    const char* path;
    Json body;
    const char* sign;
    const char* later;
  };
  const Json messages = user_says("hi")["messages"];
  const Case cases[] = {
      {"/v1/chat/completions", {{"model", "pocket"}, {"messages", messages}, {"max_tokens", 2}, {"stream", true}},
       ": the model is being loaded\n\n", "[DONE]"},
      {"/v1/completions", {{"model", "pocket"}, {"prompt", "hi"}, {"max_tokens", 2}, {"stream", true}},
       ": the model is being loaded\n\n", "[DONE]"},
      {"/completion", {{"model", "pocket"}, {"prompt", "hi"}, {"n_predict", 2}, {"stream", true}},
       ": the model is being loaded\n\n", "\"stop\":true"},
      {"/v1/messages", {{"model", "pocket"}, {"messages", messages}, {"max_tokens", 2}, {"stream", true}},
       "event: ping\ndata: {\"type\":\"ping\"}\n\n", "message_stop"},
      {"/v1/responses", {{"model", "pocket"}, {"input", "hi"}, {"max_output_tokens", 16}, {"stream", true}},
       "event: response.in_progress\ndata: ", "event: response.output_item.done"},
      {"/api/chat", {{"model", "pocket"}, {"messages", messages}, {"options", {{"num_predict", 2}}}},
       "\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":false}\n", "\"done\":true"},
      {"/api/generate", {{"model", "pocket"}, {"prompt", "hi"}, {"options", {{"num_predict", 2}}}},
       "\"response\":\"\",\"done\":false}\n", "\"done\":true"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.path);
    Several several({}, std::chrono::milliseconds(20));
    several.loader.shut();
    RawClient client(several.port());
    const std::string body = one.body.dump();
    client.send("POST " + std::string(one.path) +
                " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + body);
    const std::string before = client.read_until(one.sign);
    EXPECT_NE(before.find("200 OK"), std::string::npos);
    EXPECT_NE(before.find(one.sign), std::string::npos);
    several.loader.unlock();
    EXPECT_NE(client.read_all().find(one.later), std::string::npos);
  }
}

TEST(several, a_stream_that_is_open_already_is_told_why_its_request_is_refused) {
  Several several({}, std::chrono::milliseconds(20));
  several.loader.shut();
  RawClient client(several.port());
  Json body = asked("pocket", "hi");
  body["temperature"] = "hot";
  client.send(streaming_request(body));
  EXPECT_NE(client.read_until("being loaded").find("200 OK"), std::string::npos);
  several.loader.unlock();
  EXPECT_NE(client.read_until("0\r\n\r\n").find("data: {\"error\":{\"message\":\"temperature"), std::string::npos);
}

// Asked while the door is shut; opened when the stream has said `sign`.
std::vector<Json> response_events(Several& several, Json body, std::string_view sign) {
  several.loader.shut();
  RawClient client(several.port());
  body["stream"] = true;
  const std::string text = body.dump();
  client.send("POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: " +
              std::to_string(text.size()) + "\r\n\r\n" + text);
  std::string bytes = client.read_until(sign);
  several.loader.unlock();
  bytes += client.read_all();
  return parse_reply(bytes).events();
}

TEST(several, a_response_whose_model_is_loaded_meanwhile_is_one_stream) {
  Several several({}, std::chrono::milliseconds(20));
  const Json body = {{"model", "pocket"}, {"input", "hi"}, {"max_output_tokens", 4}, {"temperature", 0}};
  const std::vector<Json> events = response_events(several, body, "response.in_progress\ndata");
  const Json last = expect_stream(events);
  for (const Json& event : events) {
    if (!event.contains("response")) continue;
    EXPECT_EQ(event["response"]["id"], last["id"]);
    EXPECT_EQ(event["response"]["created_at"], last["created_at"]);
  }
  EXPECT_GE(std::ranges::count(outline(events), "in_progress"), 2);
  EXPECT_EQ(std::ranges::count(outline(events), "created"), 1);
  EXPECT_EQ(without_ids(last)["output"], without_ids(post_response(several.port(), body).json())["output"]);
}

TEST(several, a_response_that_is_refused_once_its_model_is_there_fails_by_an_event_of_its_own) {
  Several several({}, std::chrono::milliseconds(20));
  const Json body = {{"model", "pocket"}, {"input", "hi"}, {"temperature", "hot"}};
  const std::vector<Json> events = response_events(several, body, "response.in_progress\ndata");
  const Json last = expect_stream(events);
  EXPECT_EQ(last["status"], "failed");
  EXPECT_NE(last["error"]["message"].get<std::string>().find("temperature"), std::string::npos);
}

TEST(several, who_leaves_frees_its_wait) {
  Several several;
  several.loader.shut();
  for (int i = 0; i < 1000; ++i) {
    RawClient client(several.port());
    client.send(streaming_request(asked(i % 2 == 0 ? "pocket" : "draft", "hi")));
    if (i % 100 == 0) {
      ASSERT_TRUE(several.becomes([&] { return several.service().n_jobs() > 0; }));
    }
    client.reset();
  }
  EXPECT_TRUE(several.becomes([&] { return several.service().n_jobs() == 0; }));
  several.loader.unlock();
  EXPECT_EQ(post(several.port(), "/v1/chat/completions", asked("draft", "hi", 2)).status, 200);
}

TEST(several, a_server_that_ends_gives_up_loading) {
  auto several = std::make_unique<Several>();
  several->loader.shut();
  auto reply = std::async(std::launch::async, [port = several->port()] {
    return post(port, "/v1/chat/completions", asked("pocket", "hi"));
  });
  ASSERT_TRUE(several->becomes([&] { return several->loader.n_opened > 0; }));
  several->service().begin_drain();
  EXPECT_EQ(reply.get().status, 503);
  several.reset();
}

TEST(several, names_that_are_not_served_are_refused_in_each_words) {
  Several several;
  const ClientReply chat = post(several.port(), "/v1/chat/completions", asked("nobody", "hi"));
  EXPECT_EQ(chat.status, 404);
  EXPECT_EQ(chat.json()["error"]["code"], "model_not_found");
  EXPECT_NE(chat.body.find("there are draft, pocket"), std::string::npos);
  const ClientReply message = post(several.port(), "/v1/messages", asked("nobody", "hi"));
  EXPECT_EQ(message.json()["error"]["type"], "not_found_error");
  EXPECT_TRUE(post(several.port(), "/api/chat", asked("nobody", "hi")).json()["error"].is_string());
  EXPECT_EQ(several.loader.n_opened, 0);
}

TEST(several, what_can_never_fit_is_refused_and_others_go_on) {
  TestLoader sizes;
  Several several({.memory_bytes = sizes.bytes_of("draft") + 1});
  const ClientReply large = post(several.port(), "/v1/chat/completions", asked("pocket", "hi"));
  EXPECT_EQ(large.status, 400);
  EXPECT_NE(large.body.find("it needs"), std::string::npos);
  EXPECT_EQ(post(several.port(), "/v1/chat/completions", asked("draft", "hi", 2)).status, 200);
}

TEST(several, one_in_use_that_leaves_no_room_is_a_503_and_goes_on) {
  serve::ModelsOptions options = room_for_one();
  options.room_wait = std::chrono::milliseconds(50);
  Several several(options);
  ASSERT_EQ(post(several.port(), "/v1/chat/completions", asked("pocket", "hi", 2)).status, 200);
  const auto held = several.service().models().loaded();
  const ClientReply refused = post(several.port(), "/v1/chat/completions", asked("draft", "hi", 2));
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.head.find("retry-after"), std::string::npos);
  EXPECT_EQ(post(several.port(), "/v1/chat/completions", asked("pocket", "hi", 2)).status, 200);
}

TEST(several, idle_models_go_by_keep_alive_and_by_ollamas_zero) {
  Several several({.keep_alive = -1});
  const Json kept = post(several.port(), "/api/generate", {{"model", "draft"}, {"stream", false}}).json();
  EXPECT_EQ(kept["done_reason"], "load");
  EXPECT_EQ(several.loaded(), "draft ");
  const Json running = ask(several.port(), "GET", "/api/ps").json();
  ASSERT_EQ(running["models"].size(), 1u);
  EXPECT_EQ(running["models"][0]["name"], "draft:latest");
  EXPECT_EQ(running["models"][0]["expires_at"], "2300-01-01T00:00:00Z");
  const Json gone =
      post(several.port(), "/api/generate", {{"model", "draft:latest"}, {"keep_alive", 0}, {"stream", false}}).json();
  EXPECT_EQ(gone["done_reason"], "unload");
  EXPECT_TRUE(several.becomes([&] { return several.loaded().empty(); }));
  EXPECT_EQ(ask(several.port(), "GET", "/api/tags").json()["models"].size(), 2u);
}

TEST(several, lists_say_what_is_loaded_and_metrics_name_the_model) {
  Several several;
  ASSERT_EQ(post(several.port(), "/v1/chat/completions", asked("draft", "hi", 2)).status, 200);
  const Json list = ask(several.port(), "GET", "/v1/models").json();
  ASSERT_EQ(list["data"].size(), 2u);
  EXPECT_EQ(list["data"][0]["id"], "pocket");
  EXPECT_EQ(list["data"][0]["status"], "unloaded");
  EXPECT_EQ(list["data"][1]["status"], "loaded");
  EXPECT_EQ(list["data"][1]["max_model_len"], 256);
  const std::string metrics = ask(several.port(), "GET", "/metrics").body;
  EXPECT_NE(metrics.find("candor_requests_total{model=\"draft\"} 1"), std::string::npos);
}

TEST(several, what_a_get_asks_of_a_model_is_that_of_the_one_that_its_query_names) {
  Several several;
  for (const char* path : {"/props", "/slots", "/tokenizer_info", "/lora-adapters"}) {
    EXPECT_EQ(ask(several.port(), "GET", std::string(path) + "?x=1&model=dr%61ft").status, 200) << path;
    EXPECT_EQ(several.loaded(), "draft ") << path;
    const ClientReply missing = ask(several.port(), "GET", std::string(path) + "?model=nobody");
    EXPECT_EQ(missing.status, 404) << path;
    EXPECT_EQ(missing.json()["error"]["param"], "model") << path;
  }
  EXPECT_EQ(ask(several.port(), "GET", "/props?model=draft").json()["model_alias"], "draft");
  EXPECT_EQ(ask(several.port(), "GET", "/props").json()["model_alias"], "pocket");
}

TEST(several, where_there_is_one_model_a_get_that_names_another_is_refused) {
  Running running;
  EXPECT_EQ(ask(running.port(), "GET", "/props?model=pocket").status, 200);
  const ClientReply missing = ask(running.port(), "GET", "/props?model=nobody");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.json()["error"]["code"], "model_not_found");
}

TEST(several, copies_are_further_names_and_files_are_never_deleted) {
  Several several;
  EXPECT_EQ(post(several.port(), "/api/copy", {{"source", "draft"}, {"destination", "mine"}}).status, 200);
  EXPECT_EQ(post(several.port(), "/api/copy", {{"source", "pocket"}, {"destination", "mine"}}).status, 400);
  EXPECT_EQ(post(several.port(), "/v1/chat/completions", asked("mine", "hi", 2)).status, 200);
  EXPECT_EQ(several.loaded(), "draft ");
  EXPECT_EQ(ask(several.port(), "DELETE", "/api/delete", R"({"model":"mine"})").status, 200);
  EXPECT_EQ(post(several.port(), "/v1/chat/completions", asked("mine", "hi", 2)).status, 404);
  EXPECT_EQ(ask(several.port(), "DELETE", "/api/delete", R"({"model":"draft"})").status, 400);
}

TEST(several, a_model_that_comes_or_goes_is_noticed) {
  Several several;
  EXPECT_EQ(post(several.port(), "/v1/chat/completions", asked("new", "hi", 2)).status, 404);
  several.loader.add("new", "pocket-draft-q8_0.gguf");
  EXPECT_EQ(post(several.port(), "/v1/chat/completions", asked("new", "hi", 2)).status, 200);
  several.loader.remove("new");
  EXPECT_EQ(ask(several.port(), "GET", "/v1/models/new").status, 404);
  EXPECT_TRUE(several.becomes([&] { return several.loaded().empty(); }));
}

}  // namespace
}  // namespace candor::testing
