#include "platform/power.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace candor::platform {
namespace {

class PowerTree : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("candor-power-" + std::to_string(::getpid()));
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void add(const std::string& folder, const std::string& name, const std::string& energy) const {
    const auto path = root_ / "sys/class/powercap" / folder;
    std::filesystem::create_directories(path);
    std::ofstream(path / "name") << name << "\n";
    std::ofstream(path / "energy_uj") << energy << "\n";
    std::ofstream(path / "max_energy_range_uj") << "1000000\n";
  }

  std::filesystem::path root_;
};

TEST_F(PowerTree, packages_count_and_their_parts_do_not) {
  add("intel-rapl:1", "package-1", "100000");
  add("intel-rapl:0", "package-0", "700000");
  add("intel-rapl:0:0", "core", "300000");
  add("intel-rapl:2", "psys", "900000");
  const auto counters = read_energy(root_);
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters[0].name, "package-0");
  EXPECT_EQ(counters[0].microjoules, 700000u);
  EXPECT_EQ(counters[1].microjoules, 100000u);
  EXPECT_EQ(counters[1].range_microjoules, 1000000u);
}

TEST_F(PowerTree, what_cannot_be_read_is_not_there) {
  EXPECT_TRUE(read_energy(root_ / "nowhere").empty());
  add("intel-rapl:0", "package-0", "secret");
  EXPECT_TRUE(read_energy(root_).empty());
}

}  // namespace
}  // namespace candor::platform
