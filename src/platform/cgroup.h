#pragma once
// Limits that control groups set on this process, v1 and v2. Internal to topology.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace candor::platform {

struct CgroupLimits {
  std::optional<double> quota_cpus;
  std::optional<uint64_t> memory_limit;      // the smallest on the way up
  std::optional<uint64_t> memory_available;  // the smallest of limit - use (reclaimable file pages not counted)
  std::vector<int32_t> cpuset;               // empty = not limited
};

CgroupLimits read_cgroup_limits(const std::filesystem::path& root);

// Text of a small file, at most 1 MiB; empty when it can't be read.
std::string read_small_file(const std::filesystem::path& path);

// The unsigned number that the text starts with, after spaces; nothing when there is none.
std::optional<uint64_t> leading_number(std::string_view text);

// The rest of the first line that starts with `key`, without leading spaces; nothing when there is none.
std::optional<std::string> line_after(std::string_view text, std::string_view key);

}  // namespace candor::platform
