#include <string_view>

#include "text/chat/forms/call_reader.h"
#include "text/chat/forms/call_writing.h"
#include "text/chat/forms/form_row.h"
#include "text/chat/forms/tool_form.h"

namespace candor::text {
namespace llama_form {
namespace {

using Step = GrammarStep;
using Kind = GrammarStep::Kind;

constexpr std::string_view kSigns[] = {"<|python_tag|>", "\"parameters\": "};
constexpr FormMark kMarks[] = {{.text = "<|python_tag|>", .next = OutputMode::kCall}};

// Several calls stand between semicolons. Nothing may follow: an answer that only begins like a call is text.
const Step kLlamaSteps[] = {
    /* 0 */ {.kind = Kind::kBlanks},
    /* 1 */ {.kind = Kind::kValue, .take = take_calls},
    /* 2 */ {.kind = Kind::kBlanks},
    /* 3 */ {.kind = Kind::kMark, .text = ";", .next = 0, .otherwise = 4},
    /* 4 */ {.kind = Kind::kNothing},
    /* 5 */ {.kind = Kind::kEnd},
};

constexpr CallWriting kWriting{.arguments = CallWriting::Arguments::kJson,
                               .before_name = "{\"name\": \"",
                               .before_arguments = "\", \"parameters\": ",
                               .behind_call = "}",
                               .between = "; "};

}  // namespace
}  // namespace llama_form

const FormRow kLlamaForm{.form = ToolForm::kLlama,
                         .name = "llama3.1",
                         .signs = llama_form::kSigns,
                         .grammar = llama_form::kLlamaSteps,
                         .marks = llama_form::kMarks,
                         .writing = llama_form::kWriting,
                         .opens_bare = true};

}  // namespace candor::text
