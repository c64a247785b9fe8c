#pragma once
// Options of engines and requests by name, with values as text, as candor.h lists them. Errors name the option, the
// value and what was expected.

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "candor/options.h"
#include "candor/request.h"
#include "capi/registry.h"

namespace candor::capi {

// A request that is being put together. Who changes or reads it holds the mutex.
struct RequestObject final : Object {
  enum class Kind { kNone, kText, kTokens, kMessages };

  std::mutex mutex;
  Request request;  // without its prompt
  Kind kind = Kind::kNone;
  TextPrompt text;
  TokenPrompt tokens;
  ChatPrompt chat;

  // With the prompt that was set last; refused where none was.
  Result<Request> build() const;
  // As a turn of a conversation.
  Request build(std::vector<Message> messages) const;
};

Result<void> set_engine_option(EngineOptions& options, std::string_view name, std::string_view value);
Result<void> set_request_option(RequestObject& draft, std::string_view name, std::string_view value);

// A JSON array of objects with role and content, whose other keys go to the template too.
Result<std::vector<Message>> parse_messages(std::string_view json);
// "json_schema" and so on; nullopt for "".
Result<std::optional<GrammarKind>> parse_grammar_kind(std::string_view name);

}  // namespace candor::capi
