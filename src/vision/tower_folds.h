#pragma once
// Parts of a tower that its blocks have no operation for, folded into its tensors when they are read: what comes out is
// the same. Copies in f32 stand for the tensors that change. One thread at a time.

#include <vector>

#include "base/error.h"
#include "formats/tensor_copies.h"
#include "tensor/tensor_view.h"

namespace candor::vision {

struct Folds {
  // "v.class_embd" is the row before the patches. Nothing but the first layer's bias comes in for it, so its numbers
  // less that bias are added to the first row of "v.position_embd.weight".
  bool class_row = false;
  bool class_row_is_last = false;  // in the table of positions: it goes to the front there
  // "v.blk.*.ls1.weight" and "ls2": a factor for each output of a block's attention and feed-forward, where a file has
  // them (Touvron et al., "Going deeper with image transformers", 2021).
  bool layer_scales = false;
  // The feed-forward's activation is x * sigmoid(1.702 x) (Hendrycks & Gimpel, 2016), which is silu(1.702 x) / 1.702.
  bool quick_gelu = false;
  // Each half of a head has rotary pairs of its own: the middle quarters of q and k change places, so that pairs are
  // those of the whole head. Norms over heads go along; their width is the head's.
  bool half_head_pairs = false;
};

// Tensors that were folded into others are gone. Refuses what does not fit together, by its name.
Result<void> fold_tensors(const Folds& folds, std::vector<TensorView>& tensors, formats::TensorCopies& copies);

}  // namespace candor::vision
