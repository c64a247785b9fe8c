#pragma once
// A small reader of JSON Schema, for the facts in tests/serve/data: type, enum, required, properties, items, anyOf and
// $ref to "#/$defs/NAME".

#include <string>

#include "serve/client.h"

namespace candor::testing {

class SchemaCheck {
 public:
  explicit SchemaCheck(const std::string& project_path);
  // Where and why the value is not what $defs says under that name; "" if it is.
  std::string fault(const std::string& name, const Json& value) const;

 private:
  std::string fault_of(const Json& schema, const Json& value, const std::string& where) const;
  std::string fault_of_members(const Json& schema, const Json& value, const std::string& where) const;

  Json defs_;
};

}  // namespace candor::testing
