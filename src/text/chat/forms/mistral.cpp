#include <string_view>

#include "text/chat/forms/call_reader.h"
#include "text/chat/forms/call_writing.h"
#include "text/chat/forms/form_row.h"
#include "text/chat/forms/tool_form.h"

namespace candor::text {
namespace mistral_form {
namespace {

using Step = GrammarStep;
using Kind = GrammarStep::Kind;

constexpr std::string_view kOldSigns[] = {"[TOOL_CALLS]"};
constexpr std::string_view kSigns[] = {"[ARGS]"};
constexpr FormMark kMarks[] = {{.text = "[TOOL_CALLS]", .next = OutputMode::kCall},
                               {.text = "[THINK]", .next = OutputMode::kReasoning}};
constexpr FormMark kEndsOfReasoning[] = {{.text = "[/THINK]"}, {.text = "</think>"}};

// Both forms have one grammar: files of newer models come with templates of older ones. An identifier of the call may
// stand behind its name.
const Step kMistralSteps[] = {
    /* 0 */ {.kind = Kind::kBlanks},
    /* 1 */ {.kind = Kind::kPeek, .text = "[", .next = 3, .otherwise = 2},
    /* 2 */ {.kind = Kind::kPeek, .text = "{", .next = 3, .otherwise = 5},
    /* 3 */ {.kind = Kind::kValue, .take = take_calls},
    /* 4 */ {.kind = Kind::kEnd},
    /* 5 */ {.kind = Kind::kWord, .text = "[{ \t\r\n", .take = take_name},
    /* 6 */ {.kind = Kind::kMark, .text = "[CALL_ID]", .next = 7, .otherwise = 8},
    /* 7 */ {.kind = Kind::kWord, .text = "[{"},
    /* 8 */ {.kind = Kind::kMark, .text = "[ARGS]", .next = 9, .otherwise = 9},
    /* 9 */ {.kind = Kind::kBlanks},
    /* 10 */ {.kind = Kind::kValue, .take = take_arguments},
    /* 11 */ {.kind = Kind::kEnd},
};

constexpr std::string_view kTokens[] = {"[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]"};
constexpr CallWriting kOldWriting{.arguments = CallWriting::Arguments::kJson,
                                  .begin = "[TOOL_CALLS][",
                                  .before_name = "{\"name\": \"",
                                  .before_arguments = "\", \"arguments\": ",
                                  .behind_call = "}",
                                  .between = ", ",
                                  .end = "]",
                                  .tokens = {kTokens, 1}};
constexpr CallWriting kWriting{.arguments = CallWriting::Arguments::kJson,
                               .before_name = "[TOOL_CALLS]",
                               .before_arguments = "[ARGS]",
                               .tokens = kTokens};

}  // namespace
}  // namespace mistral_form

const FormRow kMistralForm{.form = ToolForm::kMistral,
                           .name = "mistral",
                           .signs = mistral_form::kOldSigns,
                           .grammar = mistral_form::kMistralSteps,
                           .marks = {mistral_form::kMarks, 1},
                           .writing = mistral_form::kOldWriting};
const FormRow kMistralV11Form{.form = ToolForm::kMistralV11,
                              .name = "mistral-v11",
                              .signs = mistral_form::kSigns,
                              .grammar = mistral_form::kMistralSteps,
                              .marks = mistral_form::kMarks,
                              .ends_of_reasoning = mistral_form::kEndsOfReasoning,
                              .writing = mistral_form::kWriting,
                              .has_channels = true};

}  // namespace candor::text
