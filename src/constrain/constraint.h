#pragma once
// A constraint on the output of a request, as a state that advances with each token. One request owns it; it may move
// between threads but is used by one at a time. A constraint is obeyed or ends its request in an error; it is never
// dropped.

#include <memory>

#include "base/error.h"
#include "base/ids.h"
#include "constrain/token_mask.h"

namespace candor::constrain {

class Constraint {
 public:
  virtual ~Constraint() = default;

  // Which tokens may come next; end tokens where the text may end. REQUIRES: mask.n_tokens() is the vocabulary's.
  virtual Result<void> mask(TokenMask& mask) = 0;
  // Advances. A token that the mask does not allow is an error that changes nothing.
  virtual Result<void> accept(TokenId token) = 0;
  // The same state, independent from here on.
  virtual Result<std::unique_ptr<Constraint>> fork() const = 0;
  // True where the text may end here.
  virtual bool may_end() = 0;
  // True where nothing but an end token may follow.
  virtual bool must_end() const = 0;
};

}  // namespace candor::constrain
