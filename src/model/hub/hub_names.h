#pragma once
// Matches tensor names with patterns ("*" is the number of a block, "#" that of an expert), and computes the sinusoidal
// position table that some checkpoints leave out. Used to read Hugging Face checkpoints and to write them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
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

// "blk.3.ffn_up_exps.weight" -> "blk.3.ffn_up.#.weight".
std::optional<std::string> expert_pattern(std::string_view name);

// Where the rows of two halves, and of q, k and v in one tensor, stand: `size` of them in each part of each head.
struct RowOrder {
  HubChange change;
  int64_t heads;  // of q, k and v: K/V heads, or quarters
  int64_t parts;  // of q, k and v: the q heads of one K/V head, then k, then v; of quarters q, v, k
  int64_t size = 0;
  int64_t place_here(int64_t head, int64_t part, int64_t i) const {
    if (change == HubChange::kPairRows) return head * parts * size + i * parts + part;
    if (change == HubChange::kSwapHalves) return (head * parts + 1 - part) * size + i;
    if (change == HubChange::kSplitQuarters) return ((parts - part) % parts * heads + head) * size + i;
    const bool is_paired = change != HubChange::kSplitHeads && part + 1 < parts;
    return block(head, part) * size + (is_paired ? paired(i) : i);
  }
  int64_t place_there(int64_t head, int64_t part, int64_t i) const {
    return (change == HubChange::kPairJoined ? block(head, part) : head * parts + part) * size + i;
  }

 private:
  int64_t block(int64_t head, int64_t part) const {
    const int64_t group = parts - 2;
    return part < group ? head * group + part : heads * part + head;
  }
  int64_t paired(int64_t i) const {
    const int64_t half = size / 2;
    if (i >= 2 * half) return i;  // of an odd width, which is refused later
    return i < half ? 2 * i : 2 * (i - half) + 1;
  }
};

// [n_positions, dim]: sines, then cosines, of position + 2 (the first two rows are padding's), as fairseq's models have
// them. REQUIRES: dim >= 4.
std::vector<float> sinusoids(int32_t n_positions, int32_t dim);
// Of a family with a table of positions that the file lacks.
struct Family;
Result<std::optional<Shape>> unpublished_positions(const formats::ModelFile& file, const Family& family);
// Does the tensor hold exactly that?
bool is_sinusoids(const TensorView& tensor);

}  // namespace candor::model
