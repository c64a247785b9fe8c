#pragma once
// Steps of the reader of tool calls (call_reader.h) for models that describe their own format in tokenizer_config.json
// (response_template.h): each takes one piece of a call, its name or its arguments as JSON, as lines or as tags, and
// returns false where the piece is malformed.

#include <string_view>

#include "text/chat/forms/call_reader.h"

namespace candor::text {

bool take_region_name(CallParts& parts, std::string_view text);    // the group "name"
bool take_region_json(CallParts& parts, std::string_view text);    // a JSON value, in the region's notation
bool take_region_lines(CallParts& parts, std::string_view text);   // key: value, line by line
bool take_region_value(CallParts& parts, std::string_view text);   // of a tag, blanks around it do not count
bool close_region_tags(CallParts& parts, std::string_view text);   // the tags are all there

}  // namespace candor::text
