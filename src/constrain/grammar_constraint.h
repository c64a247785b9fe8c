#pragma once
// Constraints that a grammar describes: JSON schema, any JSON object, a regular expression, a Lark or GBNF grammar, a
// list of texts. Compiled by llguidance through bridge/, our binding to it, within its limits on size, depth and
// work, and only after a helper process has shown that this takes neither too much time nor too much memory. In JSON
// no object has a name twice; of a grammar's own objects (%json) that holds for listed names only. A GrammarCompiler
// gives the same answer whenever it is asked, and may be used by several threads at once; it is not meant for the
// engine thread.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "candor/request.h"
#include "constrain/constraint.h"
#include "constrain/refused_sources.h"
#include "sandbox/helper_pool.h"
#include "text/tokenizer/tokenizer.h"

struct candor_tok_env;

namespace candor::constrain {

class GrammarCompiler {
 public:
  // Prepares the vocabulary: some 100 ms for 150 000 tokens. A model without an end token is refused.
  // The helpers are borrowed and outlive the compiler.
  static Result<std::unique_ptr<GrammarCompiler>> create(const text::Tokenizer& tokenizer,
                                                         sandbox::HelperPool& helpers);
  GrammarCompiler(const GrammarCompiler&) = delete;
  GrammarCompiler& operator=(const GrammarCompiler&) = delete;

  // At most about 2 s of processor time, twice; nothing for what was refused before. What cannot be enforced is refused
  // by name. kBusy: no helper is free, or the constraints in use take all the memory that they may. The constraint may
  // outlive the compiler.
  Result<std::unique_ptr<Constraint>> compile(GrammarKind kind, std::string_view source) const;
  // What a source that compiles has no effect with: words of a schema that are no keywords of the standard, formats
  // that it does not define. At most 17 short sentences.
  static Result<std::vector<std::string>> without_effect(GrammarKind kind, std::string_view source);

 private:
  struct FreeTokEnv {
    void operator()(candor_tok_env* env) const;
  };
  using TokEnv = std::unique_ptr<candor_tok_env, FreeTokEnv>;

  GrammarCompiler(TokEnv env, sandbox::SharedAsset vocabulary, sandbox::HelperPool& helpers)
      : env_(std::move(env)), vocabulary_(std::move(vocabulary)), helpers_(helpers) {}

  Result<std::unique_ptr<Constraint>> compile_afresh(int32_t number, std::string_view source) const;

  TokEnv env_;
  sandbox::SharedAsset vocabulary_;
  sandbox::HelperPool& helpers_;
  mutable RefusedSources refused_;
};

}  // namespace candor::constrain
