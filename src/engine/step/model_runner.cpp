#include "engine/step/model_runner.h"

namespace candor::engine {

std::string StepResult::broken_place() const {
  LoadedModel& loaded = runner->loaded_;
  return "; the first such number came out of " + loaded.model->broken_place(plan->batch(), *loaded.kv);
}

StepResult ModelRunner::run(const sched::StepPlan& plan) {
  began_ns_ = clock_.now_ns();
  for (const kv::BlockCopy& copy : plan.copies) loaded_.kv->copy_block(copy.src, copy.dst, copy.n_tokens);
  StepResult result{.plan = &plan, .runner = this};
  result.logits = loaded_.backend->wait(loaded_.model->launch(plan.batch(), *loaded_.kv));
  if (!plan.out_rows.empty()) result.hidden = loaded_.model->hidden(static_cast<int32_t>(plan.out_rows.size()));
  ready_ns_ = result.ready_ns = clock_.now_ns();
  return result;
}

}  // namespace candor::engine
