#include <string_view>

#include "text/chat/forms/call_reader.h"
#include "text/chat/forms/call_writing.h"
#include "text/chat/forms/form_row.h"
#include "text/chat/forms/tool_form.h"

namespace candor::text {
namespace glm_form {
namespace {

using Step = GrammarStep;
using Kind = GrammarStep::Kind;

constexpr std::string_view kSigns[] = {"<arg_key>"};
constexpr FormMark kMarks[] = {{.text = "<tool_call>", .next = OutputMode::kCall}};
constexpr std::string_view kEnds[] = {"</tool_call>"};
constexpr std::string_view kBehindValue[] = {"<arg_key>", "</tool_call>"};

const Step kGlmSteps[] = {
    /* 0 */ {.kind = Kind::kBlanks},
    /* 1 */ {.kind = Kind::kWord, .text = "<\n", .take = take_name},
    /* 2 */ {.kind = Kind::kBlanks},
    /* 3 */ {.kind = Kind::kMark, .text = "</tool_call>", .next = 9, .otherwise = 4},
    /* 4 */ {.kind = Kind::kMark, .text = "<arg_key>"},
    /* 5 */ {.kind = Kind::kUntil, .text = "</arg_key>", .take = take_key},
    /* 6 */ {.kind = Kind::kBlanks},
    /* 7 */ {.kind = Kind::kMark, .text = "<arg_value>"},
    /* 8 */ {.kind = Kind::kField, .text = "</arg_value>", .take = take_text, .next = 2, .follow = kBehindValue},
    /* 9 */ {.kind = Kind::kTake, .take = close_call},
    /* 10 */ {.kind = Kind::kEnd},
};

constexpr std::string_view kTokens[] = {"<tool_call>", "</tool_call>", "<arg_key>",
                                        "</arg_key>",  "<arg_value>",  "</arg_value>"};
constexpr CallWriting kWriting{.arguments = CallWriting::Arguments::kText,
                               .before_name = "<tool_call>",
                               .before_arguments = "\n",
                               .behind_call = "</tool_call>",
                               .between = "\n",
                               .before_key = "<arg_key>",
                               .before_value = "</arg_key>\n<arg_value>",
                               .value_end = "</arg_value>",
                               .behind_value = "\n",
                               .tokens = kTokens};

}  // namespace
}  // namespace glm_form

const FormRow kGlmForm{.form = ToolForm::kGlm,
                       .name = "glm-4.5",
                       .signs = glm_form::kSigns,
                       .grammar = glm_form::kGlmSteps,
                       .marks = glm_form::kMarks,
                       .ends = glm_form::kEnds,
                       .writing = glm_form::kWriting};

}  // namespace candor::text
