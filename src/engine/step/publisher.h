#pragma once
// Hands events to the callbacks of their requests, and lets go of requests with their last. Takes no memory, but for
// what callbacks do; what a callback throws ends its request. Engine thread only.

#include "candor/event.h"
#include "engine/request/active_request.h"
#include "engine/request/inbox.h"
#include "engine/request/request_table.h"
#include "engine/step/engine_metrics.h"
#include "engine/step/faults.h"
#include "engine/step/outbox.h"

namespace candor::engine {

class Publisher {
 public:
  // All are borrowed.
  Publisher(Outbox& outbox, RequestTable& requests, Inbox& inbox, MetricStore& metrics, Faults& faults)
      : outbox_(outbox), requests_(requests), inbox_(inbox), metrics_(metrics), faults_(faults) {}

  // All events of the outbox, which is empty then.
  void publish() noexcept;
  // A request that broke leaves: every choice that was not told of an end is told of the error. It is out of the table.
  void publish_breakdown(RequestTable::Owned request) noexcept;

 private:
  void publish(Outgoing& outgoing) noexcept;
  void sum_up(ActiveRequest& request, TokenEvent& event) noexcept;

  Outbox& outbox_;
  RequestTable& requests_;
  Inbox& inbox_;
  MetricStore& metrics_;
  Faults& faults_;
};

}  // namespace candor::engine
