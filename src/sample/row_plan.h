#pragma once
// What a device that has a row of logits does of a choice (backend/device_logits.h): edits, the first temperature, the
// weights of all, the best in order. The rest of the chain runs on the host over the best, by Sampler::finish(). Most
// choices end there; where a token behind the best decides, the row has to come.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/device_logits.h"
#include "sample/chain.h"
#include "sample/edit_list.h"
#include "sample/sampler.h"

namespace candor::sample {

// Of one choice. Its memory is kept from choice to choice.
struct RowPlan {
  RowEdits edits{};
  backend::RowQuery choice{};  // what is chosen from; spans look into `edits`
  std::optional<backend::RowQuery>
      model{};          // the row as the model gave it, where logprobs want it and `choice` differs
  size_t n_stages = 0;  // of the chain, that the query has
};

// The logprobs of a token that is known, of row `row`, and of the n_logprobs likeliest.
inline backend::RowQuery score_query(int32_t row, int32_t n_vocab, TokenId token, int32_t n_logprobs) {
  return {.row = row, .n_vocab = n_vocab, .n_best = std::max(1, n_logprobs), .is_weighed = true, .asked = token};
}

// Plans choices one after another. One thread; holds scratch memory only.
class RowPlanner {
 public:
  // Of a request whose logits are row `row` of a step, and not here. False: the choice needs all of them.
  bool plan(const PickRequest& request, int32_t row, int32_t n_vocab, RowPlan& plan);

 private:
  EditList edits_;
  ChainScratch scratch_;
};

}  // namespace candor::sample
