#pragma once
// Draft tokens of a small model that shares the large one's vocabulary (Leviathan et al., "Fast inference from
// transformers via speculative decoding", ICML 2023), chosen as DraftChoice says.
//
// Every sequence has a slot of K/V of its own, which holds the newest part of its text; what a slot holds is found by
// comparing tokens, so that the caller need not report rejected drafts, forks and cropped texts. A text that outgrows
// its slot is read anew from its newer half on. Where the draft model has recurrent layers, a slot has the state behind
// its text and, until the next drafts are made, those behind its drafts; it goes on from the newest of them whose
// tokens the text has. The engine's MaskWorker computes masks of drafts, within the time for which it may be waited; a
// draft whose mask is not ready in time is not made. Engine thread only.

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/op_specs.h"
#include "backend/step_batch.h"
#include "base/ids.h"
#include "constrain/mask_worker.h"
#include "draft/draft_choice.h"
#include "draft/drafter.h"
#include "kv/state_slots.h"
#include "model/model.h"
#include "sample/row_asks.h"
#include "sample/row_plan.h"
#include "sample/sampler.h"

namespace candor::draft {

struct DraftSlots {
  int32_t n_slots = 0;      // most sequences at once
  int32_t slot_blocks = 0;  // K/V blocks of each; slot i has [i * slot_blocks, (i + 1) * slot_blocks)
  int32_t n_states = 0;     // of recurrent layers: 2 n_slots and kMaxDrafts, or none
};

class ModelDrafter final : public Drafter {
 public:
  // All are borrowed. A step has at most max_rows rows, at least n_slots; only the first n_vocab logits are tokens.
  ModelDrafter(backend::Backend& backend, model::Model& model, backend::KvStore& kv, DraftSlots slots, int32_t max_rows,
               int32_t n_vocab, const kernels::KernelTable& kernels);

  bool needs_masks() const override { return true; }
  size_t n_behind(SequenceId sequence, size_t n_text) const override;
  int32_t begin(DraftRequest& request) override { return request.n_drafts; }
  void keep(SequenceId sequence) override;
  // All requests together, token by token; fewer drafts, or none, where a slot has to catch up or a mask is late.
  // REQUIRES: at most n_slots requests; with states, of at most kMaxDrafts drafts in all.
  void propose(std::span<DraftRequest> requests, constrain::MaskWorker* masks) override;
  // Everything is read anew.
  void forget() noexcept override;

 private:
  struct Slot {
    SequenceId owner = -1;
    size_t begin = 0;               // the window's first token, in the text
    std::vector<TokenId> tokens{};  // of the window, drafts included
    int32_t n_past = 0;             // leading ones whose K/V is there
    kv::StateTable states{};        // coming: behind the drafts
    int32_t n_state = 0;            // tokens that states.now stands behind
    int64_t used_at = 0;            // the last call of propose() that drafted for it,
    int64_t kept_at = 0;            // and the last one before which it was to be kept
  };
  struct Work {
    DraftChoice choice{};
    Slot* slot = nullptr;
    int32_t out_row = -1;  // of the step in the making
  };

  int32_t slot_tokens() const { return slots_of_.slot_blocks * backend::kBlockTokens; }
  Slot& slot_for(const DraftRequest& request);
  void open_window(Slot& slot, const DraftRequest& request);
  int32_t n_held(const Slot& slot, size_t n_common) const;
  void go_back(Slot& slot, int32_t n_tokens);
  void settle_states();
  void open(Work& work, DraftRequest& request);
  bool build_step();
  void append_rows(Work& work);
  void wait_for(backend::StepTicket ticket, constrain::MaskWorker* masks);
  backend::LogitRow row_of(const Work& work) const;

  // Constant after construction.
  backend::Backend& backend_;
  model::Model& model_;
  backend::KvStore& kv_;
  const DraftSlots slots_of_;
  const int32_t max_rows_;
  const size_t n_vocab_;
  // Engine thread only.
  std::vector<Slot> slots_;
  kv::StateSlots states_;
  std::vector<Work> work_;  // the first n_work_ are in use
  size_t n_work_ = 0;
  int64_t n_calls_ = 0;
  sample::Sampler sampler_;
  sample::RowPlanner planner_;
  // Of the step in the making.
  std::vector<TokenId> tokens_;
  std::vector<int32_t> positions_;
  std::vector<backend::SeqSlice> slices_;
  std::vector<BlockId> blocks_;
  std::vector<int32_t> out_rows_;
  std::vector<backend::StateSave> saves_;
  backend::DeviceLogits* device_ = nullptr;  // that has its logits; nullptr: logits_
  backend::LogitsView logits_{};
  sample::RowAsks asks_;
};

}  // namespace candor::draft
