#pragma once
// What the schemas of a request's tools say of their arguments' types, for forms that write every value as plain text:
// 7 is a number where the schema asks for one and "7" where it asks for a string. Immutable: any thread.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace candor::text {

class ToolTypes {
 public:
  // tools_json: [{"type": "function", "function": {"name", "parameters"}}, ...]. What is no tool is passed over.
  static std::shared_ptr<const ToolTypes> of(std::string_view tools_json);

  bool knows(std::string_view tool) const { return tools_.find(tool) != tools_.end(); }
  // The value as JSON. What does not fit the schema's type, or has none and reads like text, stays a string.
  std::string typed(std::string_view tool, std::string_view argument, std::string_view value) const;

 private:
  using Arguments = std::map<std::string, uint8_t, std::less<>>;  // sets of types
  std::map<std::string, Arguments, std::less<>> tools_;
};

}  // namespace candor::text
