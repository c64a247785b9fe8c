#include "serve/openai/socket_routes.h"

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "serve/core/api.h"
#include "serve/core/fields.h"
#include "serve/core/http_sink.h"
#include "serve/core/job.h"
#include "serve/http/faults.h"
#include "serve/http/message.h"
#include "serve/openai/api.h"

namespace candor::serve::openai {
namespace {

constexpr size_t kMaxIdBytes = 256;
constexpr size_t kMaxJobs = 256;  // of one socket
constexpr size_t kLargeMessageBytes = 256 * 1024;

// The generations of one socket, by id. An id may be used again once its generation has ended or was cancelled: a
// number tells one from the next.
struct SocketJobs {
  struct Entry {
    uint64_t number = 0;
    std::shared_ptr<Job> job{};
  };

  std::mutex mutex;
  // Guarded by mutex.
  std::map<std::string, Entry> by_id{};
  uint64_t n_ever = 0;
};

std::string frame(const std::string& id, std::string_view event, const std::string& data) {
  return fmt::format("{{\"id\":{},\"event\":\"{}\",\"data\":{}}}", to_text(Json(id)), event, data);
}

class SocketSink final : public Sink {
 public:
  SocketSink(std::shared_ptr<http::WebSocket> socket, std::shared_ptr<SocketJobs> jobs, std::string id,
             uint64_t number)
      : socket_(std::move(socket)), jobs_(std::move(jobs)), id_(std::move(id)), number_(number) {
    ++socket_->n_busy;
  }
  ~SocketSink() override { --socket_->n_busy; }

  void open_stream() override {}
  void chunk(const Json& json) override {
    const std::string text = frame(id_, "chunk", to_text(json));
    const std::lock_guard lock(jobs_->mutex);
    if (find() != jobs_->by_id.end()) socket_->send(text);
  }
  void end_stream() override { end("done", "null"); }
  void whole(const std::string& json) override { end("whole", json); }
  void fail(const Error& error) override { end("error", http::error_response(error).body); }
  void cut() noexcept override { socket_->cut(); }

 private:
  // This one's entry, not that of a later generation of the same id. REQUIRES: jobs_->mutex is held.
  std::map<std::string, SocketJobs::Entry>::iterator find() {
    const auto it = jobs_->by_id.find(id_);
    return it != jobs_->by_id.end() && it->second.number == number_ ? it : jobs_->by_id.end();
  }
  void end(std::string_view event, const std::string& data) {
    std::string text = frame(id_, event, data);
    std::shared_ptr<Job> last;  // outlives the lock, and this call
    const std::lock_guard lock(jobs_->mutex);
    const auto it = find();
    if (it == jobs_->by_id.end()) return;
    socket_->send(std::move(text));
    last = std::move(it->second.job);
    jobs_->by_id.erase(it);
  }

  std::shared_ptr<http::WebSocket> socket_;
  std::shared_ptr<SocketJobs> jobs_;
  std::string id_;
  uint64_t number_;
};

// A message that waits until its model is loaded.
class SocketWait final : public ModelWaiter {
 public:
  using Answer = std::function<void(Result<ModelLease>)>;
  explicit SocketWait(Answer answer) : answer_(std::move(answer)) {}
  void on_model(Result<ModelLease> lease) override {
    place.reset();
    answer_(std::move(lease));
  }

  std::shared_ptr<PlaceTicket> place{};  // while it waits; its generation takes one of its own

