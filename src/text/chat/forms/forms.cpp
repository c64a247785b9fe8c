#include <span>
#include <string_view>

#include "text/chat/forms/form_row.h"
#include "text/chat/forms/tool_form.h"

namespace candor::text {
namespace {

// What another form's marks are a part of comes later.
constexpr const FormRow* kRows[] = {&kGptOssForm,     &kGemmaForm,   &kDeepSeekForm, &kKimiForm, &kMiniMaxForm,
                                    &kMistralV11Form, &kMistralForm, &kLfmForm,      &kGlmForm,  &kQwenCoderForm,
                                    &kGraniteForm,    &kHermesForm,  &kLlamaForm};

}  // namespace

std::span<const FormRow* const> form_rows() {
  return kRows;
}

const FormRow* form_row(ToolForm form) {
  for (const FormRow* row : kRows) {
    if (row->form == form) return row;
  }
  return nullptr;
}

std::string_view to_string(ToolForm form) {
  if (form == ToolForm::kOwn) return "response_template";
  const FormRow* row = form_row(form);
  return row != nullptr ? row->name : "none";
}

ToolForm tool_form_of(std::string_view template_text) {
  for (const FormRow* row : kRows) {
    for (const std::string_view sign : row->signs) {
      if (template_text.find(sign) != std::string_view::npos) return row->form;
    }
  }
  return ToolForm::kNone;
}

}  // namespace candor::text
