#include "serve/core/answer_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "candor/request.h"

namespace candor::serve {

std::shared_ptr<PlaceTicket> AnswerSlots::take(int32_t key) {
  http::FairBudget::Share places = places_.share_of(key);
  if (!places.try_grow(1)) return nullptr;
  return std::make_shared<PlaceTicket>(std::move(places), n_tickets_);
}

Error AnswerSlots::no_room(int32_t key) const {
  const bool is_full = places_.used() >= places_.limit();
  const std::string all = fmt::format("{} answers are in work or waiting, at most {}", places_.used(), places_.limit());
  const std::string own = fmt::format(
      "{} has as many answers in work as it may ({} at most, and less while others ask as well): {}; try again later",
      key < 0 ? "who comes without a key" : "this key", places_.most_per_key(), all);
  return {.kind = is_full ? ErrorKind::kOverloaded : ErrorKind::kRateLimited,
          .message = is_full ? "the engine is full: " + all + "; try again later" : own};
}

int64_t places_of(const ApiRequest& request) {
  int64_t n = 0;
  for (const Request& one : request.requests) n += one.beams ? std::max(one.beams->width, one.n) : one.n;
  return n;
}

}  // namespace candor::serve
