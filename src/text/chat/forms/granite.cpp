#include <string_view>

#include "text/chat/forms/call_reader.h"
#include "text/chat/forms/call_writing.h"
#include "text/chat/forms/form_row.h"
#include "text/chat/forms/tool_form.h"

namespace candor::text {
namespace granite_form {
namespace {

using Step = GrammarStep;
using Kind = GrammarStep::Kind;

constexpr std::string_view kSigns[] = {"<|tool_call|>"};
// Granite 3.0 has a token for it, 3.1 writes it out.
constexpr FormMark kMarks[] = {{.text = "<|tool_call|>", .next = OutputMode::kCall},
                               {.text = "<tool_call>", .next = OutputMode::kCall}};

const Step kGraniteSteps[] = {
    /* 0 */ {.kind = Kind::kBlanks},
    /* 1 */ {.kind = Kind::kValue, .take = take_calls},
    /* 2 */ {.kind = Kind::kBlanks},
    /* 3 */ {.kind = Kind::kMark, .text = "</tool_call>", .next = 4, .otherwise = 4},
    /* 4 */ {.kind = Kind::kEnd},
};

constexpr std::string_view kTokens[] = {"<|tool_call|>", "<tool_call>"};
constexpr CallWriting kWriting{.arguments = CallWriting::Arguments::kJson,
                               .begin = "<|tool_call|>[",
                               .before_name = "{\"name\": \"",
                               .before_arguments = "\", \"arguments\": ",
                               .behind_call = "}",
                               .between = ", ",
                               .end = "]",
                               .tokens = kTokens};

}  // namespace
}  // namespace granite_form

const FormRow kGraniteForm{.form = ToolForm::kGranite,
                           .name = "granite3",
                           .signs = granite_form::kSigns,
                           .grammar = granite_form::kGraniteSteps,
                           .marks = granite_form::kMarks,
                           .writing = granite_form::kWriting};

}  // namespace candor::text
