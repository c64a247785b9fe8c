#pragma once
// The interface between the server and the APIs that it offers (OpenAI's, Anthropic's and so on). An API is a folder
// with one Api object, which serve/interfaces.cpp lists. It turns request bodies into ApiRequests and engine events
// into its own JSON, and has no rules of its own about sampling, limits, slots or threads.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "candor/engine.h"
#include "serve/core/adapter_terms.h"
#include "serve/core/answer_slots.h"
#include "serve/core/api_request.h"
#include "serve/core/early_stream.h"
#include "serve/core/generations.h"
#include "serve/core/json_body.h"
#include "serve/core/metrics_page.h"
#include "serve/core/request_terms.h"
#include "serve/core/step_history.h"
#include "serve/http/access.h"
#include "serve/http/exchange.h"
#include "serve/http/fair_budget.h"
#include "serve/http/faults.h"
#include "serve/http/message.h"

namespace candor::serve {

class Models;
class BatchStore;

// What routes of a model answer from. Borrowed; any thread.
struct Core {
  Engine& engine;
  const RequestTerms& terms;
  Generations& generations;
  http::FairBudget& bytes;  // in flight: what replies hold meanwhile is counted there
  const AnswerSlots& places;
  Models& models;  // all of the server
  AdapterTerms& adapters;
  std::function<void(double)> keep_alive{};  // how long it stays once nobody uses it, in seconds; empty: it stays

  const ApiLimits& limits() const { return terms.limits(); }
};

// What routes answer from that need no model. Borrowed; any thread.
struct ServerCore {
  Models& models;
  http::FairBudget& bytes;
  const MetricsPage& metrics;
  const http::Faults& faults;
  const AnswerSlots& places;
  const http::Access& access;
  const StepHistory* steps = nullptr;  // of the one model; none: nobody keeps them
  BatchStore* batches = nullptr;       // none: neither files nor batches are taken
  int64_t created = 0;                 // when the server began, in seconds since 1970
};

// Either `handle`, with the model that the body names (where it names none: the server's own choice), or `tell`.
struct Route {
  std::string_view method;
  std::string_view path;  // one that ends with '/' matches what follows, too, but for "/" itself
  bool needs_key = true;
  bool is_quick = false;  // answered on the network thread
  bool is_socket = false;
  std::string_view accepts{};  // not empty: only who names it in Accept; others find the next route of that path
  std::string_view refusal{};  // not empty: never offered, and refused unread in these words
  bool generates = false;  // refused unread while the engine is full; the exchange's state is its PlaceTicket
  void (*handle)(const Core& core, const std::shared_ptr<http::Exchange>& exchange) = nullptr;
  void (*tell)(const ServerCore& server, const std::shared_ptr<http::Exchange>& exchange) = nullptr;
  LoadingForm loading{};
};

struct Api {
  std::string_view name;
  std::span<const Route> routes;
  http::ErrorForm error_form = nullptr;  // nullptr: OpenAI's
};

// Replies of routes that make no generation.
void answer(http::Exchange& exchange, const Json& json);
void answer(http::Exchange& exchange, const Error& error);

}  // namespace candor::serve
