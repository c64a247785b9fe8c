#include "engine/open/rank_group.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/all/make_backend.h"
#include "backend/backend.h"
#include "backend/ranks/orders.h"
#include "backend/split.h"
#include "backend/step_batch.h"
#include "comm/shm/rank_processes.h"
#include "comm/shm/segment.h"
#include "comm/shm/shm_communicator.h"
#include "engine/open/adapter_loading.h"
#include "engine/open/draft_model.h"
#include "engine/open/loaded_model.h"
#include "engine/open/mpi_ranks.h"
#include "engine/open/rank_places.h"
#include "formats/model_file.h"
#include "kernels/kernels.h"
#include "model/draft_head.h"
#include "model/hub/hub_folder.h"
#include "model/model.h"
#include "platform/float_mode.h"
#include "platform/numa.h"

namespace candor::engine {
namespace {

constexpr std::chrono::seconds kArrival{30};

// What a rank computes its part with. rank_here: of those on this host.
Result<std::unique_ptr<backend::Backend>> make_inner(const EngineOptions& options, int32_t n_threads,
                                                     int32_t rank_here) {
  return backend::make_backend(options.backend, {.n_threads = n_threads, .rank_here = rank_here});
}

Result<backend::RankGroup> start_group(EngineOptions options, HostPlaces places) {
  CANDOR_ASSIGN(const std::shared_ptr<comm::Segment> segment, comm::Segment::make(options.n_ranks));
  CANDOR_ASSIGN(std::unique_ptr<comm::RankProcesses> processes,
                comm::RankProcesses::start(options.rank_program, *segment));
  auto comm = std::make_unique<comm::ShmCommunicator>(segment, 0, comm::ShmOptions{.spin = places.can_spin});
  CANDOR_TRY(comm->wait_for_all(kArrival));
  CANDOR_TRY(share_options(options, *comm));
  CANDOR_TRY(share_places(places, *comm));
  return backend::RankGroup{std::shared_ptr<comm::RankProcesses>(std::move(processes)), std::move(comm)};
}

Result<void> check_ranks(const EngineOptions& options) {
  if (options.uses_mpi) return check_joined(options);
  if (options.n_ranks < 1 || options.n_ranks > comm::kMaxRanks) {
    return fail(ErrorKind::kInvalidInput,
                "n_ranks is " + std::to_string(options.n_ranks) + ", expected 1 to " + std::to_string(comm::kMaxRanks),
                "ranks");
  }
  if (options.n_ranks > 1 && options.rank_program.empty()) {
    return fail(ErrorKind::kInvalidInput, "ranks are processes of the candor command: give its path as rank_program",
                "ranks");
  }
  return {};
}

int32_t count_threads(const HostPlaces& host) {
  int32_t n = 0;
  for (const platform::ProcessPlace& place : host.places) n += place.n_threads;
  return n;
}

// A rank of several, before anybody has met.
backend::RankOptions rank_options(const EngineOptions& options, const HostPlaces& places) {
  if (options.uses_mpi) return joined_rank_options(options, places.can_spin);
  return {.rank = 0, .size = options.n_ranks, .n_threads = count_threads(places), .gather_group = [options, places] {
            return start_group(options, places);
          }};
}

struct LoadedRank {
  std::unique_ptr<formats::ModelFile> file{};
  std::unique_ptr<model::Model> model{};
};

Result<LoadedRank> load_part(std::unique_ptr<formats::ModelFile> file, int64_t n_ctx, backend::Backend& backend) {
  LoadedRank loaded{.file = std::move(file)};
  CANDOR_ASSIGN(loaded.model, model::Model::load(*loaded.file, backend, {.n_ctx = n_ctx}));
  return loaded;
}

// Nothing where nothing drafts.
Result<LoadedRank> load_draft_of(const EngineOptions& options, LoadedRank& main, backend::Backend& backend) {
  LoadedRank draft;
  const bool is_own = options.speculation == Speculation::kHead;
  if (!has_draft_file(options) && !is_own) return draft;
  if (!is_own) {
    CANDOR_ASSIGN(draft.file, model::open_model(options.draft_path));
  }
  const bool is_head = is_own || model::is_head_alone(*draft.file);
  const formats::ModelFile& file = is_own ? *main.file : *draft.file;
  CANDOR_ASSIGN(draft.model, load_draft_weights(file, is_head, options, *main.model, backend));
  if (draft.file) draft.file->drop_copies();
  return draft;
}

// In the order in which rank 0 loads them: the model, its adapters, then its draft model.
Result<std::vector<LoadedRank>> load_all(const EngineOptions& options, backend::Backend& backend) {
  std::vector<LoadedRank> models;
  CANDOR_ASSIGN(auto file, open_model_file(options));
  CANDOR_ASSIGN(auto main, load_part(std::move(file), options.n_ctx, backend));
  CANDOR_TRY(load_adapters(options, *main.file, *main.model));
  CANDOR_ASSIGN(LoadedRank draft, load_draft_of(options, main, backend));
  main.file->drop_copies();
  models.push_back(std::move(main));
  if (draft.model) models.push_back(std::move(draft));
  return models;
}

Result<void> load_and_follow(const EngineOptions& options, backend::RankBackend& backend) {
  CANDOR_ASSIGN(const std::vector<LoadedRank> models, load_all(options, backend));
  const platform::ScopedFloatMode float_mode;
  return backend.follow([&](const backend::Pass& pass, const backend::StepBatch& batch, backend::KvStore& kv) {
    model::Model& model = *models.at(static_cast<size_t>(pass.model)).model;
    pass.is_attention ? model.launch_attention(batch, kv) : model.launch_blocks(pass.first, pass.end, batch, kv);
  });
}

void put_text(backend::OrderWriter& writer, const std::string& text) {
  writer.put_list(std::span<const char>(text));
}

std::string take_text(backend::OrderReader& reader) {
  std::vector<char> text;
  reader.take_list(text);
  return {text.begin(), text.end()};
}

}  // namespace

Result<std::unique_ptr<backend::Backend>> make_ranked_backend(const EngineOptions& options) {
  CANDOR_TRY(check_ranks(options));
  if (options.n_ranks == 1) return make_inner(options, all_threads(options), 0);
  EngineOptions own = options;
  if (!own.uses_mpi) own.n_threads = all_threads(options);
  const HostPlaces places = own.uses_mpi ? joined_places(own) : place_ranks(own, own.n_ranks, 0);
  const platform::ProcessPlace& place = own.uses_mpi ? joined_place(places) : places.places.front();
  platform::bind_to(place);
  CANDOR_ASSIGN(auto inner, make_inner(own, place.n_threads, own.uses_mpi ? joined_rank_here() : 0));
  CANDOR_ASSIGN(const kernels::KernelTable* table, kernels::select_table_from_environment());
  backend::RankOptions ranks = rank_options(own, places);
  ranks.table = table;
  return std::make_unique<backend::RankBackend>(std::move(inner), std::move(ranks));
}

Result<std::unique_ptr<backend::Backend>> make_planning_rank(const EngineOptions& options, int32_t rank) {
  const HostPlaces host = place_ranks(options, options.n_ranks, 0);
  CANDOR_ASSIGN(auto inner, make_inner(options, host.places.at(static_cast<size_t>(rank)).n_threads, rank));
  CANDOR_ASSIGN(const kernels::KernelTable* table, kernels::select_table_from_environment());
  return std::make_unique<backend::RankBackend>(
      std::move(inner), backend::RankOptions{.rank = 0, .size = options.n_ranks, .here = {rank}, .table = table});
}

Result<bool> share_options(EngineOptions& options, comm::Communicator& comm) {
  backend::Bytes bytes;
  if (comm.rank() == 0) {
    backend::OrderWriter writer(bytes, backend::Order::kStep);
    for (const std::string& text :
         {options.model_path.string(), options.quantize, options.backend, options.draft_path.string()}) {
      put_text(writer, text);
    }
    writer.put(options.fast_weights);
    writer.put(options.n_threads);
    writer.put(options.n_ctx);
    writer.put(options.n_ranks);
    writer.put(options.speculation);
    writer.put(options.uses_mpi);
    writer.put(static_cast<uint64_t>(options.adapters.size()));
    for (const AdapterSource& source : options.adapters) {
      put_text(writer, source.name);
      put_text(writer, source.path.string());
      writer.put(source.scale);
    }
  }
  CANDOR_TRY(comm.broadcast(bytes));
  if (comm.rank() == 0) return true;
  if (bytes.empty()) return false;
  backend::OrderReader reader(bytes);
  static_cast<void>(reader.take<backend::Order>());
  options.model_path = take_text(reader);
  options.quantize = take_text(reader);
  options.backend = take_text(reader);
  options.draft_path = take_text(reader);
  options.fast_weights = reader.take<bool>();
  options.n_threads = reader.take<int32_t>();
  options.n_ctx = reader.take<int64_t>();
  options.n_ranks = reader.take<int32_t>();
  options.speculation = reader.take<Speculation>();
  options.uses_mpi = reader.take<bool>();
  options.adapters.resize(reader.take<uint64_t>());
  for (AdapterSource& source : options.adapters) {
    source.name = take_text(reader);
    source.path = take_text(reader);
    source.scale = reader.take<double>();
  }
  return true;
}

Result<void> follow_as_rank(const EngineOptions& options, std::unique_ptr<backend::Backend> inner, int32_t rank,
                            backend::RankGroup group) {
  CANDOR_ASSIGN(const kernels::KernelTable* table, kernels::select_table_from_environment());
  const int32_t size = group.comm->size();
  auto held = std::make_shared<backend::RankGroup>(std::move(group));
  backend::RankBackend backend(
      std::move(inner),
      {.rank = rank, .size = size, .table = table, .gather_group = [held]() -> Result<backend::RankGroup> {
         return std::move(*held);
       }});
  auto done = load_and_follow(options, backend);
  if (done) return done;
  const bool has_met = held->comm == nullptr;
  has_met ? backend.say_failed(done.error()) : held->comm->say_failed(done.error());
  return done;
}

Result<void> follow_at(const platform::ProcessPlace& place, const EngineOptions& options, int32_t rank,
                       std::unique_ptr<comm::Communicator> comm) {
  platform::bind_to(place);
  auto inner = make_inner(options, place.n_threads, options.uses_mpi ? joined_rank_here() : rank);
  if (inner) return follow_as_rank(options, std::move(*inner), rank, {nullptr, std::move(comm)});
  comm->say_failed(inner.error());
  return inner.error();
}

namespace {

Result<std::shared_ptr<comm::Segment>> take_place(int descriptor, int32_t rank) {
  CANDOR_ASSIGN(std::shared_ptr<comm::Segment> segment, comm::Segment::attach(descriptor));
  if (rank >= 1 && rank < segment->n_ranks()) return segment;
  return fail(ErrorKind::kInvalidInput, "rank " + std::to_string(rank) + " of " + std::to_string(segment->n_ranks()) +
                                            ": ranks are started by rank 0");
}

Result<void> serve_place(const std::shared_ptr<comm::Segment>& segment, int32_t rank) {
  auto comm = std::make_unique<comm::ShmCommunicator>(segment, rank, comm::ShmOptions{});
  EngineOptions options;
  HostPlaces places;
  CANDOR_TRY(share_options(options, *comm));
  CANDOR_TRY(share_places(places, *comm));
  comm->set_spin(places.can_spin);
  return follow_at(places.places.at(static_cast<size_t>(rank)), options, rank, std::move(comm));
}

}  // namespace

RankEnd serve_as_rank(int descriptor, int32_t rank) {
  const auto segment = take_place(descriptor, rank);
  if (!segment) return {segment.error(), false};
  return {serve_place(*segment, rank), true};
}

}  // namespace candor::engine
