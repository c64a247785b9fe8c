#pragma once
// The one list of operations: an Op is any of them. What it is called, reads and writes, so that whatever times, shows
// or records operations treats all of them alike.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backend/op_terms.h"
#include "backend/operations.h"

namespace candor::backend {

// Operations that are timed and shown together.
enum class OpKind : uint8_t {
  kEmbed,
  kNorm,
  kLinear,
  kRope,
  kAttend,
  kGate,
  kMoe,
  kConv,
  kDelta,
  kSsm,
  kAdd,
  kGather,
  kCollect
};
inline constexpr size_t kOpKinds = 13;
std::string_view op_name(OpKind kind);

// What an operation is and touches.
struct Operands {
  std::string_view name{};
  OpKind kind{};
  std::vector<Activation> reads{};  // of a row in place: here and there
  std::vector<Activation> writes{};
  uint64_t weight_bytes = 0;  // of a mixture those of a single row's experts; more rows may read more
};

using Op = std::variant<op::Embed, op::AddPositions, op::AddTypes, op::AddVectors, op::Norm, op::Linear, op::Adapt,
                        op::AdaptEmbedding, op::LinearHeads, op::Rope, op::Temper, op::Attend, op::Gate, op::Activate,
                        op::Clamp, op::Moe, op::CausalConv, op::DeltaRule, op::SsmScan, op::Add, op::AddGated,
                        op::Scale, op::Unzip, op::Zip, op::Columns, op::Gather, op::Collect>;

// Operands keep their memory.
void describe(const Op& operation, Operands& operands);
// One line: what is read, what is written: "linear  x0 [4, 288] -> x2 [4, 288], x3 [4, 288]", slots by their numbers.
std::string to_text(const Op& operation);

// Who computes operations, in the order in which they come. One thread.
class Ops {
 public:
  virtual ~Ops() = default;
  virtual void run(const Op& operation) = 0;
};

}  // namespace candor::backend
