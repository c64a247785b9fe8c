#pragma once
// The interface by which the server loads models, so that it knows nothing of folders and options.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "candor/engine.h"

namespace candor::serve {

// A model that may be loaded.
struct ModelSource {
  std::string name{};  // what clients ask for
  std::vector<std::string> aliases{};
  std::filesystem::path path{};
  uint64_t file_bytes = 0;
  int64_t modified = 0;  // seconds since 1970

  bool operator==(const ModelSource&) const = default;
};

struct OpenedModel {
  std::shared_ptr<void> kept{};  // outlives the engine
  std::unique_ptr<Engine> engine{};
  double read_limit = 0;  // bytes a second that this machine's memory gives; 0: unknown
};

class ModelLoader {
 public:
  virtual ~ModelLoader() = default;
  // What there is now, in order, each name once. One thread at a time; may take as long as folders are read.
  virtual std::vector<ModelSource> list() = 0;
  // Bytes of memory at the worst moment, before a weight is read. The thread that loads.
  virtual Result<uint64_t> plan(const ModelSource& source) = 0;
  // Fails soon once `stop` is true. The thread that loads.
  virtual Result<OpenedModel> open(const ModelSource& source, const std::atomic<bool>& stop) = 0;
};

}  // namespace candor::serve
