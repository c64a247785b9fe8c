#include "text/chat/forms/lark_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "text/chat/forms/call_grammar.h"

namespace candor::text {
namespace {

// The longest control token that the text begins with.
const ControlToken* control_at(std::string_view text, std::span<const ControlToken> controls) {
  const ControlToken* found = nullptr;
  for (const ControlToken& one : controls) {
    if (text.starts_with(one.text) && (found == nullptr || found->text.size() < one.text.size())) found = &one;
  }
  return found;
}

}  // namespace

std::string lark_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string lark_regex(std::string_view text) {
  constexpr std::string_view kSpecial = R"(\.+*?()|[]{}^$#&-~/)";
  std::string result;
  for (const char byte : text) {
    if (byte == '\n') {
      result += "\\n";
      continue;
    }
    if (kSpecial.find(byte) != std::string_view::npos) result += '\\';
    result += byte;
  }
  return result;
}

std::string lark_atoms(std::string_view text, std::span<const ControlToken> controls) {
  std::string result, plain;
  const auto end_plain = [&] {
    if (plain.empty()) return;
    if (!result.empty()) result += ' ';
    result += lark_string(plain);
    plain.clear();
  };
  while (!text.empty()) {
    const ControlToken* control = control_at(text, controls);
    if (control == nullptr) {
      plain += text.front();
      text.remove_prefix(1);
      continue;
    }
    end_plain();
    result += fmt::format("{}<[{}]>", result.empty() ? "" : " ", control->id);
    text.remove_prefix(control->text.size());
  }
  end_plain();
  return result.empty() ? "\"\"" : result;
}

}  // namespace candor::text
