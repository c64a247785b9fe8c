#include "text/tokenizer/normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/utf8.h"
#include "text/tokenizer/char_class.h"
#include "text/tokenizer/code_point_ranges.h"
#include "text/tokenizer/vocabulary.h"

namespace candor::text {
namespace {

constexpr std::string_view kKey = "tokenizer.candor.normalizer";

std::string map_segment(std::string_view text, int form) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t n_bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &mapped, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | form));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  if (n_bytes < 0) return std::string(text);
  return {reinterpret_cast<const char*>(mapped), static_cast<size_t>(n_bytes)};
}

// By the tables of Unicode 9, which tokenizers are trained with: later characters stay as they are, and part the text.
template <int form>
std::string normal_form(std::string_view text, std::string_view, std::string_view) {
  std::string out;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    const size_t end = at + point.length;
    if (contains(kNormalizedLaterRanges, point.value)) {
      out += map_segment(text.substr(begin, at - begin), form);
      out += text.substr(at, end - at);
      begin = end;
    }
    at = end;
  }
  return out += map_segment(text.substr(begin), form);
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

std::string lowercase(std::string_view text, std::string_view, std::string_view) {
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
std::string nmt(std::string_view text, std::string_view, std::string_view) {
  return map_characters(text, [](uint32_t c, std::string& out) {
    if (!is_dropped_by_nmt(c)) append_utf8(out, is_space_to_nmt(c) ? ' ' : c);
  });
}

std::string strip(std::string_view text, std::string_view side, std::string_view) {
  if (side != "right") text.remove_prefix(white_space_prefix(text));
  if (side != "left") text.remove_suffix(white_space_suffix(text));
  return std::string(text);
}

std::string prepend(std::string_view text, std::string_view prefix, std::string_view) {
  std::string out(text.empty() ? std::string_view() : prefix);
  return out += text;
}

std::string replace(std::string_view text, std::string_view what, std::string_view by) {
  std::string out;
  while (true) {
    const size_t at = text.find(what);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += by;
    text.remove_prefix(at + what.size());
  }
}

std::string squeeze(std::string_view text, std::string_view by, std::string_view) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_not_of(' ', at), text.size());
    if (end >= at + 2) {
      out += by;
      at = end;
    } else {
      out += text[at++];
    }
  }
  return out;
}

struct NamedStep {
  std::string_view name;
  std::string (*function)(std::string_view, std::string_view, std::string_view);
};
constexpr NamedStep kSteps[] = {
    {"nfc", &normal_form<UTF8PROC_COMPOSE>},
    {"nfd", &normal_form<UTF8PROC_DECOMPOSE>},
    {"nfkc", &normal_form<UTF8PROC_COMPOSE | UTF8PROC_COMPAT>},
    {"nfkd", &normal_form<UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT>},
    {"lowercase", &lowercase},
    {"nmt", &nmt},
    {"strip", &strip},
    {"prepend", &prepend},
    {"replace", &replace},
    {"squeeze", &squeeze},
};

}  // namespace

Expected<Normalizer> Normalizer::from_model_file(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const auto* strings, formats::meta_strings(file, kKey));
  Normalizer normalizer;
  if (strings == nullptr) return normalizer;
  if (strings->size() % 3 != 0) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: {} strings, expected three a step; convert the model again", kKey, strings->size()));
  }
  for (size_t i = 0; i < strings->size(); i += 3) {
    const std::string_view name = (*strings)[i];
    Step step{nullptr, std::string((*strings)[i + 1]), std::string((*strings)[i + 2]), std::nullopt};
    const auto* known = std::ranges::find(kSteps, name, &NamedStep::name);
    if (known != std::end(kSteps)) step.function = known->function;
    if (name == "charsmap") step.charsmap = Charsmap::from_base64(step.first);
    const bool is_bad = (step.function == nullptr && !step.charsmap) || (name == "replace" && step.first.empty());
    if (is_bad) {
      return fail(ErrorKind::kUnsupported, fmt::format("{}[{}]: step {} is not known, or its arguments are no good",
                                                       kKey, i, quoted_piece(name)));
    }
    normalizer.steps_.push_back(std::move(step));
  }
  return normalizer;
}

std::string Normalizer::apply(std::string_view text) const {
  std::string result(text);
  if (first_invalid_utf8(text) != text.size()) return result;
  for (const Step& step : steps_) {
    result = step.charsmap ? step.charsmap->apply(result) : step.function(result, step.first, step.second);
  }
  return result;
}

}  // namespace candor::text
