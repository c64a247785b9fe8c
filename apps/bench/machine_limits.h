#pragma once
// What this machine can do at best, measured once and remembered (the best of several times): the figures that speeds
// are shown beside.
// Remembered in the user's cache folder (XDG_CACHE_HOME or ~/.cache, candor/limits.json) for each processor, kernel set
// and number of threads; `candor bench` measures anew.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "candor/info.h"
#include "kernels/limits.h"

namespace candor::apps {

// All threads at once, added up; takes about a second. More threads than processors (those allowed, and the cgroup's
// quota) reach what one for each does. Remembers the result where the cache folder can be written.
// Refuses what CANDOR_ISA names and this machine lacks.
Result<kernels::MachineLimits> measure_limits(int32_t n_threads);

// As remembered. Measures where nothing is and the result can be kept; else nothing. Nothing for no threads, which the
// reference backend has.
std::optional<kernels::MachineLimits> known_limits(int32_t n_threads);
// Of what computes a model; nothing where it is not the processors alone.
std::optional<kernels::MachineLimits> known_limits(const ModelInfo& info);

// Operations a second in ModelInfo::arithmetic; 0 of an unknown one.
double limit_of(const kernels::MachineLimits& limits, std::string_view arithmetic);

nlohmann::ordered_json limits_json(const kernels::MachineLimits& limits, int32_t n_threads);

}  // namespace candor::apps
