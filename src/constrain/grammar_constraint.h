#pragma once
// Constraints that a grammar describes: JSON schema, any JSON object, a regular expression, a Lark or GBNF grammar, a
// list of texts. Compiled by llguidance through the bridge, within its limits on size, depth, work and time.
// In JSON no object has a name twice; of a grammar's own objects (%json) that holds for listed names only.
// A GrammarCompiler is immutable and may be used by several threads at once; it is not meant for the engine thread.

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "constrain/constraint.h"
#include "text/tokenizer/tokenizer.h"

struct candor_tok_env;

namespace candor::constrain {

enum class GrammarKind : uint8_t { kJsonSchema, kJsonObject, kRegex, kLark, kChoice, kGbnf };

class GrammarCompiler {
 public:
  // Prepares the vocabulary: some 100 ms for 150 000 tokens. A model without an end token is refused.
  static Expected<std::unique_ptr<GrammarCompiler>> create(const text::Tokenizer& tokenizer);
  ~GrammarCompiler();
  GrammarCompiler(const GrammarCompiler&) = delete;
  GrammarCompiler& operator=(const GrammarCompiler&) = delete;

  // At most about 2 s. What cannot be enforced is refused by name. The constraint may outlive the compiler.
  Expected<std::unique_ptr<Constraint>> compile(GrammarKind kind, std::string_view source) const;

 private:
  explicit GrammarCompiler(candor_tok_env* env) : env_(env) {}
  candor_tok_env* env_;  // owned
};

}  // namespace candor::constrain
