#pragma once
// The requests in work, found by their own id or by that of a sequence of theirs. Ids arrive in ascending order.
// Engine thread only; allocates nothing once it has held as many as it ever will.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "engine/request/active_request.h"

namespace candor::engine {

class RequestTable {
 public:
  using Owned = std::unique_ptr<ActiveRequest>;

  // Takes the request unless memory runs out. REQUIRES: an id above all that were added before.
  ActiveRequest& add(Owned& request) {
    CANDOR_CHECK(requests_.empty() || requests_.back()->id < request->id);
    return *requests_.emplace_back(std::move(request));
  }
  // nullptr where no request has that id.
  ActiveRequest* find(RequestId id) {
    const auto it = first_above(id);
    return it != requests_.begin() && (*(it - 1))->id == id ? (it - 1)->get() : nullptr;
  }
  // REQUIRES: the sequence is in work.
  ActiveRequest& of(SequenceId sequence) {
    const auto it = first_above(sequence);
    CANDOR_CHECK(it != requests_.begin());
    return **(it - 1);
  }
  Owned take(const ActiveRequest& request) {
    const auto it = first_above(request.id) - 1;
    Owned taken = std::move(*it);
    requests_.erase(it);
    return taken;
  }

  size_t size() const { return requests_.size(); }
  auto begin() { return requests_.begin(); }
  auto end() { return requests_.end(); }
  auto begin() const { return requests_.begin(); }
  auto end() const { return requests_.end(); }

 private:
  std::vector<Owned>::iterator first_above(int64_t id) {
    return std::ranges::upper_bound(requests_, id, {}, [](const Owned& request) { return request->id; });
  }

  std::vector<Owned> requests_;  // ascending by id
};

}  // namespace candor::engine
