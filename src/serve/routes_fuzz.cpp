// JSON bodies of every route that takes one, and messages of the WebSocket, through the service with a small model
// behind it. First byte: which (c chat, p completions, e embeddings, t tokenize, d detokenize, a apply-template, l
// llama.cpp's completion, i infill, r rerank, s responses, m messages, n their tokens counted; o, g, b, h Ollama's
// chat, generate, embed and show; w WebSocket). Every request is answered once, by JSON, never with 500; afterwards
// nothing is in work and no K/V block is held.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "fuzz/fuzz_budget.h"
#include "serve/service.h"
#include "support/tiny_model.h"

namespace {

using candor::http::Exchange;
using candor::http::HttpRequest;
using candor::http::WebSocket;
using candor::serve::Json;

constexpr std::chrono::seconds kPatience{60};
// Of what is answered by work: at most 64 prompts of 2 answers within a context of 64 tokens.
constexpr candor::testing::FuzzBounds kWork{.cpu_s = 20, .more_bytes = int64_t{256} << 20};

constexpr const char* kTemplate =
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}{{ m.role }}: {{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}\n"
    "{% endfor %}{% if enable_thinking is defined %}{{ enable_thinking }}{% endif %}{{ extra | default('') }}";

class QuietSink final : public candor::obs::LogSink {
 public:
  void write(candor::obs::LogLevel, std::string_view) noexcept override {}
};

// Set by a reply, awaited by the thread that asked.
class Bell {
 public:
  void ring() {
    {
      const std::lock_guard lock(mutex_);
      has_rung_ = true;
    }
    rang_.notify_one();
  }
  // A server that says nothing for so long has failed.
  void wait() {
    std::unique_lock lock(mutex_);
    CANDOR_CHECK(rang_.wait_for(lock, kPatience, [this] { return has_rung_; }));
    has_rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable rang_;
  bool has_rung_ = false;  // guarded by mutex_
};

std::unique_ptr<candor::Engine> open_engine() {
  candor::testing::TinyModelOptions model{.dim = 32, .n_layers = 1, .n_heads = 2, .n_kv_heads = 1, .ffn_dim = 32};
  model.vocab = 320;
  model.context_tokens = 64;
  model.extra_keys = {{"tokenizer.chat_template", std::string_view(kTemplate)},
                      {"tokenizer.ggml.fim_pre_token_id", uint64_t{300}},
                      {"tokenizer.ggml.fim_suf_token_id", uint64_t{301}},
                      {"tokenizer.ggml.fim_mid_token_id", uint64_t{302}},
                      {"tokenizer.ggml.fim_sep_token_id", uint64_t{303}}};
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("candor_routes_fuzz_" + std::to_string(getpid()) + ".gguf");
  CANDOR_CHECK(candor::testing::write_model(*candor::testing::make_tiny_model(model), path).has_value());
  candor::EngineOptions options;
  options.model_path = path;
  options.n_threads = 1;
  auto engine = candor::Engine::open(options);
  CANDOR_CHECK(engine.has_value());
  std::filesystem::remove(path);
  return std::move(*engine);
}

candor::serve::ServiceOptions service_options(const candor::Engine& engine) {
  candor::serve::ServiceOptions options;
  options.limits.model = "tiny";
  options.limits.take_from(engine.info());
  options.limits.ranks_by_likeness = true;
  options.limits.max_choices = 2;
  return options;
}

class RouteTarget {
 public:
  RouteTarget()
      : engine_(open_engine()),
        log_(sink_, candor::obs::LogLevel::kOff),
        service_(*engine_, service_options(*engine_), log_) {
    post("/v1/chat/completions",
         R"({"messages":[{"role":"user","content":"a"}],"max_tokens":1,"guided_regex":"a","warm":1})");
  }

  // The status of the reply.
  int post(std::string_view path, std::string_view body) {
    HttpRequest request;
    request.method = "POST";
    request.path = std::string(path);
    if (const auto refusal = service_.refuse(request)) return refusal->status;
    request.body = std::string(body);
    const auto exchange = std::make_shared<Exchange>(std::move(request), kReplyBytes, [this] { bell_.ring(); });
    service_.handle(exchange);
    const int status = read_reply(*exchange);
    exchange->mark_gone();
    return status;
  }
  // True if it was more than refused.
  bool send_message(std::string_view message) {
    const auto socket = std::make_shared<WebSocket>(HttpRequest{}, kReplyBytes, [this] { bell_.ring(); });
    service_.on_socket(socket);
    service_.on_message(socket, {.text = std::string(message)});
    bool has_work = false;
    for (bool is_over = false; !is_over;) {
      bell_.wait();
      for (const std::string& text : socket->take()) {
        const Json reply = Json::parse(text, nullptr, false);
        CANDOR_CHECK(reply.is_object() && reply.contains("event"));
        is_over = is_over || reply["event"] != "chunk";
        has_work = has_work || reply["event"] == "chunk" || reply["event"] == "whole";
      }
      CANDOR_CHECK(!socket->is_cut());
    }
    service_.on_socket_closed(socket);
    socket->mark_gone();
    return has_work;
  }
  void expect_idle() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (service_.n_jobs() > 0 || engine_->stats().n_running + engine_->stats().n_waiting > 0) {
      CANDOR_CHECK(std::chrono::steady_clock::now() < end);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    CANDOR_CHECK(engine_->stats().kv_blocks_used == 0);
  }

 private:
  static constexpr size_t kReplyBytes = 256u << 20;

  int read_reply(Exchange& exchange) {
    int status = 0;
    std::string body;
    bool is_stream = false;
    bool is_lines = false;
    for (bool is_over = false; !is_over;) {
      bell_.wait();
      const Exchange::Output output = exchange.take();
      CANDOR_CHECK(!exchange.is_cut());
      if (output.head) {
        CANDOR_CHECK(status == 0);
        status = output.head->status;
        body = output.head->body;
        is_lines = output.head->content_type == "application/x-ndjson";
      }
      is_stream = is_stream || output.is_stream;
      body += output.bytes;
      is_over = output.is_last;
    }
    CANDOR_CHECK(status != 0 && status != 500);
    if (is_stream) {
      CANDOR_CHECK(body.ends_with(is_lines ? "\n" : "\n\n"));
    } else {
      CANDOR_CHECK(Json::accept(body));
    }
    return status;
  }

  Bell bell_;
  std::unique_ptr<candor::Engine> engine_;
  QuietSink sink_;
  candor::obs::Log log_;
  candor::serve::Service service_;
};

RouteTarget& route_target() {
  static RouteTarget made;
  return made;
}

constexpr std::string_view kRoutes[] = {"c/v1/chat/completions", "p/v1/completions", "e/v1/embeddings", "t/tokenize",
                                        "d/detokenize",          "a/apply-template",  "l/completion",     "i/infill",
                                        "r/rerank",              "m/v1/messages",     "n/v1/messages/count_tokens",
                                        "s/v1/responses",        "o/api/chat",        "g/api/generate",   "b/api/embed",
                                        "h/api/show",          "u/embed",           "v/v2/embed",       "q/score",
                                        "k/predict",           "f/classify",        "x/similarity",     "j/embed_all"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  route_target();
  candor::testing::FuzzBudget budget(size);
  const auto kind = static_cast<char>(data[0]);
  const std::string_view body(reinterpret_cast<const char*>(data + 1), size - 1);
  bool has_work = false;
  if (kind == 'w') {
    has_work = route_target().send_message(body);
  } else {
    const auto route = std::ranges::find(kRoutes, kind, [](std::string_view one) { return one.front(); });
    if (route == std::end(kRoutes)) return 0;
    has_work = route_target().post(route->substr(1), body) == 200;
  }
  route_target().expect_idle();
  if (has_work) budget.allow(kWork);
  return 0;
}
