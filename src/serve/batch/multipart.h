#pragma once
// A body of multipart/form-data (RFC 7578), as clients upload files: its parts by name. Bounded: at most 32 parts, 4
// KiB of headers each. The parts are views into the body.

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace candor::serve {

struct FormPart {
  std::string name;
  std::string file_name;  // empty: a field
  std::string_view bytes;
};

Result<std::vector<FormPart>> parse_form(std::string_view content_type, std::string_view body);

}  // namespace candor::serve
