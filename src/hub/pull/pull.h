#pragma once
// Downloads from a hub that speaks the protocol of huggingface.co, into the cache of model_cache.h. A download grows as blobs/DIGEST.incomplete, resumes where it stopped, never grows beyond the size that the hub
// states, and gets its name when its digest is right. A blob that is there already is used when it has its digest, and
// fetched again when it has not. Names that the hub sends are checked before they become paths.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "hub/repo_name.h"

namespace candor::hub {

struct HubOptions {
  std::string endpoint = "https://huggingface.co";
  std::filesystem::path cache_root;
  std::string token;
};

// The file that is being fetched; false stops.
using PullProgress = std::function<bool(std::string_view file, uint64_t done_bytes, uint64_t total_bytes)>;

struct PulledModel {
  std::filesystem::path path;  // what a command takes as MODEL: a GGUF file, or the folder
  uint64_t n_bytes = 0;
  std::vector<std::string> repaired = {};  // files that were damaged in the cache
};
Result<PulledModel> pull(const RepoName& name, const HubOptions& options, const PullProgress& progress);

}  // namespace candor::hub
