#include "model/hub/hub_masked.h"

#include <algorithm>
#include <iterator>

namespace candor::model {
namespace {

struct Row {
  std::string_view hub;
  std::string_view name;
};
constexpr Row kRows[] = {
    {"cls.predictions.transform.dense.weight", "mlm.weight"},
    {"cls.predictions.transform.dense.bias", "mlm.bias"},
    {"cls.predictions.transform.LayerNorm.weight", "mlm.norm.weight"},
    {"cls.predictions.transform.LayerNorm.bias", "mlm.norm.bias"},
    {"cls.predictions.transform.LayerNorm.gamma", "mlm.norm.weight"},
    {"cls.predictions.transform.LayerNorm.beta", "mlm.norm.bias"},
    {"cls.predictions.decoder.weight", "output.weight"},
    {"cls.predictions.decoder.bias", ""},
    {"cls.predictions.bias", "output.bias"},
    {"lm_head.dense.weight", "mlm.weight"},
    {"lm_head.dense.bias", "mlm.bias"},
    {"lm_head.layer_norm.weight", "mlm.norm.weight"},
    {"lm_head.layer_norm.bias", "mlm.norm.bias"},
    {"lm_head.norm.weight", "mlm.norm.weight"},
    {"lm_head.norm.bias", "mlm.norm.bias"},
    {"lm_head.decoder.weight", "output.weight"},
    {"lm_head.decoder.bias", ""},
    {"lm_head.bias", "output.bias"},
    {"vocab_transform.weight", "mlm.weight"},
    {"vocab_transform.bias", "mlm.bias"},
    {"vocab_layer_norm.weight", "mlm.norm.weight"},
    {"vocab_layer_norm.bias", "mlm.norm.bias"},
    {"vocab_projector.weight", "output.weight"},
    {"vocab_projector.bias", "output.bias"},
    {"head.dense.weight", "mlm.weight"},
    {"head.dense.bias", "mlm.bias"},
    {"head.norm.weight", "mlm.norm.weight"},
    {"head.norm.bias", "mlm.norm.bias"},
    {"decoder.weight", "output.weight"},
    {"decoder.bias", "output.bias"},
};

}  // namespace

std::optional<std::string_view> masked_head_tensor(std::string_view name, bool is_tied) {
  const auto* row = std::ranges::find(kRows, name, &Row::hub);
  if (row == std::end(kRows)) return std::nullopt;
  return is_tied && row->name == "output.weight" ? std::string_view() : row->name;
}

}  // namespace candor::model
