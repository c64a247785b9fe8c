#pragma once
// Every function of candor.h runs its body in here: what goes wrong becomes a status and an error, and nothing is
// thrown.

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "capi/objects.h"

namespace candor::capi {

inline candor_status status_of(ErrorKind kind) {
  static_assert(static_cast<int>(ErrorKind::kInternal) + 1 == CANDOR_INTERNAL);
  return static_cast<candor_status>(static_cast<int>(kind) + 1);
}

inline candor_status report(Error what, candor_error* error) {
  const candor_status status = status_of(what.kind);
  if (error != nullptr) *error = add_object(std::make_shared<ErrorObject>(std::move(what)));
  return status;
}

template <class Body>
candor_status guarded(candor_error* error, Body&& body) noexcept {
  if (error != nullptr) *error = 0;
  try {
    Result<void> done = body();
    return done ? CANDOR_OK : report(std::move(done).error(), error);
  } catch (const std::bad_alloc&) {
    return CANDOR_OUT_OF_MEMORY;
  } catch (const std::exception& thrown) {
    try {
      return report(fail(ErrorKind::kInternal, thrown.what()), error);
    } catch (...) {
      return CANDOR_INTERNAL;
    }
  } catch (...) {
    return CANDOR_INTERNAL;
  }
}

// An argument that was NULL.
inline Error null_argument(const char* name) {
  return fail(ErrorKind::kInvalidInput, std::string(name) + " is NULL", name);
}

template <class T>
Result<void> give(T value, candor_data* out) {
  *out = add_object(std::make_shared<Data<T>>(std::move(value)));
  return {};
}

inline Result<std::shared_ptr<Engine>> find_engine(candor_engine handle) {
  auto object = find<EngineObject>(handle, "engine");
  if (!object) return object.error();
  auto engine = (*object)->engine();
  if (engine != nullptr) return engine;
  return fail(ErrorKind::kNotFound, "the engine is closed");
}

}  // namespace candor::capi

// Ends the body where an address that is needed is NULL.
#define CANDOR_NEEDS(argument) \
  if ((argument) == nullptr) return ::candor::capi::null_argument(#argument)
