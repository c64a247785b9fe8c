#pragma once
// A form (the format in which a model family writes reasoning and tool calls) as constant data: how it is recognised in
// a chat template, its marks in the output text, and the grammar of a call.

#include <cstdint>
#include <span>
#include <string_view>

#include "text/chat/forms/call_reader.h"
#include "text/chat/forms/call_writing.h"
#include "text/chat/forms/tool_form.h"

namespace candor::text {

// What an output is written in at some place.
enum class OutputMode : uint8_t { kText, kReasoning, kCall, kHeader, kUnread };

struct FormMark {
  std::string_view text;
  OutputMode next = OutputMode::kText;
  bool is_part = false;  // of the call, whose grammar begins with it; else it belongs to nobody
};

struct FormRow {
  ToolForm form;
  std::string_view name;
  std::span<const std::string_view> signs;  // in a template's text; one is enough
  CallGrammar grammar;
  std::span<const FormMark> marks;                          // in text
  std::span<const std::string_view> ends = {};              // of a call that could not be read
  std::span<const FormMark> ends_of_reasoning = {};         // none: </think>
  const RegionContent* region = nullptr;                    // what its steps take content apart by
  CallWriting writing = {};                                 // how calls are written where a request forces them
  bool opens_bare = false;   // a call needs no mark where it is the whole answer
  bool has_channels = false;  // its marks stand in outputs without calls, too
};

extern const FormRow kHermesForm;
extern const FormRow kLlamaForm;
extern const FormRow kMistralForm;
extern const FormRow kMistralV11Form;
extern const FormRow kDeepSeekForm;
extern const FormRow kGptOssForm;
extern const FormRow kQwenCoderForm;
extern const FormRow kGlmForm;
extern const FormRow kGemmaForm;
extern const FormRow kKimiForm;
extern const FormRow kMiniMaxForm;
extern const FormRow kLfmForm;
extern const FormRow kGraniteForm;

// In the order in which they are looked for. kNone has none.
std::span<const FormRow* const> form_rows();
const FormRow* form_row(ToolForm form);

}  // namespace candor::text
