#pragma once
// /set of `candor chat`: every option that says how an answer is chosen.

#include <string>
#include <string_view>

#include "apps/commands/chat_commands.h"

namespace candor::apps {

// arguments: "", "NAME", or "NAME VALUE". What to show, with its newline: the settings, or what is wrong.
std::string run_set(std::string_view arguments, ChatState& state);

}  // namespace candor::apps
