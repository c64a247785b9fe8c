#pragma once
// Where models of a hub lie on this machine: HF_HUB_CACHE, HF_HOME/hub, or ~/.cache/huggingface/hub.

#include <filesystem>
#include <string>

namespace candor::apps {

std::filesystem::path hub_cache_root();
// Of the variable; empty where it is not set.
std::string environment(const char* name);

}  // namespace candor::apps
