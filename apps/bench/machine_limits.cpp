#include "apps/bench/machine_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/bench/cache_file.h"
#include "candor/version.h"
#include "kernels/kernels.h"
#include "platform/cpu_features.h"
#include "platform/float_mode.h"
#include "platform/topology.h"

namespace candor::apps {
namespace {

namespace fs = std::filesystem;
using kernels::MachineLimits;

constexpr std::array kFigures = {&MachineLimits::dram_read_bytes, &MachineLimits::l2_read_bytes,
                                 &MachineLimits::int8_ops, &MachineLimits::bf16_flops, &MachineLimits::f32_flops};

MachineLimits measure_together(const kernels::KernelTable& table, int32_t n_threads) {
  std::vector<MachineLimits> each(static_cast<size_t>(n_threads));
  std::vector<std::thread> threads;
  threads.reserve(each.size());
  for (MachineLimits& limits : each) {
    threads.emplace_back([&limits, &table] {
      const platform::ScopedFloatMode mode;
      limits = kernels::measure_limits(table);
    });
  }
  for (std::thread& thread : threads) thread.join();
  MachineLimits sum;
  for (const MachineLimits& limits : each) {
    for (const auto figure : kFigures) sum.*figure += limits.*figure;
  }
  return sum;
}

fs::path cache_file() {
  return cache_file_of("limits.json");
}

// Threads that take turns on one processor would each measure all of it.
int32_t threads_at_once(int32_t n_threads) {
  const platform::Topology topology = platform::read_topology();
  const double n_cpus = std::min<double>(topology.n_allowed(), topology.quota_cpus.value_or(topology.n_allowed()));
  return std::min(n_threads, std::max(1, static_cast<int32_t>(std::ceil(n_cpus))));
}

std::string key_of(const kernels::KernelTable& table, int32_t n_threads) {
  return fmt::format("{}, {}, {} threads, {}", platform::detect_cpu_features().brand, table.description, n_threads,
                     kVersion);
}

std::optional<MachineLimits> recall(const nlohmann::ordered_json& json, const std::string& key) {
  const auto entry = json.find(key);
  if (entry == json.end() || !entry->is_array() || entry->size() != kFigures.size()) return std::nullopt;
  MachineLimits limits;
  for (size_t i = 0; i < kFigures.size(); ++i) {
    if (!(*entry)[i].is_number()) return std::nullopt;
    limits.*kFigures[i] = (*entry)[i].get<double>();
    if (!(limits.*kFigures[i] > 0)) return std::nullopt;
  }
  return limits;
}

// The best of each figure: a busy moment does not lower a limit.
void remember(const std::string& key, const MachineLimits& limits) {
  const fs::path path = cache_file();
  auto json = read_cache(path);
  const MachineLimits known = recall(json, key).value_or(limits);
  auto best = nlohmann::ordered_json::array();
  for (const auto figure : kFigures) best.push_back(std::max(known.*figure, limits.*figure));
  json[key] = std::move(best);
  static_cast<void>(write_cache(path, json));
}

}  // namespace

Result<MachineLimits> measure_limits(int32_t n_threads) {
  CANDOR_ASSIGN(const kernels::KernelTable* table, kernels::select_table_from_environment());
  const int32_t n = threads_at_once(n_threads);
  const MachineLimits limits = measure_together(*table, n);
  remember(key_of(*table, n), limits);
  return limits;
}

std::optional<MachineLimits> known_limits(int32_t n_threads) {
  const auto table = kernels::select_table_from_environment();
  if (!table || n_threads < 1) return std::nullopt;
  const fs::path path = cache_file();
  const auto json = read_cache(path);
  if (const auto known = recall(json, key_of(**table, threads_at_once(n_threads)))) return known;
  if (!write_cache(path, json)) return std::nullopt;
  const auto measured = measure_limits(n_threads);
  return measured ? std::optional(*measured) : std::nullopt;
}

std::optional<MachineLimits> known_limits(const ModelInfo& info) {
  return info.backend == "cpu" ? known_limits(info.n_threads) : std::nullopt;
}

double limit_of(const MachineLimits& limits, std::string_view arithmetic) {
  for (const Arithmetic known : kArithmetics) {
    if (name_of(known) == arithmetic) return limits.ops(known);
  }
  return 0;
}

nlohmann::ordered_json limits_json(const MachineLimits& limits, int32_t n_threads) {
  return {{"threads", n_threads},
          {"dram_read_bytes_per_second", limits.dram_read_bytes},
          {"l2_read_bytes_per_second", limits.l2_read_bytes},
          {"int8_ops_per_second", limits.int8_ops},
          {"bf16_flops_per_second", limits.bf16_flops},
          {"f32_flops_per_second", limits.f32_flops}};
}

}  // namespace candor::apps
