#pragma once
// A form as a constraint: the grammar (Lark) of the calls that a model of the form would write, with arguments that
// obey the schemas of the tools. The form's own steps read back what it allows. What a form cannot hold a text to (a
// format of a value that stands as plain text, say) is an error that says so; the caller has another way.

#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "base/ids.h"
#include "text/chat/forms/form_row.h"

namespace candor::text {

// A mark that the vocabulary has as a control token, which no text can spell.
struct ControlToken {
  std::string text;
  TokenId id = 0;
};

// What an answer has to be.
struct CallWish {
  std::string tools_json{};            // [{"type": "function", "function": {"name", "parameters"}}, ...]
  std::optional<std::string> name{};   // only this one
  bool may_repeat = false;             // several calls
  bool may_be_text = false;            // text may come before the calls, or instead of them
};

Result<std::string> call_grammar(const FormRow& row, const CallWish& wish, std::span<const ControlToken> controls);

}  // namespace candor::text
