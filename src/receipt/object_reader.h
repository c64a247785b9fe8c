#pragma once
// Reads one JSON object whose members are all known: each is asked for by name and kind, and what nobody asked for is
// an error. The first error counts; it names the member by its path ("answers[0].tokens"). One thread.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "candor/ids.h"

namespace candor::receipt {

using Json = nlohmann::json;

class ObjectReader {
 public:
  // path: "" for the whole receipt. The error is shared by the readers of one receipt.
  ObjectReader(const Json& object, std::string path, std::optional<Error>& error);

  // Each must be there; null is nothing where the result is optional. After an error they give zeros.
  std::int64_t integer(const char* name, std::int64_t least, std::int64_t most);
  std::optional<std::int64_t> optional_integer(const char* name, std::int64_t least, std::int64_t most);
  double number(const char* name);
  std::optional<double> optional_number(const char* name);
  bool boolean(const char* name);
  std::string text(const char* name);
  std::optional<std::string> optional_text(const char* name);
  std::vector<std::string> texts(const char* name);
  std::vector<TokenId> ids(const char* name);
  std::vector<float> floats(const char* name);
  // `n_digits` hexadecimal digits.
  std::string digits(const char* name, std::size_t n_digits);
  // One of the words; its place among them.
  std::size_t word(const char* name, const std::vector<std::string_view>& words);
  // nullptr where it is null or not an object.
  const Json* optional_object(const char* name);
  const Json* object(const char* name);
  const Json* array(const char* name);
  bool has(const char* name) const { return object_.contains(name); }
  bool is_text(const char* name) const { return has(name) && object_[name].is_string(); }

  // Of a member.
  std::string path_of(const char* name) const;
  void refuse(const char* name, const std::string& expected);
  // What nobody asked for.
  void refuse_others();

 private:
  const Json* find(const char* name);
  template <class Read>
  void each(const char* name, Read&& read);

  const Json& object_;
  const std::string path_;
  std::optional<Error>& error_;
  std::vector<std::string> asked_;
};

}  // namespace candor::receipt
