#pragma once
// Exceptions of the standard library as errors, for the places where nothing may throw any further; and an error as an
// exception, for where what all share has failed and only whoever contains faults can say so to all.

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
