#include "apps/commands/watched_steps.h"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "backend/backend.h"
#include "base/error.h"
#include "engine/engine_impl.h"
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

WatchedSteps::WatchedSteps() : history_(operation_names()) {}

Result<std::unique_ptr<Engine>> WatchedSteps::open(const EngineOptions& options, const LoadProgress& progress) {
  const auto make = [this](const EngineOptions& o) -> Result<std::unique_ptr<backend::Backend>> {
    CANDOR_ASSIGN(auto inner, engine::make_named_backend(o));
    auto timed = std::make_unique<backend::TimedBackend>(std::move(inner), clock_);
    timed->watch(false);
    timed_ = timed.get();
    return timed;
  };
  return engine::open_with_backend(options, make, progress);
}

void WatchedSteps::take(const StepReport& report) {
  history_.take(report, is_watched_ ? microseconds(timed_->times()) : serve::OperationTimes{});
  if (is_watched_) timed_->times().clear();
  const bool is_turn = ++n_steps_ % kMeasuredOf == 0;
  const bool is_watched = is_turn && history_.is_looked_at(clock_.now_ns());
  if (is_watched == is_watched_) return;
  is_watched_ = is_watched;
  timed_->watch(is_watched_);
}

}  // namespace candor::apps
