#include "engine/request/adapter_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "formats/quote.h"

namespace candor::engine {
namespace {

Error invalid(std::string message) {
  return {ErrorKind::kInvalidInput, std::move(message), "adapters"};
}

Result<void> check_list(const std::vector<RequestAdapter>& adapters) {
  if (adapters.size() > kMaxRequestAdapters) {
    return invalid(fmt::format("adapters: {} of them, expected at most {}", adapters.size(), kMaxRequestAdapters));
  }
  for (size_t i = 0; i < adapters.size(); ++i) {
    const RequestAdapter& adapter = adapters[i];
    if (!(adapter.scale >= -kMaxAdapterScale && adapter.scale <= kMaxAdapterScale)) {
      return invalid(fmt::format("adapter {}: scale {}; expected -{} to {}", formats::in_quotes(adapter.name),
                                 adapter.scale, kMaxAdapterScale, kMaxAdapterScale));
    }
    if (i > 0 && adapters[i - 1].name == adapter.name) {
      return invalid(fmt::format("adapter {} is named twice; expected once", formats::in_quotes(adapter.name)));
    }
  }
  return {};
}

}  // namespace

Result<void> choose_adapters(const Request& request, const AdapterRegistry& registry, ActiveRequest& active) {
  std::vector<RequestAdapter> adapters = request.adapters;
  std::ranges::sort(adapters, {}, &RequestAdapter::name);
  if (auto checked = check_list(adapters); !checked) return checked.error();
  struct Used {
    AdapterRegistry::Held held;
    float scale;
  };
  std::vector<Used> used;
  for (const RequestAdapter& adapter : adapters) {
    auto held = registry.find(adapter.name);
    if (!held) return held.error();
    const auto scale = static_cast<float>((*held)->info().scale * adapter.scale);
    if (scale != 0.0f) used.push_back({std::move(*held), scale});
  }
  // What they add is summed up in an order that names do not change.
  std::ranges::sort(used, {}, [](const Used& each) { return std::pair(each.held->info().hash, each.scale); });
  uint64_t& hash = active.spec.key.adapters_hash;
  for (Used& each : used) {
    active.spec.adapters.push_back({each.held->id(), each.scale});
    hash = hash_mix(hash_mix(hash, each.held->info().hash), std::bit_cast<uint32_t>(each.scale)) | 1;
    active.adapters.push_back(std::move(each.held));
  }
  return {};
}

}  // namespace candor::engine
