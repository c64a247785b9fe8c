#pragma once
// The forms, that is, the formats in which published models write tool calls: a name for each, and which of them a chat
// template uses. To add one: a file in this folder that defines its FormRow, a name here, a line in forms.cpp.

#include <cstdint>
#include <string_view>

namespace candor::text {

enum class ToolForm : uint8_t {
  kNone,
  kHermes,      // <tool_call>{"name", "arguments"}</tool_call>: Hermes, Qwen, Granite 4
  kLlama,       // {"name", "parameters"} as the whole answer, perhaps behind <|python_tag|>: Llama 3.1
  kMistral,     // [TOOL_CALLS][{"name", "arguments"}, ...]
  kDeepSeek,    // tool call begin, type, separator, name, ```json arguments```, tool call end
  kGptOss,      // <|channel|>analysis|final|commentary to=functions.NAME<|message|>...: harmony
  kMistralV11,  // [TOOL_CALLS]NAME[ARGS]{...}
  kQwenCoder,   // <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>
  kGlm,         // <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>: GLM 4.5
  kGemma,       // <|tool_call>call:NAME{key:<|"|>value<|"|>}<tool_call|>: Gemma 4
  kKimi,        // <|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{...}<|tool_call_end|>: Kimi K2
  kMiniMax,     // <minimax:tool_call><invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>...: M2
  kLfm,         // <|tool_call_start|>[name(key="value")]<|tool_call_end|>: LFM2
  kGranite,     // <|tool_call|>[{"name", "arguments"}, ...]: Granite 3
  kOwn,         // what the model's own response_template says
};

// "hermes"; "none".
std::string_view to_string(ToolForm form);
// The form whose marks are in the text that a template renders, or in the template's source.
ToolForm tool_form_of(std::string_view template_text);

}  // namespace candor::text
