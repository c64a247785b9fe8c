#pragma once
// Replies of /api/chat and /api/generate, and what both share with other routes.

#include <memory>
#include <string>
#include <vector>

#include "serve/core/json_body.h"
#include "serve/core/reply.h"

namespace candor::serve::ollama {

std::unique_ptr<Reply> make_chat_reply(const Engine& engine, ReplyHead head);
// prompt: its tokens, which the reply's `context` begins with; nullopt: it shows none.
std::unique_ptr<Reply> make_generate_reply(const Engine& engine, ReplyHead head,
                                           std::optional<std::vector<TokenId>> prompt);

// "2026-11-30T12:00:00.123456789Z".
std::string rfc3339_now();
// Of a text that nobody asked for: done_reason is "load" or "unload".
Json idle_reply(const std::string& model, bool is_chat, bool is_unload);
// One that says that the work goes on.
Json waiting_line(const std::string& model, bool is_chat);

}  // namespace candor::serve::ollama
