#pragma once
// The report of a load: percentiles as other servers' benchmarks define them (TTFT from sending to the first token; ITL
// between two tokens of one request; TPOT their mean within one request; E2E from sending to the end), and scenarios
// with a question of their own.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/bench/load.h"
#include "apps/bench/load_run.h"
#include "candor/engine.h"

namespace candor::apps {

struct ServiceGoal {
  double ttft_ms = 0;  // 0 = whatever
  double tpot_ms = 0;
};

// A run's figures. Requests that were refused or failed count as such, and not in the percentiles.
nlohmann::ordered_json load_report(const LoadRun& run, const Load& load, const ServiceGoal& goal);
std::string load_text(const nlohmann::ordered_json& report);

// What reading a prompt of n_long tokens costs those who decode: solo, undisturbed, and both at once.
Result<nlohmann::ordered_json> disturb_report(Engine& engine, int32_t n_long, int32_t n_decoding);
std::string disturb_text(const nlohmann::ordered_json& report);

// The same prompt twice: its first token cold and from the prefix cache, and whether the answers are equal.
Result<nlohmann::ordered_json> prefix_report(Engine& engine, int32_t n_prompt);
std::string prefix_text(const nlohmann::ordered_json& report);

}  // namespace candor::apps
