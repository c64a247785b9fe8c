#pragma once
// Energy that the processors used, where the system tells: RAPL counters of /sys/class/powercap, which Intel's and
// AMD's processors fill. Most systems show them to root alone, virtual machines seldom have them. Read below a root
// folder, so that tests feed trees of their own.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace candor::platform {

struct EnergyCounter {
  std::string name;              // "package-0"
  uint64_t microjoules = 0;      // since some moment; begins anew behind the range
  uint64_t range_microjoules = 0;
};

// One for each package; empty where the system does not tell.
std::vector<EnergyCounter> read_energy(const std::filesystem::path& root = "/");

}  // namespace candor::platform
