#include "text/chat/forms/call_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat/call_json.h"
#include "text/chat/forms/call_writing.h"
#include "text/chat/forms/lark_text.h"
#include "text/chat/forms/schema_shape.h"
#include "text/chat/forms/tool_form.h"

namespace candor::text {
namespace {

using GrammarJson = nlohmann::ordered_json;
using ArgumentForm = CallWriting::Arguments;

// Intersections that one grammar may have.
constexpr size_t kMostBoundedTexts = 6;

struct ToolSchema {
  std::string name;
  GrammarJson parameters;
};

const GrammarJson* member_of(const GrammarJson& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

bool is_word(std::string_view name, std::string_view also) {
  return !name.empty() && std::ranges::all_of(name, [&](char byte) {
    const char low = static_cast<char>(byte | 0x20);
    return (byte >= '0' && byte <= '9') || (low >= 'a' && low <= 'z') || also.find(byte) != std::string_view::npos;
  });
}

class CallGrammarWriter {
 public:
  CallGrammarWriter(const FormRow& row, const CallWish& wish, std::span<const ControlToken> controls)
      : row_(row), writing_(row.writing), wish_(wish), controls_(controls) {}

  Result<std::string> write() {
    CANDOR_TRY(read_tools());
    std::string calls, opened_calls;
    for (size_t i = 0; i < tools_.size(); ++i) {
      const std::string rule = fmt::format("call_{}", i);
      CANDOR_TRY(add_tool(tools_[i], rule));
      calls += fmt::format("{}{}", i == 0 ? "" : " | ", rule);
      opened_calls += fmt::format("{}{}", i == 0 ? "opened_" : " | opened_", rule);
    }
    add_rule("call", calls);
    if (wish_.may_be_text && writing_.begin.empty()) add_rule("opened_call", opened_calls);
    const bool may_repeat = wish_.may_repeat && writing_.may_repeat;
    const std::string more = may_repeat ? fmt::format(" ({} call)*", atoms(writing_.between)) : "";
    if (!wish_.may_be_text) {
      add_rule("start", fmt::format("{} call{} {}", atoms(writing_.begin), more, atoms(writing_.end)));
    } else {
      CANDOR_TRY(add_free_start(more));
    }
    if (n_bounded_ > kMostBoundedTexts) return unfit("more texts are of a bounded length than a grammar may have");
    return std::move(rules_);
  }

 private:
  static Error unfit(std::string message) { return {ErrorKind::kUnsupported, std::move(message)}; }

  std::string atoms(std::string_view text) const { return lark_atoms(text, controls_); }
  void add_rule(std::string_view name, std::string_view body) { rules_ += fmt::format("{}: {}\n", name, body); }
  std::string new_name(std::string_view stem) { return fmt::format("{}_{}", stem, n_names_++); }

  Result<void> read_tools() {
    const auto tools = read_call_json(wish_.tools_json);
    if (!tools || !tools->is_array()) return unfit("the tools are nested too deep");
    for (const GrammarJson& tool : *tools) {
      const GrammarJson* function = member_of(tool, "function");
      const GrammarJson* name = function != nullptr ? member_of(*function, "name") : nullptr;
      if (name == nullptr || !name->is_string()) return unfit("a tool has no name");
      if (wish_.name && *name != *wish_.name) continue;
      const GrammarJson* parameters = member_of(*function, "parameters");
      const GrammarJson none = {{"type", "object"}, {"additionalProperties", false}};
      tools_.push_back({.name = name->get<std::string>(), .parameters = parameters != nullptr ? *parameters : none});
    }
    return tools_.empty() ? Result<void>(unfit("no tool has the name")) : Result<void>{};
  }

  Result<void> add_tool(const ToolSchema& tool, const std::string& rule) {
    if (!is_word(tool.name, "_-."))
      return unfit(fmt::format("the name of tool {} has more than letters and digits", tool.name));
    const std::string where = tool.name + ".parameters";
    if (std::string fault = fault_of_schema(tool.parameters, where); !fault.empty()) return unfit(std::move(fault));
    std::string arguments;
    if (writing_.arguments == ArgumentForm::kJson) {
      arguments = "%json " + as_object(tool.parameters).dump();
    } else {
      CANDOR_ASSIGN(arguments, add_object(tool.parameters, where));
    }
    // A rule of its own each: neighbouring literals may be one lexeme, a schema never is.
    const std::string name = new_name("args");
    add_rule(name, arguments.empty() ? "\"\"" : arguments);
    const std::string opening = fmt::format("{}{}{}", writing_.before_name, tool.name, writing_.before_arguments);
    const auto call = [&](std::string_view before) {
      return fmt::format("{} {} {}", atoms(before), name, atoms(writing_.behind_call));
    };
    add_rule(rule, call(opening));
    if (wish_.may_be_text && writing_.begin.empty()) {
      add_rule("opened_" + rule, call(std::string_view(opening).substr(first_mark().size())));
    }
    return {};
  }

  static GrammarJson as_object(GrammarJson schema) {
    if (!schema.contains("type")) schema["type"] = "object";
    return schema;
  }

  // The arguments one by one, in the schema's order.
  Result<std::string> add_object(const GrammarJson& schema, const std::string& where) {
    for (const char* word : {"anyOf", "enum", "const", "$ref"}) {
      if (schema.contains(word)) return unfit(fmt::format("{}.{} is about all arguments at once", where, word));
    }
    const GrammarJson* properties = member_of(schema, "properties");
    const GrammarJson none = GrammarJson::object();
    const GrammarJson& named = properties != nullptr ? *properties : none;
    const GrammarJson* required = member_of(schema, "required");
    const GrammarJson* more = member_of(schema, "additionalProperties");
    if (named.empty() && more != nullptr && *more != false) return unfit(where + " lists no properties");
    if (required != nullptr) {
      for (const GrammarJson& name : *required) {
        if (!named.contains(name.get_ref<const std::string&>())) return unfit(where + ".required names no property");
      }
    }
    std::vector<Field> fields;
    for (const auto& [key, value] : named.items()) {
      CANDOR_ASSIGN(std::string body, field(key, value, fmt::format("{}.{}", where, key)));
      const auto is_key = [&wanted = key](const GrammarJson& name) { return name == wanted; };
      const bool is_required = required != nullptr && std::ranges::any_of(*required, is_key);
      const std::string name = new_name("field");
      add_rule(name, body);
      fields.push_back({.rule = name, .is_required = is_required});
    }
    return writing_.arguments == ArgumentForm::kText ? plain_fields(fields) : separated_fields(fields);
  }

  struct Field {
    std::string rule;
    bool is_required = false;
  };

  static std::string plain_fields(const std::vector<Field>& fields) {
    std::string body;
    for (const Field& one : fields) body += fmt::format("{}{}", one.rule, one.is_required ? " " : "? ");
    return body;
  }

  // With a separator between those that are there.
  std::string separated_fields(const std::vector<Field>& fields) {
    const bool is_python = writing_.arguments == ArgumentForm::kPython;
    const std::string separator = is_python ? "\", \"" : "\",\"";
    std::string first = "\"\"", rest = "\"\"";
    for (auto one = fields.rbegin(); one != fields.rend(); ++one) {
      const std::string first_name = new_name("first");
      const std::string rest_name = new_name("rest");
      const std::string taken = fmt::format("{} {}", one->rule, rest);
      add_rule(first_name, one->is_required ? taken : fmt::format("{} | {}", taken, first));
      add_rule(rest_name, one->is_required ? fmt::format("{} {}", separator, taken)
                                           : fmt::format("{} {} | {}", separator, taken, rest));
      first = first_name;
      rest = rest_name;
    }
    return is_python ? first : fmt::format("\"{{\" {} \"}}\"", first);
  }

  Result<std::string> field(const std::string& key, const GrammarJson& schema, const std::string& where) {
    if (!is_word(key, writing_.arguments == ArgumentForm::kText ? "_-." : "_"))
      return unfit(where + " has more than letters and digits in its name");
    if (writing_.arguments == ArgumentForm::kGemma)
      return fmt::format("{} {}", lark_string(key + ":"), gemma_value(schema));
    if (writing_.arguments == ArgumentForm::kPython)
      return fmt::format("{} {}", lark_string(key + "="), python_value(schema));
    const std::string opening = atoms(std::string(writing_.before_key) + key + std::string(writing_.before_value));
    const std::string closing = atoms(std::string(writing_.value_tail) + std::string(writing_.value_end) +
                                      std::string(writing_.behind_value));
    switch (text_shape_of(schema)) {
      case TextShape::kText:
        return fmt::format("{} {} {}", opening, plain_text(schema), atoms(writing_.behind_value));
      case TextShape::kListed: {
        CANDOR_ASSIGN(const std::string ways, listed_texts(schema, where));
        return fmt::format("{} ({}) {}", opening, ways, closing);
      }
      case TextShape::kValue:
        return fmt::format("{} {} {}", opening, json_value(schema), closing);
      case TextShape::kOther:
        break;
    }
    return unfit(where + " is held to more than plain text can be");
  }

  std::string json_value(const GrammarJson& schema) {
    const std::string name = new_name("value");
    add_rule(name, "%json " + schema.dump());
    return name;
  }

  // A text with its end mark.
  std::string plain_text(const GrammarJson& schema) {
    const GrammarJson* least = member_of(schema, "minLength");
    const GrammarJson* most = member_of(schema, "maxLength");
    const bool is_bounded = least != nullptr || most != nullptr;
    if (!is_bounded && !plain_text_.empty()) return plain_text_;
    n_bounded_ += 1;
    const std::string counts = is_bounded ? fmt::format("{{{},{}}}", least != nullptr ? least->dump() : "0",
                                                        most != nullptr ? most->dump() : "")
                                          : "*";
    const std::string name = text_until(counts, writing_.value_tail, writing_.value_end);
    if (!is_bounded) plain_text_ = name;
    return name;
  }

  // Any text, `counts` of it, its tail and the mark, which stands at the end only.
  std::string text_until(std::string_view counts, std::string_view tail, std::string_view mark) {
    std::string name = new_name("text");
    std::string terminal = name;
    std::ranges::transform(terminal, terminal.begin(),
                           [](char byte) { return byte >= 'a' && byte <= 'z' ? static_cast<char>(byte - 32) : byte; });
    const std::string end = lark_regex(mark);
    if (is_control(mark)) {
      rules_ += fmt::format("{}: /(?s:.){}{}/ & ~/(?s:.*){}(?s:.*)/\n", terminal, counts, lark_regex(tail), end);
      add_rule(name, fmt::format("{}{} {}", terminal, tail.empty() ? "?" : "", atoms(mark)));
    } else {
      rules_ += fmt::format("{}: /(?s:.){}{}{}/ & ~/(?s:.*){}(?s:.+)/\n", terminal, counts, lark_regex(tail), end, end);
      add_rule(name, terminal);
    }
    return name;
  }

  bool is_control(std::string_view mark) const {
    return std::ranges::any_of(controls_, [&](const ControlToken& one) { return one.text == mark; });
  }

  Result<std::string> listed_texts(const GrammarJson& schema, const std::string& where) const {
    const GrammarJson list = schema.contains("enum") ? schema["enum"] : GrammarJson::array({schema["const"]});
    std::string ways;
    for (const GrammarJson& one : list) {
      const auto& text = one.get_ref<const std::string&>();
      if (text.find(writing_.value_end) != std::string::npos)
        return unfit(where + " lists a text that has the form's mark");
      if (text.starts_with('\n') || text.ends_with('\n'))
        return unfit(where + " lists a text that ends in a line break");
      ways += fmt::format("{}{}", ways.empty() ? "" : " | ", lark_string(text));
    }
    return ways;
  }

  std::string gemma_value(const GrammarJson& schema) {
    constexpr std::string_view kQuote = "<|\"|>";
    const TextShape shape = text_shape_of(schema);
    if (shape == TextShape::kText && !schema.contains("minLength") && !schema.contains("maxLength")) {
      if (plain_text_.empty()) plain_text_ = text_until("*", "", kQuote);
      return fmt::format("{} {}", atoms(kQuote), plain_text_);
    }
    if (shape != TextShape::kListed) return json_value(schema);
    const GrammarJson list = schema.contains("enum") ? schema["enum"] : GrammarJson::array({schema["const"]});
    std::string ways;
    for (const GrammarJson& one : list) {
      const auto& text = one.get_ref<const std::string&>();
      if (text.find(kQuote) != std::string::npos) return json_value(schema);
      ways += fmt::format("{}{}", ways.empty() ? "" : " | ", lark_string(text));
    }
    return fmt::format("{} ({}) {}", atoms(kQuote), ways, atoms(kQuote));
  }

  std::string python_value(const GrammarJson& schema) {
    const GrammarJson* type = member_of(schema, "type");
    const bool is_plain = schema.is_object() && !schema.contains("enum") && !schema.contains("const");
    if (type != nullptr && is_plain && *type == "boolean") return R"(("True" | "False"))";
    if (type != nullptr && is_plain && *type == "null") return R"("None")";
    return json_value(schema);
  }

  // The mark of the form that calls begin with; "" where they need none.
  std::string_view first_mark() const {
    const std::string_view opening = writing_.begin.empty() ? writing_.before_name : writing_.begin;
    std::string_view found;
    for (const FormMark& mark : row_.marks) {
      const bool is_longer = opening.starts_with(mark.text) && mark.text.size() > found.size();
      if (is_longer && (mark.next == OutputMode::kCall || !writing_.begin.empty())) found = mark.text;
    }
    return found;
  }

  bool is_opening(std::string_view token) const {
    return token == first_mark() || std::ranges::any_of(row_.marks, [&](const FormMark& mark) {
             return mark.text == token && mark.next == OutputMode::kCall;
           });
  }

  // Texts with control tokens behind each; two texts never follow each other, or a mark could be written in two parts.
  std::string marked_texts() const {
    std::string others;
    for (const ControlToken& one : controls_) {
      if (!is_opening(one.text)) others += fmt::format("{}<[{}]>", others.empty() ? "" : " | ", one.id);
    }
    return others.empty() ? others : fmt::format("(PLAIN? ({}))* ", others);
  }

  // Text, and from the first mark of a call on a call. A mark that is written as text ends the text that it stands in.
  Result<void> add_free_start(const std::string& more) {
    if (row_.form == ToolForm::kGptOss) return unfit("its text and its calls begin alike");
    const std::string_view mark = first_mark();
    std::string marks = lark_regex(mark);
    for (const FormMark& one : row_.marks) {
      if (one.next == OutputMode::kCall && one.text != mark)
        marks += fmt::format("{}{}", marks.empty() ? "" : "|", lark_regex(one.text));
    }
    const std::string seen = fmt::format("(?s:.*)({})", marks);
    const std::string whole = fmt::format("{} call{} {}", atoms(writing_.begin), more, atoms(writing_.end));
    if (row_.opens_bare) {
      rules_ += fmt::format("PLAIN: /[ \\t\\r\\n]*[^ \\t\\r\\n{{](?s:.*)/ & ~/{}(?s:.*)/\n", seen);
      add_rule("start", "PLAIN | " + whole);
      return {};
    }
    if (mark.empty()) return unfit("its calls begin with no mark");
    rules_ += fmt::format("PLAIN: /(?s:.+)/ & ~/{}(?s:.*)/\n", seen);
    const std::string texts = marked_texts();
    if (is_control(mark)) {
      add_rule("start", fmt::format("{}PLAIN? ({})?", texts, whole));
      return {};
    }
    rules_ += fmt::format("LEAD: /(?s:.*){}/ & ~/{}(?s:.+)/\n", lark_regex(mark), seen);
    const std::string opened =
        writing_.begin.empty() ? "opened_call" : atoms(writing_.begin.substr(mark.size())) + " call";
    add_rule("start", fmt::format("{}(PLAIN? | LEAD {}{} {})", texts, opened, more, atoms(writing_.end)));
    return {};
  }

  const FormRow& row_;
  const CallWriting& writing_;
  const CallWish& wish_;
  const std::span<const ControlToken> controls_;
  std::vector<ToolSchema> tools_;
  std::string rules_;
  std::string plain_text_;  // the rule of a text without bounds
  size_t n_names_ = 0;
  size_t n_bounded_ = 0;
};

}  // namespace

Result<std::string> call_grammar(const FormRow& row, const CallWish& wish, std::span<const ControlToken> controls) {
  if (row.writing.arguments == ArgumentForm::kNone)
    return Error{ErrorKind::kUnsupported, "no way to write calls in it is known"};
  return CallGrammarWriter(row, wish, controls).write();
}

}  // namespace candor::text
