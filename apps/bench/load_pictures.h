#pragma once
// A load over time, for people: every request from its arrival to its end, tokens a second, and requests in work.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/bench/load_run.h"
#include "apps/charts/report_page.h"
#include "apps/charts/svg.h"

namespace candor::apps {

// knows_queue: the records say how long a request waited before it was computed, which only an engine in this process
// tells.
std::vector<Svg> load_pictures(const LoadRun& run, bool knows_queue);

// json: {..., results: load_report()}.
ReportPage load_page(const std::string& heading, const nlohmann::ordered_json& json, std::vector<Svg> pictures);

}  // namespace candor::apps
