#include "engine/step/step_loop.h"

#include <algorithm>
#include <span>
#include <utility>

#include "candor/options.h"
#include "engine/open/memory_plan.h"
#include "engine/open/step_costs.h"
#include "engine/request/stopwatch.h"
#include "platform/float_mode.h"
#include "sched/sequence.h"

namespace candor::engine {
namespace {

sched::SchedulerOptions scheduler_options(const LoadedModel& loaded) {
  const EngineOptions& options = loaded.options;
  sched::SchedulerOptions result;
  result.n_ctx = static_cast<int32_t>(options.n_ctx);
  result.n_blocks = options.kv_blocks;
  result.n_states = loaded.kv->n_states();
  result.max_running = options.max_running;
  result.max_queued = options.max_running + options.max_queued;  // the inbox counts those that run as well
  result.window_tokens = loaded.window_tokens();
  result.reads_whole = loaded.model->spec().is_bidirectional;
  result.use_prefix_index = options.prefix_cache;
  result.use_kv_cache = options.use_kv_cache;
  if (options.costs) result.costs = to_model(*options.costs);
  return result;
}

sched::StepBudget step_budget(const LoadedModel& loaded) {
  const EngineOptions& options = loaded.options;
  return {.max_rows = options.max_rows,
          .max_prefill_rows = options.prefill_rows > 0 ? options.prefill_rows : options.max_rows,
          .max_out_rows = options.max_running + max_drafts(options),
          .max_shown_rows = max_shown_rows(options, loaded.model->spec()),
          .decode_step_ns = static_cast<int64_t>(options.step_ms * 1e6)};
}

// A device of its own computes what was launched while this thread goes on. Ranks, and two sides of a model, meet
// within a step.
bool computes_behind(const backend::BackendInfo& info) {
  return info.device_bytes > 0 && !info.uses_host_too && info.n_ranks == 1;
}

}  // namespace

StepLoop::StepLoop(LoadedModel& loaded, Inbox& inbox, AdapterRegistry& adapters, MetricStore& metrics,
                   const obs::Clock& clock, std::shared_ptr<prefix_store::Store> store, ImageStore* images)
    : scheduler_options_(scheduler_options(loaded)),
      budget_(step_budget(loaded)),
      publishes_behind_(computes_behind(loaded.backend->info())),
      loaded_(loaded),
      inbox_(inbox),
      adapters_(adapters),
      clock_(clock),
      images_(images),
      masks_(inbox, metrics, budget_.max_out_rows + budget_.max_shown_rows),
      scheduler_(scheduler_options_),
      disk_(std::move(store), *loaded.kv, scheduler_options_.costs, [&inbox] { inbox.wake(); }),
      stats_(scheduler_, metrics, static_cast<int64_t>(loaded.model->spec().blocks.size())),
      faults_(outbox_, metrics, stats_, clock),
      endings_(scheduler_, masks_, outbox_, stats_, clock),
      speculator_(loaded, scheduler_options_.costs, masks_.worker(), budget_.max_shown_rows),
      runner_(loaded, clock),
      picker_(*loaded.kernels, *loaded.tokenizer, loaded.n_ctx(), metrics.itl_ns),
      texts_(publishes_behind_, picker_, outbox_, endings_, scheduler_, faults_),
      chooser_({scheduler_, picker_, masks_, texts_, asks_, outbox_, endings_, *loaded.kernels, loaded.head,
                *loaded.tokenizer},
               requests_, faults_, clock, budget_.max_out_rows + budget_.max_shown_rows),
      publisher_(outbox_, requests_, inbox, metrics, faults_) {
  if (disk_.is_on()) scheduler_.blocks().list_lost();
}

void StepLoop::run() {
  const platform::ScopedFloatMode float_mode;
  InboxBatch batch;
  bool is_open = true;
  while (is_open) {
    try {
      is_open = inbox_.wait(batch, patience_ns());
      if (endings_.is_abandoned()) begin_anew();
      for (const auto& task : batch.tasks) task();
      take_in(batch);
      if (is_open) turn();
      free_adapters();
    } catch (...) {
      break_down(batch);
    }
  }
  end_all();
  if (!endings_.is_abandoned()) disk_.finish(scheduler_.blocks());
}

// Those that nothing uses any more.
void StepLoop::free_adapters() {
  for (const AdapterId id : adapters_.take_freed()) loaded_.model->drop_adapter(id);
}

// How long there is nothing to do unless something arrives: until the next deadline, where all wait for masks.
int64_t StepLoop::patience_ns() const {
  if (is_saving_) return 0;
  const bool awaits = disk_.is_restoring() || !awaiting_images_.empty();
  if (endings_.is_abandoned() || (scheduler_.is_idle() && !awaits)) return kNever;
  if (!is_stuck_ && !scheduler_.is_idle()) return 0;
  int64_t until_ns = kNever;
  for (const auto& request : requests_) {
    const int64_t due_ns = request->due_ns();
    if (due_ns == kNever) continue;
    until_ns = until_ns == kNever ? due_ns : std::min(until_ns, due_ns);
  }
  return until_ns == kNever ? kNever : std::max<int64_t>(0, until_ns - clock_.now_ns());
}

// One step with what stands around it: who leaves before it, what is proposed for it, and what is told of it.
void StepLoop::turn() {
  const int64_t began_ns = clock_.now_ns();
  expire(began_ns);
  masks_.begin_step();
  advance_images();
  advance_disk();
  chooser_.choose_kept();
  masks_.allow_waiting(expected_ns_, requests_.size() == 1);
  propose_drafts();
  StepReport report = step(began_ns);
  const bool is_idle = report.n_rows == 0;
  is_stuck_ = is_idle && masks_.has_kept() && !masks_.has_unsent();
  if (!is_idle) stats_.count_times(report, {began_ns, runner_.began_ns(), runner_.ready_ns(), clock_.now_ns()});
  stats_.finish(report);
  publish_unless_later(report);
}

StepReport StepLoop::step(int64_t began_ns) {
  const sched::StepPlan& plan = scheduler_.plan(budget_);
  const StepReport report = report_of(plan);
  expected_ns_ = plan.expected_ns;
  disk_.save_lost(scheduler_.blocks());
  if (plan.is_empty()) return report;
  watch_rows(plan, began_ns);
  watch_attention(plan);
  StepResult result = runner_.launch(plan, vectors_of(plan));
  asks_.begin();
  if (result.device != nullptr) chooser_.ask(plan, result);
  if (publishes_behind_) {
    texts_.finish_behind();
    publisher_.publish();
  }
  runner_.wait(result, asks_);
  speculator_.watch(plan, requests_);
  watch_prompts(plan);
  scheduler_.commit(chooser_.choose(plan, result));
  chooser_.branch();
  return report;
}

void StepLoop::watch_rows(const sched::StepPlan& plan, int64_t began_ns) {
  for (const sched::PlannedSlice& slice : plan.slices) {
    const sched::Sequence& sequence = *slice.sequence;
    ActiveRequest& request = requests_.of(sequence.id);
    request.watch.on_rows(began_ns);
    request.meter->note(sequence.n_computed, sequence.n_cached);
  }
}

// Rows that a token is chosen from.
void StepLoop::watch_attention(const sched::StepPlan& plan) {
  if (loaded_.attention == nullptr) return;
  looking_rows_.clear();
  for (const sched::PlannedSlice& slice : plan.slices) {
    const ActiveRequest& request = requests_.of(slice.sequence->id);
    const int64_t n_made = slice.sequence->n_tokens() - request.summary.usage.prompt_tokens;
    if (slice.n_out == 0 || n_made >= request.rules.n_looks) continue;
    const auto first = plan.out_rows.begin() + slice.out_row;
    looking_rows_.insert(looking_rows_.end(), first, first + slice.n_out);
  }
  loaded_.attention->look_at(looking_rows_);
}

void StepLoop::watch_prompts(const sched::StepPlan& plan) {
  for (const sched::PlannedSlice& slice : plan.slices) {
    const sched::Sequence& sequence = *slice.sequence;
    ActiveRequest& request = requests_.of(sequence.id);
    const int64_t n_left = request.meter->progress().n_prompt - sequence.n_computed;
    if (n_left <= 0) continue;
    request.watch.on_prompt(runner_.began_ns(), runner_.ready_ns(), std::min<int64_t>(slice.n_rows, n_left));
  }
}

// What the rows of images begin with; empty where there are none.
std::span<const float> StepLoop::vectors_of(const sched::StepPlan& plan) {
  vectors_.clear();
  for (const sched::StepPlan::ImageRow& row : plan.image_rows) {
    const PlacedTile& tile = requests_.of(row.sequence).images[static_cast<size_t>(row.image)];
    const model::ArchSpec& spec = loaded_.model->spec();
    const auto n = static_cast<size_t>(spec.dim) * static_cast<size_t>(1 + spec.n_deep);
    const std::span all(tile.image->encoded().rows);
    const auto vector = all.subspan(static_cast<size_t>(tile.first_row + row.row) * n, n);
    vectors_.insert(vectors_.end(), vector.begin(), vector.end());
  }
  return vectors_;
}

// Drafts change no answer: where none can be made there are none.
void StepLoop::propose_drafts() noexcept {
  try {
    speculator_.propose(scheduler_, requests_);
  } catch (...) {
    faults_.count();
    speculator_.forget();
  }
}

// Events wait for the next launch where there will be one at once. A broken request leaves behind its events.
void StepLoop::publish_unless_later(const StepReport& report) noexcept {
  const bool is_later = publishes_behind_ && report.n_rows > 0 && !scheduler_.is_idle() && !faults_.has_broken();
  if (!is_later) publish();
}

void StepLoop::publish() noexcept {
  texts_.finish();
  publisher_.publish();
  end_broken();
}

void StepLoop::take_in(InboxBatch& batch) {
  for (auto& request : batch.submitted) {
    stats_.count_submitted();
    try {
      start(request);
    } catch (...) {
      faults_.count();
      refuse(std::move(request));
    }
  }
  for (const RequestId id : batch.cancelled) {
    ActiveRequest* request = requests_.find(id);
    if (request != nullptr) end(*request, FinishReason::kCancelled);  // else it ended by itself in the meantime
  }
}

// Throws only where it left the request to the caller.
void StepLoop::start(std::unique_ptr<ActiveRequest>& request) {
  ActiveRequest& active = requests_.add(request);
  faults_.contain(active, [&] {
    chooser_.begin(active);
    if (!waits_for_images(active)) begin_computing(active);
  });
}

void StepLoop::begin_computing(ActiveRequest& request) {
  if (!waits_for_disk(request)) schedule(request);
}

bool StepLoop::waits_for_images(ActiveRequest& request) {
  const auto is_ready = [](const PlacedTile& tile) { return tile.image->stage() == StoredImage::Stage::kReady; };
  for (const PlacedTile& tile : request.images) {
    if (tile.first_row == 0) images_->encode(tile.image);
  }
  if (std::ranges::all_of(request.images, is_ready)) return false;
  awaiting_images_.push_back(request.id);
  request.watch.on_images_wanted(clock_.now_ns());
  return true;
}

// Requests whose images are encoded begin; one whose image failed ends.
void StepLoop::advance_images() {
  std::erase_if(awaiting_images_, [this](RequestId id) {
    ActiveRequest* request = requests_.find(id);
    if (request == nullptr || request->n_open == 0 || request->breakdown) return true;
    bool are_ready = true;
    for (const PlacedTile& tile : request->images) {
      const StoredImage::Stage stage = tile.image->stage();
      if (stage == StoredImage::Stage::kFailed) {
        faults_.contain(*request, [&] { endings_.fail_choices(*request, tile.image->error()); });
        return true;
      }
      are_ready = are_ready && stage == StoredImage::Stage::kReady;
    }
    if (!are_ready) return false;
    request->watch.on_images_ready(clock_.now_ns());
    faults_.contain(*request, [&] { begin_computing(*request); });
    return true;
  });
}

void StepLoop::schedule(ActiveRequest& request) {
  if (auto added = scheduler_.add(request.spec); !added) endings_.fail_choices(request, added.error());
}

// The beginning that admission may take from the prefix cache.
bool StepLoop::waits_for_disk(const ActiveRequest& request) {
  const sched::SequenceSpec& spec = request.spec;
  const bool is_whole = spec.n_cropped == 0 && scheduler_options_.use_prefix_index && scheduler_options_.use_kv_cache;
  if (!disk_.is_on() || !is_whole || endings_.is_abandoned()) return false;
  size_t most = spec.shows_prompt ? static_cast<size_t>(spec.first_shown) : spec.prompt.size() - 1;
  if (!spec.images.empty()) most = std::min(most, static_cast<size_t>(spec.images.front().first));
  return disk_.begin(request.id, spec.key, std::span(spec.prompt).first(std::min(most, spec.prompt.size() - 1)),
                     scheduler_.blocks());
}

// Who was cancelled meanwhile is not in work any more.
void StepLoop::advance_disk() {
  const bool beside_others = scheduler_.n_running() > 0;
  is_saving_ = disk_.save_some(scheduler_.blocks(), beside_others);
  disk_.advance(scheduler_.blocks(), beside_others, [this](RequestId id, int32_t n_tokens) {
    ActiveRequest* request = requests_.find(id);
    if (request == nullptr || request->n_open == 0 || request->breakdown) return;
    request->summary.usage.disk_tokens = n_tokens;
    faults_.contain(*request, [&] { schedule(*request); });
  });
}

void StepLoop::expire(int64_t now_ns) {
  for (const auto& request : requests_) {
    const int64_t due_ns = request->due_ns();
    if (due_ns == kNever || now_ns < due_ns) continue;
    texts_.finish();  // of a first token: it moves the deadline
    if (request->due_ns() == kNever || now_ns < request->due_ns()) continue;
    end(*request, FinishReason::kDeadline);
  }
}

void StepLoop::end(ActiveRequest& request, FinishReason reason) {
  texts_.finish();
  if (request.breakdown) return;
  endings_.leave_scheduler(request);
  faults_.contain(request, [&] { endings_.end_choices(request, reason); });
}

void StepLoop::end_all() {
  for (const auto& request : requests_) end(*request, FinishReason::kCancelled);
  stats_.store();
  publish();
}

// Ends a request that never came in. REQUIRES: inside of a catch block.
void StepLoop::refuse(std::unique_ptr<ActiveRequest> request) noexcept {
  faults_.refuse(*request);
  stats_.store();
  publisher_.publish_breakdown(std::move(request));
}

// An exception came from what all share: every request that is not over ends in an error. REQUIRES: inside of a catch
// block.
void StepLoop::break_down(InboxBatch& batch) noexcept {
  faults_.count();
  endings_.abandon_scheduler();
  chooser_.forget_step();
  masks_.forget_all();
  publish();
  for (const auto& request : requests_) faults_.fail(*request);
  for (auto& request : batch.submitted) {
    if (request == nullptr) continue;
    stats_.count_submitted();
    refuse(std::move(request));
  }
  end_broken();
}

void StepLoop::end_broken() noexcept {
  while (ActiveRequest* broken = faults_.next_broken(requests_)) {
    endings_.leave_scheduler(*broken);
    RequestTable::Owned request = requests_.take(*broken);
    stats_.store();
    publisher_.publish_breakdown(std::move(request));
  }
}

void StepLoop::begin_anew() {
  speculator_.forget();
  disk_.forget();
  scheduler_ = sched::Scheduler(scheduler_options_);
  if (disk_.is_on()) scheduler_.blocks().list_lost();
  endings_.begin_anew();
}

}  // namespace candor::engine
