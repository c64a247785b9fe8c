#include <string_view>

#include "text/chat/forms/call_reader.h"
#include "text/chat/forms/call_writing.h"
#include "text/chat/forms/form_row.h"
#include "text/chat/forms/tool_form.h"

namespace candor::text {
namespace qwen_coder_form {
namespace {

using Step = GrammarStep;
using Kind = GrammarStep::Kind;

constexpr std::string_view kSigns[] = {"<function="};
// The model forgets the outer mark now and then.
constexpr FormMark kMarks[] = {{.text = "<tool_call>", .next = OutputMode::kCall},
                               {.text = "<function=", .next = OutputMode::kCall, .is_part = true}};
constexpr std::string_view kEnds[] = {"</tool_call>"};
constexpr std::string_view kBehindValue[] = {"<parameter=", "</function>", "</tool_call>"};

// A value stands between two line breaks of its own.
bool take_lines(CallParts& parts, std::string_view text) {
  if (text.starts_with('\n')) text.remove_prefix(1);
  if (text.ends_with('\n')) text.remove_suffix(1);
  return take_text(parts, text);
}

const Step kQwenCoderSteps[] = {
    /* 0 */ {.kind = Kind::kBlanks},
    /* 1 */ {.kind = Kind::kMark, .text = "<function="},
    /* 2 */ {.kind = Kind::kWord, .text = ">\n<", .take = take_name},
    /* 3 */ {.kind = Kind::kMark, .text = ">"},
    /* 4 */ {.kind = Kind::kBlanks},
    /* 5 */ {.kind = Kind::kMark, .text = "<parameter=", .next = 6, .otherwise = 9},
    /* 6 */ {.kind = Kind::kWord, .text = ">\n<", .take = take_key},
    /* 7 */ {.kind = Kind::kMark, .text = ">"},
    /* 8 */ {.kind = Kind::kField, .text = "</parameter>", .take = take_lines, .next = 4, .follow = kBehindValue},
    /* 9 */ {.kind = Kind::kMark, .text = "</function>", .next = 10, .otherwise = 12},
    /* 10 */ {.kind = Kind::kTake, .take = close_call},
    /* 11 */ {.kind = Kind::kBlanks, .next = 14},
    /* 12 */ {.kind = Kind::kMark, .text = "</tool_call>"},
    /* 13 */ {.kind = Kind::kTake, .take = close_call, .next = 15},
    /* 14 */ {.kind = Kind::kMark, .text = "</tool_call>", .next = 15, .otherwise = 15},
    /* 15 */ {.kind = Kind::kEnd},
};

constexpr std::string_view kTokens[] = {"<tool_call>", "</tool_call>"};
constexpr CallWriting kWriting{.arguments = CallWriting::Arguments::kText,
                               .before_name = "<tool_call>\n<function=",
                               .before_arguments = ">\n",
                               .behind_call = "</function>\n</tool_call>",
                               .between = "\n",
                               .before_key = "<parameter=",
                               .before_value = ">\n",
                               .value_tail = "\n",
                               .value_end = "</parameter>",
                               .behind_value = "\n",
                               .tokens = kTokens};

}  // namespace
}  // namespace qwen_coder_form

const FormRow kQwenCoderForm{.form = ToolForm::kQwenCoder,
                             .name = "qwen3-coder",
                             .signs = qwen_coder_form::kSigns,
                             .grammar = qwen_coder_form::kQwenCoderSteps,
                             .marks = qwen_coder_form::kMarks,
                             .ends = qwen_coder_form::kEnds,
                             .writing = qwen_coder_form::kWriting};

}  // namespace candor::text
