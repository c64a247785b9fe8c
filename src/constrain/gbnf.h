#pragma once
// Rewrites a GBNF grammar (llama.cpp's notation) as the Lark dialect that the grammar compiler reads. GBNF: `name ::=
// ...` rules that begin at `root`, "literals", [classes], `.`, groups, `|`, and * + ? {m} {m,} {m,n}; # begins a
// comment.
//
// A part that is not recursive becomes one terminal where possible: the compiler's lexer takes the longest match of
// each terminal, so that splitting such a part would refuse texts that the grammar allows.

#include <string>
#include <string_view>

#include "base/error.h"

namespace candor::constrain {

// Errors name line and column. Limits: 1 MiB as it is given and as it is rewritten, 8 000 rules, depth 256 (groups,
// choices and repetitions, whichever there are more of), counts of 100 000. The stack that it takes does not depend on
// the grammar, and its time is linear in the grammar's size times its depth.
Result<std::string> lark_of_gbnf(std::string_view source);

}  // namespace candor::constrain
