#include "capi/registry.h"

#include <mutex>
#include <unordered_map>
#include <utility>

namespace candor::capi {
namespace {

struct Registry {
  std::mutex mutex;
  candor_handle newest = 0;
  std::unordered_map<candor_handle, std::shared_ptr<Object>> objects;
};

// The one of the process: C has nothing else to keep it in. Never destroyed, as threads may go on at its end.
Registry& registry() {
  static Registry& one = *new Registry;
  return one;
}

}  // namespace

candor_handle add_object(std::shared_ptr<Object> object) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.objects.emplace(all.newest + 1, std::move(object));
  return ++all.newest;
}

std::shared_ptr<Object> find_object(candor_handle handle) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto it = all.objects.find(handle);
  return it == all.objects.end() ? nullptr : it->second;
}

std::shared_ptr<Object> remove_object(candor_handle handle) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto it = all.objects.find(handle);
  if (it == all.objects.end()) return nullptr;
  auto object = std::move(it->second);
  all.objects.erase(it);
  return object;
}

}  // namespace candor::capi
