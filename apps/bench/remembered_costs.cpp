#include "apps/bench/remembered_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "apps/bench/cache_file.h"
#include "candor/version.h"
#include "engine/open/step_costs.h"
#include "kernels/kernels.h"
#include "platform/cpu_features.h"
#include "platform/topology.h"

namespace candor::apps {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kFile = "costs.json";

// A file, or the files of a folder, by size and time of the last change.
std::string trace_of(const fs::path& path) {
  std::error_code error;
  uint64_t n_bytes = 0;
  int64_t newest = 0;
  const auto add = [&](const fs::path& file) {
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) return;
    n_bytes += fs::file_size(file, ignored);
    newest = std::max<int64_t>(newest, fs::last_write_time(file, ignored).time_since_epoch().count());
  };
  add(path);
  for (auto it = fs::directory_iterator(path, error); !error && it != fs::directory_iterator(); it.increment(error))
    add(it->path());
  return fmt::format("{} {} {}", fs::weakly_canonical(path, error).string(), n_bytes, newest);
}

std::string key_of(const EngineOptions& o) {
  const auto table = kernels::select_table_from_environment();
  const platform::Topology topology = platform::read_topology();
  std::string key = fmt::format(
      "{}, {}, {}, {} of {} threads, quota {}, {}, model {}, quantize {}, fast {}, context {}, cache {} {} {}, "
      "rows {}, at once {}",
      kVersion, platform::detect_cpu_features().brand, table ? (*table)->description : "", o.n_threads,
      topology.n_allowed(), topology.quota_cpus.value_or(0), o.backend, trace_of(o.model_path), o.quantize,
      o.fast_weights, o.n_ctx, o.kv_type ? static_cast<int>(*o.kv_type) : -1, o.kv_bytes, o.kv_blocks, o.max_rows,
      o.max_running);
  key += fmt::format(", drafts {}, ranks {}", static_cast<int>(o.speculation), o.n_ranks);
  if (!o.draft_path.empty()) key += " " + trace_of(o.draft_path);
  return key;
}

bool read_number(const Json& json, const char* name, double& value) {
  const auto it = json.find(name);
  if (it == json.end() || !it->is_number()) return false;
  value = it->get<double>();
  return true;
}

std::optional<StepCosts> read_costs(const Json& json) {
  const auto points = json.is_object() ? json.find("points") : json.end();
  if (!json.is_object() || points == json.end() || !points->is_array()) return std::nullopt;
  StepCosts costs;
  for (const Json& point : *points) {
    if (!point.is_array() || point.size() != 2 || !point[0].is_number_integer() || !point[1].is_number())
      return std::nullopt;
    costs.points.push_back({point[0].get<int32_t>(), point[1].get<double>()});
  }
  const bool is_whole = read_number(json, "look_back_ns", costs.look_back_ns) &&
                        read_number(json, "attend_ns", costs.attend_ns) &&
                        read_number(json, "out_row_ms", costs.out_row_ms) &&
                        read_number(json, "draft_ms", costs.draft_ms) &&
                        read_number(json, "draft_read_ms", costs.draft_read_ms);
  return is_whole ? std::optional(std::move(costs)) : std::nullopt;
}

Json json_of(const StepCosts& costs) {
  Json points = Json::array();
  for (const StepCosts::Point& point : costs.points) points.push_back({point.n_rows, point.ms});
  return {{"points", std::move(points)},
          {"look_back_ns", costs.look_back_ns},
          {"attend_ns", costs.attend_ns},
          {"out_row_ms", costs.out_row_ms},
          {"draft_ms", costs.draft_ms},
          {"draft_read_ms", costs.draft_read_ms}};
}

}  // namespace

RememberedCosts::RememberedCosts(const EngineOptions& options) : key_(key_of(options)) {}

std::optional<StepCosts> RememberedCosts::recall() const {
  const Json json = read_cache(cache_file_of(kFile));
  const auto it = json.find(key_);
  auto costs = it == json.end() ? std::nullopt : read_costs(*it);
  return costs && engine::check_costs(*costs) ? costs : std::nullopt;
}

void RememberedCosts::keep(const StepCosts& costs) const {
  if (costs.points.empty()) return;
  const fs::path path = cache_file_of(kFile);
  Json json = read_cache(path);
  json.erase(key_);
  while (json.size() >= kMostKept) json.erase(json.begin());
  json[key_] = json_of(costs);
  static_cast<void>(write_cache(path, json));
}

void RememberedCosts::take(const StepReport& report) {
  if (ratios_.size() >= kSteps || !(report.expected_ms > 0) || !(report.compute_ms > 0)) return;
  ratios_.push_back(report.compute_ms / report.expected_ms);
  if (ratios_.size() < kSteps) return;
  std::vector<double> sorted = ratios_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(kSteps / 2);
  std::ranges::nth_element(sorted, middle);
  is_off_ = *middle > kMostDeviation || *middle < 1 / kMostDeviation;
}

bool RememberedCosts::forget_if_off() {
  if (!is_off_.exchange(false)) return false;
  const fs::path path = cache_file_of(kFile);
  Json json = read_cache(path);
  if (json.erase(key_) > 0) static_cast<void>(write_cache(path, json));
  return true;
}

}  // namespace candor::apps
