#include "engine/request/adapter_registry.h"

#include <fmt/format.h>

#include <utility>

#include "formats/quote.h"

namespace candor::engine {
namespace {

constexpr size_t kMostNamed = 8;  // in an error

Error unknown(std::string_view name, const std::vector<std::string>& known) {
  std::string message = fmt::format("there is no adapter {}", formats::in_quotes(name));
  if (known.empty()) {
    message += ": none is loaded";
  } else {
    message += fmt::format("; there {} {}", known.size() == 1 ? "is" : "are", fmt::join(known, ", "));
    if (known.size() == kMostNamed) message += " and perhaps others";
  }
  return Error{ErrorKind::kNotFound, std::move(message), "adapters"};
}

}  // namespace

Result<AdapterRegistry::Held> AdapterRegistry::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  if (const auto at = entries_.find(name); at != entries_.end()) return at->second;
  std::vector<std::string> known;
  for (const auto& [other, entry] : entries_) {
    if (known.size() < kMostNamed) known.push_back(formats::in_quotes(other));
  }
  return unknown(name, known);
}

std::vector<AdapterInfo> AdapterRegistry::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<AdapterInfo> all;
  for (const auto& [name, entry] : entries_) all.push_back(entry->info());
  return all;
}

Result<void> AdapterRegistry::check_free(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  if (entries_.contains(name)) {
    return Error{
        ErrorKind::kInvalidInput,
        fmt::format("an adapter {} is loaded already: drop it first, or choose another name", formats::in_quotes(name)),
        "adapters"};
  }
  if (entries_.size() < kMaxAdapters) return {};
  return Error{ErrorKind::kOverloaded,
               fmt::format("{} adapters are loaded, as many as an engine holds: drop one first", kMaxAdapters),
               "adapters"};
}

Result<AdapterInfo> AdapterRegistry::add(AdapterInfo info, AdapterId id) {
  const std::string name = info.name;
  info.number = n_ever_++;
  auto entry = std::make_shared<const Entry>(std::move(info), id, *this);
  if (auto is_free = check_free(name); !is_free) return is_free.error();
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = entries_.emplace(name, std::move(entry));
  if (is_new) return at->second->info();
  return Error{ErrorKind::kInvalidInput, "an adapter of this name is loaded already", "adapters"};
}

Result<void> AdapterRegistry::drop(std::string_view name) {
  auto held = find(name);
  if (!held) return held.error();
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(name);
  if (at != entries_.end()) entries_.erase(at);
  return {};
}

std::vector<AdapterId> AdapterRegistry::take_freed() {
  const std::lock_guard lock(freed_mutex_);
  return std::exchange(freed_, {});
}

void AdapterRegistry::free(AdapterId id) {
  const std::lock_guard lock(freed_mutex_);
  freed_.push_back(id);
}

}  // namespace candor::engine
