// Two ranks over a link that is made up (tests/support/late_link.h), for kernels without netem: what a decoded token
// takes at each latency and rate, and what the arithmetic of candor estimate says of it. Each rank has one thread, and
// one processor for all that belongs to it, as two computers of one core would.
//
//   candor_bench_late_link MODEL [TOKENS]

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "apps/estimate/ranks.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/rank_backend.h"
#include "comm/mpi/mpi_job.h"
#include "engine/engine_impl.h"
#include "engine/open/rank_group.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "model/rank_cost.h"
#include "platform/affinity.h"
#include "support/late_link.h"

namespace candor {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct Pair {
  std::unique_ptr<testing::FarRank> first;
  std::thread second;
  std::atomic<bool> is_taken{true};
  ~Pair() { second.join(); }
};

Result<std::unique_ptr<backend::Backend>> one_thread() {
  return backend::make_cpu_backend({.n_threads = 1});
}

Result<backend::RankGroup> start(const EngineOptions& options, testing::LinkSpeed speed) {
  const auto link = std::make_shared<testing::LateLink>(2, speed);
  auto pair = std::make_shared<Pair>();
  pair->first = std::make_unique<testing::FarRank>(link, 0);
  pair->second = std::thread([link, options] {
    platform::run_on({1});
    testing::FarRank far(link, 1);
    std::atomic<bool> is_taken{true};
    auto inner = one_thread();
    if (!inner) return;
    static_cast<void>(engine::follow_as_rank(options, std::move(*inner), 1,
                                             {nullptr, std::make_unique<comm::JobCommunicator>(far.comm(), is_taken)}));
  });
  CANDOR_TRY(pair->first->comm().wait_for_all(std::chrono::seconds(30)));
  auto comm = std::make_unique<comm::JobCommunicator>(pair->first->comm(), pair->is_taken);
  return backend::RankGroup{pair, std::move(comm)};
}

engine::BackendFactory two_ranks(testing::LinkSpeed speed) {
  return [=](const EngineOptions& options) -> Result<std::unique_ptr<backend::Backend>> {
    CANDOR_ASSIGN(auto inner, one_thread());
    CANDOR_ASSIGN(const kernels::KernelTable* table, kernels::select_table_from_environment());
    return std::make_unique<backend::RankBackend>(
        std::move(inner), backend::RankOptions{.rank = 0, .size = 2, .table = table, .gather_group = [=] {
                                                 return start(options, speed);
                                               }});
  };
}

// Seconds of a decoded token; the median of several answers.
double seconds_per_token(const EngineOptions& options, const engine::BackendFactory& backend, int32_t n_tokens) {
  auto engine = engine::open_with_backend(options, backend);
  if (!engine) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    std::exit(1);
  }
  std::vector<double> times;
  for (int round = 0; round < 5; ++round) {
    Request request;
    request.prompt = TokenPrompt{1, 2, 3, 4 + round};
    request.sampling.max_tokens = n_tokens;
    request.sampling.ignore_eos = true;
    request.sampling.temperature = 0;
    std::vector<SteadyClock::time_point> at;
    static_cast<void>((*engine)->generate(request, [&](const TokenEvent&) { at.push_back(SteadyClock::now()); }));
    times.push_back(std::chrono::duration<double>(at[static_cast<size_t>(n_tokens) - 1] - at[0]).count() /
                    (n_tokens - 1));
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

int run(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: candor_bench_late_link MODEL [TOKENS]\n"), 2;
  const int32_t n_tokens = argc > 2 ? std::atoi(argv[2]) : 24;
  EngineOptions options;
  options.model_path = argv[1];
  options.n_ctx = 256;
  options.n_threads = 1;
  options.max_running = 1;
  options.prefix_cache = false;
  const auto file = formats::open_model_file(options.model_path);
  const auto spec = file ? model::read_arch(**file) : Result<model::ArchSpec>(file.error());
  if (!spec) return std::fprintf(stderr, "%s\n", spec.error().message.c_str()), 1;
  constexpr double kBits = 4.5;  // rows travel as products encode them
  platform::run_on({0});
  const auto traffic = model::expected_traffic(apps::rank_shape_of(*spec, kBits), 2, 1, 1);
  const double alone = seconds_per_token(options, [](const EngineOptions&) { return one_thread(); }, n_tokens);
  std::printf("one rank of one thread: %.2f ms a token; two: %.0f exchanges, %.0f kB sent by each\n", 1e3 * alone,
              traffic.n_exchanges, traffic.sent_bytes / 1e3);
  std::printf("%10s %8s %12s %12s %8s\n", "latency us", "Gbit/s", "measured ms", "estimate ms", "ratio");
  for (const double latency_us : {0.0, 25.0, 100.0, 500.0}) {
    for (const double gbit : {1.0, 10.0, 25.0}) {
      const double rate = gbit * 1e9 / 8;
      const testing::LinkSpeed speed{std::chrono::nanoseconds(static_cast<int64_t>(latency_us * 1e3)), rate};
      const double measured = seconds_per_token(options, two_ranks(speed), n_tokens);
      const double estimate = alone / 2 + model::exchange_seconds(traffic, {"", rate, latency_us * 1e-6});
      std::printf("%10.0f %8.0f %12.2f %12.2f %8.2f\n", latency_us, gbit, 1e3 * measured, 1e3 * estimate,
                  measured / estimate);
    }
  }
  return 0;
}

}  // namespace
}  // namespace candor

int main(int argc, char** argv) {
  return candor::run(argc, argv);
}
