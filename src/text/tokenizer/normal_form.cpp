#include "text/tokenizer/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/utf8.h"
#include "text/tokenizer/code_point_ranges.h"

namespace candor::text {
namespace {

struct Mark {
  utf8proc_int32_t value = 0;
  utf8proc_propval_t combining_class = 0;  // 0: a starter
};

constexpr size_t kLongestDecomposition = 18;       // U+FDFA
constexpr utf8proc_int32_t kFirstSecond = 0x0300;  // no lower one is the second of two that compose

// What one pair becomes, by the tables of utf8proc.
std::optional<utf8proc_int32_t> composite(utf8proc_int32_t first, utf8proc_int32_t second) {
  if (second < kFirstSecond) return std::nullopt;
  std::array<utf8proc_int32_t, 2> pair = {first, second};
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  if (utf8proc_normalize_utf32(pair.data(), 2, kOptions) != 1) return std::nullopt;
  return pair[0];
}

// One text between characters that came later.
class Segment {
 public:
  Segment(std::string_view text, bool compatible) {
    const int options = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compatible ? UTF8PROC_COMPAT : 0);
    marks_.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
      const CodePoint point = decode_utf8(text, at);
      append_decomposed(static_cast<utf8proc_int32_t>(point.value), static_cast<utf8proc_option_t>(options));
      at += point.length;
    }
    order_runs();
  }

  // Each mark is tried with the one starter before it.
  void compose() {
    size_t n = 0;
    size_t starter = SIZE_MAX;
    for (const Mark mark : marks_) {
      const bool is_next = starter != SIZE_MAX && starter + 1 == n;
      const bool is_open = starter != SIZE_MAX && (is_next || marks_[n - 1].combining_class < mark.combining_class);
      if (const auto made = is_open ? composite(marks_[starter].value, mark.value) : std::nullopt) {
        marks_[starter].value = *made;
        continue;
      }
      if (mark.combining_class == 0) starter = n;
      marks_[n++] = mark;
    }
    marks_.resize(n);
  }

  void append_to(std::string& out) const {
    for (const Mark mark : marks_) append_utf8(out, static_cast<uint32_t>(mark.value));
  }

 private:
  void append_decomposed(utf8proc_int32_t c, utf8proc_option_t options) {
    std::array<utf8proc_int32_t, kLongestDecomposition> parts = {c};
    int boundary = 0;
    const utf8proc_ssize_t n =
        utf8proc_decompose_char(c, parts.data(), static_cast<utf8proc_ssize_t>(parts.size()), options, &boundary);
    const size_t n_parts = n > 0 && static_cast<size_t>(n) <= parts.size() ? static_cast<size_t>(n) : 1;
    if (n_parts == 1 && n != 1) parts[0] = c;
    for (size_t i = 0; i < n_parts; ++i) {
      marks_.push_back({parts[i], utf8proc_get_property(parts[i])->combining_class});
    }
  }

  // Canonical order: runs of marks by class, equals as they stand.
  void order_runs() {
    const auto is_starter = [](const Mark& mark) { return mark.combining_class == 0; };
    for (auto begin = marks_.begin(); begin != marks_.end();) {
      begin = std::find_if_not(begin, marks_.end(), is_starter);
      const auto end = std::find_if(begin, marks_.end(), is_starter);
      std::stable_sort(begin, end, [](const Mark& a, const Mark& b) { return a.combining_class < b.combining_class; });
      begin = end;
    }
  }

  std::vector<Mark> marks_;
};

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

void append_segment(std::string_view text, NormalForm form, std::string& out) {
  if (is_ascii(text)) {
    out += text;
    return;
  }
  Segment segment(text, form == NormalForm::kNfkc || form == NormalForm::kNfkd);
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) segment.compose();
  segment.append_to(out);
}

}  // namespace

std::string to_normal_form(std::string_view text, NormalForm form) {
  std::string out;
  out.reserve(text.size());
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    const size_t end = at + point.length;
    if (contains(kNormalizedLaterRanges, point.value)) {
      append_segment(text.substr(begin, at - begin), form, out);
      out += text.substr(at, end - at);
      begin = end;
    }
    at = end;
  }
  append_segment(text.substr(begin), form, out);
  return out;
}

}  // namespace candor::text
