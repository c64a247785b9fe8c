#pragma once
// Reads the members of one JSON object by name, type and range. A member that is null counts as absent. The first thing
// that is wrong is kept: read everything, then ask fault(). Names that nobody asked for are unknown(). Borrows the
// object.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "serve/core/json_body.h"

namespace candor::serve {

class Fields {
 public:
  // REQUIRES: object.is_object(). path: how messages name the object, "" for the body itself.
  explicit Fields(const Json& object, std::string path = {}) : object_(object), path_(std::move(path)) {}

  std::optional<double> number(const char* name, double least, double most);
  std::optional<int64_t> integer(const char* name, int64_t least, int64_t most);
  std::optional<bool> boolean(const char* name);
  std::optional<std::string> text(const char* name);
  // The member as it is; nullptr when absent.
  const Json* raw(const char* name);
  // As raw(), of that type or refused.
  const Json* array(const char* name);
  const Json* object(const char* name);
  // Understood to have no effect here.
  void accept(std::initializer_list<const char*> names);

  bool has(const char* name) const;
  // As messages name it: "structured_outputs.regex".
  std::string path_of(const char* name) const { return path_.empty() ? name : path_ + "." + name; }
  void refuse(const char* name, std::string message);
  void refuse_with(Error error) {
    if (!fault_) fault_ = std::move(error);
  }
  const std::optional<Error>& fault() const { return fault_; }
  std::vector<std::string> unknown() const;

 private:
  void refuse_type(const char* name, const Json& value, const std::string& expected);

  const Json& object_;
  std::string path_;
  std::set<std::string, std::less<>> asked_;
  std::optional<Error> fault_;
};

// A value as a message shows it: at most some 40 bytes.
std::string shown(const Json& value);

}  // namespace candor::serve
