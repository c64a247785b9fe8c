#pragma once
// Where models of a hub lie on this machine: HF_HUB_CACHE, HF_HOME/hub, or ~/.cache/huggingface/hub.

#include <filesystem>

namespace candor::apps {

std::filesystem::path hub_cache_root();

}  // namespace candor::apps
