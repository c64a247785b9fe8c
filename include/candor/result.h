#pragma once
// A value, or the reason why there is none. Everything here that can fail because of its input returns a Result; the
// library does not throw. A message is one line that names the thing, the value seen and the value expected.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace candor {

struct EngineError {
  enum class Kind : std::uint8_t {
    kInvalidInput,   // the file, request or option is wrong
    kNotFound,       // a named thing does not exist
    kUnsupported,    // understood, and not offered
    kContextLength,  // the prompt does not fit the context
    kOverloaded,     // the queue is full: try again later
    kBusy,           // what this needs is in use by others: try again later
    kOutOfMemory,    // memory or K/V blocks can not suffice
    kIo,             // the system refused a read or a write, or what the model's file holds makes no numbers
    kCancelled,      // the caller withdrew
    kInternal,       // a fault of the library
  };
  Kind kind = Kind::kInternal;
  std::string message;
  std::string param;  // the field of the request that is wrong ("temperature"), where one is to blame
  // With kContextLength: tokens of the prompt, and what the context holds.
  std::int64_t n_prompt_tokens = 0;
  std::int64_t n_ctx = 0;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(EngineError error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  // REQUIRES: has_value().
  T& value() { return *std::get_if<0>(&state_); }
  const T& value() const { return *std::get_if<0>(&state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !has_value().
  EngineError& error() { return *std::get_if<1>(&state_); }
  const EngineError& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, EngineError> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(EngineError error) : error_(std::move(error)) {}

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }

  // REQUIRES: !has_value().
  const EngineError& error() const { return *error_; }

 private:
  std::optional<EngineError> error_;
};

}  // namespace candor
