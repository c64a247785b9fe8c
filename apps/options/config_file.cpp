#include "apps/options/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <istream>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/options/arguments.h"
#include "base/utf8.h"

namespace candor::apps {
namespace {

constexpr size_t kMaxFileBytes = 1u << 20;
constexpr size_t kMostPath = 300;

bool is_name_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
}

bool is_number(const std::string& text) {
  double value = 0;
  const char* const begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, status] = std::from_chars(begin, text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size();
}

// The lines of one file, read from the front.
class TomlReader {
 public:
  explicit TomlReader(std::string text) : text_(std::move(text)) {}

  // The next NAME = VALUE; false at the end.
  bool next(CLI::ConfigItem& item) {
    skip_lines();
    if (at_ == text_.size()) return false;
    item = {};
    n_item_line_ = n_line_;
    if (peek() == '[') refuse("tables are not used here: NAME = VALUE alone");
    while (is_name_char(peek())) item.name += text_[at_++];
    if (item.name.empty()) refuse("expected NAME = VALUE");
    skip_spaces();
    if (peek() != '=') refuse(fmt::format("\"{}\" is not followed by '='", clipped(item.name)));
    ++at_;
    skip_spaces();
    if (peek() == '[') {
      read_array(item);
    } else {
      item.inputs.push_back(read_value());
    }
    skip_spaces();
    if (peek() == '#') skip_comment();
    if (at_ < text_.size() && peek() != '\n') refuse(fmt::format("\"{}\" has more than one value", clipped(item.name)));
    return true;
  }
  int line() const { return n_item_line_; }
  [[noreturn]] void refuse(const std::string& words) const {
    throw CLI::ConfigError(fmt::format("--config, line {}: {}", n_line_, words));
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_spaces() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\r') ++at_;
  }
  void skip_comment() {
    while (at_ < text_.size() && peek() != '\n') ++at_;
  }
  void skip_lines() {
    for (skip_spaces(); peek() == '\n' || peek() == '#'; skip_spaces()) {
      if (peek() == '#') {
        skip_comment();
      } else {
        ++at_;
        ++n_line_;
      }
    }
  }
  void read_array(CLI::ConfigItem& item) {
    ++at_;
    for (skip_lines(); peek() != ']'; skip_lines()) {
      item.inputs.push_back(read_value());
      skip_lines();
      if (peek() == ',') {
        ++at_;
      } else if (peek() != ']') {
        refuse(fmt::format("the values of \"{}\" do not end with ']'", clipped(item.name)));
      }
    }
    ++at_;
  }
  std::string read_value() {
    if (peek() == '"' || peek() == '\'') return read_string();
    std::string word;
    while (is_name_char(peek()) || peek() == '.' || peek() == '+') word += text_[at_++];
    if (word != "true" && word != "false" && !is_number(word)) {
      refuse("expected a number, true, false, a string in quotes, or an array of them");
    }
    return word;
  }
  std::string read_string() {
    const char quote = text_[at_++];
    std::string value;
    while (peek() != quote) {
      if (at_ == text_.size() || peek() == '\n') refuse("a string does not end on its line");
      const bool is_escape = quote == '"' && peek() == '\\';
      value += is_escape ? read_escape() : text_[at_++];
    }
    ++at_;
    return value;
  }
  char read_escape() {
    constexpr std::string_view kNames = "\"\\bfnrt";
    constexpr std::string_view kValues = "\"\\\b\f\n\r\t";
    ++at_;
    const size_t which = kNames.find(peek());
    if (at_ == text_.size() || which == std::string_view::npos)
      refuse("a string holds a backslash that no escape begins with; '...' takes them as they are");
    ++at_;
    return kValues[which];
  }

  const std::string text_;
  size_t at_ = 0;
  int n_line_ = 1;
  int n_item_line_ = 1;
};

// All of it, if it can be a text at all.
std::string read_text(std::istream& input) {
  std::string text(kMaxFileBytes + 1, '\0');
  input.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(input.gcount()));
  if (text.size() > kMaxFileBytes) throw CLI::ConfigError("--config: the file is larger than 1 MiB");
  const auto is_control = [](char c) {
    return (c >= 0 && c < ' ' && c != '\n' && c != '\r' && c != '\t') || c == 0x7f;
  };
  if (first_invalid_utf8(text) != text.size() || std::ranges::any_of(text, is_control)) {
    throw CLI::ConfigError("--config: the file is not text, expected lines of NAME = VALUE");
  }
  return text;
}

}  // namespace

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  TomlReader reader(read_text(input));
  std::vector<CLI::ConfigItem> read;
  CLI::ConfigItem item;
  while (reader.next(item)) {
    const CLI::Option* option = command_.get_option_no_throw("--" + item.name);
    if (option == nullptr || !option->get_configurable()) {
      const std::string guess = nearest_option(command_, "--" + item.name);
      reader.refuse(fmt::format("\"{}\" is no option of candor {}{}", clipped(item.name), command_.get_name(),
                                guess.empty() ? "" : fmt::format(" (did you mean {}?)", guess.substr(2))));
    }
    if (!lines_.emplace("--" + item.name, reader.line()).second)
      reader.refuse(fmt::format("\"{}\" is set twice", item.name));
    const bool is_flag = option->get_expected_min() == 0;
    const bool is_bool = item.inputs.size() == 1 && (item.inputs[0] == "true" || item.inputs[0] == "false");
    if (is_flag && !is_bool) reader.refuse(fmt::format("\"{}\" is neither true nor false", item.name));
    if (!is_flag && item.inputs.empty()) continue;
    if (!is_flag && item.inputs.size() > 1 && option->get_items_expected_max() == 1)
      reader.refuse(fmt::format("\"{}\" has {} values, expected one", item.name, item.inputs.size()));
    read.push_back(item);
  }
  return read;
}

void ConfigFile::apply(const std::string& path) const {
  std::error_code ignored;
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path, ignored)) {
    throw CLI::ConfigError(fmt::format("--config: {} cannot be read as a file", clipped(path, kMostPath)));
  }
  for (const CLI::ConfigItem& item : from_config(file)) {
    CLI::Option* option = command_.get_option("--" + item.name);
    if (!option->empty()) continue;
    option->add_result(item.inputs);
    option->run_callback();
  }
}

std::string ConfigFile::place_of(const std::string& message) const {
  for (const auto& [name, line] : lines_) {
    const size_t at = message.find(name);
    const bool is_whole = at != std::string::npos &&
                          (at + name.size() == message.size() || !is_name_char(message[at + name.size()]));
    if (is_whole) return fmt::format(" (line {} of the --config file)", line);
  }
  return {};
}

}  // namespace candor::apps
