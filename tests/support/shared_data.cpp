#include "support/shared_data.h"

#include <cstdlib>

namespace candor::testing {

std::filesystem::path shared_data() {
  if (const char* path = std::getenv("CANDOR_TEST_DATA")) return path;
  return project_file("../shared/data");
}

std::filesystem::path project_file(const std::string& relative) {
  if (const char* path = std::getenv("CANDOR_TEST_PROJECT")) return std::filesystem::path(path) / relative;
  return std::filesystem::path(CANDOR_SOURCE_DIR) / relative;
}

std::filesystem::path goldens() {
  if (const char* path = std::getenv("CANDOR_TEST_GOLDENS")) return path;
  return CANDOR_GOLDENS_DIR;
}

}  // namespace candor::testing
