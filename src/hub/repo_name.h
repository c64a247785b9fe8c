#pragma once
// Names of models on a hub, and of what lies in one's repository. Names that a hub sends are checked before they become
// paths.

#include <cstddef>
#include <string>
#include <string_view>

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

// "user/repo".
std::string full_name(const RepoName& name);

// A part of a path: letters, digits, "-", "_" and ".", and neither "." nor "..".
bool is_plain_name(std::string_view text);
// A user's or a repository's name, by the hub's rules.
bool is_repo_part(std::string_view text);
// Of so many digits, in lower case.
bool is_hex(std::string_view text, size_t size);
// "Q4_K_M" in "x-Q4_K_M.gguf" and "Q4_K_M/x-00001-of-00002.gguf", not "Q4_K" in it.
bool names_quant(const std::string& file, const std::string& quant);

}  // namespace candor::hub
