#pragma once
// The models that `candor serve` offers where there are several: given one by one, in a folder, and those that `candor
// pull` fetched. One whose name is taken already is left out, and said.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/remembered_costs.h"
#include "candor/options.h"
#include "obs/log.h"
#include "serve/core/model_loader.h"

namespace candor::apps {

struct GivenModel {
  std::string name{};
  std::filesystem::path path{};
};

// FILE, NAME=FILE, or user/repo[:quant] of the hub's cache. A file whose name holds '=' is that file.
Result<GivenModel> read_given_model(const std::string& text);

// A duration, or seconds where it has no unit. Nothing where it is neither.
std::optional<double> keep_alive_of(const std::string& text);

struct ServedModelsOptions {
  std::vector<GivenModel> given{};
  std::optional<std::filesystem::path> folder{};
  bool has_pulled = false;
  std::function<EngineOptions(const std::filesystem::path& path)> engine{};
};

class ServedModels final : public serve::ModelLoader {
 public:
  static constexpr size_t kMostModels = 10'000;

  // The log is borrowed.
  ServedModels(ServedModelsOptions options, const obs::Log& log) : options_(std::move(options)), log_(log) {}

  std::vector<serve::ModelSource> list() override;
  Result<uint64_t> plan(const serve::ModelSource& source) override;
  Result<serve::OpenedModel> open(const serve::ModelSource& source, const std::atomic<bool>& stop) override;

  // Costs that turned out to be off are forgotten: true where there were such.
  bool forget_costs_that_are_off();

 private:
  void add(std::string name, const std::filesystem::path& path, std::vector<serve::ModelSource>& all);
  void add_folder(std::vector<serve::ModelSource>& all);
  void add_pulled(std::vector<serve::ModelSource>& all);
  void warn_once(const std::string& words);

  const ServedModelsOptions options_;
  const obs::Log& log_;
  std::set<std::string> warned_;     // of list()
  std::set<std::string> names_;  // of list(), while it goes on
  std::mutex mutex_;
  std::vector<std::weak_ptr<RememberedCosts>> costs_;  // guarded by mutex_
};

}  // namespace candor::apps
