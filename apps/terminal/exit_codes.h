#pragma once
// What the command's exit status means, everywhere.

#include "candor/result.h"

namespace candor::apps {

inline constexpr int kDone = 0;
inline constexpr int kOurFault = 1;
inline constexpr int kUserInput = 2;
inline constexpr int kRankLost = 3;
inline constexpr int kInterrupted = 130;

inline int exit_code(const Error& error) {
  if (error.kind == ErrorKind::kBusy && error.field == "ranks") return kRankLost;
  return error.kind == ErrorKind::kInternal ? kOurFault : kUserInput;
}

}  // namespace candor::apps
