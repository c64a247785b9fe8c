#include "apps/commands/measured_steps.h"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "backend/backend.h"
#include "base/error.h"
#include "engine/engine_impl.h"
#include "engine/open/device_choice.h"
#include "engine/open/loaded_model.h"

namespace candor::apps {
namespace {

constexpr int64_t kMeasuredOf = 4;  // steps, of which one is measured: a quarter of the cost

static_assert(backend::kOpKinds <= serve::kMostOperations);

std::span<const std::string_view> operation_names() {
  static const auto kNames = [] {
    std::array<std::string_view, backend::kOpKinds> names;
    for (size_t i = 0; i < names.size(); ++i) names[i] = backend::op_name(static_cast<backend::OpKind>(i));
    return names;
  }();
  return kNames;
}

serve::OperationTimes microseconds(const backend::OpTimes& times) {
  serve::OperationTimes us{};
  for (size_t i = 0; i < backend::kOpKinds; ++i)
    us[i] = static_cast<int32_t>(times.of(static_cast<backend::OpKind>(i)).ns / 1000);
  return us;
}

}  // namespace

MeasuredSteps::MeasuredSteps() : history_(operation_names()) {}

Result<std::unique_ptr<Engine>> MeasuredSteps::open(const EngineOptions& options, const LoadProgress& progress) {
  const auto make = [this](const EngineOptions& o) -> Result<std::unique_ptr<backend::Backend>> {
    CANDOR_ASSIGN(auto inner, engine::make_named_backend(o));
    auto timed = std::make_unique<backend::TimedBackend>(std::move(inner), clock_);
    timed->measure(false);
    timed_ = timed.get();
    return timed;
  };
  return engine::open_with_backend(options, make, progress);
}

void MeasuredSteps::take(const StepReport& report) {
  history_.take(report, is_measuring_ ? microseconds(timed_->times()) : serve::OperationTimes{});
  if (is_measuring_) timed_->times().clear();
  const bool is_turn = ++n_steps_ % kMeasuredOf == 0;
  const bool is_measuring = is_turn && history_.is_looked_at(clock_.now_ns());
  if (is_measuring == is_measuring_) return;
  is_measuring_ = is_measuring;
  timed_->measure(is_measuring_);
}

}  // namespace candor::apps
