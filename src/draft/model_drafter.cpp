#include "draft/model_drafter.h"

#include <algorithm>
#include <compare>
#include <utility>

#include "draft/draft_length.h"

namespace candor::draft {
namespace {

size_t common_beginning(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

ModelDrafter::ModelDrafter(backend::Backend& backend, model::Model& model, backend::KvStore& kv, DraftSlots slots,
                           int32_t max_rows, int32_t n_vocab, const kernels::KernelTable& kernels)
    : backend_(backend),
      model_(model),
      kv_(kv),
      slots_of_(slots),
      max_rows_(max_rows),
      n_vocab_(static_cast<size_t>(n_vocab)),
      slots_(static_cast<size_t>(slots.n_slots)),
      states_(slots.n_states),
      work_(static_cast<size_t>(slots.n_slots)),
      sampler_(kernels) {
  for (Slot& slot : slots_) {
    slot.tokens.reserve(static_cast<size_t>(slot_tokens()) + 1);
    if (slots.n_states > 0) slot.states.coming.reserve(static_cast<size_t>(kMaxDrafts));
  }
}

void ModelDrafter::propose(std::span<DraftRequest> requests, constrain::MaskWorker* masks) {
  CANDOR_CHECK(requests.size() <= slots_.size());
  ++n_calls_;
  n_work_ = requests.size();
  for (size_t i = 0; i < n_work_; ++i) open(work_[i], requests[i]);
  for (Slot& slot : slots_) {
    if (states_.n_slots() > 0 && slot.used_at != n_calls_) go_back(slot, slot.n_state);
  }
  while (build_step()) {
    const backend::StepBatch batch{tokens_, positions_, slices_, blocks_, slots_of_.slot_blocks, out_rows_, saves_};
    wait_for(model_.launch(batch, kv_), masks);
    settle_states();
    for (Work& work : std::span(work_).first(n_work_)) {
      if (work.choice.is_over()) continue;
      const size_t n_drafts = work.choice.request().drafts.size();
      work.choice.draft(row_of(work), asks_.find(work.out_row, 0), sampler_, masks);
      const std::vector<TokenId>& drafts = work.choice.request().drafts;
      if (drafts.size() > n_drafts) work.slot->tokens.push_back(drafts.back());
    }
    if (masks != nullptr) masks->send();
  }
}

// A device that has the logits finds what the choices need of them.
void ModelDrafter::wait_for(backend::StepTicket ticket, constrain::MaskWorker* masks) {
  asks_.begin();
  device_ = backend_.device_logits(ticket);
  if (device_ == nullptr) {
    logits_ = backend_.read_logits(ticket);
    return;
  }
  for (Work& work : std::span(work_).first(n_work_)) {
    if (work.choice.is_over()) continue;
    sample::RowPlan& plan = asks_.add(work.out_row, 0);
    if (!work.choice.plan(planner_, work.out_row, static_cast<int32_t>(n_vocab_), plan, masks)) asks_.drop_last();
  }
  asks_.send(*device_);
}

backend::LogitRow ModelDrafter::row_of(const Work& work) const {
  if (device_ != nullptr) return {*device_, work.out_row, static_cast<int32_t>(n_vocab_)};
  return logits_.row(work.out_row).first(n_vocab_);
}

void ModelDrafter::forget() noexcept {
  for (Slot& slot : slots_) {
    slot.owner = -1;
    slot.n_past = 0;
    go_back(slot, 0);
  }
  for (Work& work : work_) work.choice.drop_constraint();
}

size_t ModelDrafter::n_behind(SequenceId sequence, size_t n_text) const {
  const size_t n_most = std::min(n_text, static_cast<size_t>(slot_tokens()));
  const auto own = std::ranges::find(slots_, sequence, &Slot::owner);
  if (own == slots_.end()) return n_most;
  const size_t n_held = own->begin + static_cast<size_t>(own->n_past);
  return n_held < n_text ? std::min(n_text - n_held, n_most) : 1;
}

void ModelDrafter::keep(SequenceId sequence) {
  const auto own = std::ranges::find(slots_, sequence, &Slot::owner);
  if (own != slots_.end()) own->kept_at = n_calls_ + 1;
}

// The sequence's own; else of those that nobody wanted lately the one that shares the longest beginning.
ModelDrafter::Slot& ModelDrafter::slot_for(const DraftRequest& request) {
  Slot* best = nullptr;
  std::pair<size_t, int64_t> best_rank;
  for (Slot& slot : slots_) {
    if (slot.owner == request.sequence) return slot;
    if (slot.used_at == n_calls_) continue;
    const auto held = std::span<const TokenId>(slot.tokens).first(static_cast<size_t>(slot.n_past));
    const int64_t wanted_at = std::max(slot.used_at, slot.kept_at);
    const size_t n_shared = slot.begin == 0 && wanted_at + 1 < n_calls_
                                ? static_cast<size_t>(n_held(slot, common_beginning(held, request.text)))
                                : 0;
    const std::pair<size_t, int64_t> rank{n_shared, -wanted_at};
    if (best != nullptr && rank <= best_rank) continue;
    best = &slot;
    best_rank = rank;
  }
  return *best;
}

// Afterwards the slot's tokens are the end of the text, with at least one to compute.
void ModelDrafter::open_window(Slot& slot, const DraftRequest& request) {
  const size_t n_text = request.text.size();
  const size_t room = static_cast<size_t>(slot_tokens()) - static_cast<size_t>(request.n_drafts);
  if (slot.begin >= n_text || n_text - slot.begin > room) {
    slot.begin = n_text > room ? n_text - room / 2 : 0;
    slot.n_past = 0;
  }
  const auto window = request.text.subspan(slot.begin);
  const auto held = std::span<const TokenId>(slot.tokens).first(static_cast<size_t>(slot.n_past));
  go_back(slot, n_held(slot, std::min(common_beginning(held, window), window.size() - 1)));
  slot.tokens.assign(window.begin(), window.end());
}

// Of the first n_common tokens, those that need not be read: all, or those up to a state.
int32_t ModelDrafter::n_held(const Slot& slot, size_t n_common) const {
  const auto n = static_cast<int32_t>(n_common);
  if (states_.n_slots() == 0) return n;
  int32_t newest = slot.states.now != kNoState && slot.n_state <= n ? slot.n_state : 0;
  for (const kv::StateAt& state : slot.states.coming) {
    if (state.n_tokens <= n) newest = std::max(newest, state.n_tokens);
  }
  return newest;
}

// The slot holds n_tokens, and the state behind them. REQUIRES: n_held() gave them, or none.
void ModelDrafter::go_back(Slot& slot, int32_t n_tokens) {
  slot.n_past = n_tokens;
  if (states_.n_slots() == 0) return;
  if (n_tokens == 0) {
    states_.release(slot.states);
  } else if (n_tokens == slot.n_state) {
    states_.drop_coming(slot.states);
  } else {
    states_.settle(slot.states, n_tokens);
  }
  slot.n_state = n_tokens;
}

// The state behind what was read replaces the one before; those behind drafts may yet be wanted.
void ModelDrafter::settle_states() {
  for (Work& work : std::span(work_).first(n_work_)) {
    Slot& slot = *work.slot;
    if (slot.states.coming.size() != 1 || !work.choice.request().drafts.empty()) continue;
    states_.settle(slot.states, slot.n_past);
    slot.n_state = slot.n_past;
  }
}

void ModelDrafter::open(Work& work, DraftRequest& request) {
  Slot& slot = slot_for(request);
  open_window(slot, request);
  slot.owner = request.sequence;
  slot.used_at = n_calls_;
  work.slot = &slot;
  work.choice.begin(request);
}

// One row for each request that goes on drafting; in its first step as many as it has to catch up on.
bool ModelDrafter::build_step() {
  tokens_.clear();
  positions_.clear();
  slices_.clear();
  blocks_.clear();
  out_rows_.clear();
  saves_.clear();
  for (Work& work : std::span(work_).first(n_work_)) {
    if (!work.choice.is_over()) append_rows(work);
  }
  return !tokens_.empty();
}

void ModelDrafter::append_rows(Work& work) {
  Slot& slot = *work.slot;
  const int32_t n_pending = static_cast<int32_t>(slot.tokens.size()) - slot.n_past;
  const int32_t n_rows = std::min(n_pending, max_rows_ - static_cast<int32_t>(tokens_.size()));
  if (n_rows < n_pending) work.choice.end();  // it is behind: no drafts this time
  if (n_rows == 0) return;
  kv::StateTable& states = slot.states;
  const StateId begins_at = states.coming.empty() ? states.now : states.coming.back().slot;
  slices_.push_back({static_cast<int32_t>(tokens_.size()), n_rows, slot.n_past, begins_at});
  for (int32_t i = 0; i < n_rows; ++i) {
    tokens_.push_back(slot.tokens[static_cast<size_t>(slot.n_past)]);
    positions_.push_back(slot.n_past++);
  }
  states_.plan(states, slot.n_past);
  if (!states.coming.empty()) saves_.push_back({static_cast<int32_t>(tokens_.size()) - 1, states.coming.back().slot});
  const int32_t first_block = static_cast<int32_t>(&slot - slots_.data()) * slots_of_.slot_blocks;
  for (int32_t i = 0; i < slots_of_.slot_blocks; ++i) blocks_.push_back(first_block + i);
  if (work.choice.is_over()) return;
  work.out_row = static_cast<int32_t>(out_rows_.size());
  out_rows_.push_back(static_cast<int32_t>(tokens_.size()) - 1);
}

}  // namespace candor::draft
