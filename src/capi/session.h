#pragma once
// A conversation and its branches. Any thread.

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "candor/engine.h"
#include "capi/registry.h"

namespace candor::capi {

class Session final : public Object {
 public:
  Session(std::weak_ptr<Engine> engine, std::vector<Message> messages)
      : engine_(std::move(engine)), messages_(std::move(messages)) {}

  std::shared_ptr<Engine> engine() const { return engine_.lock(); }
  std::vector<Message> messages() const {
    const std::lock_guard lock(mutex_);
    return messages_;
  }
  void say(std::string role, std::string text) {
    const std::lock_guard lock(mutex_);
    messages_.push_back({.role = std::move(role), .content = std::move(text)});
  }
  std::shared_ptr<Session> branch() const { return std::make_shared<Session>(engine_, messages()); }

 private:
  const std::weak_ptr<Engine> engine_;
  mutable std::mutex mutex_;
  std::vector<Message> messages_;
};

}  // namespace candor::capi
