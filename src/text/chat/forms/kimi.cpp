#include <cstddef>
#include <string>
#include <string_view>

#include "text/chat/forms/call_reader.h"
#include "text/chat/forms/call_writing.h"
#include "text/chat/forms/form_row.h"
#include "text/chat/forms/tool_form.h"

namespace candor::text {
namespace kimi_form {
namespace {

using Step = GrammarStep;
using Kind = GrammarStep::Kind;

constexpr std::string_view kSigns[] = {"<|tool_call_begin|>", "tool_declare<|im_middle|>"};
constexpr FormMark kMarks[] = {{.text = "<|tool_call_begin|>", .next = OutputMode::kCall},
                               {.text = "<|tool_calls_section_begin|>"},
                               {.text = "<|tool_calls_section_end|>"}};
constexpr std::string_view kEnds[] = {"<|tool_call_end|>"};

// "functions.NAME:0": the number counts the calls of a conversation.
bool take_identifier(CallParts& parts, std::string_view text) {
  constexpr std::string_view kPrefix = "functions.";
  if (!take_name(parts, text)) return false;
  std::string_view name = parts.name;
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  const size_t colon = name.rfind(':');
  const bool is_counted =
      colon != std::string_view::npos && name.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
  parts.name = std::string(is_counted ? name.substr(0, colon) : name);
  return !parts.name.empty();
}

const Step kKimiSteps[] = {
    /* 0 */ {.kind = Kind::kWord, .text = "<{", .take = take_identifier},
    /* 1 */ {.kind = Kind::kMark, .text = "<|tool_call_argument_begin|>"},
    /* 2 */ {.kind = Kind::kBlanks},
    /* 3 */ {.kind = Kind::kValue, .take = take_arguments},
    /* 4 */ {.kind = Kind::kBlanks},
    /* 5 */ {.kind = Kind::kMark, .text = "<|tool_call_end|>", .next = 9, .otherwise = 6},
    /* 6 */ {.kind = Kind::kPeek, .text = "<|tool_calls_section_end|>", .next = 9, .otherwise = 7},
    /* 7 */ {.kind = Kind::kPeek, .text = "<|tool_call_begin|>", .next = 9, .otherwise = 8},
    /* 8 */ {.kind = Kind::kNothing},
    /* 9 */ {.kind = Kind::kEnd},
};

constexpr std::string_view kTokens[] = {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>",
                                        "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"};
constexpr CallWriting kWriting{.arguments = CallWriting::Arguments::kJson,
                               .begin = "<|tool_calls_section_begin|>",
                               .before_name = "<|tool_call_begin|>functions.",
                               .before_arguments = ":0<|tool_call_argument_begin|>",
                               .behind_call = "<|tool_call_end|>",
                               .end = "<|tool_calls_section_end|>",
                               .may_repeat = false,
                               .tokens = kTokens};

}  // namespace
}  // namespace kimi_form

const FormRow kKimiForm{.form = ToolForm::kKimi,
                        .name = "kimi-k2",
                        .signs = kimi_form::kSigns,
                        .grammar = kimi_form::kKimiSteps,
                        .marks = kimi_form::kMarks,
                        .ends = kimi_form::kEnds,
                        .writing = kimi_form::kWriting};

}  // namespace candor::text
