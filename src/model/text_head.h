#pragma once
// What becomes of a text's hidden states: which rows make one vector, and the layers behind it. From GGUF's keys
// (<family>.pooling_type, <family>.classifier.output_labels) and tensors (cls.*, dense_2, dense_3), and from what
// hub_reading.h takes out of a folder. Small, and computed by the host: products in double, in the order that
// docs/numerics.md states. Immutable; any thread.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "candor/ids.h"
#include "candor/reading.h"
#include "formats/model_file.h"
#include "model/arch_spec.h"
#include "model/sparse_words.h"
#include "model/vector_layer.h"

namespace candor::model {

// Of a file that is for reading alone: no row has logits.
inline constexpr std::string_view kHasNoHead = "candor.text.has_no_head";

struct TextHead {
  Pooling pooling = Pooling::kNone;  // kMean, kLast, kFirst or kWeighted; kNone: the file does not say
  std::vector<VectorLayer> dense;    // of embeddings
  std::vector<VectorLayer> colbert;  // of tokens, beside an embedding's layers (BGE M3)
  SparseHead sparse;
  bool normalises = true;
  Pooling label_pooling = Pooling::kFirst;
  std::optional<TokenId> label_pad;       // behind a text, of which a last row's labels are not made
  std::vector<VectorLayer> label_layers;  // of labels; empty: there are none
  std::vector<std::string> labels;        // [outputs of label_layers]
  bool labels_tokens = false;
  std::vector<NamedPrompt> prompts;
  std::string default_prompt;
  // Of a decoder that answers yes or no: the first of its two labels is yes.
  bool answers_yes = false;
  bool only_ranks = false;            // the file is for ranks alone
  std::optional<int32_t> max_tokens;  // of a text, where the files ask for less than the model could read

  // Layers that no pooling stands before are those of tokens.
  const std::vector<VectorLayer>& token_layers() const {
    return pooling == Pooling::kNone && colbert.empty() ? dense : colbert;
  }
  int32_t dim(const ArchSpec& spec) const { return dense.empty() ? spec.dim : dense.back().n_out; }
  int32_t token_dim(const ArchSpec& spec) const {
    return token_layers().empty() ? spec.dim : token_layers().back().n_out;
  }
};

// Tensors that are read here, in files of any family.
std::span<const std::string_view> text_head_tensors();

// Shapes that do not fit each other, and numbers that are not finite, are refused by name.
Result<TextHead> read_text_head(const formats::ModelFile& file, const ArchSpec& spec);

}  // namespace candor::model
