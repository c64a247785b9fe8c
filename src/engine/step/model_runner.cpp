#include "engine/step/model_runner.h"

#include "base/fault.h"

namespace candor::engine {
namespace {

// What is computed without a rank means nothing, for any request.
void throw_if_lost(const backend::Backend& backend) {
  if (const auto health = backend.health(); !health) throw ErrorException(health.error());
}

backend::StepBatch batch_of(const sched::StepPlan& plan, std::span<const float> vectors) {
  backend::StepBatch batch = plan.batch();
  batch.vectors = vectors;
  return batch;
}

}  // namespace

std::string StepResult::broken_part() const {
  LoadedModel& loaded = runner->loaded_;
  return "; the first such number came out of " + loaded.model->broken_part(batch_of(*plan, vectors), *loaded.kv);
}

std::vector<double> StepResult::attention_of(int32_t out_row) const {
  backend::AttentionWatch* watch = runner->loaded_.attention;
  return watch == nullptr ? std::vector<double>() : watch->shares(plan->out_rows[static_cast<size_t>(out_row)]);
}

StepResult ModelRunner::run(const sched::StepPlan& plan, std::span<const float> vectors) {
  began_ns_ = clock_.now_ns();
  throw_if_lost(*loaded_.backend);
  for (const kv::BlockCopy& copy : plan.copies) loaded_.kv->copy_block(copy.src, copy.dst, copy.n_tokens);
  StepResult result{.plan = &plan, .vectors = vectors, .runner = this};
  result.logits = loaded_.backend->read_logits(loaded_.model->launch(batch_of(plan, vectors), *loaded_.kv));
  throw_if_lost(*loaded_.backend);
  if (!plan.out_rows.empty()) result.hidden = loaded_.model->hidden(static_cast<int32_t>(plan.out_rows.size()));
  ready_ns_ = result.ready_ns = clock_.now_ns();
  return result;
}

}  // namespace candor::engine
