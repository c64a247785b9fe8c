#include "support/thread_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/rank_backend.h"
#include "backend/wrap/forwarding_backend.h"
#include "comm/shm/segment.h"
#include "comm/shm/shm_communicator.h"
#include "engine/open/rank_group.h"
#include "kernels/kernels.h"

namespace candor::testing {
namespace {

using backend::Activation;

std::unique_ptr<comm::ShmCommunicator> seat(const std::shared_ptr<comm::Segment>& segment, int32_t rank) {
  return std::make_unique<comm::ShmCommunicator>(segment, rank, comm::ShmOptions{.spin = false});
}

// The other ranks; joined when they have ended.
struct Followers {
  std::vector<std::thread> threads;
  ~Followers() {
    for (std::thread& thread : threads) thread.join();
  }
};

Result<backend::RankGroup> start(const EngineOptions& options, int32_t n_ranks, const InnerBackend& inner) {
  CANDOR_ASSIGN(const std::shared_ptr<comm::Segment> segment, comm::Segment::make(n_ranks));
  auto followers = std::make_shared<Followers>();
  auto first = seat(segment, 0);
  for (int32_t rank = 1; rank < n_ranks; ++rank) {
    followers->threads.emplace_back([=] {
      auto backend = inner(rank);
      ASSERT_TRUE(backend.has_value());
      static_cast<void>(engine::follow_as_rank(options, std::move(*backend), rank, {nullptr, seat(segment, rank)}));
    });
  }
  CANDOR_TRY(first->wait_for_all(std::chrono::seconds(30)));
  return backend::RankGroup{followers, std::move(first)};
}

// Passes everything on but products.
class SummingOps final : public backend::Ops {
 public:
  SummingOps(backend::Backend& inner, int32_t n_parts) : inner_(inner), ops_(inner.ops()), n_parts_(n_parts) {}

  void run(const backend::Op& operation) override {
    const auto* linear = std::get_if<backend::op::Linear>(&operation);
    linear == nullptr ? ops_.run(operation) : sum(linear->terms, linear->src);
  }

 private:
  void sum(std::span<const backend::LinearTerm> terms, Activation src) {
    float* rows = inner_.host_rows(src);
    const std::vector<float> whole(rows, rows + floats_of(src));
    std::vector<std::vector<float>> sums;
    for (const auto& term : terms) sums.emplace_back(floats_of(term.dst), 0.0f);
    for (int32_t part = 0; part < n_parts_; ++part) {
      for (size_t i = 0; i < whole.size(); ++i) rows[i] = part_of(src, i) == part ? whole[i] : 0.0f;
      ops_.run(backend::op::Linear{terms, src});
      for (size_t t = 0; t < terms.size(); ++t) {
        const float* result = inner_.host_rows(terms[t].dst);
        for (size_t i = 0; i < sums[t].size(); ++i) sums[t][i] += result[i];
      }
    }
    std::copy(whole.begin(), whole.end(), rows);
    for (size_t t = 0; t < terms.size(); ++t) std::copy(sums[t].begin(), sums[t].end(), inner_.host_rows(terms[t].dst));
  }
  static size_t floats_of(Activation x) { return static_cast<size_t>(x.n_rows) * static_cast<size_t>(x.n_cols); }
  int32_t part_of(Activation x, size_t i) const {
    return static_cast<int32_t>(static_cast<int64_t>(i) % x.n_cols * n_parts_ / x.n_cols);
  }
  backend::Backend& inner_;
  backend::Ops& ops_;
  int32_t n_parts_;
};

class SummingBackend final : public backend::ForwardingBackend {
 public:
  SummingBackend(std::unique_ptr<backend::Backend> cpu, int32_t n_parts)
      : ForwardingBackend(std::move(cpu)), ops_(inner(), n_parts) {}
  backend::Ops& ops() override { return ops_; }

 private:
  SummingOps ops_;
};

}  // namespace

InnerBackend cpu_backend() {
  return [](int32_t) { return backend::make_cpu_backend({.n_threads = 1}); };
}

InnerBackend cpu_backend_of_each_isa() {
  return [](int32_t rank) {
    const auto tables = kernels::runnable_tables();
    const size_t at = tables.size() - 1 - static_cast<size_t>(rank) % tables.size();
    return backend::make_cpu_backend({.n_threads = 1, .table = tables[at]});
  };
}

InnerBackend summing_backend(int32_t n_parts) {
  return [n_parts](int32_t) -> Result<std::unique_ptr<backend::Backend>> {
    CANDOR_ASSIGN(auto cpu, backend::make_cpu_backend({.n_threads = 1}));
    return std::make_unique<SummingBackend>(std::move(cpu), n_parts);
  };
}

engine::BackendFactory thread_ranks(int32_t n_ranks, const InnerBackend& inner) {
  return [=](const EngineOptions& options) -> Result<std::unique_ptr<backend::Backend>> {
    CANDOR_ASSIGN(auto first, inner(0));
    CANDOR_ASSIGN(const kernels::KernelTable* table, kernels::select_table_from_environment());
    return std::make_unique<backend::RankBackend>(
        std::move(first), backend::RankOptions{.rank = 0, .size = n_ranks, .table = table, .gather_group = [=] {
                                                 return start(options, n_ranks, inner);
                                               }});
  };
}

}  // namespace candor::testing
