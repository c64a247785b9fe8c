#include "serve/core/embedding_job.h"

#include <new>
#include <utility>
#include <vector>

#include "serve/core/reading_fields.h"
#include "serve/http/faults.h"

namespace candor::serve {

int64_t ReadTexts::all_tokens() const {
  int64_t sum = 0;
  for (const int64_t n : n_tokens) sum += n;
  return sum;
}

EmbeddingJob::EmbeddingJob(Engine& engine, http::WorkerPool& workers, EmbeddingRequest request,
                           std::unique_ptr<Sink> sink, std::shared_ptr<Ticket> ticket)
    : ticket_(std::move(ticket)),
      engine_(engine),
      workers_(workers),
      request_(std::move(request)),
      sink_(std::move(sink)),
      read_{.vectors = std::vector<std::vector<float>>(request_.requests.size()),
            .sparse = std::vector<std::vector<WordWeight>>(request_.requests.size()),
            .n_tokens = std::vector<int64_t>(request_.requests.size())} {}

void EmbeddingJob::go_on() noexcept {
  for (bool again = true; again;) {
    try {
      advance();
    } catch (...) {
      end_by(std::current_exception());
    }
    const std::lock_guard lock(mutex_);
    again = std::exchange(state_.goes_again, false);
    state_.is_scheduled = again;
  }
}

void EmbeddingJob::schedule() noexcept {
  {
    const std::lock_guard lock(mutex_);
    state_.goes_again = state_.is_scheduled;
    if (std::exchange(state_.is_scheduled, true)) return;
  }
  workers_.post_first(shared_from_this());
}

void EmbeddingJob::advance() {
  for (size_t index = 0; take_next(index);) send(index);
  settle();
}

bool EmbeddingJob::take_next(size_t& index) {
  const std::lock_guard lock(mutex_);
  const bool is_done = state_.is_over || state_.error || state_.n_sent == read_.vectors.size();
  if (is_done || state_.n_in_work == kAtOnce) return false;
  index = state_.n_sent++;
  ++state_.n_in_work;
  return true;
}

// What did not enter the engine counts as ended.
void EmbeddingJob::send(size_t index) {
  const auto keep = [self = shared_from_this(), index](const TokenEvent& event) { self->on_event(index, event); };
  const auto id = engine_.submit(request_.requests[index], keep);
  const std::lock_guard lock(mutex_);
  if (id) {
    state_.ids.push_back(*id);
    return;
  }
  if (!state_.error) state_.error = with_api_field(id.error(), request_.names);
  --state_.n_in_work;
}

void EmbeddingJob::on_event(size_t index, const TokenEvent& event) noexcept {
  if (!event.summary) return;
  {
    const std::lock_guard lock(mutex_);
    --state_.n_in_work;
    try {
      if (event.error && !state_.error) state_.error = with_api_field(*event.error, request_.names);
      read_.vectors[index] = event.embedding.empty() ? event.prompt_rows : event.embedding;
      read_.sparse[index] = event.sparse;
      shorten(read_.vectors[index], request_.n_dimensions);
      read_.n_tokens[index] = event.summary->usage.prompt_tokens;
      if (event.summary->usage.truncated_tokens > 0) ++n_cut_;
      ++state_.n_done;
    } catch (const std::bad_alloc&) {
      state_.has_lost_events = true;
    }
  }
  schedule();
}

// The reply, once.
void EmbeddingJob::settle() {
  std::optional<Error> error;
  {
    const std::lock_guard lock(mutex_);
    if (state_.is_over) return;
    if (std::exchange(state_.has_lost_events, false)) throw std::bad_alloc();
    const bool is_whole = state_.n_done == read_.vectors.size();
    if (!state_.error && !is_whole) return;
    error = state_.error;
  }
  if (!error) {
    ticket_->free_places();
    send_reply();
  } else {
    sink_->fail(*error);
  }
  stop(std::nullopt);
}

// Texts that were cut are named beside it.
void EmbeddingJob::send_reply() {
  std::vector<std::string> warnings = request_.warnings;
  if (n_cut_ > 0) {
    warnings.push_back(std::to_string(n_cut_) + " of " + std::to_string(read_.vectors.size()) +
                       " texts were longer than the model reads, and cut");
  }
  http::Headers headers;
  add_warnings_header(warnings, headers);
  sink_->add_headers(headers);
  sink_->whole(request_.write(read_));
}

void EmbeddingJob::end_by(const std::exception_ptr& fault) noexcept {
  workers_.faults().note(http::FaultPlace::kReply, fault);
  try {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(state_.is_over, true)) return;
    }
    stop(std::nullopt);
    sink_->fail(http::error_of(fault));
  } catch (...) {
    sink_->cut();
  }
}

void EmbeddingJob::cancel() {
  stop(std::nullopt);
}

void EmbeddingJob::abort(const Error& error) {
  stop(error);
  schedule();
}

// Nothing more is sent to the engine; with an error, settle() says so.
void EmbeddingJob::stop(const std::optional<Error>& error) {
  std::vector<RequestId> ids;
  {
    const std::lock_guard lock(mutex_);
    if (error && !state_.error) state_.error = error;
    if (!error) state_.is_over = true;
    ids.swap(state_.ids);
  }
  for (const RequestId id : ids) {
    if (const auto cancelled = engine_.cancel(id); !cancelled) continue;  // it has ended
  }
}

}  // namespace candor::serve
