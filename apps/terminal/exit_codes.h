#pragma once
// What the command's exit status means, everywhere.

#include "candor/result.h"

namespace candor::apps {

inline constexpr int kDone = 0;
inline constexpr int kOurFault = 1;
inline constexpr int kUserInput = 2;
inline constexpr int kRankLost = 3;
inline constexpr int kNotVerified = 4;
inline constexpr int kDeviceLost = 5;
inline constexpr int kInterrupted = 130;

struct ExitCodeRow {
  int code;
  const char* meaning;
};

inline constexpr ExitCodeRow kExitCodes[] = {
    {kDone, "done"},
    {kOurFault, "a fault of the program: please report it"},
    {kUserInput, "the input's fault: a file, an option, a prompt; one line says what, where and how to mend it"},
    {kRankLost, "a rank that computed a part of the model was lost"},
    {kNotVerified, "a receipt was not verified: its answer is not the model's"},
    {kDeviceLost, "a GPU that computed the model failed"},
    {kInterrupted, "interrupted; the text so far was kept"},
};

inline int exit_code(const Error& error) {
  if (error.kind == ErrorKind::kBusy && error.field == "ranks") return kRankLost;
  if (error.kind == ErrorKind::kBusy && error.field == "device") return kDeviceLost;
  return error.kind == ErrorKind::kInternal ? kOurFault : kUserInput;
}

}  // namespace candor::apps
