#pragma once
// A backend that keeps the operations of its last step as data: to be shown, compared, or run again over the same
// batch. While it does not record, ops() are those of the wrapped backend, and it costs nothing.
// Owns the backend that it wraps. One thread, like every Backend, but for record().

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/op_list.h"
#include "backend/wrap/forwarding_backend.h"

namespace candor::backend {

// Operations of one step, in their order. Borrows what they borrow, but for lists of a call, which it owns.
class RecordedStep {
 public:
  RecordedStep() = default;
  RecordedStep(RecordedStep&&) = default;
  RecordedStep& operator=(RecordedStep&&) = default;
  void add(const Op& operation);
  void clear();
  const std::vector<Op>& operations() const { return operations_; }
  // REQUIRES: a step is begun whose batch has as many rows, and as many of them wanted, as the recorded one.
  void replay(Ops& ops) const;
  // A line for each (to_text()).
  std::vector<std::string> lines() const;

 private:
  std::vector<Op> operations_;
  std::deque<std::vector<LinearTerm>> terms_;
  std::deque<std::vector<AdapterTerm>> adapter_terms_;
  std::deque<std::vector<int32_t>> rows_;
  std::deque<std::vector<AdapterTable>> adapter_tables_;
  std::deque<std::vector<ExpertAdapter>> expert_adapters_;
};

class RecordingOps final : public Ops {
 public:
  // Borrowed.
  explicit RecordingOps(Backend& inner) : inner_(inner) {}
  RecordedStep& step() { return step_; }
  void run(const Op& operation) override {
    step_.add(operation);
    inner_.ops().run(operation);
  }

 private:
  Backend& inner_;
  RecordedStep step_;
};

class RecordingBackend final : public ForwardingBackend {
 public:
  explicit RecordingBackend(std::unique_ptr<Backend> inner_backend)
      : ForwardingBackend(std::move(inner_backend)), ops_(inner()) {}
  // From the next step on. Any thread.
  void record(bool is_recording) { is_recording_.store(is_recording, std::memory_order_relaxed); }
  // The last one that was recorded.
  const RecordedStep& step() { return ops_.step(); }

  Ops& ops() override {
    if (is_recording_.load(std::memory_order_relaxed)) return ops_;
    return ForwardingBackend::ops();
  }
  void begin_step(const StepBatch& batch, KvStore& kv) override {
    if (is_recording_.load(std::memory_order_relaxed)) ops_.step().clear();
    ForwardingBackend::begin_step(batch, kv);
  }

 private:
  RecordingOps ops_;
  std::atomic<bool> is_recording_{false};
};

}  // namespace candor::backend
