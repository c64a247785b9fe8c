#include <string_view>

#include "text/chat/forms/call_reader.h"
#include "text/chat/forms/call_writing.h"
#include "text/chat/forms/form_row.h"
#include "text/chat/forms/notation.h"
#include "text/chat/forms/tool_form.h"

namespace candor::text {
namespace gemma_form {
namespace {

using Step = GrammarStep;
using Kind = GrammarStep::Kind;

constexpr std::string_view kSigns[] = {"<|tool_call>", "<|tool>declaration:"};
constexpr FormMark kMarks[] = {{.text = "<|tool_call>", .next = OutputMode::kCall},
                               {.text = "<|channel>thought\n", .next = OutputMode::kReasoning},
                               {.text = "<|tool_response>"},
                               {.text = "<turn|>"}};
constexpr FormMark kEndsOfReasoning[] = {{.text = "<channel|>"}};
constexpr std::string_view kEnds[] = {"<tool_call|>"};

// Strings stand between marks of their own, in which nothing is escaped; JSON's are read as well.
constexpr StringMarks kGemmaStrings[] = {{.open = "<|\"|>", .close = "<|\"|>", .has_escapes = false},
                                         {.open = "\"", .close = "\""}};
const Notation kGemmaNotation{.strings = kGemmaStrings, .has_bare_keys = true};

bool take_gemma(CallParts& parts, std::string_view text) {
  return take_arguments_in(parts, text, kGemmaNotation);
}

const Step kGemmaSteps[] = {
    /* 0 */ {.kind = Kind::kBlanks},
    /* 1 */ {.kind = Kind::kMark, .text = "call:"},
    /* 2 */ {.kind = Kind::kWord, .text = "{<\n", .take = take_name},
    /* 3 */ {.kind = Kind::kValue, .take = take_gemma, .notation = &kGemmaNotation},
    /* 4 */ {.kind = Kind::kBlanks},
    /* 5 */ {.kind = Kind::kMark, .text = "<tool_call|>", .next = 8, .otherwise = 6},
    /* 6 */ {.kind = Kind::kPeek, .text = "<|tool_call>", .next = 8, .otherwise = 7},
    /* 7 */ {.kind = Kind::kNothing},
    /* 8 */ {.kind = Kind::kEnd},
};

constexpr std::string_view kTokens[] = {"<|tool_call>", "<tool_call|>", "<|\"|>", "<|channel>", "<channel|>"};
constexpr CallWriting kWriting{.arguments = CallWriting::Arguments::kGemma,
                               .before_name = "<|tool_call>call:",
                               .behind_call = "<tool_call|>",
                               .tokens = kTokens};

}  // namespace
}  // namespace gemma_form

const FormRow kGemmaForm{.form = ToolForm::kGemma,
                         .name = "gemma4",
                         .signs = gemma_form::kSigns,
                         .grammar = gemma_form::kGemmaSteps,
                         .marks = gemma_form::kMarks,
                         .ends = gemma_form::kEnds,
                         .ends_of_reasoning = gemma_form::kEndsOfReasoning,
                         .writing = gemma_form::kWriting,
                         .has_channels = true};

}  // namespace candor::text
