#pragma once
// Errors of input, as values. A function that reads a file, a request or an option returns Expected<T>; its message
// names the thing, the place and the remedy in one line. Mistakes of our own are caught by CANDOR_CHECK (always) and
// CANDOR_DCHECK (debug builds); input must never be able to reach either.

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace candor {

enum class ErrorKind : uint8_t {
  kInvalidInput,   // the user's file, request or option is wrong: exit 2, HTTP 400
  kNotFound,       // a named thing does not exist: exit 2, HTTP 404
  kUnsupported,    // understood, and not offered: exit 2, HTTP 400
  kContextLength,  // the prompt does not fit the context: exit 2, HTTP 400 context_length_exceeded
  kOverloaded,     // a bounded queue is full: HTTP 429
  kBusy,           // what this needs is in use by others, or the machine is too slow for it now: HTTP 503
  kOutOfMemory,    // memory or K/V blocks do not suffice: exit 2, HTTP 503
  kIo,             // the system refused a read or a write: exit 2
  kCancelled,      // the caller withdrew
  kInternal,       // our fault: exit 1, HTTP 500
};

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
};

template <class T>
using Expected = tl::expected<T, Error>;

// return fail(ErrorKind::kUnsupported, "...");
inline tl::unexpected<Error> fail(ErrorKind kind, std::string message) {
  return tl::unexpected<Error>(Error{kind, std::move(message)});
}
inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace candor

#define CANDOR_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::candor::check_failed(#condition, __FILE__, __LINE__))
#ifdef NDEBUG
#define CANDOR_DCHECK(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))
#else
#define CANDOR_DCHECK(condition) CANDOR_CHECK(condition)
#endif

// Returns the error of an Expected<...> expression from the enclosing function; the value is dropped.
#define CANDOR_TRY(expression)                                                                                      \
  do {                                                                                                              \
    if (auto candor_result = (expression); !candor_result) return ::candor::fail(std::move(candor_result).error()); \
  } while (false)
// CANDOR_ASSIGN(auto file, open(path)): declares or assigns the value, or returns the error.
#define CANDOR_ASSIGN_CAT2(a, b) a##b
#define CANDOR_ASSIGN_CAT(a, b) CANDOR_ASSIGN_CAT2(a, b)
#define CANDOR_ASSIGN(lhs, expression) CANDOR_ASSIGN_IMPL(CANDOR_ASSIGN_CAT(candor_result_, __LINE__), lhs, expression)
#define CANDOR_ASSIGN_IMPL(result, lhs, expression)              \
  auto result = (expression);                                    \
  if (!result) return ::candor::fail(std::move(result).error()); \
  lhs = std::move(*result)
