#include <string_view>

#include "text/chat/forms/call_reader.h"
#include "text/chat/forms/call_writing.h"
#include "text/chat/forms/form_row.h"
#include "text/chat/forms/tool_form.h"

namespace candor::text {
namespace harmony_form {
namespace {

using Step = GrammarStep;
using Kind = GrammarStep::Kind;

constexpr std::string_view kSigns[] = {"<|channel|>"};
constexpr FormMark kMarks[] = {{.text = "<|channel|>", .next = OutputMode::kHeader},
                               {.text = "<|start|>assistant", .next = OutputMode::kHeader},
                               {.text = "<|end|>"},
                               {.text = "<|call|>"},
                               {.text = "<|return|>"}};
constexpr FormMark kEndsOfReasoning[] = {{.text = "<|end|>"}, {.text = "<|channel|>", .next = OutputMode::kHeader}};
constexpr std::string_view kEnds[] = {"<|call|>", "<|end|>"};

// What a message to a tool holds; its header named the tool.
const Step kHarmonySteps[] = {
    /* 0 */ {.kind = Kind::kBlanks},
    /* 1 */ {.kind = Kind::kValue, .take = take_arguments},
    /* 2 */ {.kind = Kind::kBlanks},
    /* 3 */ {.kind = Kind::kMark, .text = "<|call|>", .next = 6, .otherwise = 4},
    /* 4 */ {.kind = Kind::kMark, .text = "<|end|>", .next = 6, .otherwise = 5},
    /* 5 */ {.kind = Kind::kNothing},
    /* 6 */ {.kind = Kind::kEnd},
};

constexpr std::string_view kTokens[] = {"<|channel|>", "<|constrain|>", "<|message|>"};
constexpr CallWriting kWriting{.arguments = CallWriting::Arguments::kJson,
                               .before_name = "<|channel|>commentary to=functions.",
                               .before_arguments = " <|constrain|>json<|message|>",
                               .may_repeat = false,
                               .tokens = kTokens};

}  // namespace
}  // namespace harmony_form

const FormRow kGptOssForm{.form = ToolForm::kGptOss,
                          .name = "harmony",
                          .signs = harmony_form::kSigns,
                          .grammar = harmony_form::kHarmonySteps,
                          .marks = harmony_form::kMarks,
                          .ends = harmony_form::kEnds,
                          .ends_of_reasoning = harmony_form::kEndsOfReasoning,
                          .writing = harmony_form::kWriting,
                          .has_channels = true};

}  // namespace candor::text
