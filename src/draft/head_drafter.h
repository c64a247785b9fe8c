#pragma once
// Draft tokens of a head of the model (model/draft_head.h): for multi-token prediction, or EAGLE-3. Its row for a token
// reads the next token and a vector that the model gave for this one, and guesses the token behind; from the second
// draft on it reads what it gave itself, which may be narrower. Each draft is chosen as DraftChoice says, among the
// tokens that the head has logits of.
//
// Every sequence has a slot of K/V of its own, for a window of its newest tokens. It begins at most n_first tokens
// before the first draft, and where the model began to compute (what a cache of prefixes gave has no vectors); when it
// is full, it begins anew. Vectors of the newest kHeadRows tokens are kept. A head without attention reads one of them.
// Engine thread only.

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/step_batch.h"
#include "base/ids.h"
#include "constrain/mask_worker.h"
#include "draft/draft_choice.h"
#include "draft/drafter.h"
#include "draft/model_drafter.h"
#include "model/model.h"
#include "sample/sampler.h"

namespace candor::draft {

inline constexpr int32_t kHeadRows = 128;
inline constexpr int32_t kLeastHeadRows = 4;
// f32 vectors that a slot keeps, at most: behind twice as many as are of use they are moved.
inline constexpr int32_t kKeptVectors = 2 * kHeadRows;

// Floats of a vector that a head reads of the model.
size_t vector_width(const model::ArchSpec& head);

class HeadDrafter final : public Drafter {
 public:
  struct Limits {
    int32_t max_rows = 0;         // of a step; at least n_slots
    int32_t n_vocab = 0;          // logits that are tokens
    int32_t n_first = kHeadRows;  // kLeastHeadRows to kHeadRows
    // The model's token for each logit of the head; empty: the first ones. Borrowed.
    std::span<const TokenId> tokens{};
  };
  // All are borrowed; slots have no states.
  HeadDrafter(backend::Backend& backend, model::Model& head, backend::KvStore& kv, DraftSlots slots, Limits limits,
              const kernels::KernelTable& kernels);

  bool needs_masks() const override { return true; }
  size_t n_behind(SequenceId sequence, size_t n_text) const override;
  int32_t begin(DraftRequest& request) override { return request.n_drafts; }
  // All requests together, draft by draft. REQUIRES: at most n_slots requests.
  void propose(std::span<DraftRequest> requests, constrain::MaskWorker* masks) override;
  bool watches() const override { return true; }
  void watch(const ComputedRows& rows) override;
  void forget() noexcept override;

 private:
  struct Slot {
    SequenceId owner = -1;
    int32_t begin = 0;              // position of the window's first row
    int32_t n_read = 0;             // rows of the window whose K/V is there, of the model's vectors
    int32_t kept_begin = 0;         // position of the first vector that is kept
    std::vector<TokenId> tokens{};  // of those positions
    std::vector<float> vectors{};   // [n, width_]
    int64_t used_at = 0;
    int32_t kept_end() const { return kept_begin + static_cast<int32_t>(tokens.size()); }
    int32_t read_end() const { return begin + n_read; }
  };
  struct Work {
    DraftChoice choice{};
    Slot* slot = nullptr;
    int32_t n_rows = 0;        // of the window, drafts included
    std::vector<float> own{};  // [D], what the head gave last
    int32_t out_row = -1;      // of the step in the making
  };

  int32_t slot_tokens() const { return slots_of_.slot_blocks * backend::kBlockTokens; }
  Slot* find(SequenceId sequence);
  Slot& slot_for(SequenceId sequence);
  void cut(Slot& slot, int32_t end) const;
  void keep_newest(Slot& slot) const;
  bool is_of(const Slot& slot, std::span<const TokenId> text) const;
  bool open_window(Slot& slot, const DraftRequest& request) const;
  void open(Work& work, DraftRequest& request);
  std::span<const float> all_logits(std::span<const float> given);
  bool build_step(bool is_first);
  void append_known(Work& work);
  void append_draft(Work& work);
  void append_row(TokenId token, std::span<const float> vector);
  void end_slice(Work& work);

  // Constant after construction.
  backend::Backend& backend_;
  model::Model& head_;
  backend::KvStore& kv_;
  const DraftSlots slots_of_;
  const Limits limits_;
  const size_t width_;  // of the model's vectors
  const bool attends_;
  // Engine thread only.
  std::vector<Slot> slots_;
  std::vector<Work> work_;  // the first n_work_ are in use
  size_t n_work_ = 0;
  int64_t n_calls_ = 0;
  sample::Sampler sampler_;
  std::vector<float> logits_;  // [n_vocab]
  // Of the step in the making.
  std::vector<TokenId> tokens_;
  std::vector<int32_t> positions_;
  std::vector<float> vectors_;
  std::vector<int32_t> vector_rows_;
  std::vector<backend::SeqSlice> slices_;
  std::vector<BlockId> blocks_;
  std::vector<int32_t> out_rows_;
};

}  // namespace candor::draft
