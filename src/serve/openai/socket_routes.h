#pragma once
// /v1/stream: several generations at once over one WebSocket. A client sends
//   {"id": "a", "method": "chat.completions" | "completions", "body": {...}}   begins one
//   {"id": "a", "method": "cancel"}                                           ends it
// and gets {"id": "a", "event": "chunk" | "whole" | "done" | "error" | "cancelled", "data": ...}. Called on the network
// thread; messages are read on workers.

#include <memory>
#include <string>
#include <string_view>

#include "serve/http/web_socket.h"
#include "serve/http/worker_pool.h"
#include "serve/core/answer_places.h"
#include "serve/core/generations.h"
#include "serve/core/request_terms.h"

namespace candor::serve::openai {

class SocketRoutes {
 public:
  // All are borrowed.
  SocketRoutes(http::WorkerPool& workers, const RequestTerms& terms, AnswerPlaces& places, Generations& generations)
      : workers_(workers), terms_(terms), places_(places), generations_(generations) {}

  void open(const std::shared_ptr<http::WebSocket>& socket) const;
  void take(const std::shared_ptr<http::WebSocket>& socket, http::SocketMessage message);
  // Its generations are cancelled.
  void close(const std::shared_ptr<http::WebSocket>& socket) const;

 private:
  void run(const std::shared_ptr<http::WebSocket>& socket, const std::string& message);
  void cancel(http::WebSocket& socket, const std::string& id) const;
  void start(const std::shared_ptr<http::WebSocket>& socket, const std::string& id, const ApiRequest& request,
             std::string_view id_prefix);

  http::WorkerPool& workers_;
  const RequestTerms& terms_;
  AnswerPlaces& places_;
  Generations& generations_;
};

}  // namespace candor::serve::openai
