#pragma once
// What becomes of each piece of a tool call that is read by a model's own response template (response_template.h): the
// name, the arguments as JSON, line by line or tag by tag. False: the call is broken.

#include <string_view>

#include "text/chat/forms/call_reader.h"

namespace candor::text {

bool take_region_name(CallParts& parts, std::string_view text);    // the group "name"
bool take_region_json(CallParts& parts, std::string_view text);    // a JSON value, in the region's notation
bool take_region_lines(CallParts& parts, std::string_view text);   // key: value, line by line
bool take_region_value(CallParts& parts, std::string_view text);   // of a tag, blanks around it do not count
bool close_region_tags(CallParts& parts, std::string_view text);   // the tags are all there

}  // namespace candor::text
