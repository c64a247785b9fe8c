#pragma once
// How a model knows where a token stands, layer by layer: which kind, and what it does to one position; and the row of
// the embedding table that a token becomes.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "candor/ids.h"
#include "formats/model_file.h"
#include "model/arch_spec.h"

namespace candor::apps {

struct PositionView {
  std::vector<int32_t> layers{};
  std::string kind{};                              // "rotary, pairs of halves, base 10000"
  std::vector<std::pair<int32_t, double>> turns{};   // rotary: pairs of a head, and radians at the position
  std::vector<std::pair<int32_t, double>> slopes{};  // ALiBi: heads, and what a score loses with each token of distance
  int32_t window_tokens = 0;                       // 0: every earlier position is seen
};

// Layers of one kind together.
std::vector<PositionView> positions_of(const model::ArchSpec& spec, int32_t position);

struct EmbeddingView {
  TokenId token = -1;
  std::vector<float> first{};  // numbers of the row, as the first layer gets them (scaled)
  double norm = 0.0;           // of the whole row
};

// Nothing where the file has no such row.
std::optional<EmbeddingView> embedding_of(const formats::ModelFile& file, const model::ArchSpec& spec, TokenId token);

// Lines for people, indented.
std::string positions_text(const std::vector<PositionView>& views, int32_t position, size_t n_layers);
nlohmann::ordered_json positions_json(const std::vector<PositionView>& views, int32_t position);

}  // namespace candor::apps
