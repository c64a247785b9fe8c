#pragma once
// Names of tensors by pattern ("*" is the number of a block, "#" that of an expert), and the table of positions that is
// not published because it can be computed. Shared by both directions of the hub's format.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/hub/hub_form.h"
#include "tensor/tensor_view.h"

namespace candor::model {

// The digits that stood for the wildcards.
struct Match {
  std::string block;
  std::string expert;
};
std::optional<Match> match_name(std::string_view pattern, std::string_view name);
std::string fill_name(std::string_view pattern, const Match& match);

// Where the rows of kPairRows and kSplitHeads stand: `size` of them in each part of each head.
struct RowOrder {
  HubChange change;
  int64_t heads;  // of kSplitHeads: K/V heads
  int64_t parts;  // of kSplitHeads: the q heads of one K/V head, then k, then v
  int64_t size = 0;
  int64_t place_here(int64_t head, int64_t part, int64_t i) const {
    if (change != HubChange::kSplitHeads) return head * parts * size + i * parts + part;
    const int64_t group = parts - 2;
    const int64_t block = part < group ? head * group + part : heads * part + head;
    return block * size + i;
  }
  int64_t place_there(int64_t head, int64_t part, int64_t i) const { return (head * parts + part) * size + i; }
};

// [n_positions, dim]: sines, then cosines, of position + 2 (the first two rows are padding's), as fairseq's models have
// them. REQUIRES: dim >= 4.
std::vector<float> sinusoids(int32_t n_positions, int32_t dim);
// Does the tensor hold exactly that?
bool is_sinusoids(const TensorView& tensor);

}  // namespace candor::model
