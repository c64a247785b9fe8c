#pragma once
// Reads tool calls in a conversation that a client sends back. A model wrote them, so arguments that are no JSON object
// never get a request refused: they are passed on to the chat template as text, with a warning.

#include <string>
#include <vector>

#include "serve/core/json_body.h"
#include "serve/core/model_form.h"

namespace candor::serve {

// A call's arguments for the model's chat template: the object that they are, or hold as text; else the text that they
// are, inside an object where the template takes arguments apart. Nothing is an object without members. `where` is what
// the warning names.
Json replayed_arguments(const Json* given, const std::string& where, const ModelForm& form,
                        std::vector<std::string>& warnings);

// An id that two calls of one answer have, which leaves open to which of them a result belongs; "" where there is none.
// Callers refuse the request then.
std::string repeated_id(const Json& calls);

}  // namespace candor::serve
