#include "serve/core/adapter_terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "serve/core/json_body.h"

namespace candor::serve {
namespace {

Error bad_lora(std::string message) {
  return {ErrorKind::kInvalidInput, std::move(message), "lora"};
}

}  // namespace

Result<std::vector<RequestAdapter>> AdapterTerms::by_number(const Json& list) const {
  std::vector<RequestAdapter> named;
  if (list.size() > kMaxAdapters)
    return bad_lora(fmt::format("lora has {} members, expected at most {}", list.size(), kMaxAdapters));
  const std::vector<AdapterInfo> adapters = this->list();
  for (const Json& each : list) {
    if (!each.is_object()) return bad_lora(fmt::format("lora holds {}, expected objects of id and scale", shown(each)));
    Fields fields(each, "lora");
    const auto id = fields.integer("id", 0, INT64_MAX);
    const double scale = fields.number("scale", -kMaxAdapterScale, kMaxAdapterScale).value_or(1.0);
    if (fields.fault()) return *fields.fault();
    const auto adapter = std::ranges::find(adapters, id.value_or(-1), &AdapterInfo::number);
    if (adapter == adapters.end()) {
      return bad_lora(
          fmt::format("lora names the adapter {}, which is not loaded; GET /lora-adapters lists those that are",
                      id ? std::to_string(*id) : "without an id"));
    }
    const auto same = std::ranges::find(named, adapter->name, &RequestAdapter::name);
    if (same != named.end()) return bad_lora(fmt::format("lora names the adapter {} twice", *id));
    named.push_back({adapter->name, scale});
  }
  return named;
}

std::optional<std::vector<RequestAdapter>> AdapterTerms::read(Fields& fields) const {
  if (const Json* lora = fields.array("lora"); lora != nullptr) {
    auto named = by_number(*lora);
    if (named) return std::move(*named);
    fields.refuse_with(named.error());
    return std::nullopt;
  }
  const Json* adapters = fields.array("adapters");
  if (adapters == nullptr) return std::nullopt;
  std::vector<RequestAdapter> named;
  for (const Json& each : *adapters) {
    RequestAdapter one;
    if (each.is_string()) one.name = each.get<std::string>();
    if (each.is_object()) {
      Fields inner(each, "adapters");
      one.name = inner.text("name").value_or("");
      one.scale = inner.number("scale", -kMaxAdapterScale, kMaxAdapterScale).value_or(1.0);
      if (inner.fault()) fields.refuse_with(*inner.fault());
    }
    if (one.name.empty() || named.size() == kMaxRequestAdapters) {
      fields.refuse("adapters",
                    fmt::format("adapters holds {}, expected at most {} names, or objects of name and scale",
                                shown(each), kMaxRequestAdapters));
      return std::nullopt;
    }
    named.push_back(std::move(one));
  }
  return named;
}

std::vector<RequestAdapter> AdapterTerms::defaults() const {
  std::vector<RequestAdapter> there;
  {
    const std::lock_guard lock(mutex_);
    there = defaults_;
  }
  if (there.empty()) return there;
  const std::vector<AdapterInfo> adapters = list();
  std::erase_if(there, [&](const RequestAdapter& one) {
    return std::ranges::find(adapters, one.name, &AdapterInfo::name) == adapters.end();
  });
  return there;
}

Result<void> AdapterTerms::set_defaults(const Json& list) {
  if (!list.is_array()) return bad_lora("the body is no list, expected [{\"id\": N, \"scale\": X}, ...]");
  auto named = by_number(list);
  if (!named) return named.error();
  const std::lock_guard lock(mutex_);
  defaults_ = std::move(*named);
  return {};
}

}  // namespace candor::serve
