#include <string_view>

#include "text/chat/forms/call_reader.h"
#include "text/chat/forms/call_writing.h"
#include "text/chat/forms/form_row.h"
#include "text/chat/forms/tool_form.h"

namespace candor::text {
namespace minimax_form {
namespace {

using Step = GrammarStep;
using Kind = GrammarStep::Kind;

constexpr std::string_view kSigns[] = {"<minimax:tool_call>"};
constexpr FormMark kMarks[] = {{.text = "<minimax:tool_call>", .next = OutputMode::kCall}};
constexpr std::string_view kEnds[] = {"</minimax:tool_call>"};
constexpr std::string_view kBehindValue[] = {"<parameter name=\"", "</invoke>"};

const Step kMiniMaxSteps[] = {
    /* 0 */ {.kind = Kind::kBlanks},
    /* 1 */ {.kind = Kind::kMark, .text = "<invoke name=\""},
    /* 2 */ {.kind = Kind::kWord, .text = "\"\n<>", .take = take_name},
    /* 3 */ {.kind = Kind::kMark, .text = "\">"},
    /* 4 */ {.kind = Kind::kBlanks},
    /* 5 */ {.kind = Kind::kMark, .text = "<parameter name=\"", .next = 6, .otherwise = 9},
    /* 6 */ {.kind = Kind::kWord, .text = "\"\n<>", .take = take_key},
    /* 7 */ {.kind = Kind::kMark, .text = "\">"},
    /* 8 */ {.kind = Kind::kField, .text = "</parameter>", .take = take_text, .next = 4, .follow = kBehindValue},
    /* 9 */ {.kind = Kind::kMark, .text = "</invoke>", .take = close_call},
    /* 10 */ {.kind = Kind::kBlanks},
    /* 11 */ {.kind = Kind::kPeek, .text = "<invoke", .next = 1, .otherwise = 12},
    /* 12 */ {.kind = Kind::kMark, .text = "</minimax:tool_call>", .next = 14, .otherwise = 13},
    /* 13 */ {.kind = Kind::kNothing},
    /* 14 */ {.kind = Kind::kEnd},
};

constexpr std::string_view kTokens[] = {"<minimax:tool_call>", "</minimax:tool_call>"};
constexpr CallWriting kWriting{.arguments = CallWriting::Arguments::kText,
                               .begin = "<minimax:tool_call>\n",
                               .before_name = "<invoke name=\"",
                               .before_arguments = "\">\n",
                               .behind_call = "</invoke>",
                               .between = "\n",
                               .end = "\n</minimax:tool_call>",
                               .before_key = "<parameter name=\"",
                               .before_value = "\">",
                               .value_end = "</parameter>",
                               .behind_value = "\n",
                               .tokens = kTokens};

}  // namespace
}  // namespace minimax_form

const FormRow kMiniMaxForm{.form = ToolForm::kMiniMax,
                           .name = "minimax-m2",
                           .signs = minimax_form::kSigns,
                           .grammar = minimax_form::kMiniMaxSteps,
                           .marks = minimax_form::kMarks,
                           .ends = minimax_form::kEnds,
                           .writing = minimax_form::kWriting};

}  // namespace candor::text
