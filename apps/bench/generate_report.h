#pragma once
// What `candor bench generate` tells: a row for each case, and the same as pictures. The rows are JSON, as --json
// prints them.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/bench/generate.h"
#include "apps/charts/report_page.h"
#include "apps/charts/svg.h"
#include "backend/split.h"
#include "kernels/limits.h"
#include "model/model.h"

namespace candor::apps {

struct MeasuredCase {
  GenerateCase run_case;
  std::vector<double> prefill, decode;  // tokens a second, one for each repetition, ascending
  backend::RankTraffic traffic{};       // of one repetition's decoding
};

nlohmann::ordered_json generate_row(const MeasuredCase& measured, const model::Model& model,
                                    const kernels::MachineLimits& limits);

std::string generate_table_head(const nlohmann::ordered_json& report);
std::string generate_table_row(const nlohmann::ordered_json& row);
// What ranks say to each other; nothing where there is one.
std::string ranks_row(const nlohmann::ordered_json& row, const model::Model& model);

// report: {model, backend, arithmetic, limits, results}. Prefill, decode and latency, over prompts where there are
// several, else over batches; with the K/V cache and without it in one picture.
std::vector<Svg> generate_pictures(const nlohmann::ordered_json& report);
std::string generate_heading(const nlohmann::ordered_json& report);
ReportPage generate_page(const nlohmann::ordered_json& report);

}  // namespace candor::apps
