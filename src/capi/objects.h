#pragma once
// The objects behind handles (registry.h), but requests, runs and sessions.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "candor/engine.h"
#include "capi/registry.h"

namespace candor::capi {

struct ErrorObject final : Object {
  explicit ErrorObject(Error what) : error(std::move(what)) {}
  const Error error;
};

template <class T>
struct Data final : Object {
  explicit Data(T what) : value(std::move(what)) {}
  const T value;
};
using Text = Data<std::string>;
using Tokens = Data<std::vector<int32_t>>;
using Floats = Data<std::vector<float>>;

struct OptionsObject final : Object {
  std::mutex mutex;
  EngineOptions options;
};

// Runs and sessions know the engine weakly: closing its handle ends it as soon as no call has it in hand.
class EngineObject final : public Object {
 public:
  explicit EngineObject(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
  void close() override {
    std::shared_ptr<Engine> last;
    {
      const std::lock_guard lock(mutex_);
      last.swap(engine_);
    }
  }
  // nullptr once it is closed.
  std::shared_ptr<Engine> engine() const {
    const std::lock_guard lock(mutex_);
    return engine_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Engine> engine_;
};

}  // namespace candor::capi
