#pragma once
// A value, or the one error that says why there is none. Everything that can fail because of its input (a file, a
// request, an option, the machine's memory) returns a Result, here and in the whole library; nothing throws. The
// command line, C++ and HTTP show the same three parts: a kind that a program can act on, a message for people, and the
// field that is to blame.
//
//   auto engine = candor::Engine::open({.model_path = "model.gguf"});
//   if (!engine) return report(engine.error().message);
//   (*engine)->generate(...);
//
// Plain values: any thread, as of std::string.

#include <cassert>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace candor {

enum class ErrorKind : std::uint8_t {
  kInvalidInput,   // the file, request or option is wrong: exit 2, HTTP 400
  kNotFound,       // a named thing does not exist: exit 2, HTTP 404
  kUnsupported,    // understood, and not offered: exit 2, HTTP 400
  kContextLength,  // the prompt does not fit the context: exit 2, HTTP 400 context_length_exceeded
  kOverloaded,     // a bounded queue is full, try again later: HTTP 429
  kRateLimited,    // the caller has as much in work as it may, try again later: HTTP 429
  kBusy,           // what this needs is in use by others, or the machine is too slow for it now: HTTP 503
  kOutOfMemory,    // memory or K/V blocks do not suffice: exit 2, HTTP 503
  kIo,             // the system refused a read or a write, or what a file holds makes no numbers: exit 2
  kCancelled,      // the caller withdrew
  kInternal,       // a fault of the library: exit 1, HTTP 500
};

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message{};  // one line: the thing, the value seen, the value expected
  std::string field{};    // of the request or the options ("temperature"), where one is to blame
  // Numbers of the message for programs: with kContextLength "n_prompt_tokens" and "n_ctx".
  std::vector<std::pair<std::string, std::int64_t>> figures{};
};

// return fail(ErrorKind::kUnsupported, "...", "stop_scope");
inline Error fail(ErrorKind kind, std::string message, std::string field = {}) {
  return {kind, std::move(message), std::move(field)};
}
// return fail(std::move(rendered).error(), "messages"): the same error, of that field.
inline Error fail(Error error, std::string field) {
  error.field = std::move(field);
  return error;
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result() requires std::default_initializable<T> : state_(std::in_place_index<0>) {}
  template <class U = T>
  requires(!std::same_as<std::remove_cvref_t<U>, Result> && std::convertible_to<U, T>) Result(U&& value)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  // REQUIRES: has_value().
  T& value() & { return *known(std::get_if<0>(&state_)); }
  const T& value() const& { return *known(std::get_if<0>(&state_)); }
  T&& value() && { return std::move(value()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !has_value().
  const Error& error() const& { return *known(std::get_if<1>(&state_)); }
  Error&& error() && { return std::move(*known(std::get_if<1>(&state_))); }

 private:
  template <class Part>
  static Part* known(Part* part) {
    assert(part != nullptr);
    return part;
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }

  // REQUIRES: !has_value().
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_{};
};

}  // namespace candor
