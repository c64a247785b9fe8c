#include "apps/bench/http_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "apps/terminal/terminal.h"
#include "candor/event.h"
#include "net/http_client.h"

namespace candor::apps {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

client::HttpRequest request_to(const RemoteServer& server, const std::string& path) {
  return {.url = server.url + path, .token = server.key};
}

// One request on its way.
class Transfer {
 public:
  Transfer(LoadRecord& record, Clock::time_point began) : record_(record), began_(began) {
    record_.submitted_s = now_s();
  }

  void end(const Result<int>& status) {
    record_.end_s = now_s();
    if (!status) {
      record_.error = status.error().message;
    } else if (*status != 200) {
      record_.error = fmt::format("status {}: {:.200}", *status, waiting_);
    }
    record_.is_done = record_.error.empty() && is_whole_;
    if (record_.token_s.empty()) record_.token_s.push_back(record_.end_s);
  }

  void take(std::string_view bytes) {
    waiting_.append(bytes);
    size_t begin = 0;
    for (size_t end = 0; (end = waiting_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      take_line(std::string_view(waiting_).substr(begin, end - begin));
    }
    waiting_.erase(0, begin);
  }

 private:
  void take_line(std::string_view line) {
    constexpr std::string_view kData = "data: ";
    if (!line.starts_with(kData)) return;
    line.remove_prefix(kData.size());
    if (line.starts_with("[DONE]")) is_whole_ = true;
    const Json event = Json::parse(line, nullptr, false);
    if (!event.is_object()) return;
    if (event.contains("error")) record_.error = event["error"].dump();
    if (const auto usage = event.find("usage"); usage != event.end() && usage->is_object()) take_usage(*usage);
    const auto choices = event.find("choices");
    if (choices == event.end() || !choices->is_array() || choices->empty()) return;
    const auto text = choices->front().find("text");
    if (text != choices->front().end() && text->is_string() && *text != "") record_.token_s.push_back(now_s());
  }

  void take_usage(const Json& usage) {
    Usage& kept = record_.summary.usage;
    kept.prompt_tokens = usage.value("prompt_tokens", int64_t{0});
    kept.completion_tokens = usage.value("completion_tokens", int64_t{0});
    const auto details = usage.find("prompt_tokens_details");
    if (details != usage.end() && details->is_object())
      kept.cached_tokens = details->value("cached_tokens", int64_t{0});
  }

  double now_s() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  LoadRecord& record_;
  const Clock::time_point began_;
  std::string waiting_;
  bool is_whole_ = false;
};

class HttpRunner {
 public:
  HttpRunner(const RemoteServer& server, const Load& load, const LoadRunOptions& options)
      : server_(server), load_(load), options_(options) {
    run_.records.resize(load.requests.size());
  }

  LoadRun run() {
    size_t next = 0;
    while (next < load_.requests.size() || n_under_way_ > 0) {
      while (next < load_.requests.size() && is_due(load_.requests[next])) send(next++);
      if (interrupted()) {
        run_.was_interrupted = true;
        break;
      }
      step(next);
    }
    run_.duration_s = now_s();
    return std::move(run_);
  }

 private:
  double now_s() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  bool is_due(const LoadRequest& request) const {
    const bool has_room = options_.max_in_flight == 0 || n_under_way_ < options_.max_in_flight;
    return has_room && request.at_s <= now_s();
  }

  void send(size_t i) {
    const LoadRequest& request = load_.requests[i];
    run_.records[i].n_prompt = request.n_prompt;
    const Json body = {{"model", server_.model},
                       {"prompt", prompt(i)},
                       {"max_tokens", request.n_new},
                       {"temperature", 0},
                       {"ignore_eos", true},
                       {"stream", true},
                       {"stream_options", {{"include_usage", true}}}};
    client::HttpRequest post = request_to(server_, "/v1/completions");
    post.method = "POST";
    post.headers.emplace_back("Content-Type", "application/json");
    post.body = body.dump();
    const auto transfer = std::make_shared<Transfer>(run_.records[i], began_);
    ++n_under_way_;
    client_.start(
        std::move(post),
        [transfer](int, std::string_view bytes) -> Result<void> {
          transfer->take(bytes);
          return {};
        },
        [this, transfer](const Result<int>& status) {
          transfer->end(status);
          --n_under_way_;
        });
  }

  Json prompt(size_t i) const {
    const int32_t n = load_.requests[i].n_prompt;
    const auto index = static_cast<uint32_t>(i);
    if (server_.n_vocab > 0) return make_prompt(n, options_.n_shared, server_.n_vocab, options_.seed, index);
    std::string text = options_.n_shared > 0 ? std::string() : fmt::format("{} ", i);
    for (int32_t word = 0; word + 1 < n; ++word) text += "the ";
    return text;
  }

  // Until something ends, the next request is due, or a while is over.
  void step(size_t next) {
    constexpr double kMostMs = 50;
    double wait_ms = kMostMs;
    if (next < load_.requests.size()) wait_ms = std::clamp(1e3 * (load_.requests[next].at_s - now_s()), 0.0, kMostMs);
    client_.run_until_one_ends(std::chrono::milliseconds(static_cast<int64_t>(wait_ms)));
  }

  const RemoteServer& server_;
  const Load& load_;
  const LoadRunOptions& options_;
  const Clock::time_point began_ = Clock::now();
  LoadRun run_;
  int64_t n_under_way_ = 0;
  client::HttpClient client_;
};

Result<Json> get_json(const RemoteServer& server, const std::string& path) {
  std::string body;
  const auto take = [&body](int, std::string_view bytes) -> Result<void> {
    body += bytes;
    return {};
  };
  const auto status = client::HttpClient().fetch(request_to(server, path), take);
  if (!status) return fail(ErrorKind::kIo, fmt::format("{}{}: {}", server.url, path, status.error().message));
  Json json = Json::parse(body, nullptr, false);
  if (*status == 200 && json.is_object()) return json;
  return fail(ErrorKind::kInvalidInput,
              fmt::format("{}{} answers with status {}: {:.200}", server.url, path, *status, body));
}

}  // namespace

Result<RemoteServer> find_server(const std::string& url, const std::string& key, const std::string& model) {
  RemoteServer server{.url = url, .key = key};
  while (server.url.ends_with('/')) server.url.pop_back();
  if (server.url.ends_with("/v1")) server.url.resize(server.url.size() - 3);
  CANDOR_ASSIGN(const Json list, get_json(server, "/v1/models"));
  const Json models = list.value("data", Json::array());
  const auto is_it = [&model](const Json& one) { return model.empty() || one.value("id", "") == model; };
  const auto found = std::ranges::find_if(models, is_it);
  if (found == models.end()) {
    return fail(ErrorKind::kNotFound, fmt::format("{} has no model \"{}\"", server.url, model));
  }
  server.model = found->value("id", "");
  server.n_ctx = found->value("max_model_len", 0);
  server.n_vocab = found->value("meta", Json::object()).value("n_vocab", 0);
  return server;
}

LoadRun run_http_load(const RemoteServer& server, const Load& load, const LoadRunOptions& options) {
  return HttpRunner(server, load, options).run();
}

}  // namespace candor::apps
