#include "model/families/missing.h"

#include <algorithm>
#include <array>

namespace candor::model {
namespace {

constexpr std::string_view kAltUp =
    ": it needs several residual streams that predict and correct each other (AltUp), residuals of low rank (Laurel), "
    "and gates cut at a share of their distribution";
constexpr std::string_view kSparseMixer =
    ": it needs experts that are shared by a softmax over those near the best score alone (SparseMixer)";
constexpr std::string_view kIndexer =
    ": it needs attention to positions that an indexer chooses (DeepSeek sparse attention)";
constexpr std::string_view kMamba1 = ": it needs state spaces with a rate for each channel (Mamba-1)";
constexpr std::string_view kXielu = ": it needs an activation with weights of its own (xIELU)";
constexpr std::string_view kSubNorms = ": it needs ternary weights, and norms inside attention and feed-forward";
constexpr std::string_view kNoAttention = ": it needs models without any attention";

constexpr std::array kMissing = {
    MissingFamily{"gemma3n", kAltUp},
    MissingFamily{"gemma3n_text", kAltUp},
    MissingFamily{"phimoe", kSparseMixer},
    MissingFamily{"apertus", kXielu},
    MissingFamily{"bitnet", kSubNorms},
    MissingFamily{"glm_moe_dsa", kIndexer},
    MissingFamily{"glm-dsa", kIndexer},
    MissingFamily{"deepseek_v32", kIndexer},
    MissingFamily{"jamba", kMamba1},
    MissingFamily{"mamba", kMamba1},
    MissingFamily{"falcon_mamba", kMamba1},
    MissingFamily{"mamba2", kNoAttention},
};

}  // namespace

std::span<const MissingFamily> missing_families() {
  return kMissing;
}

std::string_view need_of(std::string_view name) {
  const auto row = std::ranges::find(kMissing, name, &MissingFamily::name);
  return row == kMissing.end() ? std::string_view() : row->need;
}

}  // namespace candor::model