 private:
  const Answer answer_;
};

std::shared_ptr<SocketJobs> jobs_of(http::WebSocket& socket) {
  return std::static_pointer_cast<SocketJobs>(socket.state);
}

void send_error(http::WebSocket& socket, const std::string& id, const Error& error) {
  socket.send(frame(id, "error", http::error_response(error).body));
}

}  // namespace

void SocketRoutes::open(const std::shared_ptr<http::WebSocket>& socket) const {
  socket->state = std::make_shared<SocketJobs>();
}

void SocketRoutes::take(const std::shared_ptr<http::WebSocket>& socket, http::SocketMessage message) {
  const int32_t key = socket->request().key;
  const bool is_large = message.text.size() > kLargeMessageBytes;
  const auto kept = std::make_shared<const http::SocketMessage>(std::move(message));
  const auto task = [this, socket, kept] {
    try {
      run(socket, kept->text);
    } catch (...) {
      workers_.faults().note(http::FaultPlace::kHandler, std::current_exception());
      send_error(*socket, {}, http::error_of(std::current_exception()));
    }
  };
  if (!workers_.try_post({task, {}, key, is_large})) send_error(*socket, {}, too_many_waiting());
}

void SocketRoutes::close(const std::shared_ptr<http::WebSocket>& socket) const {
  std::map<std::string, SocketJobs::Entry> jobs;
  const auto held = jobs_of(*socket);
  {
    const std::lock_guard lock(held->mutex);
    jobs.swap(held->by_id);
  }
  for (const auto& [id, entry] : jobs) entry.job->cancel();
}

void SocketRoutes::run(const std::shared_ptr<http::WebSocket>& socket, const std::string& message) {
  const auto envelope = parse_body(message);
  if (!envelope) return send_error(*socket, {}, envelope.error());
  Fields fields(*envelope);
  const std::string id = fields.text("id").value_or("");
  const std::string method = fields.text("method").value_or("");
  const Json* body = fields.object("body");
  if (id.empty() || id.size() > kMaxIdBytes) fields.refuse("id", "id is not a string of 1 to 256 bytes");
  if (method != "cancel" && method != "completions" && method != "chat.completions") {
    fields.refuse("method", "method is not chat.completions, completions or cancel");
  } else if (method != "cancel" && body == nullptr) {
    fields.refuse("body", "body is missing, expected the request as an object");
  }
  if (fields.fault()) return send_error(*socket, id, *fields.fault());
  if (method == "cancel") return cancel(*socket, id);
  begin(socket, id, method == "chat.completions" ? kChat : kCompletion, *body);
}

// Once its model is there. How many may wait is bounded by the places.
void SocketRoutes::begin(const std::shared_ptr<http::WebSocket>& socket, const std::string& id,
                         const Endpoint& endpoint, const Json& body) {
  const auto model = body.find("model");
  const bool is_named = !models_.is_one() && model != body.end() && model->is_string();
  const int32_t key = socket->request().key;
  const auto wait = std::make_shared<SocketWait>([this, socket, id, endpoint, body, key](Result<ModelLease> lease) {
    if (!lease) return send_error(*socket, id, lease.error());
    if (socket->is_gone()) return;
    const auto task = [this, socket, id, endpoint, body, held = *lease] { go_on(socket, id, endpoint, body, held); };
    if (!workers_.try_post({task, {}, key})) send_error(*socket, id, too_many_waiting());
  });
  if (!models_.is_one()) {
    wait->place = places_.take(key);
    if (!wait->place) return send_error(*socket, id, places_.no_room(key));
  }
  const auto lease = models_.acquire(is_named ? model->get<std::string>() : std::string(), wait);
  if (!lease) return send_error(*socket, id, lease.error());
  if (*lease == nullptr) return;
  wait->place.reset();
  go_on(socket, id, endpoint, body, *lease);
}

void SocketRoutes::go_on(const std::shared_ptr<http::WebSocket>& socket, const std::string& id,
                         const Endpoint& endpoint, const Json& body, const ModelLease& lease) {
  auto request = endpoint.parse(body, lease->terms);
  if (!request) return send_error(*socket, id, request.error());
  lease->terms.settle(*request);
  lease->terms.add_key(request->requests, socket->request().key);
  lease->terms.add_adapter(request->requests, request->model);
  start(socket, id, *request, endpoint.id_prefix, lease);
}

void SocketRoutes::cancel(http::WebSocket& socket, const std::string& id) const {
  std::shared_ptr<Job> job;
  const auto held = jobs_of(socket);
  {
    const std::lock_guard lock(held->mutex);
    if (const auto node = held->by_id.extract(id)) job = node.mapped().job;
    if (job) socket.send(frame(id, "cancelled", "null"));
  }
  if (!job) return send_error(socket, id, {ErrorKind::kNotFound, "nothing of this id is in work", "id"});
  job->cancel();
}

void SocketRoutes::start(const std::shared_ptr<http::WebSocket>& socket, const std::string& id,
                         const ApiRequest& request, std::string_view id_prefix, const ModelLease& lease) {
  const int32_t key = socket->request().key;
  auto ticket = places_.take(key);
  if (!ticket || !ticket->try_hold(places_of(request))) return send_error(*socket, id, places_.no_room(key));
  ticket->keep(lease);
  const auto held = jobs_of(*socket);
  uint64_t number = 0;
  {
    const std::lock_guard lock(held->mutex);
    number = ++held->n_ever;
  }
  const auto job = lease->generations.make_job(
      request, id_prefix, std::make_unique<SocketSink>(socket, held, id, number), std::move(ticket));
  {
    const std::lock_guard lock(held->mutex);
    const bool is_full = held->by_id.size() >= kMaxJobs;
    if (is_full || !held->by_id.emplace(id, SocketJobs::Entry{number, job}).second) {
      return send_error(*socket, id,
                        {ErrorKind::kInvalidInput,
                         is_full ? "this socket has 256 generations in work" : "this id is in work already", "id"});
    }
  }
  if (!socket->is_gone()) return job->start(request);
  const std::lock_guard lock(held->mutex);
  held->by_id.erase(id);
}

}  // namespace candor::serve::openai
