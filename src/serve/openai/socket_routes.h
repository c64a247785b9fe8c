#pragma once
// /v1/stream: several generations at once over one WebSocket. A client sends
//   {"id": "a", "method": "chat.completions" | "completions", "body": {...}}   begins one
//   {"id": "a", "method": "cancel"}                                           ends it
// and gets {"id": "a", "event": "chunk" | "whole" | "done" | "error" | "cancelled", "data": ...}. Called on the network
// thread; messages are read on workers.

#include <memory>
#include <string>
#include <string_view>

#include "serve/core/answer_slots.h"
#include "serve/core/api_request.h"
#include "serve/core/generations.h"
#include "serve/core/json_body.h"
#include "serve/core/models.h"
#include "serve/http/web_socket.h"
#include "serve/http/worker_pool.h"

namespace candor::serve::openai {

class SocketRoutes {
 public:
  // All are borrowed.
  SocketRoutes(http::WorkerPool& workers, AnswerSlots& places, Models& models)
      : workers_(workers), places_(places), models_(models) {}

  void open(const std::shared_ptr<http::WebSocket>& socket) const;
  void take(const std::shared_ptr<http::WebSocket>& socket, http::SocketMessage message);
  // Its generations are cancelled.
  void close(const std::shared_ptr<http::WebSocket>& socket) const;

 private:
  void run(const std::shared_ptr<http::WebSocket>& socket, const std::string& message);
  void cancel(http::WebSocket& socket, const std::string& id) const;
  // body: of the message.
  void begin(const std::shared_ptr<http::WebSocket>& socket, const std::string& id, const Endpoint& endpoint,
             const Json& body);
  void go_on(const std::shared_ptr<http::WebSocket>& socket, const std::string& id, const Endpoint& endpoint,
             const Json& body, const ModelLease& lease);
  void start(const std::shared_ptr<http::WebSocket>& socket, const std::string& id, const ApiRequest& request,
             std::string_view id_prefix, const ModelLease& lease);

  http::WorkerPool& workers_;
  AnswerSlots& places_;
  Models& models_;
};

}  // namespace candor::serve::openai
