#pragma once
// Loads adapters for an open model: the file is read and checked on any thread, its matrices go to the backend on the
// engine thread.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "candor/adapters.h"
#include "candor/options.h"
#include "engine/open/loaded_model.h"
#include "model/adapter/adapter_file.h"

namespace candor::engine {

// Read, and not yet in the backend.
struct ReadAdapter {
  AdapterSource source{};
  std::unique_ptr<model::AdapterFile> file{};
  std::vector<std::vector<float>> row_lengths{};  // model/adapter/adapter.h
};

// Name and scale alone.
Result<void> check_source(const AdapterSource& source);
// base: the model's file; its copies may be dropped. Any thread.
Result<ReadAdapter> read_adapter(const AdapterSource& source, const EngineOptions& options, const model::ArchSpec& spec,
                                 const formats::ModelFile& base);
// kOutOfMemory where it does not fit beside all else.
Result<void> check_adapter_fits(const ReadAdapter& adapter, const model::ArchSpec& spec,
                                const backend::Backend& backend);
Result<PlacedAdapter> place_adapter(ReadAdapter adapter, model::Model& model);

// All that the options name, in their order.
Result<std::vector<PlacedAdapter>> load_adapters(const EngineOptions& options, const formats::ModelFile& base,
                                                 model::Model& model);
// Memory that load_adapters() will take.
Result<uint64_t> adapter_bytes(const EngineOptions& options, const model::ArchSpec& spec,
                               const formats::ModelFile& base, const backend::Backend& backend);

}  // namespace candor::engine
