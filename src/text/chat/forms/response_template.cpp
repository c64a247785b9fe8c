#include "text/chat/forms/response_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "text/chat/call_json.h"
#include "text/chat/forms/region_content.h"
#include "text/chat/forms/response_pattern.h"
#include "text/chat/forms/tool_form.h"

namespace candor::text {
namespace {

using TemplateJson = nlohmann::ordered_json;

constexpr size_t kMaxTemplateBytes = 256 << 10;
constexpr size_t kMaxMarks = 64;
constexpr size_t kMaxGrammarSteps = 200;

Error unfit(std::string_view place, std::string_view what) {
  std::string message = fmt::format("response_template{}{}: {}", place.empty() ? "" : ".", clipped(place), what);
  std::ranges::replace_if(
      message, [](char byte) { return static_cast<unsigned char>(byte) < 0x20; }, ' ');
  return {ErrorKind::kInvalidInput, std::move(message)};
}

const TemplateJson* template_member(const TemplateJson& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

bool is_true(const TemplateJson& object, const char* key) {
  const TemplateJson* value = template_member(object, key);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

std::string_view string_at(const TemplateJson& object, const char* key, std::string_view otherwise) {
  const TemplateJson* value = template_member(object, key);
  return value != nullptr && value->is_string() ? std::string_view(value->get_ref<const std::string&>()) : otherwise;
}

// "{path}" as path; nothing for other texts.
std::string_view placeholder(const TemplateJson& value) {
  if (!value.is_string()) return {};
  std::string_view text = value.get_ref<const std::string&>();
  const bool is_one = text.size() > 2 && text.front() == '{' && text.back() == '}';
  return is_one ? text.substr(1, text.size() - 2) : std::string_view{};
}

}  // namespace

class ResponseTemplateReader {
 public:
  explicit ResponseTemplateReader(ResponseTemplate& result) : result_(result) {}

  Result<void> read(const TemplateJson& json) {
    const TemplateJson* fields = template_member(json, "fields");
    if (fields == nullptr || !fields->is_object()) return unfit("fields", "is no object");
    if (template_member(*fields, "tool_calls") == nullptr) return unfit("fields", "has no tool_calls");
    CANDOR_ASSIGN(const Texts anchors, literals(json, "start_anchor", ""));
    add_marks(anchors, OutputMode::kText);
    for (const auto& [name, field] : fields->items()) {
      if (!field.is_object()) return unfit("fields." + name, "is no object");
      CANDOR_TRY(name == "tool_calls" ? read_calls(field) : read_text(name, field));
    }
    if (result_.marks_.size() > kMaxMarks) return unfit("fields", fmt::format("has more than {} marks", kMaxMarks));
    if (result_.steps_.size() > kMaxGrammarSteps) return unfit("fields.tool_calls", "has too long a pattern");
    finish();
    return {};
  }

 private:
  using Texts = std::vector<std::string_view>;
  using Kind = GrammarStep::Kind;
  using Items = std::vector<PatternItem>;

  std::string_view keep(std::string_view text) { return result_.texts_.emplace_back(text); }
  uint8_t here() const { return static_cast<uint8_t>(result_.steps_.size()); }
  void add(const GrammarStep& step) { result_.steps_.push_back(step); }

  void add_marks(const Texts& texts, OutputMode next) {
    for (const std::string_view text : texts) result_.marks_.push_back({.text = text, .next = next});
  }

  // The field as a list of texts, none of them empty.
  Result<Texts> literals(const TemplateJson& object, const char* key, const std::string& place) {
    Texts texts;
    const TemplateJson* value = template_member(object, key);
    if (value == nullptr) return texts;
    const TemplateJson list = value->is_array() ? *value : TemplateJson::array({*value});
    for (const TemplateJson& one : list) {
      if (!one.is_string() || one.get_ref<const std::string&>().empty())
        return unfit(place + key, "is neither a text nor a list of texts");
      texts.push_back(keep(one.get_ref<const std::string&>()));
    }
    return texts;
  }

  // `key` or `key`_pattern; `rest` is what a pattern has behind its first literal.
  Result<Texts> delimiters(const TemplateJson& field, const std::string& key, const std::string& place, Items& rest) {
    const TemplateJson* pattern = template_member(field, (key + "_pattern").c_str());
    if (pattern == nullptr) return literals(field, key.c_str(), place);
    if (!pattern->is_string()) return unfit(place + key + "_pattern", "is no text");
    auto items = parse_response_pattern(pattern->get_ref<const std::string&>());
    if (!items) return unfit(place + key + "_pattern", items.error().message);
    // What may stand before an end mark belongs to it, and is harmless as text.
    const auto is_loose = [](const PatternItem& item) {
      return item.kind == PatternItem::Kind::kBlanks || item.kind == PatternItem::Kind::kOptional;
    };
    auto first = items->begin();
    if (key == "close") first = std::find_if_not(items->begin(), items->end(), is_loose);
    if (first == items->end() || first->kind != PatternItem::Kind::kLiteral)
      return unfit(place + key + "_pattern", fmt::format("\"{}\" does not begin with a text of its own",
                                                         clipped(pattern->get_ref<const std::string&>())));
    Texts texts{keep(first->text)};
    rest.assign(first + 1, items->end());
    return texts;
  }

  // Regions of text: reasoning, content, and whatever else there is, which is content.
  Result<void> read_text(const std::string& name, const TemplateJson& field) {
    const std::string place = "fields." + name + ".";
    const bool is_reasoning = name == "thinking" || name == "reasoning" || name == "reasoning_content";
    Items behind_open, behind_close;
    CANDOR_ASSIGN(const Texts opens, delimiters(field, "open", place, behind_open));
    CANDOR_ASSIGN(const Texts closes, delimiters(field, "close", place, behind_close));
    for (const PatternItem& item : behind_open) {
      if (item.kind != PatternItem::Kind::kBlanks && item.kind != PatternItem::Kind::kOptional)
        return unfit(place + "open_pattern", "goes on behind its first text");
    }
    if (is_reasoning && opens.empty()) return unfit(place + "open", "is missing");
    add_marks(opens, is_reasoning ? OutputMode::kReasoning : OutputMode::kText);
    if (is_reasoning) {
      for (const std::string_view close : closes) result_.ends_of_reasoning_.push_back({.text = close});
    } else {
      add_marks(closes, OutputMode::kText);
    }
    return {};
  }

  Result<void> read_calls(const TemplateJson& field) {
    const std::string place = "fields.tool_calls.";
    Items behind_open, behind_close;
    CANDOR_ASSIGN(const Texts opens, delimiters(field, "open", place, behind_open));
    CANDOR_ASSIGN(const Texts closes, delimiters(field, "close", place, behind_close));
    if (opens.empty()) return unfit(place + "open", "is missing");
    if (!behind_close.empty()) return unfit(place + "close_pattern", "goes on behind its first text");
    add_marks(opens, OutputMode::kCall);
    result_.ends_ = closes;
    CANDOR_TRY(read_shape(field));
    CANDOR_TRY(add_items(behind_open, 0, place + "open_pattern"));
    const std::string_view content = string_at(field, "content", "text");
    const TemplateJson* given = template_member(field, "content_args");
    const TemplateJson arguments = given != nullptr ? *given : TemplateJson::object();
    if (content == "json") {
      if (behind_open.empty()) add_writing(opens, closes);
      return add_json(arguments, opens, closes);
    }
    if (content == "xml-inline") return add_tags(arguments, closes);
    if (content == "kv-lines") return add_lines(arguments, closes);
    return unfit(place + "content", fmt::format("is \"{}\", expected json, xml-inline or kv-lines", clipped(content)));
  }

  // Calls that are one JSON object between two marks can be written as well.
  void add_writing(const Texts& opens, const Texts& closes) {
    const CallShape& shape = result_.content_.shape;
    if (shape.call != "content" || shape.is_each) return;
    const std::string_view close = closes.empty() ? std::string_view{} : closes.front();
    result_.tokens_ = {opens.front(), close};
    if (close.empty()) result_.tokens_.pop_back();
    result_.writing_ = {.arguments = CallWriting::Arguments::kJson,
                        .before_name = keep(fmt::format("{}{{\"name\": \"", opens.front())),
                        .before_arguments = "\", \"arguments\": ",
                        .behind_call = keep(fmt::format("}}{}", close)),
                        .between = "\n",
                        .tokens = result_.tokens_};
  }

  Result<void> read_shape(const TemplateJson& field) {
    CallShape& shape = result_.content_.shape;
    shape.is_each = is_true(field, "transform_each");
    const TemplateJson* transform = template_member(field, "transform");
    if (transform == nullptr) return {};
    const TemplateJson* inner = template_member(*transform, "function");
    const TemplateJson& call = inner != nullptr ? *inner : *transform;
    shape.call = placeholder(call);
    if (!shape.call.empty()) return {};
    const TemplateJson* name = template_member(call, "name");
    const TemplateJson* arguments = template_member(call, "arguments");
    if (name == nullptr || !name->is_string() || arguments == nullptr || placeholder(*arguments).empty())
      return unfit("fields.tool_calls.transform", "gives no call a name and arguments");
    shape.name_is_plain = placeholder(*name).empty();
    shape.name = shape.name_is_plain ? name->get<std::string>() : std::string(placeholder(*name));
    shape.arguments = placeholder(*arguments);
    return {};
  }

  static TakePart take_of(const std::string& group) {
    if (group == "name") return take_region_name;
    if (group == "key") return take_key;
    return group == "value" ? take_region_value : nullptr;
  }

  // A text ends at the literal behind it, blanks before that not counted.
  Result<void> add_items(const Items& items, size_t first, const std::string& place) {
    for (size_t i = first; i < items.size(); ++i) {
      const PatternItem& item = items[i];
      const auto next = static_cast<uint8_t>(here() + 1);
      if (item.kind == PatternItem::Kind::kLiteral) {
        add({.kind = Kind::kMark, .text = keep(item.text)});
      } else if (item.kind == PatternItem::Kind::kOptional) {
        add({.kind = Kind::kMark, .text = keep(item.text), .next = next, .otherwise = next});
      } else if (item.kind == PatternItem::Kind::kBlanks) {
        add({.kind = Kind::kBlanks});
      } else if (item.kind == PatternItem::Kind::kRun) {
        add({.kind = Kind::kWord, .text = keep(item.text), .take = take_of(item.name)});
      } else {
        do ++i;
        while (i < items.size() && items[i].kind == PatternItem::Kind::kBlanks);
        if (i == items.size() || items[i].kind != PatternItem::Kind::kLiteral)
          return unfit(place, "has a text of any length without one behind it");
        add({.kind = Kind::kUntil, .text = keep(items[i].text), .take = take_of(item.name)});
      }
      if (result_.steps_.size() > kMaxGrammarSteps) return unfit(place, "is too long");
    }
    return {};
  }

  Result<void> add_json(const TemplateJson& arguments, const Texts& opens, const Texts& closes) {
    RegionContent& content = result_.content_;
    if (const TemplateJson* marks = template_member(arguments, "string_delims");
        marks != nullptr && marks->is_array()) {
      for (const TemplateJson& pair : *marks) {
        const bool is_pair = pair.is_array() && pair.size() == 2 && pair[0].is_string() && pair[1].is_string() &&
                             !pair[0].get_ref<const std::string&>().empty() &&
                             !pair[1].get_ref<const std::string&>().empty();
        if (!is_pair) return unfit("fields.tool_calls.content_args.string_delims", "is no list of pairs of texts");
        content.strings.push_back({.open = keep(pair[0].get_ref<const std::string&>()),
                                   .close = keep(pair[1].get_ref<const std::string&>()),
                                   .has_escapes = false});
      }
    }
    const bool has_bare_keys = is_true(arguments, "unquoted_keys");
    if (has_bare_keys || !content.strings.empty()) {
      content.strings.insert(content.strings.end(), kStrictJson.strings.begin(), kStrictJson.strings.end());
      content.own_notation = {.strings = content.strings, .has_bare_keys = has_bare_keys};
      content.notation = &content.own_notation;
    }
    add({.kind = Kind::kBlanks});
    add({.kind = Kind::kValue, .take = take_region_json, .notation = content.notation});
    if (closes.empty()) return add({.kind = Kind::kEnd}), Result<void>{};
    add({.kind = Kind::kBlanks});
    const size_t n_ways = closes.size() + opens.size();
    const auto end = static_cast<uint8_t>(here() + n_ways + 1);
    for (const std::string_view close : closes) add_way(Kind::kMark, close, end);
    for (const std::string_view open : opens) add_way(Kind::kPeek, open, end);
    add({.kind = Kind::kNothing});
    add({.kind = Kind::kEnd});
    return {};
  }

  void add_way(Kind kind, std::string_view text, uint8_t next) {
    add({.kind = kind, .text = text, .next = next, .otherwise = static_cast<uint8_t>(here() + 1)});
  }

  Result<void> add_tags(const TemplateJson& arguments, const Texts& closes) {
    const std::string place = "fields.tool_calls.content_args.tag_pattern";
    const std::string_view pattern = string_at(arguments, "tag_pattern", "");
    auto items = parse_response_pattern(pattern);
    if (!items) return unfit(place, items.error().message);
    if (items->empty() || items->front().kind != PatternItem::Kind::kLiteral)
      return unfit(place, fmt::format("\"{}\" does not begin with a text of its own", clipped(pattern)));
    if (closes.empty()) return unfit("fields.tool_calls.close", "is missing");
    result_.stops_ = closes;
    result_.stops_.push_back(keep(items->front().text));
    const uint8_t begin = here();
    add({.kind = Kind::kSkip, .follow = result_.stops_});
    const size_t first_way = result_.steps_.size();
    for (const std::string_view close : closes) add_way(Kind::kMark, close, 0);
    CANDOR_TRY(add_items(*items, 0, place));
    result_.steps_.back().next = begin;
    for (size_t i = 0; i < closes.size(); ++i) result_.steps_[first_way + i].next = here();
    add({.kind = Kind::kTake, .take = close_region_tags});
    add({.kind = Kind::kEnd});
    return {};
  }

  Result<void> add_lines(const TemplateJson& arguments, const Texts& closes) {
    RegionContent& content = result_.content_;
    content.line_end = string_at(arguments, "line_sep", content.line_end);
    content.separator = string_at(arguments, "kv_sep", content.separator);
    if (content.line_end.empty() || content.separator.empty())
      return unfit("fields.tool_calls.content_args", "has an empty separator");
    if (closes.size() != 1) return unfit("fields.tool_calls.close", "is not one text");
    add({.kind = Kind::kUntil, .text = closes.front(), .take = take_region_lines});
    add({.kind = Kind::kEnd});
    return {};
  }

  // Of marks that begin alike the shorter one counts, however the text is cut.
  void finish() {
    const auto size_of = [](const FormMark& mark) { return mark.text.size(); };
    std::ranges::stable_sort(result_.marks_, {}, size_of);
    std::ranges::stable_sort(result_.ends_of_reasoning_, {}, size_of);
    std::ranges::stable_sort(result_.ends_, {}, [](std::string_view end) { return end.size(); });
    result_.row_ = {.form = ToolForm::kOwn,
                    .name = to_string(ToolForm::kOwn),
                    .signs = {},
                    .grammar = result_.steps_,
                    .marks = result_.marks_,
                    .ends = result_.ends_,
                    .ends_of_reasoning = result_.ends_of_reasoning_,
                    .region = &result_.content_,
                    .writing = result_.writing_,
                    .has_channels = true};
  }

  ResponseTemplate& result_;
};

Result<std::shared_ptr<const ResponseTemplate>> ResponseTemplate::parse(std::string_view json) {
  if (json.size() > kMaxTemplateBytes)
    return unfit("", fmt::format("has {} bytes, expected at most {}", json.size(), kMaxTemplateBytes));
  const auto tree = read_call_json(json);
  if (!tree) return unfit("", "is not valid JSON");
  auto result = std::make_shared<ResponseTemplate>();
  if (const auto read = ResponseTemplateReader(*result).read(*tree); !read) return read.error();
  return std::shared_ptr<const ResponseTemplate>(std::move(result));
}

}  // namespace candor::text
