#include "backend/reference/reference_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numbers>
#include <variant>

#include "backend/reference/reference_math.h"
#include "base/error.h"

namespace candor::backend::reference {
namespace {

void widen(const float* src, size_t n, double* dst) {
  for (size_t i = 0; i < n; ++i) dst[i] = static_cast<double>(src[i]);
}

double mean(const float* x, size_t n) {
  double sum = 0.0;
  for (size_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
  return sum / static_cast<double>(n);
}

double mean_square(const float* x, size_t n, double centre) {
  double sum = 0.0;
  for (size_t i = 0; i < n; ++i) {
    const double deviation = static_cast<double>(x[i]) - centre;
    sum += deviation * deviation;
  }
  return sum / static_cast<double>(n);
}

// cap * tanh(x / cap); x itself where there is no cap.
double soft_cap(double x, float cap) {
  if (cap == 0.0f) return x;
  return static_cast<double>(cap) * (2.0 * sigmoid(2.0 * x / static_cast<double>(cap)) - 1.0);
}

double activation(double x, GateKind kind) {
  switch (kind) {
    case GateKind::kSilu:
      return x * sigmoid(x);
    case GateKind::kGelu: {
      // 0.5 (1 + tanh z) = sigmoid(2 z)
      constexpr double kSqrt2OverPi = 0.79788456080286535588;
      return x * sigmoid(2.0 * kSqrt2OverPi * (x + 0.044715 * x * x * x));
    }
    case GateKind::kGeluErf:
      return 0.5 * x * std::erfc(-x * std::numbers::sqrt2 / 2.0);
    case GateKind::kRelu:
      return x < 0.0 ? 0.0 : x;
    case GateKind::kReluSquared:
      return x < 0.0 ? 0.0 : x * x;
    case GateKind::kSigmoid:
      return sigmoid(x);
    case GateKind::kProduct:
      return x;
    case GateKind::kClampedSilu:
      return std::min(x, 7.0) * sigmoid(1.702 * std::min(x, 7.0));
  }
  return x;
}

// What the activation is multiplied with.
double gated(double up, GateKind kind) {
  return kind == GateKind::kClampedSilu ? std::clamp(up, -7.0, 7.0) + 1.0 : up;
}

// cos and sin of a row's positions: [n_dims / 2] each, computed in double and rounded to f32.
struct Rotation {
  std::vector<float> cosines;
  std::vector<float> sines;
};

Rotation rotation_of(const StepBatch& batch, int32_t row, std::span<const double> frequencies, const RopeSpec& spec) {
  Rotation rotation;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double angle = batch.position_of(static_cast<size_t>(row), spec.axes, i) * frequencies[i];
    rotation.cosines.push_back(static_cast<float>(std::cos(angle) * spec.attention_factor));
    rotation.sines.push_back(static_cast<float>(std::sin(angle) * spec.attention_factor));
  }
  return rotation;
}

void rotate(float* head, const Rotation& rotation, RopePairs pairs) {
  const size_t half = rotation.cosines.size();
  const bool interleaved = pairs == RopePairs::kInterleaved;
  for (size_t i = 0; i < half; ++i) {
    float& first = head[interleaved ? 2 * i : i];
    float& second = head[interleaved ? 2 * i + 1 : i + half];
    const double x = static_cast<double>(first);
    const double y = static_cast<double>(second);
    const double cosine = static_cast<double>(rotation.cosines[i]);
    const double sine = static_cast<double>(rotation.sines[i]);
    first = static_cast<float>(x * cosine - y * sine);
    second = static_cast<float>(x * sine + y * cosine);
  }
}

// scores become probabilities, beside that of a sink, if there is one.
void softmax(std::span<double> scores, const float* sink) {
  double largest = *std::max_element(scores.begin(), scores.end());
  if (sink != nullptr) largest = std::max(largest, static_cast<double>(*sink));
  double sum = sink == nullptr ? 0.0 : exp(static_cast<double>(*sink) - largest);
  for (double& score : scores) {
    score = exp(score - largest);
    sum += score;
  }
  for (double& score : scores) score /= sum;
}

}  // namespace

float* ReferenceKv::page(BlockId block, int32_t layer, int32_t plane) {
  CANDOR_CHECK(block >= 0 && block < size_.n_blocks && layer >= 0 && layer < layout_.n_layers);
  const auto n_planes = static_cast<size_t>(layout_.n_planes());
  size_t before = 0;  // floats of a position in the layers before, and in all
  size_t all = 0;
  for (int32_t other = 0; other < layout_.n_layers; ++other) {
    if (other == layer) before = all;
    all += n_planes * row_floats(other);
  }
  const size_t first = static_cast<size_t>(block) * all + before + static_cast<size_t>(plane) * row_floats(layer);
  return values_.data() + first * kBlockTokens;
}

float* ReferenceKv::at(std::span<const BlockId> blocks, int32_t layer, int32_t plane, int32_t position) {
  const size_t entry = static_cast<size_t>(position / kBlockTokens);
  CANDOR_CHECK(entry < blocks.size());
  return page(blocks[entry], layer, plane) + static_cast<size_t>(position % kBlockTokens) * row_floats(layer);
}

void ReferenceKv::copy_block(BlockId src, BlockId dst, int32_t n_tokens) {
  for (int32_t layer = 0; layer < layout_.n_layers; ++layer) {
    for (int32_t plane = 0; plane < layout_.n_planes(); ++plane) {
      std::copy_n(page(src, layer, plane), static_cast<size_t>(n_tokens) * row_floats(layer), page(dst, layer, plane));
    }
  }
}

bool ReferenceKv::read_key(const KeyPlace& place, std::span<float> key) {
  const float* row = page(place.block, place.layer, 0) + static_cast<size_t>(place.token) * row_floats(place.layer);
  std::copy_n(row + static_cast<size_t>(place.kv_head) * key.size(), key.size(), key.begin());
  return true;
}

void ReferenceOps::begin(const StepBatch& batch, ReferenceKv& kv) {
  CANDOR_CHECK(missing_kind(batch.kinds(), kKnownRows).empty());
  batch_ = batch;
  kv_ = &kv;
  n_logit_rows_ = 0;
}

float* ReferenceOps::row(Activation x, int32_t i) {
  std::vector<float>& slot = slots_[static_cast<size_t>(x.slot)];
  const size_t begin = static_cast<size_t>(i) * static_cast<size_t>(x.n_cols);
  CANDOR_CHECK(begin + static_cast<size_t>(x.n_cols) <= slot.size());
  return slot.data() + begin;
}

void ReferenceOps::run(const Op& operation) {
  std::visit([this](const auto& each) { compute(each); }, operation);
}

void ReferenceOps::compute(const op::Embed& call) {
  for (int32_t t = 0; t < call.dst.n_rows; ++t) {
    if (const float* vector = batch_.vector_of(t); call.takes_vectors && vector != nullptr) {
      std::copy_n(vector, call.dst.n_cols, row(call.dst, t));
      continue;
    }
    const float* src = decoded(*call.table).row(batch_.token_of(t, call.vector_token));
    std::transform(src, src + call.dst.n_cols, row(call.dst, t), [&call](float x) { return x * call.scale; });
  }
}

void ReferenceOps::compute(const op::AddPositions& call) {
  for (int32_t t = 0; t < call.dst.n_rows; ++t) {
    const float* src = decoded(*call.table).row(batch_.positions[static_cast<size_t>(t)]);
    float* y = row(call.dst, t);
    for (int32_t i = 0; i < call.dst.n_cols; ++i) y[i] += src[i];
  }
}

void ReferenceOps::compute(const op::AddTypes& call) {
  for (const SeqSlice& seq : batch_.seqs) {
    for (int32_t t = seq.first_row; t < seq.first_row + seq.n_rows; ++t) {
      const int64_t type = std::min<int64_t>(StepBatch::type_of(seq, t), call.table->n_rows() - 1);
      const float* src = decoded(*call.table).row(static_cast<int32_t>(type));
      float* y = row(call.dst, t);
      for (int32_t i = 0; i < call.dst.n_cols; ++i) y[i] += src[i];
    }
  }
}

void ReferenceOps::compute(const op::AddVectors& call) {
  for (int32_t t = 0; t < call.dst.n_rows; ++t) {
    const float* vector = batch_.vector_of(t);
    if (vector == nullptr) continue;
    float* y = row(call.dst, t);
    for (int32_t i = 0; i < call.dst.n_cols; ++i) y[i] += vector[call.first + i];
  }
}

void ReferenceOps::compute(const op::Norm& call) {
  const size_t n = static_cast<size_t>(call.src.n_cols);
  const float* gains = call.weights.gain == nullptr ? nullptr : decoded(*call.weights.gain).row(0);
  const float* biases = call.weights.bias == nullptr ? nullptr : decoded(*call.weights.bias).row(0);
  const size_t n_gain_rows =
      gains == nullptr ? 1 : static_cast<size_t>(call.weights.gain->n_rows() * call.weights.gain->n_cols()) / n;
  for (int32_t t = 0; t < call.src.n_rows; ++t) {
    const float* x = row(call.src, t);
    float* y = row(call.dst, t);
    const size_t turn = static_cast<size_t>(t) % n_gain_rows * n;
    const double centre = call.spec.kind == NormKind::kLayer ? mean(x, n) : 0.0;
    const double scale = 1.0 / std::sqrt(mean_square(x, n, centre) + static_cast<double>(call.spec.epsilon));
    for (size_t i = 0; i < n; ++i) {
      const double bias = biases == nullptr ? 0.0 : static_cast<double>(biases[i]);
      const double gain = gains == nullptr ? 1.0 : static_cast<double>(gains[turn + i]);
      y[i] = static_cast<float>((static_cast<double>(x[i]) - centre) * scale * gain + bias);
    }
  }
}

void ReferenceOps::compute(const op::Linear& call) {
  const size_t n = static_cast<size_t>(call.src.n_cols);
  const size_t n_rows = static_cast<size_t>(call.src.n_rows);
  if (n_rows == 0) return;
  inputs_.resize(n_rows * n);
  weight_row_.resize(n);
  widen(row(call.src, 0), n_rows * n, inputs_.data());
  for (const LinearTerm& term : call.terms) {
    for (int32_t out = 0; out < term.dst.n_cols; ++out) {
      widen(decoded(*term.weight).row(out), n, weight_row_.data());
      const double bias = term.bias == nullptr ? 0.0 : static_cast<double>(decoded(*term.bias).row(0)[out]);
      for (int32_t t = 0; t < call.src.n_rows; ++t) {
        const double sum = dot(weight_row_.data(), inputs_.data() + static_cast<size_t>(t) * n, n);
        row(term.dst, t)[out] = static_cast<float>(sum + bias);
      }
    }
  }
}

void ReferenceOps::compute(const op::Rope& call) {
  const std::vector<double> frequencies = rope_frequencies(*call.spec);
  for (int32_t t = 0; t < call.x.n_rows; ++t) {
    const Rotation rotation = rotation_of(batch_, t, frequencies, *call.spec);
    for (int32_t head = 0; head < call.n_heads; ++head)
      rotate(row(call.x, t) + head * call.head_dim, rotation, call.spec->pairs);
  }
}

void ReferenceOps::compute(const op::Temper& call) {
  for (int32_t t = 0; t < call.x.n_rows; ++t) {
    const double factor = temper_factor(call.spec, batch_.positions[static_cast<size_t>(t)]);
    float* y = row(call.x, t);
    std::transform(y, y + call.x.n_cols, y,
                   [factor](float value) { return static_cast<float>(static_cast<double>(value) * factor); });
  }
}

void ReferenceOps::append(Activation k, Activation v, int32_t layer) {
  for (size_t s = 0; s < batch_.seqs.size(); ++s) {
    const SeqSlice& seq = batch_.seqs[s];
    const std::span<const BlockId> blocks = batch_.blocks_of(s);
    for (int32_t i = 0; i < seq.n_rows; ++i) {
      std::copy_n(row(k, seq.first_row + i), k.n_cols, kv_->key(blocks, layer, seq.n_past + i));
      if (kv_->layout().has_values())
        std::copy_n(row(v, seq.first_row + i), v.n_cols, kv_->value(blocks, layer, seq.n_past + i));
    }
  }
}

void ReferenceOps::compute(const op::Attend& call) {
  if (call.term.k.n_cols > 0) append(call.term.k, call.term.v, call.term.layer);
  const float* sinks = call.spec->has_sinks ? decoded(*call.term.sinks).row(0) : nullptr;
  const float* biases = call.spec->bias_reach > 0 ? decoded(*call.term.biases).row(0) : nullptr;
  const int32_t n_biases = 2 * call.spec->bias_reach + 1;
  const int32_t group = call.spec->n_heads / call.spec->n_kv_heads;
  const std::vector<float> slopes =
      alibi_slopes(std::max(call.spec->n_heads, call.spec->n_all_heads), call.spec->max_alibi_bias);
  for (size_t s = 0; s < batch_.seqs.size(); ++s) {
    const SeqSlice& seq = batch_.seqs[s];
    for (int32_t i = 0; i < seq.n_rows; ++i) {
      const VisibleGroup* seen = call.spec->sees_groups ? batch_.group_of(seq.first_row + i) : nullptr;
      const int32_t last = seen == nullptr ? i : seen->first_row + seen->n_rows - seq.first_row - 1;
      for (int32_t head = 0; head < call.spec->n_heads; ++head) {
        const size_t head_of_all = static_cast<size_t>(call.spec->first_head) + static_cast<size_t>(head);
        const double slope = call.spec->max_alibi_bias == 0.0f ? 0.0 : static_cast<double>(slopes[head_of_all]);
        attend_head(row(call.dst, seq.first_row + i) + head * call.spec->value_dim(),
                    row(call.term.q, seq.first_row + i) + head * call.spec->head_dim,
                    {s, seq.n_past + i, seq.n_past + last},
                    {call.term.layer, head / group, slope, sinks == nullptr ? nullptr : sinks + head,
                     biases == nullptr ? nullptr : biases + int64_t{head} * n_biases},
                    *call.spec);
      }
    }
  }
}

void ReferenceOps::attend_head(float* dst, const float* q, Place place, Plane plane, const AttnSpec& spec) {
  const size_t n = static_cast<size_t>(spec.head_dim);
  const int32_t offset = plane.kv_head * spec.head_dim;
  const std::span<const BlockId> blocks = batch_.blocks_of(place.seq);
  int32_t first = spec.window_tokens == 0 ? 0 : std::max(0, place.position - spec.window_tokens + 1);
  if (spec.chunk_tokens > 0) first = place.position - place.position % spec.chunk_tokens;
  if (spec.is_two_sided) place.last = std::min(place.last, place.position + spec.window_tokens - 1);
  weight_row_.resize(2 * n);
  double* query = weight_row_.data();
  double* key = query + n;
  widen(q, n, query);
  scores_.clear();
  for (int32_t p = first; p <= place.last; ++p) {
    widen(kv_->key(blocks, plane.layer, p) + offset, n, key);
    const double score = soft_cap(dot(query, key, n) * static_cast<double>(spec.scale), spec.softcap);
    const int32_t distance = std::clamp(p - place.position, -spec.bias_reach, spec.bias_reach);
    const double bias = plane.biases == nullptr ? 0.0 : static_cast<double>(plane.biases[distance + spec.bias_reach]);
    scores_.push_back(score - plane.slope * std::abs(place.position - p) + bias);
  }
  softmax(scores_, plane.sink);
  const size_t n_values = static_cast<size_t>(spec.value_dim());
  sums_.assign(n_values, 0.0);
  for (int32_t p = first; p <= place.last; ++p) {
    const float* value = kv_->value(blocks, plane.layer, p) + offset;
    const double probability = scores_[static_cast<size_t>(p - first)];
    for (size_t i = 0; i < n_values; ++i) sums_[i] += probability * static_cast<double>(value[i]);
  }
  std::transform(sums_.begin(), sums_.end(), dst, [](double sum) { return static_cast<float>(sum); });
}

void ReferenceOps::compute(const op::Gate& call) {
  for (int32_t t = 0; t < call.dst.n_rows; ++t) {
    const float* gates = row(call.gate, t);
    const float* ups = row(call.up, t);
    float* y = row(call.dst, t);
    for (int32_t i = 0; i < call.dst.n_cols; ++i) {
      y[i] = static_cast<float>(activation(static_cast<double>(gates[i]), call.kind) *
                                gated(static_cast<double>(ups[i]), call.kind));
    }
  }
}

void ReferenceOps::compute(const op::Clamp& call) {
  for (int32_t t = 0; t < call.dst.n_rows; ++t) {
    const float* x = row(call.src, t);
    std::transform(x, x + call.dst.n_cols, row(call.dst, t),
                   [&call](float value) { return clamped(value, call.low, call.high); });
  }
}

void ReferenceOps::compute(const op::Activate& call) {
  for (int32_t t = 0; t < call.x.n_rows; ++t) {
    float* y = row(call.x, t);
    std::transform(y, y + call.x.n_cols, y, [&call](float value) {
      return static_cast<float>(activation(static_cast<double>(value), call.kind));
    });
  }
}

void ReferenceOps::compute(const op::Moe& call) {
  routing_.begin(call.term.spec);
  const float* bias = call.term.spec.has_choice_bias ? decoded(*call.term.choice_bias).row(0) : nullptr;
  const float* scales = call.term.spec.has_expert_scales ? decoded(*call.term.expert_scales).row(0) : nullptr;
  for (int32_t t = 0; t < call.src.n_rows; ++t) {
    routing_.add_row(t, {row(call.term.scores, t), static_cast<size_t>(call.term.scores.n_cols)}, {bias, scales});
    std::fill_n(row(call.dst, t), call.dst.n_cols, 0.0f);
    if (call.term.bias != nullptr) std::copy_n(decoded(*call.term.bias).row(0), call.dst.n_cols, row(call.dst, t));
  }
  const auto first_rows = [](Activation x, size_t n) { return Activation{x.slot, static_cast<int32_t>(n), x.n_cols}; };
  for (int32_t e = 0; e < routing_.n_experts(); ++e) {
    const std::span<const Routing::Visit> visits = routing_.visits(e);
    const Activation gates = first_rows(call.term.gate, visits.size());
    const Activation ups = first_rows(call.term.up, visits.size());
    const Activation outputs =
        first_rows(call.term.outputs, visits.size());  // the rows themselves, until they are read
    const Expert& expert = call.term.experts[static_cast<size_t>(e)];
    for (int32_t i = 0; i < outputs.n_rows; ++i) {
      const Routing::Visit& visit = visits[static_cast<size_t>(i)];
      const float factor = call.term.spec.weighs_inputs ? visit.weight : 1.0f;
      const float* x = row(call.src, visit.row);
      std::transform(x, x + call.src.n_cols, row(outputs, i), [factor](float value) { return value * factor; });
    }
    if (expert.gate == nullptr) {
      compute(op::Linear{std::array{LinearTerm{expert.up, expert.up_bias, gates}}, outputs});
      adapt_expert(call.term, e, ExpertPart::kUp, outputs, gates);
      compute(op::Activate{gates, call.term.kind});
    } else {
      compute(op::Linear{
          std::array{LinearTerm{expert.gate, expert.gate_bias, gates}, LinearTerm{expert.up, expert.up_bias, ups}},
          outputs});
      adapt_expert(call.term, e, ExpertPart::kGate, outputs, gates);
      adapt_expert(call.term, e, ExpertPart::kUp, outputs, ups);
      compute(op::Gate{gates, gates, ups, call.term.kind});
    }
    compute(op::Linear{std::array{LinearTerm{expert.down, expert.down_bias, outputs}}, gates});
    adapt_expert(call.term, e, ExpertPart::kDown, gates, outputs);
    for (int32_t i = 0; i < outputs.n_rows; ++i) {
      const Routing::Visit& visit = visits[static_cast<size_t>(i)];
      const float* x = row(outputs, i);
      float* y = row(call.dst, visit.row);
      const float weight = call.term.spec.weighs_inputs ? 1.0f : visit.weight;
      for (int32_t c = 0; c < call.dst.n_cols; ++c) y[c] += x[c] * weight;
    }
  }
}

void ReferenceOps::compute(const op::Scale& call) {
  const double scale = static_cast<double>(call.factor) *
                       (call.weight == nullptr ? 1.0 : static_cast<double>(decoded(*call.weight).row(0)[0]));
  for (int32_t t = 0; t < call.x.n_rows; ++t) {
    float* y = row(call.x, t);
    std::transform(y, y + call.x.n_cols, y,
                   [scale](float value) { return static_cast<float>(static_cast<double>(value) * scale); });
  }
}

void ReferenceOps::compute(const op::Columns& call) {
  for (int32_t t = 0; t < call.dst.n_rows; ++t)
    std::copy_n(row(call.src, t) + call.first, call.dst.n_cols, row(call.dst, t));
}

void ReferenceOps::compute(const op::Add& call) {
  for (int32_t t = 0; t < call.dst.n_rows; ++t) {
    const float* x = row(call.src, t);
    float* y = row(call.dst, t);
    for (int32_t i = 0; i < call.dst.n_cols; ++i) {
      y[i] =
          static_cast<float>(static_cast<double>(y[i]) + static_cast<double>(x[i]) * static_cast<double>(call.scale));
    }
  }
}

void ReferenceOps::compute(const op::Unzip& call) {
  const int32_t other = call.second.n_cols / (call.first.n_cols / call.width);
  for (int32_t t = 0; t < call.src.n_rows; ++t) {
    for (int32_t i = 0; i < call.first.n_cols; ++i)
      row(call.first, t)[i] = row(call.src, t)[i / call.width * (call.width + other) + i % call.width];
    for (int32_t i = 0; i < call.second.n_cols; ++i) {
      row(call.second, t)[i] = row(call.src, t)[i / other * (call.width + other) + call.width + i % other];
    }
  }
}

void ReferenceOps::compute(const op::Zip& call) {
  const int32_t other = call.second.n_cols / (call.first.n_cols / call.width);
  for (int32_t t = 0; t < call.dst.n_rows; ++t) {
    for (int32_t i = 0; i < call.first.n_cols; ++i)
      row(call.dst, t)[i / call.width * (call.width + other) + i % call.width] = row(call.first, t)[i];
    for (int32_t i = 0; i < call.second.n_cols; ++i) {
      row(call.dst, t)[i / other * (call.width + other) + call.width + i % other] = row(call.second, t)[i];
    }
  }
}

void ReferenceOps::compute(const op::LinearHeads& call) {
  const auto n_in = static_cast<size_t>(call.src.n_cols / call.n_heads);
  const int32_t n_out = call.dst.n_cols / call.n_heads;
  inputs_.resize(n_in);
  weight_row_.resize(n_in);
  for (int32_t t = 0; t < call.src.n_rows; ++t) {
    for (int32_t i = 0; i < call.dst.n_cols; ++i) {
      widen(row(call.src, t) + static_cast<size_t>(i / n_out) * n_in, n_in, inputs_.data());
      widen(decoded(*call.weight).row(i), n_in, weight_row_.data());
      row(call.dst, t)[i] = static_cast<float>(dot(weight_row_.data(), inputs_.data(), n_in));
    }
  }
}

void ReferenceOps::compute(const op::AddGated& call) {
  for (int32_t t = 0; t < call.dst.n_rows; ++t) {
    const double share = sigmoid(static_cast<double>(*row(call.gate, t)));
    for (int32_t i = 0; i < call.dst.n_cols; ++i) {
      float& y = row(call.dst, t)[i];
      y = static_cast<float>(static_cast<double>(y) + static_cast<double>(row(call.src, t)[i]) * share);
    }
  }
}

void ReferenceOps::compute(const op::Gather& call) {
  for (int32_t i = 0; i < call.dst.n_rows; ++i) {
    std::copy_n(row(call.src, batch_.out_rows[static_cast<size_t>(i)]), call.src.n_cols, row(call.dst, i));
  }
}

void ReferenceOps::compute(const op::Collect& call) {
  n_logit_rows_ = call.logits.n_rows;
  n_vocab_ = call.logits.n_cols;
  logits_.clear();
  for (int32_t i = 0; i < call.logits.n_rows; ++i) {
    const float* x = row(call.logits, i);
    std::transform(x, x + call.logits.n_cols, std::back_inserter(logits_), [&call](float value) {
      return static_cast<float>(soft_cap(static_cast<double>(value * call.spec.scale), call.spec.softcap));
    });
  }
}

}  // namespace candor::backend::reference
