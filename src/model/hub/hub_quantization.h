#pragma once
// What the readers of config.json's "quantization_config" share: access to its members, and the refusal of a member
// that is not understood.

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"

namespace candor::model {

// null where the object lacks it, or is none.
nlohmann::json member_of(const nlohmann::json& object, std::string_view key);

// name: of the file. place: a dotted name below quantization_config, where `seen` stands.
Error refused_quantization(std::string_view name, std::string_view place, const nlohmann::json& seen,
                           std::string_view expected);

// The same of a method that is not read at all.
Error refused_method(std::string_view name, std::string_view method);

struct ExpectedMember {
  std::string_view key;
  nlohmann::json value;
};

// Refuses another value of one of the members of `object`, which stands at `place`.
Result<void> check_quantization(const nlohmann::json& object, std::string_view place,
                                std::initializer_list<ExpectedMember> rows, std::string_view name);

}  // namespace candor::model
