// candor doctor: what this machine has, what will be used, what is wrong.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/options/arguments.h"
#include "apps/options/model_choice.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "backend/all/gpus.h"
#include "backend/all/make_backend.h"
#include "candor/version.h"
#include "formats/model_file.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "platform/cpu_features.h"
#include "platform/numa.h"
#include "platform/topology.h"

namespace candor::apps {
namespace {

struct Finding {
  std::string name;
  std::string value;
  std::string problem;  // empty: fine
};

std::string huge_page_mode() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  std::getline(file, line);
  const size_t begin = line.find('['), end = line.find(']');
  return begin == std::string::npos || end == std::string::npos ? "unknown" : line.substr(begin + 1, end - begin - 1);
}

Finding memory_finding(const platform::Topology& topology) {
  std::string value = fmt::format("{} in all, {} available", format_bytes(topology.memory_bytes),
                                  format_bytes(topology.memory_available_bytes));
  if (topology.memory_limit)
    value += fmt::format(", limited to {} by the cgroup", format_bytes(*topology.memory_limit));
  const bool low = topology.memory_available_bytes != 0 && topology.memory_available_bytes < (uint64_t{1} << 30);
  return {"memory", value, low ? "less than 1 GB is available: close something, or use a small model" : ""};
}

// What `serve` and --ranks make of them.
Finding numa_finding(const platform::Topology& topology) {
  std::string value = fmt::format("{}", std::max<size_t>(1, topology.numa_nodes.size()));
  const auto domains = platform::usable_domains(topology);
  for (size_t i = 0; domains.size() > 1 && i < domains.size(); ++i) {
    value += fmt::format("{}node {}: {} cores, {}", i == 0 ? " (" : "; ", domains[i].id, domains[i].n_cores,
                         format_bytes(domains[i].memory_bytes));
  }
  if (domains.size() > 1) value += ")";
  const int32_t n_ranks = platform::advise_processes(topology);
  if (n_ranks > 1) value += fmt::format(": serve starts {} ranks, each bound to one (--ranks 1: none)", n_ranks);
  if (n_ranks == 1 && domains.size() > 1) value += ": too unequal for a rank each";
  return {"NUMA nodes", value, ""};
}

Finding backend_finding() {
  auto backend = backend::make_backend("cpu", {});
  if (!backend) return {"kernels", "", backend.error().message};
  std::string value = (*backend)->info().description;
  const auto chosen = kernels::select_table_from_environment();
  const std::string_view fastest = kernels::runnable_tables().back()->name;
  if (chosen && (*chosen)->name != fastest) {
    value += fmt::format(" (CANDOR_ISA={}; without it {})", (*chosen)->name, fastest);
  }
  return {"kernels", value, ""};
}

void add_gpu_findings(std::vector<Finding>& findings) {
  const std::vector<backend::GpuFinding> gpus = backend::examine_gpus();
  for (size_t i = 0; i < gpus.size(); ++i) {
    findings.push_back({gpus.size() == 1 ? "GPU" : fmt::format("GPU {}", i), gpus[i].value, gpus[i].problem});
  }
}

Finding model_finding() {
  auto path = shipped_model();
  if (!path) return {"shipped model", "", path.error().message};
  auto file = formats::open_model_file(*path);
  if (!file) return {"shipped model", path->string(), file.error().message};
  auto spec = model::read_arch(**file);
  if (!spec) return {"shipped model", path->string(), spec.error().message};
  return {"shipped model",
          fmt::format("{} ({}, {} layers of {})", path->string(), spec->family, spec->blocks.size(), spec->dim), ""};
}

std::vector<Finding> examine() {
  const platform::CpuFeatures cpu = platform::detect_cpu_features();
  const platform::Topology topology = platform::read_topology();
  const platform::ThreadAdvice advice = platform::advise_threads(topology);
  const std::string huge = huge_page_mode();
  std::vector<Finding> findings;
  findings.push_back({"candor", fmt::format("{} (numerics {})", kVersion, kNumericsVersion), ""});
  findings.push_back({"processor", fmt::format("{} ({})", cpu.brand.empty() ? "unnamed" : cpu.brand, cpu.arch), ""});
  findings.push_back({"instructions", platform::to_string(cpu),
                      cpu.avx2 || cpu.arch != "x86-64" ? "" : "no AVX2: the portable kernels are slow"});
  findings.push_back({"threads", advice.reason, ""});
  findings.push_back(numa_finding(topology));
  findings.push_back(memory_finding(topology));
  findings.push_back({"huge pages", huge,
                      huge == "never"
                          ? "off: large models read slower (echo madvise > /sys/kernel/mm/transparent_hugepage/enabled)"
                          : ""});
  findings.push_back(backend_finding());
  add_gpu_findings(findings);
  findings.push_back(model_finding());
  return findings;
}

int run(bool json) {
  const std::vector<Finding> findings = examine();
  bool healthy = true;
  nlohmann::ordered_json report;
  std::string text;
  const Style style(STDOUT_FILENO);
  for (const Finding& finding : findings) {
    healthy = healthy && finding.problem.empty();
    report[finding.name] = {{"value", finding.value}, {"problem", finding.problem}};
    text += fmt::format("{:<14} {}\n", finding.name, printable(finding.value));
    if (!finding.problem.empty())
      text += fmt::format("{:<14} {}\n", "", style.yellow("! " + printable(finding.problem)));
  }
  text += healthy ? style.green("nothing is wrong\n") : style.yellow("see the lines marked with !\n");
  write_out(json ? report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n" : text);
  return kDone;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("doctor", "what this machine has, what will be used, what is wrong");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "as JSON");
  command->callback([json, &action] { action = [json] { return run(*json); }; });
}

}  // namespace candor::apps
