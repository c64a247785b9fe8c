#pragma once
// The slots ("places") of answers in work, shared fairly between API keys (http/fair_budget.h). A request that
// generates or embeds holds one slot from before its body is read, and then, until its reply is over, one for each of
// its answers (choices, beams, or inputs that are embedded at once). A request that gets no slot is refused. Any
// thread.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "serve/http/fair_budget.h"
#include "serve/core/api_request.h"
#include "serve/core/early_stream.h"
#include "serve/core/job.h"

namespace candor::serve {

// The answer slots that one request holds.
class PlaceTicket final : public Ticket {
 public:
  // The counter is borrowed: it is one higher as long as the ticket is there.
  PlaceTicket(http::FairBudget::Share places, std::atomic<int32_t>& n_tickets)
      : places_(std::move(places)), n_tickets_(n_tickets) {
    ++n_tickets_;
  }
  ~PlaceTicket() override {
    free_places();
    used_.reset();
    --n_tickets_;  // last: the server may end
  }
  PlaceTicket(const PlaceTicket&) = delete;
  PlaceTicket& operator=(const PlaceTicket&) = delete;

  // Holds n slots in all; false, with nothing changed, where there is no room for them.
  bool try_hold(int64_t n) { return places_.try_grow(n - places_.amount()); }
  void free_places() noexcept override { places_.resize(0); }
  // Held until the ticket goes: what the reply uses, its model.
  void keep(std::shared_ptr<const void> used) { used_ = std::move(used); }
  // What the stream has said already, before its reply began; nullptr: nothing.
  void set_early(std::shared_ptr<const EarlyStream> early) { early_ = std::move(early); }
  const std::shared_ptr<const EarlyStream>& early() const { return early_; }

 private:
  std::shared_ptr<const void> used_;
  std::shared_ptr<const EarlyStream> early_;
  http::FairBudget::Share places_;
  std::atomic<int32_t>& n_tickets_;
};

class AnswerSlots {
 public:
  // max_per_key: 0: what is fair to the others.
  AnswerSlots(int64_t n_places, size_t n_keys, int64_t max_per_key) : places_(n_places, n_keys, max_per_key) {}

  bool has_room(int32_t key) const { return places_.has_room(key, 1); }
  // A ticket with one slot; nullptr when there is none for that key.
  std::shared_ptr<PlaceTicket> take(int32_t key);
  // The error that says why there is no slot.
  Error no_room(int32_t key) const;
  int32_t n_tickets() const { return n_tickets_; }

 private:
  http::FairBudget places_;
  std::atomic<int32_t> n_tickets_{0};
};

// The slots that the request needs: one for each choice or beam of each prompt.
int64_t places_of(const ApiRequest& request);

}  // namespace candor::serve
