#include "engine/open/adapter_loading.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "formats/quote.h"
#include "model/adapter/adapter.h"
#include "model/model.h"
#include "platform/topology.h"

namespace candor::engine {
namespace {

using formats::in_quotes;

Error bad(const std::string& message) {
  return fail(ErrorKind::kInvalidInput, message, "adapters");
}

bool is_name(const std::string& name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-/").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= kMaxAdapterNameBytes && std::ranges::all_of(name, is_letter);
}

// Those of the options, then the tasks that the base model's folder has beside its weights.
Result<std::vector<AdapterSource>> sources_of(const EngineOptions& options, const formats::ModelFile& base) {
  std::vector<AdapterSource> sources = options.adapters;
  std::set<std::string> names;
  for (const AdapterSource& source : sources) {
    CANDOR_TRY(check_source(source));
    if (!names.insert(source.name).second) return bad(fmt::format("two adapters are named {}", in_quotes(source.name)));
  }
  CANDOR_ASSIGN(const auto* tasks, formats::meta_strings(base, "candor.text.tasks"));
  if (tasks != nullptr && base.info().format == "safetensors") {
    for (const std::string_view task : *tasks) {
      if (!names.insert(std::string(task)).second) continue;
      sources.push_back({.name = std::string(task), .path = base.info().paths.front().parent_path()});
      CANDOR_TRY(check_source(sources.back()));
    }
  }
  if (sources.size() <= kMaxAdapters) return sources;
  return bad(fmt::format("{} adapters were named, and an engine holds {} at most", sources.size(), kMaxAdapters));
}

}  // namespace

Result<void> check_source(const AdapterSource& source) {
  if (!is_name(source.name)) {
    return bad(fmt::format("an adapter is named {}; expected 1 to {} of letters, digits, \".\", \"_\", \"-\" and \"/\"",
                           in_quotes(source.name), kMaxAdapterNameBytes));
  }
  if (source.scale >= -kMaxAdapterScale && source.scale <= kMaxAdapterScale) return {};
  return bad(fmt::format("adapter {}: scale {}; expected -{} to {}", in_quotes(source.name), source.scale,
                         kMaxAdapterScale, kMaxAdapterScale));
}

Result<ReadAdapter> read_adapter(const AdapterSource& source, const EngineOptions& options, const model::ArchSpec& spec,
                                 const formats::ModelFile& base) {
  CANDOR_TRY(check_source(source));
  ReadAdapter adapter{.source = source};
  CANDOR_ASSIGN(adapter.file, model::AdapterFile::open(source.path, spec, base, source.name));
  adapter.row_lengths.resize(adapter.file->parts().size());
  if (!model::reads_base(*adapter.file)) return adapter;
  CANDOR_ASSIGN(const auto again, open_model_file(options));  // the other one's copies may be gone
  CANDOR_ASSIGN(adapter.row_lengths, model::row_lengths(*adapter.file, spec, *again));
  return adapter;
}

Result<void> check_adapter_fits(const ReadAdapter& adapter, const model::ArchSpec& spec,
                                const backend::Backend& backend) {
  CANDOR_ASSIGN(const uint64_t wanted, model::upload_bytes(*adapter.file, spec, backend));
  const uint64_t available = platform::read_topology().memory_available_bytes;
  if (available == 0 || wanted <= available) return {};
  return fail(
      ErrorKind::kOutOfMemory,
      fmt::format("adapter {} needs {:.2f} GB of memory, and {:.2f} GB are available", in_quotes(adapter.source.name),
                  static_cast<double>(wanted) / 1e9, static_cast<double>(available) / 1e9),
      "adapters");
}

Result<PlacedAdapter> place_adapter(ReadAdapter adapter, model::Model& model) {
  const model::AdapterFile& file = *adapter.file;
  PlacedAdapter placed;
  CANDOR_ASSIGN(placed.id, model.add_adapter(file, adapter.row_lengths));
  CANDOR_TRY(file.check_intact());
  placed.info = {.name = adapter.source.name,
                 .path = adapter.source.path,
                 .format = file.format(),
                 .prompt = file.prompt(),
                 .scale = adapter.source.scale,
                 .rank = 0,
                 .n_matrices = std::ssize(file.parts()),
                 .memory_bytes = model.adapter_bytes(placed.id),
                 .hash = file.hash()};
  for (const model::AdapterPart& part : file.parts()) placed.info.rank = std::max(placed.info.rank, part.rank());
  return placed;
}

Result<std::vector<PlacedAdapter>> load_adapters(const EngineOptions& options, const formats::ModelFile& base,
                                                 model::Model& model) {
  CANDOR_ASSIGN(const std::vector<AdapterSource> sources, sources_of(options, base));
  std::vector<PlacedAdapter> placed;
  for (const AdapterSource& source : sources) {
    CANDOR_ASSIGN(ReadAdapter adapter, read_adapter(source, options, model.spec(), base));
    CANDOR_ASSIGN(PlacedAdapter one, place_adapter(std::move(adapter), model));
    placed.push_back(std::move(one));
  }
  return placed;
}

Result<uint64_t> adapter_bytes(const EngineOptions& options, const model::ArchSpec& spec,
                               const formats::ModelFile& base, const backend::Backend& backend) {
  CANDOR_ASSIGN(const std::vector<AdapterSource> sources, sources_of(options, base));
  uint64_t total = 0;
  for (const AdapterSource& source : sources) {
    CANDOR_ASSIGN(const auto file, model::AdapterFile::open(source.path, spec, base, source.name));
    CANDOR_ASSIGN(const uint64_t n_bytes, model::upload_bytes(*file, spec, backend));
    total += n_bytes;
  }
  return total;
}

}  // namespace candor::engine
