#pragma once
// Collects what a request asks to know about its own prompt: the logprobs of the prompt's tokens (prompt logprobs), its
// logits or hidden states, or one embedding vector for all of it. Rows come in the order of the text, each once, in
// whatever chunks the prompt is read; sums are taken in that order, in double. Engine thread only; scratch memory is
// reused.

#include <cstdint>
#include <span>
#include <vector>

#include "backend/device_logits.h"
#include "candor/event.h"
#include "engine/request/active_request.h"
#include "engine/step/model_runner.h"
#include "model/text_head.h"
#include "sample/row_asks.h"
#include "sample/sampler.h"
#include "sched/step_plan.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::engine {

class PromptViewer {
 public:
  // All are borrowed.
  PromptViewer(const kernels::KernelTable& kernels, const model::TextHead& head, const text::Tokenizer& tokenizer)
      : sampler_(kernels), head_(head), tokenizer_(tokenizer) {}

  // The shown rows of the slice. What goes wrong becomes request.fault.
  void show(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result,
            const sample::RowAsks& asks);
  // The prompt was read, and its last row is `row` of the result: what was gathered goes into the event.
  void finish(ActiveRequest& request, const StepResult& result, int32_t row, TokenEvent& event) const;

 private:
  std::vector<float> row_of(PromptRows kind, std::span<const float> hidden) const;
  void add_row(ActiveRequest& request, const StepResult& result, int32_t row) const;
  void add_words(ActiveRequest& request, const StepResult& result, int32_t row, TokenId token) const;
  void add_hidden(ActiveRequest& request, const StepResult& result, int32_t row) const;
  std::vector<float> vector_of(const ActiveRequest& request) const;
  // found: of the row, by a device; may be nullptr.
  void score(ActiveRequest& request, const backend::LogitRow& row, const backend::RowSummary* found, TokenId token);

  sample::Sampler sampler_;
  sample::Pick pick_;
  const model::TextHead& head_;
  const text::Tokenizer& tokenizer_;
};

}  // namespace candor::engine
