#pragma once
// Models of a hub that speaks the protocol of huggingface.co, in the cache layout that its own tools share:
//   ROOT/models--USER--REPO/{refs/main, blobs/DIGEST, snapshots/COMMIT/FILE -> ../../blobs/DIGEST}
// A download grows as blobs/DIGEST.incomplete, resumes where it stopped, never grows beyond the size that the hub
// states, and gets its name when its digest is right. A blob that is there already is used when it has its digest, and
// fetched again when it has not. Names that the hub sends are checked before they become paths.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace candor::hub {

// user/repo[:quant]. As on the hub, no part has "--" or ".." in it, or "-" or "." at its ends: two models never share a
// folder.
struct RepoName {
  std::string user;
  std::string repo;
  std::string quant;  // "" = the safetensors, or Q4_K_M, or the only GGUF file
};
Result<RepoName> parse_repo_name(std::string_view text);

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
