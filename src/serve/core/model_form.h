#pragma once
// Finds out how a model writes reasoning and tool calls (its "form"), and which roles its chat template knows, by
// rendering a test conversation with the template.

#include <string>
#include <vector>

#include "candor/engine.h"
#include "candor/request.h"
#include "text/chat/forms/call_grammar.h"
#include "text/chat/output_parser.h"

namespace candor::serve {

struct ModelForm {
  text::OutputForm output{};
  std::vector<text::ControlToken> control_tokens{};  // marks of its calls that no text can spell
  std::string own_fault{};       // why the model's own response template is not followed
  bool shows_tools = false;      // the template passes the tools on to the model
  bool knows_developer = false;  // the role means something else to the template than any word would
  bool takes_system = true;      // as the first message
  bool takes_late_system = true;  // behind others, as a turn of its own at its place
  bool takes_text_arguments = true;  // of a call; else the template takes them apart
};

ModelForm probe_model_form(const Engine& engine);
// The prompt that the template makes of this ends inside of reasoning.
bool opens_reasoning(const Engine& engine, const ChatPrompt& chat);

}  // namespace candor::serve
