#include "text/tokenizer/normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/utf8.h"
#include "text/tokenizer/bert_ranges.h"
#include "text/tokenizer/char_class.h"
#include "text/tokenizer/code_point_ranges.h"
#include "text/tokenizer/normal_form.h"
#include "text/tokenizer/vocabulary.h"

namespace candor::text {
namespace {

constexpr std::string_view kKey = "tokenizer.candor.normalizer";

using Arguments = Normalizer::Arguments;

template <NormalForm form>
std::string normal_form(std::string_view text, const Arguments&) {
  return to_normal_form(text, form);
}

// map(code point, out): appends what stands for it.
template <class Map>
std::string map_characters(std::string_view text, const Map& map) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    map(point.value, out);
    at += point.length;
  }
  return out;
}

std::string lowercase(std::string_view text, const Arguments&) {
  constexpr uint32_t kDottedI = 0x130;  // the one letter whose small form is two characters
  return map_characters(text, [](uint32_t c, std::string& out) {
    if (c == kDottedI) {
      out += "i\u0307";
    } else {
      append_utf8(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
  });
}

bool is_dropped_by_nmt(uint32_t c) {
  return (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
}
bool is_space_to_nmt(uint32_t c) {
  constexpr uint32_t kSpaces[] = {0x9, 0xA, 0xC, 0xD, 0x1680, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD};
  return (c >= 0x200B && c <= 0x200F) || std::ranges::find(kSpaces, c) != std::end(kSpaces);
}
std::string nmt(std::string_view text, const Arguments&) {
  return map_characters(text, [](uint32_t c, std::string& out) {
    if (!is_dropped_by_nmt(c)) append_utf8(out, is_space_to_nmt(c) ? ' ' : c);
  });
}

std::string strip(std::string_view text, const Arguments& arguments) {
  const std::string_view side = arguments.first;
  if (arguments.second == "spaces") {
    const size_t begin = std::min(text.find_first_not_of(' '), text.size());
    return std::string(text.substr(begin, text.find_last_not_of(' ') + 1 - begin));
  }
  if (side != "right") text.remove_prefix(white_space_prefix(text));
  if (side != "left") text.remove_suffix(white_space_suffix(text));
  return std::string(text);
}

std::string prepend(std::string_view text, const Arguments& arguments) {
  std::string out(text.empty() ? std::string_view() : arguments.first);
  return out += text;
}

std::string space_first(std::string_view text, const Arguments&) {
  return std::string(text.empty() || text.starts_with(' ') ? "" : " ").append(text);
}

std::string replace(std::string_view text, const Arguments& arguments) {
  std::string out;
  while (out.size() <= arguments.max_bytes) {
    const size_t at = text.find(arguments.first);
    out += text.substr(0, at);
    if (at == std::string_view::npos) break;
    out += arguments.second;
    text.remove_prefix(at + arguments.first.size());
  }
  return out;
}

std::string squeeze(std::string_view text, const Arguments& arguments) {
  std::string out;
  for (size_t at = 0; at < text.size() && out.size() <= arguments.max_bytes;) {
    const size_t end = std::min(text.find_first_not_of(' ', at), text.size());
    if (end >= at + 2) {
      out += arguments.first;
      at = end;
    } else {
      out += text[at++];
    }
  }
  return out;
}

std::string clean(std::string_view text, const Arguments&) {
  return map_characters(text, [](uint32_t c, std::string& out) {
    const bool is_line_space = c == '\t' || c == '\n' || c == '\r';
    const bool is_ascii_control = c < 0x20 || c == 0x7F;
    if (!is_line_space && (is_ascii_control || contains(kBertControls, c))) return;
    std::string own;
    append_utf8(own, c);
    out += is_line_space || white_space_prefix(own) > 0 ? " " : own;
  });
}

std::string part_ideographs(std::string_view text, const Arguments&) {
  constexpr uint32_t kRanges[][2] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                                     {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  return map_characters(text, [&](uint32_t c, std::string& out) {
    const bool is_ideograph =
        std::ranges::any_of(kRanges, [c](const auto& range) { return c >= range[0] && c <= range[1]; });
    if (is_ideograph) out += ' ';
    append_utf8(out, c);
    if (is_ideograph) out += ' ';
  });
}

std::string drop_accents(std::string_view text, const Arguments&) {
  return map_characters(text, [](uint32_t c, std::string& out) {
    if (!contains(kBertAccents, c)) append_utf8(out, c);
  });
}

struct NamedStep {
  std::string_view name;
  std::string (*function)(std::string_view, const Arguments&);
};
constexpr NamedStep kSteps[] = {
    {"nfc", &normal_form<NormalForm::kNfc>},
    {"nfd", &normal_form<NormalForm::kNfd>},
    {"nfkc", &normal_form<NormalForm::kNfkc>},
    {"nfkd", &normal_form<NormalForm::kNfkd>},
    {"lowercase", &lowercase},
    {"nmt", &nmt},
    {"strip", &strip},
    {"prepend", &prepend},
    {"space_first", &space_first},
    {"replace", &replace},
    {"squeeze", &squeeze},
    {"clean", &clean},
    {"part_ideographs", &part_ideographs},
    {"drop_accents", &drop_accents},
};

}  // namespace

Result<Normalizer> Normalizer::from_model_file(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const auto* strings, formats::meta_strings(file, kKey));
  Normalizer normalizer;
  if (strings == nullptr) return normalizer;
  if (strings->size() % 3 != 0) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: {} strings, expected three a step; convert the model again", kKey, strings->size()));
  }
  if (strings->size() > 3 * kMaxSteps) {
    return fail(ErrorKind::kUnsupported, fmt::format("{}: {} steps, at most {}", kKey, strings->size() / 3, kMaxSteps));
  }
  for (size_t i = 0; i < strings->size(); i += 3) {
    const std::string_view name = (*strings)[i];
    Step step{nullptr, std::string((*strings)[i + 1]), std::string((*strings)[i + 2]), std::nullopt};
    const auto* known = std::ranges::find(kSteps, name, &NamedStep::name);
    if (known != std::end(kSteps)) step.function = known->function;
    if (name == "charsmap") step.charsmap = Charsmap::from_base64(step.first);
    const bool is_long = !step.charsmap && std::max(step.first.size(), step.second.size()) > kMaxArgumentBytes;
    const bool is_bad = (step.function == nullptr && !step.charsmap) || (name == "replace" && step.first.empty());
    if (is_bad || is_long) {
      return fail(ErrorKind::kUnsupported, fmt::format("{}[{}]: step {} is not known, or its arguments are no good",
                                                       kKey, i, quoted_piece(name)));
    }
    normalizer.steps_.push_back(std::move(step));
  }
  return normalizer;
}

Result<Normalizer> Normalizer::of_bert(const formats::ModelFile& file) {
  if (file.meta(kKey) != nullptr) return from_model_file(file);
  CANDOR_ASSIGN(const auto lowers, formats::meta_bool(file, "tokenizer.ggml.normalizer.lowercase"));
  CANDOR_ASSIGN(const auto strips, formats::meta_bool(file, "tokenizer.ggml.normalizer.strip_accents"));
  Normalizer normalizer;
  const auto add = [&](Function function) { normalizer.steps_.push_back({function, {}, {}, std::nullopt}); };
  add(&clean);
  add(&part_ideographs);
  if (strips.value_or(lowers.value_or(true))) {
    add(&normal_form<NormalForm::kNfd>);
    add(&drop_accents);
  }
  if (lowers.value_or(true)) add(&lowercase);
  return normalizer;
}

Result<std::string> Normalizer::apply(std::string_view text, size_t& budget) const {
  std::string result(text);
  const bool is_utf8 = first_invalid_utf8(text) == text.size();
  for (const Step& step : steps_) {
    if (!is_utf8 || result.size() > budget) break;
    if (!step.charsmap) {
      result = step.function(result, {step.first, step.second, budget});
    } else {
      const bool is_longest = step.second == "longest";
      result = is_longest ? step.charsmap->apply_longest(result, budget) : step.charsmap->apply(result, budget);
    }
  }
  if (result.size() > budget) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: the model's normaliser makes the text more than {} times as long; the model file is "
                            "at fault",
                            kKey, kMaxGrowth));
  }
  budget -= result.size();
  return result;
}

}  // namespace candor::text
