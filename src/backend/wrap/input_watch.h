#pragma once
// A wrapper of the CPU backend that adds up the squares of what comes into each matrix, by column: what an importance
// matrix is made of. A mixture's experts are matrices of one tensor, each with the rows that went to it. Products by
// heads (the latent's) are left out. Owns the wrapped backend; one thread, like every Backend.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/op_list.h"
#include "backend/routing.h"
#include "backend/wrap/forwarding_backend.h"

namespace candor::backend {

// Of one matrix.
struct InputSums {
  std::vector<double> squares{};  // [n_in]
  int64_t n_rows = 0;
};

class WatchedInputs final : public Ops {
 public:
  explicit WatchedInputs(Backend& backend) : inner_(backend.ops()), backend_(backend) {}

  // Before the first step: the tensor that a weight was made of, while its bytes are there.
  void note(const Weight& weight, const TensorView& tensor, WeightRole role);
  void run(const Op& operation) override;

  // By tensor and expert (0 of all others); matrices that no row reached are missing.
  const std::map<std::pair<std::string, int32_t>, InputSums>& sums() const { return sums_; }

 private:
  void watch(const op::Linear& call);
  void watch_inputs(const op::Moe& call);
  void watch_downs(const op::Moe& call);
  void add(const Weight* weight, int32_t expert, const InputSums& seen);
  const float* vector(bool is_there, const Weight* weight) const;

  Ops& inner_;
  Backend& backend_;
  Routing routing_;
  std::unordered_map<const Weight*, std::string> names_;
  std::unordered_map<const Weight*, std::vector<float>> vectors_;
  std::map<std::pair<std::string, int32_t>, InputSums> sums_;
  std::map<std::pair<std::string, int32_t>, const Weight*> owners_;  // of parts of one tensor, the one that is counted
};

class InputWatch final : public ForwardingBackend {
 public:
  explicit InputWatch(std::unique_ptr<Backend> inner_backend)
      : ForwardingBackend(std::move(inner_backend)), ops_(inner()) {}
  const WatchedInputs& inputs() const { return ops_; }

  Ops& ops() override { return ops_; }
  Result<std::unique_ptr<Weight>> upload(const TensorView& tensor, WeightRole role) override;
  Result<std::unique_ptr<Weight>> upload_split(const TensorView& tensor, WeightRole role,
                                               const WeightSplit& split) override;

 private:
  WatchedInputs ops_;
};

}  // namespace candor::backend
