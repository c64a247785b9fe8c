#include "support/broken_backend.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/wrap/forwarding_backend.h"
#include "base/exact_math.h"
#include "base/half.h"
#include "kernels/kernels.h"

namespace candor::testing {
namespace {

using kernels::AttendArgs;
using kernels::kPageTokens;

float bf16_at(const std::byte* page, size_t index) {
  bf16 value = 0;
  std::memcpy(&value, page + index * sizeof(bf16), sizeof(value));
  return bf16_to_f32(value);
}

const std::byte* block_of(const AttendArgs& a, int32_t position) {
  const size_t block = static_cast<size_t>(a.pages.block_table[position / kPageTokens]);
  return a.pages.base + block * a.pages.block_bytes;
}

// Page layouts: kernels/attend.h.
float key_at(const AttendArgs& a, int32_t position, int32_t dim) {
  const size_t token = static_cast<size_t>(position % kPageTokens);
  const size_t pairs = static_cast<size_t>((a.head_dim + 15) / 16 * 8);
  const size_t pair = (token / 16 * pairs + static_cast<size_t>(dim / 2)) * 16 + token % 16;
  return bf16_at(block_of(a, position) + a.pages.k_offset, 2 * pair + static_cast<size_t>(dim % 2));
}

float value_at(const AttendArgs& a, int32_t position, int32_t dim) {
  const size_t token = static_cast<size_t>(position % kPageTokens);
  const size_t pair = (static_cast<size_t>(dim / 16) * 16 + token / 2) * 16 + static_cast<size_t>(dim % 16);
  return bf16_at(block_of(a, position) + a.pages.v_offset, 2 * pair + token % 2);
}

// Softmax over some of the keys, not yet divided by its sum.
struct Part {
  float largest = -std::numeric_limits<float>::infinity();
  float sum = 0.0f;
  std::vector<float> values;
};

Part attend_part(const AttendArgs& a, const float* q, int32_t begin, int32_t end) {
  Part part;
  part.values.assign(static_cast<size_t>(a.head_dim), 0.0f);
  std::vector<float> scores;
  for (int32_t p = begin; p < end; ++p) {
    float score = 0.0f;
    for (int32_t d = 0; d < a.head_dim; ++d) score += q[d] * key_at(a, p, d);
    scores.push_back(score * a.scale);
    part.largest = std::max(part.largest, scores.back());
  }
  for (int32_t p = begin; p < end; ++p) {
    const float weight = exp_f32(scores[static_cast<size_t>(p - begin)] - part.largest);
    part.sum += weight;
    for (int32_t d = 0; d < a.head_dim; ++d) part.values[static_cast<size_t>(d)] += weight * value_at(a, p, d);
  }
  return part;
}

void attend_row(const AttendArgs& a, int32_t row, int32_t head, int32_t n_parts) {
  const float* q = a.q + row * a.q_stride + head * a.head_dim;
  float* dst = a.dst + row * a.dst_stride + head * a.head_dim;
  const int32_t end = a.first_position + row + 1;
  const int32_t begin = a.window_tokens == 0 ? 0 : std::max(0, end - a.window_tokens);
  std::vector<Part> parts;
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < n_parts; ++i) {
    const int32_t first = begin + static_cast<int32_t>((end - begin) * i / n_parts);
    const int32_t last = begin + static_cast<int32_t>((end - begin) * (i + 1) / n_parts);
    if (first == last) continue;
    parts.push_back(attend_part(a, q, first, last));
    largest = std::max(largest, parts.back().largest);
  }
  float sum = 0.0f;
  std::fill_n(dst, a.head_dim, 0.0f);
  for (const Part& part : parts) {
    const float weight = exp_f32(part.largest - largest);
    sum += part.sum * weight;
    for (int32_t d = 0; d < a.head_dim; ++d) dst[d] += part.values[static_cast<size_t>(d)] * weight;
  }
  for (int32_t d = 0; d < a.head_dim; ++d) dst[d] /= sum;
}

// Of the step that is computed.
std::atomic<int32_t> parts_of_step{1};

void attend_in_parts(const AttendArgs& args) {
  CANDOR_CHECK(args.pages.format == kernels::KvFormat::kBf16);
  for (int32_t row = 0; row < args.n_rows; ++row) {
    for (int32_t head = 0; head < args.n_group_heads; ++head) attend_row(args, row, head, parts_of_step);
  }
}

const kernels::KernelTable& broken_table(const kernels::KernelTable& sound) {
  static kernels::KernelTable table;
  table = sound;
  table.attend = [](const AttendArgs& args, std::byte*) { attend_in_parts(args); };
  table.attend_split = [](const AttendArgs&, int32_t, std::byte*, std::byte*) {};
  table.attend_combine = [](const AttendArgs& args, const std::byte*, std::byte*) { attend_in_parts(args); };
  return table;
}

class BrokenBackend final : public backend::ForwardingBackend {
 public:
  BrokenBackend(std::unique_ptr<backend::Backend> cpu, BrokenRule rule)
      : ForwardingBackend(std::move(cpu)), rule_(rule) {}

