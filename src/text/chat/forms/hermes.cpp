#include <string_view>

#include "text/chat/forms/call_reader.h"
#include "text/chat/forms/call_writing.h"
#include "text/chat/forms/form_row.h"
#include "text/chat/forms/tool_form.h"

namespace candor::text {
namespace hermes_form {
namespace {

using Step = GrammarStep;
using Kind = GrammarStep::Kind;

constexpr std::string_view kSigns[] = {"<tool_call>"};
constexpr FormMark kMarks[] = {{.text = "<tool_call>", .next = OutputMode::kCall}};
constexpr std::string_view kEnds[] = {"</tool_call>"};

// The end mark may be missing at the end, and before the next call.
const Step kHermesSteps[] = {
    /* 0 */ {.kind = Kind::kBlanks},
    /* 1 */ {.kind = Kind::kValue, .take = take_calls},
    /* 2 */ {.kind = Kind::kBlanks},
    /* 3 */ {.kind = Kind::kMark, .text = "</tool_call>", .next = 6, .otherwise = 4},
    /* 4 */ {.kind = Kind::kPeek, .text = "<tool_call>", .next = 6, .otherwise = 5},
    /* 5 */ {.kind = Kind::kNothing},
    /* 6 */ {.kind = Kind::kEnd},
};

constexpr std::string_view kTokens[] = {"<tool_call>", "</tool_call>"};
constexpr CallWriting kWriting{.arguments = CallWriting::Arguments::kJson,
                               .before_name = "<tool_call>\n{\"name\": \"",
                               .before_arguments = "\", \"arguments\": ",
                               .behind_call = "}\n</tool_call>",
                               .between = "\n",
                               .tokens = kTokens};

}  // namespace
}  // namespace hermes_form

const FormRow kHermesForm{.form = ToolForm::kHermes,
                          .name = "hermes",
                          .signs = hermes_form::kSigns,
                          .grammar = hermes_form::kHermesSteps,
                          .marks = hermes_form::kMarks,
                          .ends = hermes_form::kEnds,
                          .writing = hermes_form::kWriting};

}  // namespace candor::text
