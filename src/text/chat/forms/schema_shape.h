#pragma once
// Examines a tool's JSON schema for the grammar of tool calls (call_grammar.h): whether a grammar can enforce all of
// it, and what text a string argument may be in formats that write arguments as plain text instead of JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace candor::text {

// Why it is not made of the plain words alone (types, properties, lists, bounds, alternatives) that a grammar may
// carry; "" if it is. where: how the message calls it.
std::string fault_of_schema(const nlohmann::ordered_json& schema, const std::string& where);

// What a schema says of a string that is written as plain text.
enum class TextShape : unsigned char {
  kText,    // it is a string, perhaps of a bounded length
  kListed,  // it is one of some strings
  kValue,   // it is no string: JSON
  kOther,   // plain text cannot be held to it
};
TextShape text_shape_of(const nlohmann::ordered_json& schema);

}  // namespace candor::text
