#include "platform/cgroup.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "platform/topology.h"

namespace candor::platform {
namespace {

namespace fs = std::filesystem;

// One mounted hierarchy: where it is, and which folder of it is mounted there.
struct Mount {
  std::string point;
  std::string mounted_folder;
};

// The files that one version of the interface uses.
struct FileNames {
  bool quota_in_one_file;  // "max 100000" | two files
  const char* memory_limit;
  const char* memory_used;
};
constexpr FileNames kV2{true, "memory.max", "memory.current"};
constexpr FileNames kV1{false, "memory.limit_in_bytes", "memory.usage_in_bytes"};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool list_has(std::string_view comma_list, std::string_view name) {
  const std::vector<std::string> names = split(comma_list, ',');
  return std::find(names.begin(), names.end(), name) != names.end();
}

// controller: "" for the unified hierarchy. Lines of mountinfo: "... FOLDER POINT ... - TYPE SOURCE OPTIONS".
std::optional<Mount> find_mount(std::string_view mountinfo, std::string_view controller) {
  for (const std::string& line : split(mountinfo, '\n')) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> left = split(std::string_view(line).substr(0, dash), ' ');
    const std::vector<std::string> right = split(std::string_view(line).substr(dash + 3), ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    const bool matches =
        controller.empty() ? right[0] == "cgroup2" : right[0] == "cgroup" && list_has(right[2], controller);
    if (matches) return Mount{left[4], left[3]};
  }
  return std::nullopt;
}

// Lines of /proc/self/cgroup: "ID:CONTROLLERS:FOLDER"; the unified hierarchy has no controllers.
std::optional<std::string> find_folder(std::string_view self_cgroup, std::string_view controller) {
  for (const std::string& line : split(self_cgroup, '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view names = std::string_view(line).substr(first + 1, second - first - 1);
    if (controller.empty() ? names.empty() : list_has(names, controller)) return line.substr(second + 1);
  }
  return std::nullopt;
}

// Folders of the process's group from itself up to the mount point; a container may see only the last.
std::vector<fs::path> group_folders(const fs::path& root, std::string_view controller) {
  const std::string self = read_small_file(root / "proc/self/cgroup");
  const std::optional<Mount> mount = find_mount(read_small_file(root / "proc/self/mountinfo"), controller);
  std::optional<std::string> folder = find_folder(self, controller);
  if (!mount || !folder) return {};
  if (mount->mounted_folder != "/" && folder->starts_with(mount->mounted_folder))
    folder->erase(0, mount->mounted_folder.size());
  const fs::path top = root / fs::path(mount->point).relative_path();
  std::vector<fs::path> folders = {top};
  for (const fs::path& part : fs::path(*folder).relative_path()) {
    if (part == "..") return {top};
    folders.push_back(folders.back() / part);
  }
  return folders;
}

template <class T>
void keep_smaller(std::optional<T>& kept, std::optional<T> seen) {
  if (seen && (!kept || *seen < *kept)) kept = seen;
}

std::optional<double> read_quota(const fs::path& folder, const FileNames& names) {
  std::string quota_text;
  std::string period_text;
  if (names.quota_in_one_file) {
    const std::vector<std::string> parts = split(read_small_file(folder / "cpu.max"), ' ');
    if (parts.size() < 2) return std::nullopt;
    quota_text = parts[0];
    period_text = parts[1];
  } else {
    quota_text = read_small_file(folder / "cpu.cfs_quota_us");
    period_text = read_small_file(folder / "cpu.cfs_period_us");
  }
  const std::optional<uint64_t> quota = leading_number(quota_text);  // "max" and "-1" are no numbers
  const std::optional<uint64_t> period = leading_number(period_text);
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

void read_memory(const fs::path& folder, const FileNames& names, CgroupLimits& limits) {
  const std::optional<uint64_t> limit = leading_number(read_small_file(folder / names.memory_limit));
  constexpr uint64_t kUnlimited = uint64_t{1} << 60;  // v1 writes a number near 2^63
  if (!limit || *limit >= kUnlimited) return;
  keep_smaller(limits.memory_limit, limit);
  const uint64_t used = leading_number(read_small_file(folder / names.memory_used)).value_or(0);
  const std::string statistics = read_small_file(folder / "memory.stat");
  const std::optional<std::string> inactive = line_after(statistics, "inactive_file ");
  const uint64_t reclaimable = std::min(used, inactive ? leading_number(*inactive).value_or(0) : 0);
  const uint64_t held = used - reclaimable;
  keep_smaller(limits.memory_available, std::optional<uint64_t>(*limit > held ? *limit - held : 0));
}

void read_hierarchy(const fs::path& root, std::string_view controller, const FileNames& names, CgroupLimits& limits) {
  for (const fs::path& folder : group_folders(root, controller)) {
    if (controller != "memory" && controller != "cpuset") keep_smaller(limits.quota_cpus, read_quota(folder, names));
    if (controller.empty() || controller == "memory") read_memory(folder, names, limits);
    for (const char* name : {"cpuset.cpus.effective", "cpuset.effective_cpus"}) {
      std::vector<int32_t> cpus = parse_cpu_list(read_small_file(folder / name));
      if (!cpus.empty()) limits.cpuset = std::move(cpus);
    }
  }
}

}  // namespace

std::string read_small_file(const fs::path& path) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char buffer[4096];
  while (file && text.size() < kMaxBytes) {
    file.read(buffer, sizeof(buffer));
    text.append(buffer, static_cast<size_t>(file.gcount()));
  }
  return text;
}

std::optional<uint64_t> leading_number(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

std::optional<std::string> line_after(std::string_view text, std::string_view key) {
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    const size_t start = line.find_first_not_of(" \t", key.size());
    return start == std::string::npos ? std::string() : line.substr(start);
  }
  return std::nullopt;
}

CgroupLimits read_cgroup_limits(const fs::path& root) {
  CgroupLimits limits;
  read_hierarchy(root, "", kV2, limits);
  for (const std::string_view controller : {"cpu", "memory", "cpuset"}) read_hierarchy(root, controller, kV1, limits);
  return limits;
}

}  // namespace candor::platform
