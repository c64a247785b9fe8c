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

std::span<const float> StepResult::logits(int32_t out_row) const {
  return device != nullptr ? device->row(out_row) : runner->logits_.row(out_row);
}

backend::LogitRow StepResult::logit_row(int32_t out_row) const {
  return logit_row(out_row, device != nullptr ? device->n_vocab() : runner->logits_.n_vocab);
}

backend::LogitRow StepResult::logit_row(int32_t out_row, int32_t n_vocab) const {
  if (device != nullptr) return {*device, out_row, n_vocab};
  return runner->logits_.row(out_row).first(static_cast<size_t>(n_vocab));
}

std::span<const float> StepResult::hidden(int32_t out_row) const {
  backend::RowsView& rows = runner->hidden_;
  if (rows.data == nullptr) rows = runner->loaded_.model->hidden(static_cast<int32_t>(plan->out_rows.size()));
  return rows.row(out_row);
}

void StepResult::bring(int32_t first_row, int32_t n_rows) const {
  if (device != nullptr) device->bring(first_row, n_rows);
}

StepResult ModelRunner::launch(const sched::StepPlan& plan, std::span<const float> vectors) {
  began_ns_ = clock_.now_ns();
  throw_if_lost(*loaded_.backend);
  for (const kv::BlockCopy& copy : plan.copies) loaded_.kv->copy_block(copy.src, copy.dst, copy.n_tokens);
  ticket_ = loaded_.model->launch(batch_of(plan, vectors), *loaded_.kv);
  hidden_ = {};
  return {.device = loaded_.backend->device_logits(ticket_), .plan = &plan, .vectors = vectors, .runner = this};
}

void ModelRunner::wait(StepResult& result, sample::RowAsks& asks) {
  if (result.device != nullptr) {
    asks.send(*result.device);
  } else {
    logits_ = loaded_.backend->read_logits(ticket_);
  }
  throw_if_lost(*loaded_.backend);
  ready_ns_ = result.ready_ns = clock_.now_ns();
}

}  // namespace candor::engine
