#include "serve/batch/batch.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "serve/batch/batch_line.h"
#include "serve/batch/line_reader.h"
#include "serve/core/json_body.h"
#include "serve/http/exchange.h"

namespace candor::serve {
namespace {

constexpr size_t kMaxLineBytes = size_t{16} << 20;  // as a server's body
constexpr size_t kMaxReplyBytes = size_t{256} << 20;
constexpr size_t kMaxShownFaults = 5;
constexpr std::chrono::milliseconds kPoll{100};
// Of answers that wait for an earlier one, for each request at once.
constexpr size_t kWaitingForEach = 64;

// Which requests have something to take, told by the handler's threads.
class Bell {
 public:
  void ring(size_t line) {
    {
      const std::lock_guard lock(mutex_);
      rung_.push_back(line);
    }
    has_rung_.notify_one();
  }
  std::vector<size_t> wait() {
    std::unique_lock lock(mutex_);
    has_rung_.wait_for(lock, kPoll, [this] { return !rung_.empty(); });
    return std::exchange(rung_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable has_rung_;
  std::vector<size_t> rung_;  // guarded by mutex_
};

struct Asked {
  BatchLine line;
  std::shared_ptr<http::Exchange> exchange;  // nullptr: waits to be asked again
  int status = 0;
  std::string reply{};
  std::string warnings{};
};

// Requests in work, and answers that wait for an earlier one's.
class BatchWork {
 public:
  BatchWork(const BatchOptions& options, BatchOutput& output, BatchCounts& counts, http::Handler& handler)
      : options_(options), output_(output), counts_(counts), handler_(handler), bell_(std::make_shared<Bell>()) {}
  ~BatchWork() {
    for (auto& [number, asked] : asked_) {
      if (asked.exchange) asked.exchange->mark_gone();
    }
  }
  BatchWork(const BatchWork&) = delete;
  BatchWork& operator=(const BatchWork&) = delete;

  Result<void> run(LineReader lines, const std::function<bool(const BatchCounts&)>& goes_on) {
    bool is_read = false;
    while (goes_on(counts_)) {
      while (!is_read && has_room()) {
        CANDOR_ASSIGN(const std::optional<FileLine> line, lines.next());
        is_read = !line;
        if (line) CANDOR_TRY(take(*line));
      }
      if (is_read && asked_.empty()) return output_.flush();
      for (const size_t number : bell_->wait()) CANDOR_TRY(read_reply(number));
      ask_again();
    }
    return output_.flush();
  }

 private:
  bool has_room() const {
    const auto n_at_once = static_cast<size_t>(options_.n_at_once);
    return asked_.size() < n_at_once && ended_.size() < kWaitingForEach * n_at_once;
  }

  Result<void> take(const FileLine& line) {
    if (line.text.find_first_not_of(" \t\r") == std::string::npos) return {};
    auto parsed = parse_batch_line(line.text, line.number, options_.seed, options_.model);
    if (!parsed)
      return fail(ErrorKind::kInvalidInput, fmt::format("{}: line {} has changed since the batch began: {}",
                                                        options_.input.string(), line.number, parsed.error().message));
    if (output_.answered().contains(parsed->custom_id)) return {};
    const auto at = asked_.emplace(line.number, Asked{.line = std::move(*parsed), .exchange = nullptr}).first;
    ask(line.number, at->second);
    return {};
  }

  void ask(size_t number, Asked& asked) {
    http::HttpRequest request;
    request.method = "POST";
    request.path = asked.line.url;
    request.headers = {{"content-type", "application/json"}, {"host", "localhost"}};
    request.id = fmt::format("batch_req_{:016x}", asked.line.digest);
    request.key = options_.key;
    asked.reply.clear();
    request.body = asked.line.body;
    asked.exchange = std::make_shared<http::Exchange>(std::move(request), kMaxReplyBytes,
                                                      [bell = bell_, number] { bell->ring(number); });
    handler_.handle(asked.exchange);
  }

  Result<void> read_reply(size_t number) {
    const auto at = asked_.find(number);
    if (at == asked_.end() || !at->second.exchange) return {};
    Asked& asked = at->second;
    http::Exchange::Output output = asked.exchange->take();
    if (output.head) {
      asked.status = output.head->status;
      asked.reply += output.head->body;
      for (const auto& [name, value] : output.head->headers) {
        if (name == "x-candor-warnings") asked.warnings = value;
      }
    }
    asked.reply += output.bytes;
    const bool is_cut = asked.exchange->is_cut();
    if (!output.is_last && !is_cut) return {};
    asked.exchange->mark_gone();
    if (is_cut) {
      asked.status = 500;
      asked.reply = R"({"error":{"message":"the reply was cut off","type":"server_error"}})";
    }
    constexpr int kTooMany = 429, kBusy = 503;
    if (asked.status == kTooMany || asked.status == kBusy) {
      asked.exchange = nullptr;
      return {};
    }
    Asked ended = std::move(asked);
    asked_.erase(at);
    return end(number, std::move(ended));
  }

  // Those that found the engine full: the first of them, so that others end meanwhile.
  void ask_again() {
    for (auto& [number, asked] : asked_) {
      if (!asked.exchange) return ask(number, asked);
    }
  }

  Result<void> end(size_t number, Asked asked) {
    count(asked);
    if (!options_.in_order) return write(asked);
    ended_.emplace(number, std::move(asked));
    const size_t first = asked_.empty() ? SIZE_MAX : asked_.begin()->first;
    while (!ended_.empty() && ended_.begin()->first < first) {
      CANDOR_TRY(write(ended_.begin()->second));
      ended_.erase(ended_.begin());
    }
    return {};
  }

  void count(const Asked& asked) {
    ++counts_.n_done;
    counts_.n_failed += asked.status != 200;
    const auto json = read_written(asked.reply);
    if (!json || !json->is_object() || !json->contains("usage") || !(*json)["usage"].is_object()) return;
    const Json& usage = (*json)["usage"];
    for (const char* key : {"prompt_tokens", "input_tokens"}) counts_.n_prompt_tokens += usage.value(key, uint64_t{0});
    for (const char* key : {"completion_tokens", "output_tokens"})
      counts_.n_answer_tokens += usage.value(key, uint64_t{0});
  }

  Result<void> write(const Asked& asked) {
    return output_.append({.custom_id = asked.line.custom_id,
                           .digest = asked.line.digest,
                           .status = asked.status,
                           .body = asked.reply,
                           .warnings = asked.warnings});
  }

  const BatchOptions& options_;
  BatchOutput& output_;
  BatchCounts& counts_;
  http::Handler& handler_;
  const std::shared_ptr<Bell> bell_;  // an exchange may ring it later than this lives
  std::map<size_t, Asked> asked_;     // by line
  std::map<size_t, Asked> ended_;     // in_order: that wait for an earlier line
};

// Several faults of an input, each with its line.
class Faults {
 public:
  void add(const std::filesystem::path& path, size_t line, const std::string& what) {
    if (n_++ < kMaxShownFaults)
      text_ += fmt::format("{}{}: line {}: {}", n_ == 1 ? "" : "\n", path.string(), line, what);
  }
  Result<void> result() const {
    if (n_ == 0) return {};
    const std::string more = n_ > kMaxShownFaults ? fmt::format("\nand {} lines more", n_ - kMaxShownFaults) : "";
    return fail(ErrorKind::kInvalidInput, text_ + more + "\nnothing was asked: mend the input and start again");
  }

 private:
  size_t n_ = 0;
  std::string text_;
};

}  // namespace

Result<Batch> Batch::open(const BatchOptions& options) {
  std::error_code ignored;
  if (std::filesystem::equivalent(options.input, options.output, ignored))
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{} is the input and the output: name another file", options.output.string()));
  CANDOR_TRY(LineReader::open(options.input, kMaxLineBytes));  // before an output is made
  CANDOR_ASSIGN(BatchOutput output, BatchOutput::open(options.output, options.retries_errors));
  Batch batch(options, std::move(output));
  CANDOR_TRY(batch.check_input());
  return batch;
}

Result<void> Batch::check_input() {
  CANDOR_ASSIGN(LineReader lines, LineReader::open(options_.input, kMaxLineBytes));
  std::unordered_map<std::string, size_t> line_of;
  Faults faults;
  while (true) {
    CANDOR_ASSIGN(const std::optional<FileLine> line, lines.next());
    if (!line) break;
    if (line->text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto parsed = parse_batch_line(line->text, line->number, options_.seed, options_.model);
    if (!parsed) {
      faults.add(options_.input, line->number, parsed.error().message);
      continue;
    }
    if (!options_.url.empty() && parsed->url != options_.url)
      faults.add(options_.input, line->number, fmt::format("it asks {}, the batch {}", parsed->url, options_.url));
    const auto [at, is_new] = line_of.emplace(parsed->custom_id, line->number);
    if (!is_new)
      faults.add(options_.input, line->number,
                 fmt::format("custom_id {} is line {}'s, too", to_text(Json(parsed->custom_id)), at->second));
    const auto answered = output_.answered().find(parsed->custom_id);
    if (answered == output_.answered().end()) continue;
    ++counts_.n_before;
    if (answered->second != parsed->digest)
      faults.add(
          options_.input, line->number,
          fmt::format("{} answers another request of that custom_id, or another model's: name another output, or, "
                      "where that answer is an error, give --retry-errors",
                      options_.output.string()));
  }
  counts_.n_lines = line_of.size();
  counts_.n_failed_before = output_.n_errors();
  CANDOR_TRY(faults.result());
  for (const auto& [custom_id, digest] : output_.answered()) {
    if (!line_of.contains(custom_id))
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("{} answers {}, which {} does not ask: name another output", options_.output.string(),
                              to_text(Json(custom_id)), options_.input.string()));
  }
  return {};
}

Result<void> Batch::run(http::Handler& handler, const std::function<bool(const BatchCounts&)>& goes_on) {
  CANDOR_ASSIGN(LineReader lines, LineReader::open(options_.input, kMaxLineBytes));
  return BatchWork(options_, output_, counts_, handler).run(std::move(lines), goes_on);
}

}  // namespace candor::serve
