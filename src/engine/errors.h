#pragma once
// The engine's errors as the public interface shows them, and the one place where exceptions of the standard library
// (out of memory, above all) become errors.

#include <string>
#include <utility>

#include "base/error.h"
#include "base/fault.h"
#include "candor/result.h"

namespace candor::engine {

EngineError to_public(Error error, std::string param = {});

// The value or error of body(), a function that returns a Result; an exception becomes kOutOfMemory or kInternal.
template <class Body>
auto guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return to_public(error_of_exception());
  }
}

}  // namespace candor::engine
