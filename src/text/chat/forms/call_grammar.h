#pragma once
// Makes a Lark grammar of the tool calls that a model would write in its form (tool-call format), with arguments that
// obey the tools' schemas; the form's reader reads back whatever the grammar allows. What a form cannot be held to (a
// string format in plain text, say) is an error that says so; the caller then forces the call as JSON instead.

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

// What an answer has to be: which calls, and whether text may come with them.
struct CallWish {
  std::string tools_json{};            // [{"type": "function", "function": {"name", "parameters"}}, ...]
  std::optional<std::string> name{};   // only this one
  bool may_repeat = false;             // several calls
  bool may_be_text = false;            // text may come before the calls, or instead of them
};

Result<std::string> call_grammar(const FormRow& row, const CallWish& wish, std::span<const ControlToken> controls);

}  // namespace candor::text
