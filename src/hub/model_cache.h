#pragma once
// Models of a hub that lie on this machine, in the cache layout that its own tools share:
//   ROOT/models--USER--REPO/{refs/main, blobs/DIGEST, snapshots/COMMIT/FILE -> ../../blobs/DIGEST}

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "hub/repo_name.h"

namespace candor::hub {

struct CachedModel {
  std::string name;            // "user/repo"
  std::filesystem::path path;  // a GGUF file, or a folder of safetensors
  uint64_t n_bytes = 0;
};
// Complete models, by name. An absent root holds none.
std::vector<CachedModel> list_models(const std::filesystem::path& cache_root);

// The complete model of that name in the cache, or why not.
Result<std::filesystem::path> find_cached(const RepoName& name, const std::filesystem::path& cache_root);

}  // namespace candor::hub
