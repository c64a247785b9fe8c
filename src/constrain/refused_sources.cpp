#include "constrain/refused_sources.h"

namespace candor::constrain {

std::optional<Error> RefusedSources::find(int32_t kind, std::string_view source) const {
  const std::lock_guard lock(mutex_);
  for (const Refused& one : refused_) {
    if (one.kind == kind && one.source == source) return one.error;
  }
  return std::nullopt;
}

void RefusedSources::add(int32_t kind, std::string_view source, const Error& error) {
  const bool is_for_good = error.kind == ErrorKind::kInvalidInput || error.kind == ErrorKind::kUnsupported;
  if (!is_for_good || source.size() > kMaxBytes) return;
  const std::lock_guard lock(mutex_);
  refused_.push_back({kind, std::string(source), error});
  n_bytes_ += source.size();
  while (refused_.size() > kMaxSources || n_bytes_ > kMaxBytes) {
    n_bytes_ -= refused_.front().source.size();
    refused_.pop_front();
  }
}

}  // namespace candor::constrain
