#pragma once
// The HTTP service over one engine, or over several models that are loaded on demand: finds the route of a request,
// refuses what may not or cannot be served, and runs the route's handler when its model is loaded. The network thread
// looks up routes and answers quick ones (/health); all other work runs on workers.
//
// Borrows the engine or the loader, and the log, which outlive it.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>

#include "candor/engine.h"
#include "obs/log.h"
#include "serve/core/answer_slots.h"
#include "serve/core/api.h"
#include "serve/core/api_request.h"
#include "serve/core/job_list.h"
#include "serve/core/metrics_page.h"
#include "serve/core/model_loader.h"
#include "serve/core/models.h"
#include "serve/core/served_model.h"
#include "serve/core/step_history.h"
#include "serve/http/access.h"
#include "serve/http/exchange.h"
#include "serve/http/fair_budget.h"
#include "serve/http/faults.h"
#include "serve/http/message.h"
#include "serve/http/server.h"
#include "serve/http/web_socket.h"
#include "serve/http/worker_pool.h"
#include "serve/openai/socket_routes.h"

namespace candor::serve {

struct ServiceOptions {
  ApiLimits limits{};
  http::AccessOptions access{};
  int32_t n_workers = 2;
  size_t max_waiting = 1024;  // requests that no worker has begun
  // Slots for answers in work: those that the engine computes at once and those that wait for it.
  int32_t n_places = 144;
  int32_t max_per_key = 0;  // of them; 0: what is fair to the others (FairBudget)
  int64_t inflight_bytes = 256 << 20;  // of bodies, messages and replies
  double read_limit = 0;      // bytes a second that this machine's memory gives; 0: unknown
  const StepHistory* steps = nullptr;  // what the page shows of them; borrowed, nullptr: nothing
  BatchStore* batches = nullptr;       // files and batches of clients; borrowed, nullptr: none are taken
  bool has_page = true;                // for browsers, at "/"
  std::chrono::milliseconds quiet{5'000};  // an open stream that says nothing for so long says that it goes on
};

class Service final : public http::Handler {
 public:
  Service(Engine& engine, ServiceOptions options, const obs::Log& log);
  // Several models, loaded when they are asked for. limits: what they share.
  Service(ModelLoader& loader, ModelsOptions models, ServiceOptions options, const obs::Log& log);
  // Ends what is still in work.
  ~Service() override;

  http::Faults& faults() override { return faults_; }
  http::FairBudget& bytes() override { return bytes_; }
  std::optional<http::HttpResponse> refuse(http::HttpRequest& request) override;
  void handle(std::shared_ptr<http::Exchange> exchange) override;
  void on_handshake_failed(http::HandshakeFailure failure) override { metrics_.count_failed_handshake(failure); }
  void on_reply(const http::HttpRequest& request, const http::ReplyRecord& record) override;
  void on_socket(const std::shared_ptr<http::WebSocket>& socket) override { sockets_.open(socket); }
  void on_message(const std::shared_ptr<http::WebSocket>& socket, http::SocketMessage message) override {
    sockets_.take(socket, std::move(message));
  }
  void on_socket_closed(const std::shared_ptr<http::WebSocket>& socket) override { sockets_.close(socket); }

  // Logs, for each loaded model, the format in which its tool calls are read.
  void say_forms();
  // New work is refused with 503 from now on, and so is what waits for a model.
  void begin_drain();
  // Every reply in work ends with an error that says so, and so does what no worker has begun.
  void abort_all();
  int32_t n_jobs() const { return places_.n_tickets(); }
  Models& models() { return *models_; }

 private:
  using Shared = std::shared_ptr<http::Exchange>;

  using ModelsMaker = std::function<std::unique_ptr<Models>(const ModelParts& parts, const ServiceOptions& options)>;
  Service(ServiceOptions options, const obs::Log& log, const ModelsMaker& make_models);
  void tick(const std::stop_token& stop);
  void run(const Route& route, const Shared& exchange);
  void run_with_model(const Route& route, const Shared& exchange);
  // On a worker.
  void handle_with(const Route& route, const Shared& exchange, const ModelLease& lease);
  void post(const Shared& exchange, std::function<void()> run);

  // Constant after construction.
  const ServiceOptions options_;
  const std::span<const Api* const> apis_;
  const obs::Log& log_;
  http::Faults faults_;
  const http::Access access_;

  // With locks of their own.
  MetricsPage metrics_;
  AnswerSlots places_;
  http::FairBudget bytes_;
  std::atomic<uint64_t> n_replies_{0};
  JobList jobs_;
  const std::unique_ptr<Models> models_;
  openai::SocketRoutes sockets_;
  const ServerCore core_;
  std::atomic<bool> is_draining_{false};

  http::WorkerPool workers_;  // what it runs uses the others
  std::jthread ticker_;       // last: it ticks the jobs
};

}  // namespace candor::serve
