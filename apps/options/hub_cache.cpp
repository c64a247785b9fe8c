#include "apps/options/hub_cache.h"

#include <cstdlib>

namespace candor::apps {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// The order of huggingface_hub's own tools.
std::filesystem::path hub_cache_root() {
  if (const std::string cache = environment("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return std::filesystem::path(home) / "hub";
  return std::filesystem::path(environment("HOME")) / ".cache" / "huggingface" / "hub";
}

}  // namespace candor::apps
