#pragma once
// What the functions of candor.h give as JSON. Any thread.

#include <string>
#include <vector>

#include "candor/engine.h"

namespace candor::capi {

std::string info_json(const ModelInfo& info);
// Totals, and of each distribution count, sum, largest, and the quantiles 50, 90 and 99 %.
std::string adapters_json(const std::vector<AdapterInfo>& adapters);
std::string metrics_json(const EngineStats& stats, const EngineMetrics& metrics, const DeviceStats& device);
std::string summary_json(const RequestSummary& summary);
std::string explanation_text(const Engine& engine, const TokenEvent& event);
std::string messages_json(const std::vector<Message>& messages);

}  // namespace candor::capi
