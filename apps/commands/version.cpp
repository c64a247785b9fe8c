#include "apps/commands/version.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "backend/all/make_backend.h"
#include "candor/version.h"
#include "kernels/kernels.h"

namespace candor::apps {

std::string version_text() {
  return std::string("candor ") + kVersion;
}

std::string version_json() {
  constexpr std::string_view kCommit = CANDOR_COMMIT;
  nlohmann::ordered_json json = {{"version", kVersion}, {"commit", nullptr}, {"numerics", kNumericsVersion}};
  if (!kCommit.empty()) json["commit"] = kCommit;
  json["kernels"] = nlohmann::ordered_json::array();
  for (const kernels::KernelTable* table : kernels::runnable_tables()) json["kernels"].push_back(table->name);
  json["devices"] = {"cpu"};
  if (backend::has_gpu_kernels()) json["devices"].push_back("cuda");
  return json.dump();
}

}  // namespace candor::apps
