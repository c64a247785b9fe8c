#include "apps/bench/http_load.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "apps/terminal/terminal.h"
#include "candor/event.h"

namespace candor::apps {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct EasyDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct MultiDeleter {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, EasyDeleter>;
using HeaderList = std::unique_ptr<curl_slist, ListDeleter>;

HeaderList headers_for(const RemoteServer& server) {
  HeaderList list(curl_slist_append(nullptr, "Content-Type: application/json"));
  const std::string key = "Authorization: Bearer " + server.key;
  if (!server.key.empty()) list.reset(curl_slist_append(list.release(), key.c_str()));
  return list;
}

size_t append_body(char* data, size_t, size_t n_bytes, void* target) {
  static_cast<std::string*>(target)->append(data, n_bytes);
  return n_bytes;
}

// One request on its way.
class Transfer {
 public:
  Transfer(const RemoteServer& server, const Json& body, LoadRecord& record, Clock::time_point began)
      : record_(record), began_(began), body_(body.dump()), headers_(headers_for(server)), easy_(curl_easy_init()) {
    const std::string url = server.url + "/v1/completions";
    curl_easy_setopt(easy_.get(), CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy_.get(), CURLOPT_HTTPHEADER, headers_.get());
    curl_easy_setopt(easy_.get(), CURLOPT_POSTFIELDS, body_.c_str());
    curl_easy_setopt(easy_.get(), CURLOPT_WRITEFUNCTION, &Transfer::on_bytes);
    curl_easy_setopt(easy_.get(), CURLOPT_WRITEDATA, this);
    record_.submitted_s = now_s();
  }

  CURL* handle() const { return easy_.get(); }

  void end(CURLcode code) {
    long status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    record_.end_s = now_s();
    if (code != CURLE_OK) {
      record_.error = curl_easy_strerror(code);
    } else if (status != 200) {
      record_.error = fmt::format("status {}: {:.200}", status, waiting_);
    }
    record_.is_done = record_.error.empty() && is_whole_;
    if (record_.token_s.empty()) record_.token_s.push_back(record_.end_s);
  }

 private:
  static size_t on_bytes(char* data, size_t, size_t n_bytes, void* self) {
    static_cast<Transfer*>(self)->take(std::string_view(data, n_bytes));
    return n_bytes;
  }

  void take(std::string_view bytes) {
    waiting_.append(bytes);
    size_t begin = 0;
    for (size_t end = 0; (end = waiting_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      take_line(std::string_view(waiting_).substr(begin, end - begin));
    }
    waiting_.erase(0, begin);
  }

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
  const std::string body_;
  const HeaderList headers_;
  const Easy easy_;
  std::string waiting_;
  bool is_whole_ = false;
};

class HttpRunner {
 public:
  HttpRunner(const RemoteServer& server, const Load& load, const LoadRunOptions& options)
      : server_(server), load_(load), options_(options), multi_(curl_multi_init()) {
    run_.records.resize(load.requests.size());
  }

  LoadRun run() {
    size_t next = 0;
    while (next < load_.requests.size() || !transfers_.empty()) {
      while (next < load_.requests.size() && is_due(load_.requests[next])) send(next++);
      if (interrupted()) {
        run_.was_interrupted = true;
        break;
      }
      step(next);
    }
    run_.duration_s = now_s();
    for (const Transfer& transfer : transfers_) curl_multi_remove_handle(multi_.get(), transfer.handle());
    return std::move(run_);
  }

 private:
  double now_s() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  bool is_due(const LoadRequest& request) const {
    const bool has_room =
        options_.max_in_flight == 0 || static_cast<int64_t>(transfers_.size()) < options_.max_in_flight;
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
    Transfer& transfer = transfers_.emplace_back(server_, body, run_.records[i], began_);
    curl_easy_setopt(transfer.handle(), CURLOPT_PRIVATE, &transfer);
    curl_multi_add_handle(multi_.get(), transfer.handle());
  }

  Json prompt(size_t i) const {
    const int32_t n = load_.requests[i].n_prompt;
    const auto index = static_cast<uint32_t>(i);
    if (server_.n_vocab > 0) return make_prompt(n, options_.n_shared, server_.n_vocab, options_.seed, index);
    std::string text = options_.n_shared > 0 ? std::string() : fmt::format("{} ", i);
    for (int32_t word = 0; word + 1 < n; ++word) text += "the ";
    return text;
  }

  void step(size_t next) {
    constexpr double kMostMs = 50;
    int n_running = 0;
    curl_multi_perform(multi_.get(), &n_running);
    int n_left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &n_left)) {
      if (message->msg == CURLMSG_DONE) end(message->easy_handle, message->data.result);
    }
    double wait_ms = kMostMs;
    if (next < load_.requests.size()) wait_ms = std::clamp(1e3 * (load_.requests[next].at_s - now_s()), 0.0, kMostMs);
    curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(wait_ms), nullptr);
  }

  void end(CURL* handle, CURLcode code) {
    curl_multi_remove_handle(multi_.get(), handle);
    const auto it = std::ranges::find(transfers_, handle, &Transfer::handle);
    it->end(code);
    transfers_.erase(it);
  }

  const RemoteServer& server_;
  const Load& load_;
  const LoadRunOptions& options_;
  const Clock::time_point began_ = Clock::now();
  std::unique_ptr<CURLM, MultiDeleter> multi_;
  std::list<Transfer> transfers_;
  LoadRun run_;
};

Result<Json> get_json(const RemoteServer& server, const std::string& path) {
  const std::string url = server.url + path;
  const Easy easy(curl_easy_init());
  const HeaderList headers = headers_for(server);
  std::string body;
  curl_easy_setopt(easy.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &append_body);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &body);
  const CURLcode code = curl_easy_perform(easy.get());
  if (code != CURLE_OK) return fail(ErrorKind::kIo, fmt::format("{}: {}", url, curl_easy_strerror(code)));
  long status = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  Json json = Json::parse(body, nullptr, false);
  if (status == 200 && json.is_object()) return json;
  return fail(ErrorKind::kInvalidInput, fmt::format("{} answers with status {}: {:.200}", url, status, body));
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
