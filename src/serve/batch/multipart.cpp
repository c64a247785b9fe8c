#include "serve/batch/multipart.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "serve/http/text.h"

namespace candor::serve {
namespace {

constexpr size_t kMaxParts = 32;
constexpr size_t kMaxHeaderBytes = 4096;
constexpr size_t kMaxBoundaryBytes = 70;  // RFC 2046

Error bad_form(std::string_view what) {
  return fail(ErrorKind::kInvalidInput, fmt::format("the multipart form: {}", what));
}

// The value of `; name=value` or `; name="value"`; empty where there is none.
std::string parameter(std::string_view header, std::string_view name) {
  for (size_t at = header.find(';'); at != std::string_view::npos; at = header.find(';', at + 1)) {
    const std::string_view rest = http::trimmed(header.substr(at + 1));
    if (rest.size() <= name.size() || http::lower_case(rest.substr(0, name.size())) != name || rest[name.size()] != '=')
      continue;
    std::string_view value = rest.substr(name.size() + 1);
    if (!value.starts_with('"')) return std::string(http::trimmed(value.substr(0, value.find(';'))));
    std::string text;
    for (size_t i = 1; i < value.size() && value[i] != '"'; ++i) {
      if (value[i] == '\\' && i + 1 < value.size()) ++i;
      text.push_back(value[i]);
    }
    return text;
  }
  return {};
}

// What Content-Disposition says, of the lines before a part's bytes.
Result<FormPart> read_headers(std::string_view lines) {
  FormPart part;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find("\r\n"), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 2, lines.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return bad_form("a part has a header line without a colon");
    if (http::lower_case(http::trimmed(line.substr(0, colon))) != "content-disposition") continue;
    part.name = parameter(line.substr(colon), "name");
    part.file_name = parameter(line.substr(colon), "filename");
  }
  if (part.name.empty()) return bad_form("a part has no name");
  return part;
}

}  // namespace

Result<std::vector<FormPart>> parse_form(std::string_view content_type, std::string_view body) {
  const std::string_view kind = content_type.substr(0, content_type.find(';'));
  if (http::lower_case(http::trimmed(kind)) != "multipart/form-data")
    return fail(ErrorKind::kInvalidInput, "the content type is not multipart/form-data");
  const std::string boundary = parameter(content_type, "boundary");
  if (boundary.empty() || boundary.size() > kMaxBoundaryBytes) return bad_form("there is no boundary of 1 to 70 bytes");
  const std::string opening = "--" + boundary;
  const std::string separator = "\r\n" + opening;
  if (!body.starts_with(opening)) return bad_form("it does not begin with its boundary");
  body.remove_prefix(opening.size());
  std::vector<FormPart> parts;
  while (!body.starts_with("--")) {
    if (!body.starts_with("\r\n")) return bad_form("a boundary is followed by neither a part nor the end");
    if (parts.size() == kMaxParts) return bad_form(fmt::format("it has more than {} parts", kMaxParts));
    body.remove_prefix(2);
    const size_t head = body.substr(0, kMaxHeaderBytes).find("\r\n\r\n");
    if (head == std::string_view::npos)
      return bad_form(fmt::format("a part's headers do not end within {} bytes", kMaxHeaderBytes));
    CANDOR_ASSIGN(FormPart part, read_headers(body.substr(0, head + 2)));
    body.remove_prefix(head + 4);
    const size_t end = body.find(separator);
    if (end == std::string_view::npos) return bad_form("a part does not end with the boundary");
    part.bytes = body.substr(0, end);
    body.remove_prefix(end + separator.size());
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace candor::serve
