#pragma once
// The table of routes: which path is answered by whom, and what it asks of a request before a byte of it is read.

#include <memory>
#include <span>
#include <string_view>

#include "serve/http/exchange.h"
#include "serve/http/message.h"
#include "serve/openai/generations.h"
#include "serve/openai/info_routes.h"
#include "serve/openai/text_routes.h"

namespace candor::openai {

// Who answers. Borrowed.
struct Handlers {
  InfoRoutes& info;
  TextRoutes& texts;
  Generations& generations;
};

struct Route {
  std::string_view method;
  std::string_view path;  // one that ends with '/' matches what follows, too
  bool needs_key = true;
  bool is_quick = false;  // answered on the network thread
  bool is_socket = false;
  bool generates = false;  // refused unread while the engine is full
  void (*handle)(const Handlers& handlers, const std::shared_ptr<http::Exchange>& exchange) = nullptr;
};

std::span<const Route> routes();

// nullptr where nothing answers the request; is_path_known: but another method of its path.
const Route* find_route(const http::HttpRequest& request, bool& is_path_known);

}  // namespace candor::openai
