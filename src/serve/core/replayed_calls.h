#pragma once
// Calls of tools in a conversation that comes back. A model wrote them: what it wrote refuses nobody, in any interface.

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
std::string repeated_id(const Json& calls);

}  // namespace candor::serve
