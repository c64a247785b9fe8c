// The parts of the public interface that need no engine.

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

#include "candor/drafts.h"
#include "candor/event.h"
#include "candor/presets.h"
#include "candor/request.h"

namespace candor {

Result<void> apply_preset(std::string_view name, SamplingParams& params) {
  std::string names;
  for (const SamplingPreset& preset : kSamplingPresets) {
    if (preset.name == name) {
      params.temperature = preset.temperature;
      params.top_p = preset.top_p;
      params.top_k = 0;
      return {};
    }
    names += (names.empty() ? "" : ", ") + std::string(preset.name);
  }
  return Error{ErrorKind::kInvalidInput,
               "there is no preset \"" + std::string(name.substr(0, 40)) + "\", expected one of " + names, "preset"};
}

const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStopEos:
      return "stop_eos";
    case FinishReason::kStopId:
      return "stop_id";
    case FinishReason::kStopString:
      return "stop_string";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kContextFull:
      return "context_full";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kError:
      return "error";
  }
  return "unknown";
}

const char* to_string(DraftSource source) {
  constexpr const char* kNames[] = {"ngram", "model", "mtp", "eagle", "prediction"};
  static_assert(std::size(kNames) == kDraftSources);
  return kNames[static_cast<std::size_t>(source)];
}

const char* to_string(BeamFate fate) {
  constexpr const char* kNames[] = {"kept", "complete", "dropped"};
  return kNames[static_cast<std::size_t>(fate)];
}

}  // namespace candor
