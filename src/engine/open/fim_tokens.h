#pragma once
// Finds the fill-in-the-middle tokens of a vocabulary: those that the file's keys name, else those under the names that
// published vocabularies give them.

#include "candor/info.h"
#include "formats/model_file.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::engine {

// A key that names no token of the vocabulary counts as absent: nothing but filling in needs it.
FimTokens find_fim_tokens(const formats::ModelFile& file, const text::Tokenizer& tokenizer);

}  // namespace candor::engine
