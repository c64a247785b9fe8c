// A model's own response template as an attack: any JSON, an error of one line or a form that takes any output apart,
// the same in pieces and at once. A zero byte ends
// the template, the byte behind it says how long pieces are, the rest is the output.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fuzz/fuzz_budget.h"
#include "text/chat/forms/response_template.h"
#include "text/chat/output_parser.h"

namespace {

using candor::text::OutputForm;
using candor::text::OutputParser;
using candor::text::OutputPiece;

void join(std::vector<OutputPiece>& all, std::vector<OutputPiece> pieces) {
  for (OutputPiece& piece : pieces) {
    if (!all.empty() && piece.kind != OutputPiece::Kind::kCall && all.back().kind == piece.kind) {
      all.back().text += piece.text;
    } else {
      all.push_back(std::move(piece));
    }
  }
}

std::vector<OutputPiece> taken_apart(const OutputForm& form, std::string_view text, size_t n_bytes) {
  OutputParser parser(form);
  std::vector<OutputPiece> all;
  for (; !text.empty(); text.remove_prefix(std::min(n_bytes, text.size())))
    join(all, parser.push(text.substr(0, n_bytes)));
  join(all, parser.finish());
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const candor::testing::FuzzBudget budget(size);
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = std::min(input.find('\0'), input.size());
  const auto own = candor::text::ResponseTemplate::parse(input.substr(0, zero));
  if (!own) {
    CANDOR_CHECK(own.error().message.find('\n') == std::string::npos);
    return 0;
  }
  if (zero + 2 > size) return 0;
  const OutputForm form{.tools = candor::text::ToolForm::kOwn, .own = *own};
  const std::string_view text = input.substr(zero + 2);
  const size_t n_bytes = size_t{data[zero + 1]} + 1;
  CANDOR_CHECK(taken_apart(form, text, n_bytes) == taken_apart(form, text, std::max<size_t>(text.size(), 1)));
  return 0;
}
