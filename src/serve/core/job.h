#pragma once
// One generation from its start to the end of its reply: its requests in the engine, the reply, and where the reply
// goes. Events come on the engine thread and are only queued there; one worker at a time makes JSON of them.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "candor/engine.h"
#include "candor/event.h"
#include "candor/info.h"
#include "serve/core/api_request.h"
#include "serve/core/json_body.h"
#include "serve/core/reply.h"
#include "serve/http/worker_pool.h"

namespace candor::serve {

// Where a reply goes: an HTTP exchange or one id of a WebSocket. Calls come from one thread at a time.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void open_stream() = 0;
  virtual void chunk(const Json& json) = 0;
  virtual void end_stream() = 0;
  virtual void whole(const std::string& json) = 0;
  // Of a reply that has headers, before it begins.
  virtual void add_headers(const http::Headers&) {}
  // Before or inside the reply; ends it.
  virtual void fail(const Error& error) = 0;
  // Ends it without a word, where there is no memory for one.
  virtual void cut() noexcept = 0;
};

// What a reply holds of the server until it is over; then it is let go, and nothing of the reply is left in the engine.
class Ticket {
 public:
  virtual ~Ticket() = default;
  // The reply ends: another may take its places before the client has read that.
  virtual void free_places() noexcept = 0;
};

// What can be ended from outside.
class Work {
 public:
  virtual ~Work() = default;
  // Any thread: the client left. Nothing more is sent.
  virtual void cancel() = 0;
  // Any thread: the reply ends with this error.
  virtual void abort(const Error& error) = 0;
  // Any thread, every now and then: an open stream that has been silent for so long says that it goes on.
  virtual void tick(std::chrono::milliseconds /*quiet*/) {}
};

class Job final : public Work, public http::Continuation, public std::enable_shared_from_this<Job> {
 public:
  // All borrowed but the sink, the reply and the ticket.
  Job(Engine& engine, http::WorkerPool& workers, std::unique_ptr<Reply> reply, std::unique_ptr<Sink> sink,
      std::shared_ptr<Ticket> ticket)
      : ticket_(std::move(ticket)),
        engine_(engine),
        workers_(workers),
        reply_(std::move(reply)),
        sink_(std::move(sink)) {}

  // On a worker: submits everything, or answers why not.
  void start(const ApiRequest& request) noexcept;
  void cancel() override;
  void abort(const Error& error) override;
  void tick(std::chrono::milliseconds quiet) override;
  // Makes the reply of what has come. What throws ends the reply with an error.
  void go_on() noexcept override;

 private:
  struct Arrived {
    size_t choice = 0;
    TokenEvent event{};
  };

  bool begin(const ApiRequest& request);
  bool submit(const ApiRequest& request, size_t prompt);
  void push(size_t prompt, const TokenEvent& event) noexcept;
  void schedule() noexcept;
  void drain();
  void take(const Arrived& arrived);
  void emit(const Json& chunk);
  void add_receipts(Json& json) const;
  void say_waiting();
  PromptProgress prompt_progress();
  void finish(std::vector<Json> held);
  void fail(const Error& error);
  void end_by(const std::exception_ptr& fault) noexcept;
  void cancel_requests() noexcept;

  // Constant after start().
  const std::shared_ptr<Ticket> ticket_;
  Engine& engine_;
  http::WorkerPool& workers_;
  bool is_stream_ = false;
  size_t n_per_prompt_ = 1;
  FieldNames names_;

  // Of the worker that drains, or starts.
  std::unique_ptr<Reply> reply_;
  std::unique_ptr<Sink> sink_;
  size_t n_open_ = 0;  // requests without their last event
  bool has_receipts_ = false;                             // they were asked for
  std::vector<std::shared_ptr<const Receipt>> receipts_;  // of the requests, in order
  bool has_enough_ = false;  // the reply said so
  bool is_over_ = false;
  bool is_open_ = false;  // a stream whose head is out
  int64_t opened_ns_ = 0;

  std::atomic<int64_t> last_chunk_ns_{0};  // 0: none
  std::atomic<bool> is_cancelled_{false};
  // Guarded by mutex_.
  std::mutex mutex_;
  std::vector<Arrived> arrived_;
  std::vector<RequestId> ids_;
  std::optional<Error> abort_error_;
  bool must_tell_ = false;        // that the work goes on
  bool has_lost_events_ = false;  // there was no memory for them
  bool is_scheduled_ = true;      // events wait until start() is through
};

}  // namespace candor::serve
