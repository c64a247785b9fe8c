#pragma once
// What the handles of candor.h stand for. A handle is a number that is never used again, so that a stale one is told
// from all others; who has an object in hand keeps it. Any thread.

#include <candor/candor.h>

#include <memory>
#include <string>

#include "candor/result.h"

namespace candor::capi {

class Object {
 public:
  virtual ~Object() = default;
  // Its handle is closed; others may still have it in hand.
  virtual void close() {}
};

candor_handle add_object(std::shared_ptr<Object> object);
// nullptr for a handle that is none.
std::shared_ptr<Object> find_object(candor_handle handle);
std::shared_ptr<Object> remove_object(candor_handle handle);

// The object, where it is a T; `what` is what was expected.
template <class T>
Result<std::shared_ptr<T>> find(candor_handle handle, const char* what) {
  auto object = std::dynamic_pointer_cast<T>(find_object(handle));
  if (object != nullptr) return object;
  return fail(ErrorKind::kNotFound, std::string("the handle is no ") + what + ": it is closed, or of another kind");
}

}  // namespace candor::capi
