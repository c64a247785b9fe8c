#pragma once
// Computes the embedding vectors of one request: a few inputs at a time go to the engine, and the reply is sent when
// all vectors are there. Events come on the engine thread and are only kept there; workers submit and answer.

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "candor/engine.h"
#include "candor/event.h"
#include "serve/core/api_request.h"
#include "serve/core/job.h"
#include "serve/http/worker_pool.h"

namespace candor::serve {

class EmbeddingJob final : public Work,
                           public http::Continuation,
                           public std::enable_shared_from_this<EmbeddingJob> {
 public:
  static constexpr size_t kAtOnce = 64;  // inputs in the engine

  // All borrowed but the request, the sink and the ticket, which is released when the job is over.
  EmbeddingJob(Engine& engine, http::WorkerPool& workers, EmbeddingRequest request, std::unique_ptr<Sink> sink,
               std::shared_ptr<Ticket> ticket);

  // On a worker: the next inputs go to the engine, or the reply says why not. What throws ends the reply with an error.
  void go_on() noexcept override;
  void cancel() override;
  void abort(const Error& error) override;

 private:
  struct State {
    size_t n_sent = 0;
    size_t n_in_work = 0;
    size_t n_done = 0;
    bool is_over = false;
    bool is_scheduled = true;  // go_on() is running, or will
    bool has_lost_events = false;  // there was no memory for them
    bool goes_again = false;   // something came while it ran
    std::optional<Error> error{};
    std::vector<RequestId> ids{};
  };

  void on_event(size_t index, const TokenEvent& event) noexcept;
  void schedule() noexcept;
  void advance();
  bool take_next(size_t& index);
  void send(size_t index);
  void stop(const std::optional<Error>& error);
  void end_by(const std::exception_ptr& fault) noexcept;
  void settle();
  void send_reply();

  // Constant after construction.
  const std::shared_ptr<Ticket> ticket_;
  Engine& engine_;
  http::WorkerPool& workers_;
  const EmbeddingRequest request_;
  const std::unique_ptr<Sink> sink_;

  // Guarded by mutex_.
  std::mutex mutex_;
  State state_;
  ReadTexts read_;  // [inputs]
  size_t n_cut_ = 0;
};

}  // namespace candor::serve