  void begin_step(const backend::StepBatch& batch, backend::KvStore& kv) override {
    parts_of_step = rule_ == BrokenRule::kSplitKeysByThreads ? info().n_threads
                    : rule_ == BrokenRule::kSplitKeysByRows  ? 1 + batch.n_rows() % 5
                                                             : 1;
    seqs_.assign(batch.seqs.begin(), batch.seqs.end());
    saves_.assign(batch.saves.begin(), batch.saves.end());
    if (rule_ == BrokenRule::kSwapStates && seqs_.size() > 1) std::swap(seqs_.front().state, seqs_.back().state);
    if (rule_ == BrokenRule::kLateCheckpoints) delay_saves();
    if (rule_ == BrokenRule::kSwapCheckpoints) swap_saves();
    backend::StepBatch broken = batch;
    broken.seqs = seqs_;
    broken.saves = saves_;
    ForwardingBackend::begin_step(broken, kv);
  }

 private:
  bool is_inside(const backend::StateSave& save) const {
    const auto ends = [&](const backend::SeqSlice& seq) { return seq.first_row + seq.n_rows - 1 == save.row; };
    return std::ranges::none_of(seqs_, ends);
  }
  void delay_saves() {
    for (size_t i = 0; i + 1 < saves_.size(); ++i) {
      if (is_inside(saves_[i]) && saves_[i + 1].row > saves_[i].row + 1) ++saves_[i].row;
    }
  }
  void swap_saves() {
    const auto saves_inside = [&](const backend::SeqSlice& seq) {
      return std::ranges::find_if(saves_, [&](const backend::StateSave& save) {
        return save.row >= seq.first_row && save.row < seq.first_row + seq.n_rows - 1;
      });
    };
    std::vector<backend::StateSave*> firsts;
    for (const backend::SeqSlice& seq : seqs_) {
      if (const auto save = saves_inside(seq); save != saves_.end()) firsts.push_back(&*save);
    }
    for (size_t i = 0; i + 1 < firsts.size(); i += 2) std::swap(firsts[i]->slot, firsts[i + 1]->slot);
  }

  BrokenRule rule_;
  std::vector<backend::SeqSlice> seqs_;
  std::vector<backend::StateSave> saves_;
};

}  // namespace

Result<std::unique_ptr<backend::Backend>> make_broken_backend(int32_t n_threads, BrokenRule rule) {
  CANDOR_ASSIGN(const kernels::KernelTable* sound, kernels::select_table_from_environment());
  CANDOR_ASSIGN(auto cpu, backend::make_cpu_backend({.n_threads = n_threads, .table = &broken_table(*sound)}));
  return std::make_unique<BrokenBackend>(std::move(cpu), rule);
}

}  // namespace candor::testing
