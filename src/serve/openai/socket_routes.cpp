// /v1/stream: several generations at once over one WebSocket. A client sends
//   {"id": "a", "method": "chat.completions" | "completions", "body": {...}}   begins one
//   {"id": "a", "method": "cancel"}                                           ends it
// and gets {"id": "a", "event": "chunk" | "whole" | "done" | "error" | "cancelled", "data": ...}.

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "serve/openai/http_sink.h"
#include "serve/openai/service.h"

namespace candor::openai {
namespace {

constexpr size_t kMaxIdBytes = 256;
constexpr size_t kMaxJobs = 256;  // of one socket

// The generations of one socket, by id.
struct SocketJobs {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Job>> by_id;  // guarded by mutex
};

std::string frame(const std::string& id, std::string_view event, const std::string& data) {
  return fmt::format("{{\"id\":{},\"event\":\"{}\",\"data\":{}}}", to_text(Json(id)), event, data);
}

class SocketSink final : public Sink {
 public:
  SocketSink(std::shared_ptr<http::WebSocket> socket, std::shared_ptr<SocketJobs> jobs, std::string id)
      : socket_(std::move(socket)), jobs_(std::move(jobs)), id_(std::move(id)) {
    ++socket_->n_busy;
  }
  ~SocketSink() override { --socket_->n_busy; }

  void open_stream() override {}
  void chunk(const std::string& json) override { socket_->send(frame(id_, "chunk", json)); }
  void end_stream() override { end("done", "null"); }
  void whole(const std::string& json) override { end("whole", json); }
  void fail(const ErrorInfo& error) override { end("error", http::error_response(error).body); }

 private:
  void end(std::string_view event, const std::string& data) {
    std::shared_ptr<Job> last;  // outlives the lock, and this call
    {
      const std::lock_guard lock(jobs_->mutex);
      if (const auto node = jobs_->by_id.extract(id_)) last = node.mapped();
    }
    socket_->send(frame(id_, event, data));
  }

  std::shared_ptr<http::WebSocket> socket_;
  std::shared_ptr<SocketJobs> jobs_;
  std::string id_;
};

std::shared_ptr<SocketJobs> jobs_of(http::WebSocket& socket) {
  return std::static_pointer_cast<SocketJobs>(socket.state);
}

void send_error(http::WebSocket& socket, const std::string& id, const ErrorInfo& error) {
  socket.send(frame(id, "error", http::error_response(error).body));
}

}  // namespace

void Service::on_socket(const std::shared_ptr<http::WebSocket>& socket) {
  socket->state = std::make_shared<SocketJobs>();
}

void Service::on_message(const std::shared_ptr<http::WebSocket>& socket, std::string message) {
  const auto task = [this, socket, text = std::move(message)] { run_message(socket, text); };
  if (workers_.try_post(task)) return;
  send_error(*socket, {},
             {.status = 503, .message = "too many requests wait to be read; try again", .type = "server_error"});
}

void Service::on_socket_closed(const std::shared_ptr<http::WebSocket>& socket) {
  std::map<std::string, std::shared_ptr<Job>> jobs;
  const auto held = jobs_of(*socket);
  {
    const std::lock_guard lock(held->mutex);
    jobs.swap(held->by_id);
  }
  for (const auto& [id, job] : jobs) job->cancel();
}

void Service::run_message(const std::shared_ptr<http::WebSocket>& socket, const std::string& message) {
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
  if (method == "cancel") return cancel_message(*socket, id);
  auto request =
      method == "completions" ? parse_completion(*body, options_.limits) : parse_chat(*body, options_.limits);
  if (!request) return send_error(*socket, id, request.error());
  if (const auto read = read_echo(engine_, *request); !read) return send_error(*socket, id, read.error());
  add_terms(request->requests, socket->request().key);
  start_message(socket, id, *request);
}

void Service::cancel_message(http::WebSocket& socket, const std::string& id) {
  std::shared_ptr<Job> job;
  const auto held = jobs_of(socket);
  {
    const std::lock_guard lock(held->mutex);
    if (const auto node = held->by_id.extract(id)) job = node.mapped();
  }
  if (!job) return send_error(socket, id, {.status = 404, .message = "nothing of this id is in work", .param = "id"});
  job->cancel();
  socket.send(frame(id, "cancelled", "null"));
}

void Service::start_message(const std::shared_ptr<http::WebSocket>& socket, const std::string& id,
                            const ApiRequest& request) {
  auto ticket = take_ticket(socket->request().key);
  if (!ticket) return send_error(*socket, id, too_many(options_.max_per_key));
  const auto held = jobs_of(*socket);
  const auto job = make_job(request, std::make_unique<SocketSink>(socket, held, id), std::move(ticket));
  {
    const std::lock_guard lock(held->mutex);
    const bool is_full = held->by_id.size() >= kMaxJobs;
    if (is_full || !held->by_id.emplace(id, job).second) {
      return send_error(*socket, id,
                        {.message = is_full ? "this socket has 256 generations in work" : "this id is in work already",
                         .param = "id"});
    }
  }
  if (!socket->is_gone()) return job->start(request);
  const std::lock_guard lock(held->mutex);
  held->by_id.erase(id);
}

}  // namespace candor::openai
