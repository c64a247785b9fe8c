#pragma once
// The routes: what each path does with the engine. Called on the network thread, which only looks up the route; all
// else happens on workers. Borrows the engine and the log, which outlive it.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "candor/engine.h"
#include "obs/log.h"
#include "serve/http/access.h"
#include "serve/http/fair_budget.h"
#include "serve/http/faults.h"
#include "serve/http/server.h"
#include "serve/http/worker_pool.h"
#include "serve/openai/api_request.h"
#include "serve/openai/job.h"
#include "serve/openai/metrics_page.h"
#include "serve/openai/model_form.h"

namespace candor::openai {

struct ServiceOptions {
  ApiLimits limits{};
  http::AccessOptions access{};
  int32_t n_workers = 2;
  size_t max_waiting = 1024;  // requests that no worker has begun
  // Answers in work: those that the engine computes at once and those that wait for it.
  int32_t n_places = 144;
  int32_t max_per_key = 0;  // of them; 0: what is fair to the others (FairBudget)
  int64_t inflight_bytes = 256 << 20;  // of bodies, messages and replies
  double read_limit = 0;      // bytes a second that this machine's memory gives; 0: unknown
};

class Service final : public http::Handler {
 public:
  Service(Engine& engine, ServiceOptions options, const obs::Log& log);
  // Ends what is still in work.
  ~Service() override;

  struct Route {
    std::string_view method;
    std::string_view path;  // one that ends with '/' matches what follows, too
    bool needs_key = true;
    bool is_quick = false;  // answered on the network thread
    bool is_socket = false;
    bool generates = false;  // refused unread while the engine is full
    void (Service::*handle)(http::Exchange& exchange, const std::shared_ptr<http::Exchange>& shared) = nullptr;
  };
  static std::span<const Route> routes();

  http::Faults& faults() override { return faults_; }
  http::FairBudget& bytes() override { return bytes_; }
  std::optional<http::HttpResponse> refuse(http::HttpRequest& request) override;
  void handle(std::shared_ptr<http::Exchange> exchange) override;
  void on_reply(const http::HttpRequest& request, const http::ReplyRecord& record) override;
  void on_socket(const std::shared_ptr<http::WebSocket>& socket) override;
  void on_message(const std::shared_ptr<http::WebSocket>& socket, http::SocketMessage message) override;
  void on_socket_closed(const std::shared_ptr<http::WebSocket>& socket) override;

  // New work is refused with 503 from now on.
  void begin_drain() { is_draining_ = true; }
  // Every reply in work ends with an error that says so, and so does what no worker has begun.
  void abort_all();
  int32_t n_jobs() const { return n_jobs_; }

 private:
  struct Places;
  using Exchange = http::Exchange;
  using Shared = std::shared_ptr<http::Exchange>;

  void health(Exchange& exchange, const Shared& shared);
  void ready(Exchange& exchange, const Shared& shared);
  void metrics(Exchange& exchange, const Shared& shared);
  void models(Exchange& exchange, const Shared& shared);
  void model(Exchange& exchange, const Shared& shared);
  void chat(Exchange& exchange, const Shared& shared);
  void completions(Exchange& exchange, const Shared& shared);
  void embeddings(Exchange& exchange, const Shared& shared);
  void tokenize(Exchange& exchange, const Shared& shared);
  void detokenize(Exchange& exchange, const Shared& shared);
  void apply_template(Exchange& exchange, const Shared& shared);

  const Route* find_route(const http::HttpRequest& request, bool& is_path_known) const;
  std::optional<http::HttpResponse> refuse_for_room(int32_t key) const;
  Error no_room(int32_t key) const;
  http::HttpResponse shutting_down() const;
  void run(const Route& route, const Shared& exchange);
  void generate(const Shared& exchange, bool is_chat);
  void run_message(const std::shared_ptr<http::WebSocket>& socket, const std::string& message);
  void cancel_message(http::WebSocket& socket, const std::string& id);
  void start_message(const std::shared_ptr<http::WebSocket>& socket, const std::string& id, const ApiRequest& request);
  Json model_json() const;
  text::OutputForm form_for(const ApiRequest& request) const;
  // What the model's template does not know is put in words that it does, and said in the warnings.
  void settle_for_template(ApiRequest& request) const;
  Result<ApiRequest> read_shown_chat(const Json& body, std::initializer_list<const char*> also) const;
  void add_terms(std::vector<Request>& requests, int32_t key) const;
  void keep(const std::shared_ptr<Work>& work);
  // A place among the answers in work; nullptr when there is none for that key.
  std::shared_ptr<Places> take_ticket(int32_t key);
  static bool take_places(const ApiRequest& request, Places& ticket);
  std::shared_ptr<Job> make_job(const ApiRequest& request, std::unique_ptr<Sink> sink, std::shared_ptr<Ticket> ticket);

  // Constant after construction.
  Engine& engine_;
  const ServiceOptions options_;
  const obs::Log& log_;
  http::Faults faults_;
  const http::Access access_;
  http::FairBudget places_;
  http::FairBudget bytes_;
  const std::string fingerprint_;
  const int64_t created_;
  const ModelForm form_;
  const double decode_limit_;  // tokens a second of one request, where each reads all weights

  MetricsPage metrics_;
  std::atomic<bool> is_draining_{false};
  std::atomic<int32_t> n_jobs_{0};
  std::atomic<uint64_t> n_replies_ever_{0};
  // Guarded by mutex_.
  std::mutex mutex_;
  std::list<std::weak_ptr<Work>> jobs_;

  http::WorkerPool workers_;
};

}  // namespace candor::openai
