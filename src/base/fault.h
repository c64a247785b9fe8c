#pragma once
// Turns exceptions into Errors where nothing may throw any further (guarded()), and an Error into an exception
// (ErrorException) where a failure of shared parts must reach the one handler that can end all requests with it.

#include <exception>
#include <utility>

#include "base/error.h"

namespace candor {

class ErrorException final : public std::exception {
 public:
  explicit ErrorException(Error error) : error_(std::move(error)) {}
  const Error& error() const { return error_; }
  const char* what() const noexcept override { return error_.message.c_str(); }

 private:
  Error error_;
};

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
