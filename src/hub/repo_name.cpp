#include "hub/repo_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/quote.h"

namespace candor::hub {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return result;
}

}  // namespace

bool is_plain_name(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
}

bool is_repo_part(std::string_view text) {
  constexpr size_t kMaxBytes = 96;
  const auto is_end = [](char c) { return c != '-' && c != '.'; };
  return is_plain_name(text) && text.size() <= kMaxBytes && is_end(text.front()) && is_end(text.back()) &&
         text.find("--") == std::string_view::npos && text.find("..") == std::string_view::npos;
}

bool is_hex(std::string_view text, size_t size) {
  return text.size() == size &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool names_quant(const std::string& file, const std::string& quant) {
  const std::string text = lower(file);
  const std::string wanted = lower(quant);
  const auto is_part = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) {
    const bool begins = at == 0 || !is_part(text[at - 1]);
    const bool ends = at + wanted.size() == text.size() || !is_part(text[at + wanted.size()]);
    if (begins && ends) return true;
  }
  return false;
}

std::string full_name(const RepoName& name) {
  return fmt::format("{}/{}", name.user, name.repo);
}

Result<RepoName> parse_repo_name(std::string_view text) {
  RepoName name;
  const size_t slash = text.find('/');
  const size_t colon = text.find(':');
  if (slash != std::string_view::npos) {
    name.user = text.substr(0, slash);
    name.repo = text.substr(slash + 1, colon == std::string_view::npos ? colon : colon - slash - 1);
    if (colon != std::string_view::npos) name.quant = text.substr(colon + 1);
  }
  const bool has_quant = colon != std::string_view::npos;
  if (is_repo_part(name.user) && is_repo_part(name.repo) && (!has_quant || is_plain_name(name.quant))) return name;
  return fail(ErrorKind::kInvalidInput,
              fmt::format("{} names no model of a hub; expected user/repo or user/repo:quant, without \"--\" "
                          "or \"..\" in a name",
                          formats::in_quotes(text)));
}

}  // namespace candor::hub
