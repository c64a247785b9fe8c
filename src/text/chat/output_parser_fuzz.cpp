// A model's output as an attack: any bytes in any of the forms, in pieces and at once, with the same result. First
// byte: the form; second: how long the pieces are.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fuzz/fuzz_budget.h"
#include "text/chat/output_parser.h"

namespace {

using candor::text::OutputForm;
using candor::text::OutputParser;
using candor::text::OutputPiece;
using candor::text::ToolForm;

OutputForm form_of(uint8_t choice) {
  constexpr ToolForm kForms[] = {
      ToolForm::kNone,       ToolForm::kHermes,    ToolForm::kLlama, ToolForm::kMistral, ToolForm::kDeepSeek,
      ToolForm::kGptOss,     ToolForm::kMistralV11, ToolForm::kQwenCoder, ToolForm::kGlm, ToolForm::kGemma,
      ToolForm::kKimi,       ToolForm::kMiniMax,   ToolForm::kLfm,   ToolForm::kGranite};
  return {.tools = kForms[(choice >> 2) % std::size(kForms)],
          .has_reasoning = (choice & 1) != 0,
          .opens_in_reasoning = (choice & 3) == 3};
}

void add(std::vector<OutputPiece>& all, std::vector<OutputPiece> pieces) {
  for (OutputPiece& piece : pieces) {
    const bool goes_on = !all.empty() && all.back().kind == piece.kind && piece.kind != OutputPiece::Kind::kCall;
    if (goes_on) {
      all.back().text += piece.text;
    } else {
      all.push_back(std::move(piece));
    }
  }
}

std::vector<OutputPiece> parsed(const OutputForm& form, std::string_view text, size_t n_bytes) {
  OutputParser parser(form);
  std::vector<OutputPiece> all;
  for (; !text.empty(); text.remove_prefix(std::min(n_bytes, text.size())))
    add(all, parser.push(text.substr(0, n_bytes)));
  add(all, parser.finish());
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const candor::testing::FuzzBudget budget(size);
  const OutputForm form = form_of(data[0]);
  const std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
  CANDOR_CHECK(parsed(form, text, size_t{data[1]} + 1) == parsed(form, text, text.size()));
  return 0;
}
