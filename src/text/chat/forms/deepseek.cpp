#include <string_view>

#include "text/chat/forms/call_reader.h"
#include "text/chat/forms/call_writing.h"
#include "text/chat/forms/form_row.h"
#include "text/chat/forms/tool_form.h"

namespace candor::text {
namespace deepseek_form {
namespace {

using Step = GrammarStep;
using Kind = GrammarStep::Kind;

// Their bar is U+FF5C, their underscore U+2581.
constexpr std::string_view kCall =
    "<\xef\xbd\x9ctool\xe2\x96\x81"
    "call\xe2\x96\x81"
    "begin\xef\xbd\x9c>";
constexpr std::string_view kCallEnd =
    "<\xef\xbd\x9ctool\xe2\x96\x81"
    "call\xe2\x96\x81"
    "end\xef\xbd\x9c>";
constexpr std::string_view kSeparator = "<\xef\xbd\x9ctool\xe2\x96\x81sep\xef\xbd\x9c>";
constexpr std::string_view kCalls =
    "<\xef\xbd\x9ctool\xe2\x96\x81"
    "calls\xe2\x96\x81"
    "begin\xef\xbd\x9c>";
constexpr std::string_view kCallsEnd =
    "<\xef\xbd\x9ctool\xe2\x96\x81"
    "calls\xe2\x96\x81"
    "end\xef\xbd\x9c>";

constexpr std::string_view kSigns[] = {kCall};
constexpr FormMark kMarks[] = {{.text = kCall, .next = OutputMode::kCall}, {.text = kCalls}, {.text = kCallsEnd}};
constexpr std::string_view kEnds[] = {kCallEnd};

bool is_function(CallParts& parts, std::string_view) {
  return parts.name == "function";
}

// "function<sep>NAME\n```json\n{...}\n```", or "NAME<sep>{...}" as later models write it.
const Step kDeepSeekSteps[] = {
    /* 0 */ {.kind = Kind::kUntil, .text = kSeparator, .take = take_name},
    /* 1 */ {.kind = Kind::kBlanks},
    /* 2 */ {.kind = Kind::kPeek, .text = "{", .next = 9, .otherwise = 3},
    /* 3 */ {.kind = Kind::kPeek, .text = "```", .next = 7, .otherwise = 4},
    /* 4 */ {.kind = Kind::kTake, .take = is_function},
    /* 5 */ {.kind = Kind::kWord, .text = "\n`{", .take = take_name},
    /* 6 */ {.kind = Kind::kBlanks},
    /* 7 */ {.kind = Kind::kMark, .text = "```json", .next = 8, .otherwise = 8},
    /* 8 */ {.kind = Kind::kBlanks},
    /* 9 */ {.kind = Kind::kValue, .take = take_arguments},
    /* 10 */ {.kind = Kind::kBlanks},
    /* 11 */ {.kind = Kind::kMark, .text = "```", .next = 12, .otherwise = 12},
    /* 12 */ {.kind = Kind::kBlanks},
    /* 13 */ {.kind = Kind::kMark, .text = kCallEnd, .next = 17, .otherwise = 14},
    /* 14 */ {.kind = Kind::kPeek, .text = kCallsEnd, .next = 17, .otherwise = 15},
    /* 15 */ {.kind = Kind::kPeek, .text = kCall, .next = 17, .otherwise = 16},
    /* 16 */ {.kind = Kind::kNothing},
    /* 17 */ {.kind = Kind::kEnd},
};

constexpr std::string_view kTokens[] = {kCalls, kCallsEnd, kCall, kCallEnd, kSeparator};
constexpr std::string_view kBeforeName =
    "<\xef\xbd\x9ctool\xe2\x96\x81"
    "call\xe2\x96\x81"
    "begin\xef\xbd\x9c>"
    "function"
    "<\xef\xbd\x9ctool\xe2\x96\x81sep\xef\xbd\x9c>";
constexpr std::string_view kBehindCall =
    "\n```"
    "<\xef\xbd\x9ctool\xe2\x96\x81"
    "call\xe2\x96\x81"
    "end\xef\xbd\x9c>";
constexpr CallWriting kWriting{.arguments = CallWriting::Arguments::kJson,
                               .begin = kCalls,
                               .before_name = kBeforeName,
                               .before_arguments = "\n```json\n",
                               .behind_call = kBehindCall,
                               .between = "\n",
                               .end = kCallsEnd,
                               .tokens = kTokens};

}  // namespace
}  // namespace deepseek_form

const FormRow kDeepSeekForm{.form = ToolForm::kDeepSeek,
                            .name = "deepseek",
                            .signs = deepseek_form::kSigns,
                            .grammar = deepseek_form::kDeepSeekSteps,
                            .marks = deepseek_form::kMarks,
                            .ends = deepseek_form::kEnds,
                            .writing = deepseek_form::kWriting};

}  // namespace candor::text
