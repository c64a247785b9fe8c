#include <string_view>

#include "text/chat/forms/call_reader.h"
#include "text/chat/forms/call_writing.h"
#include "text/chat/forms/form_row.h"
#include "text/chat/forms/notation.h"
#include "text/chat/forms/tool_form.h"

namespace candor::text {
namespace lfm_form {
namespace {

using Step = GrammarStep;
using Kind = GrammarStep::Kind;

constexpr std::string_view kSigns[] = {"<|tool_call_start|>", "<|tool_list_start|>"};
constexpr FormMark kMarks[] = {{.text = "<|tool_call_start|>", .next = OutputMode::kCall}};
constexpr std::string_view kEnds[] = {"<|tool_call_end|>"};

bool take_python_calls(CallParts& parts, std::string_view text) {
  return take_calls_in(parts, text, kPythonLiteral);
}

// A list of calls as Python writes them; a list of JSON objects is one of its literals.
const Step kLfmSteps[] = {
    /* 0 */ {.kind = Kind::kBlanks},
    /* 1 */ {.kind = Kind::kValue, .take = take_python_calls, .notation = &kPythonLiteral},
    /* 2 */ {.kind = Kind::kBlanks},
    /* 3 */ {.kind = Kind::kMark, .text = "<|tool_call_end|>", .next = 5, .otherwise = 4},
    /* 4 */ {.kind = Kind::kNothing},
    /* 5 */ {.kind = Kind::kEnd},
};

constexpr std::string_view kTokens[] = {"<|tool_call_start|>", "<|tool_call_end|>"};
constexpr CallWriting kWriting{.arguments = CallWriting::Arguments::kPython,
                               .begin = "<|tool_call_start|>[",
                               .before_arguments = "(",
                               .behind_call = ")",
                               .between = ", ",
                               .end = "]<|tool_call_end|>",
                               .tokens = kTokens};

}  // namespace
}  // namespace lfm_form

const FormRow kLfmForm{.form = ToolForm::kLfm,
                       .name = "lfm2",
                       .signs = lfm_form::kSigns,
                       .grammar = lfm_form::kLfmSteps,
                       .marks = lfm_form::kMarks,
                       .ends = lfm_form::kEnds,
                       .writing = lfm_form::kWriting};

}  // namespace candor::text
