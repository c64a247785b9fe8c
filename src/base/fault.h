#pragma once
// Exceptions of the standard library as errors, for the places where nothing may throw any further.

#include "base/error.h"

namespace candor {

// The exception in flight; takes no memory where there is none. REQUIRES: inside of a catch block.
Error error_of_exception() noexcept;

// The value or error of body(), a function that returns a Result; an exception becomes kOutOfMemory or kInternal.
template <class Body>
auto guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return error_of_exception();
  }
}

}  // namespace candor
