#include "apps/explain/positions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "backend/op_specs.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kNumbersShown = 6;

std::string scaling_of(const backend::RopeSpec& rope) {
  constexpr const char* kNames[] = {"", ", linear scaling", ", YaRN", ", Llama 3's scaling"};
  const std::string name = kNames[static_cast<size_t>(rope.scaling)];
  return name.empty() ? "" : fmt::format("{} by {:g}", name, rope.factor);
}

// The first pair, the middle one and the last.
std::vector<std::pair<int32_t, double>> turns_of(const backend::RopeSpec& rope, int32_t position) {
  const std::vector<double> frequencies = backend::rope_frequencies(rope);
  std::vector<std::pair<int32_t, double>> turns;
  for (const size_t pair : {size_t{0}, frequencies.size() / 2, frequencies.size() - 1}) {
    const int32_t index = static_cast<int32_t>(pair);
    if (!turns.empty() && turns.back().first == index) continue;
    turns.emplace_back(index, frequencies[pair] * position);
  }
  return turns;
}

// Of a block that attends.
std::string attention_kind(const model::ArchSpec& spec, const model::BlockSpec& block) {
  std::string kind;
  const backend::AttnSpec& attn = block.attn;
  if (attn.rope.n_dims > 0) {
    const bool is_interleaved = attn.rope.pairs == backend::RopePairs::kInterleaved;
    kind = fmt::format("rotary over {} of {}, pairs {}, base {:g}{}", attn.rope.n_dims, attn.head_dim,
                       is_interleaved ? "(2i, 2i+1)" : fmt::format("(i, i+{})", attn.rope.n_dims / 2), attn.rope.base,
                       scaling_of(attn.rope));
  }
  if (attn.max_alibi_bias != 0.0f) kind += (kind.empty() ? "" : "; ") + std::string("ALiBi: distance lowers scores");
  if (kind.empty() && spec.embed.has_positions) return "a row of the table of positions, added to the embedding";
  return kind.empty() ? "none: only the order in which tokens may be seen" : kind;
}

std::string kind_of(const model::ArchSpec& spec, const model::BlockSpec& block) {
  constexpr const char* kState = "a recurrent state, brought up to each token in turn";
  if (!block.has_attention) return block.is_recurrent() ? kState : "none: no token sees another";
  return block.is_recurrent() ? fmt::format("{}; beside it {}", kState, attention_kind(spec, block))
                              : attention_kind(spec, block);
}

PositionView view_of(const model::ArchSpec& spec, const model::BlockSpec& block, int32_t position) {
  PositionView view{.kind = kind_of(spec, block)};
  if (!block.has_attention) return view;
  const backend::AttnSpec& attn = block.attn;
  view.window_tokens = attn.window_tokens;
  if (attn.rope.n_dims > 0) view.turns = turns_of(attn.rope, position);
  if (attn.max_alibi_bias != 0.0f) {
    const std::vector<float> slopes = backend::alibi_slopes(attn.n_heads, attn.max_alibi_bias);
    view.slopes = {{0, slopes.front()}, {attn.n_heads - 1, slopes.back()}};
  }
  return view;
}

std::string layers_text(const std::vector<int32_t>& layers, size_t n_all) {
  if (layers.size() == n_all) return "all layers";
  constexpr size_t kMost = 4;
  std::string text = layers.size() == 1 ? "layer " : "layers ";
  for (size_t i = 0; i < std::min(kMost, layers.size()); ++i) text += (i == 0 ? "" : ", ") + std::to_string(layers[i]);
  return layers.size() > kMost ? fmt::format("{} and {} more", text, layers.size() - kMost) : text;
}

}  // namespace

std::vector<PositionView> positions_of(const model::ArchSpec& spec, int32_t position) {
  std::vector<PositionView> views;
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    PositionView view = view_of(spec, spec.blocks[layer], position);
    const auto it = std::ranges::find_if(views, [&](const PositionView& one) {
      return one.kind == view.kind && one.turns == view.turns && one.window_tokens == view.window_tokens;
    });
    PositionView& kept = it == views.end() ? views.emplace_back(std::move(view)) : *it;
    kept.layers.push_back(static_cast<int32_t>(layer));
  }
  return views;
}

std::optional<EmbeddingView> embedding_of(const formats::ModelFile& file, const model::ArchSpec& spec, TokenId token) {
  const TensorView* table = file.find("token_embd.weight");
  if (table == nullptr || !dtype_info(table->dtype).is_weight || token < 0 || token >= table->shape.n_rows())
    return std::nullopt;
  std::vector<float> row(static_cast<size_t>(table->shape.row_elements()));
  decode_row(*table, token, row.data());
  if (!file.check_intact()) return std::nullopt;
  EmbeddingView view{.token = token};
  double sum = 0.0;
  for (float& x : row) {
    x *= spec.embed.scale;
    sum += static_cast<double>(x) * static_cast<double>(x);
  }
  view.norm = std::sqrt(sum);
  view.first.assign(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(std::min(kNumbersShown, row.size())));
  return view;
}

std::string positions_text(const std::vector<PositionView>& views, int32_t position, size_t n_layers) {
  std::string out;
  for (const PositionView& view : views) {
    out += fmt::format("  positions, {}: {}\n", layers_text(view.layers, n_layers), view.kind);
    std::string turns;
    for (const auto& [pair, angle] : view.turns)
      turns += fmt::format("{}pair {} by {:.4g}", turns.empty() ? "" : ", ", pair, angle);
    if (!turns.empty()) out += fmt::format("    position {} turns {} (radians)\n", position, turns);
    for (const auto& [head, slope] : view.slopes)
      out += fmt::format("    head {} loses {:.4g} with each token of distance: {:.4g} from {} to 0\n", head, slope,
                         slope * position, position);
    if (view.window_tokens > 0) out += fmt::format("    sees the last {} tokens\n", view.window_tokens);
  }
  return out;
}

Json positions_json(const std::vector<PositionView>& views, int32_t position) {
  Json list = Json::array();
  for (const PositionView& view : views) {
    Json json = {{"layers", view.layers}, {"kind", view.kind}, {"position", position}};
    for (const auto& [pair, angle] : view.turns) json["turns"].push_back({{"pair", pair}, {"radians", angle}});
    for (const auto& [head, slope] : view.slopes) json["slopes"].push_back({{"head", head}, {"slope", slope}});
    if (view.window_tokens > 0) json["window_tokens"] = view.window_tokens;
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace candor::apps
