#include "platform/power.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace candor::platform {
namespace {

namespace fs = std::filesystem;

std::optional<uint64_t> read_number(const fs::path& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// "intel-rapl:0", and not "intel-rapl:0:1", which is a part of it.
bool is_package(const std::string& name) {
  constexpr std::string_view kPrefix = "intel-rapl:";
  return name.starts_with(kPrefix) && name.find(':', kPrefix.size()) == std::string::npos;
}

}  // namespace

std::vector<EnergyCounter> read_energy(const fs::path& root) {
  std::vector<EnergyCounter> counters;
  std::error_code failed;
  for (fs::directory_iterator at(root / "sys/class/powercap", failed), end; !failed && at != end;
       at.increment(failed)) {
    const fs::path folder = at->path();
    if (!is_package(folder.filename().string())) continue;
    EnergyCounter counter;
    std::ifstream(folder / "name") >> counter.name;
    const auto energy = read_number(folder / "energy_uj"), range = read_number(folder / "max_energy_range_uj");
    // "psys" is the whole board, with the packages in it.
    if (!energy || !range || !counter.name.starts_with("package")) continue;
    counter.microjoules = *energy;
    counter.range_microjoules = *range;
    counters.push_back(std::move(counter));
  }
  std::ranges::sort(counters, {}, &EnergyCounter::name);
  return counters;
}

}  // namespace candor::platform
