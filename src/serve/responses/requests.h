#pragma once
// Parses and checks request bodies of POST /v1/responses: each becomes an ApiRequest, the engine's requests with a
// maker of the reply.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/model_form.h"
#include "serve/core/request_terms.h"

namespace candor::serve::responses {

// A tool, as the model sees it and as the client calls it.
struct OfferedTool {
  std::string shown;  // to the model
  std::string name;
  std::string name_space = {};  // of a tool in a namespace
  bool is_custom = false;       // its argument is free text
};

inline constexpr const char* kCustomInput = "input";  // the one parameter by which the model gives it

// tools, flattened.
struct ToolSet {
  std::vector<OfferedTool> offered{};
  Json shown = Json::array();              // as chat templates know them, in the order of `offered`
  Json echoed = Json::array();             // as the response names them
  std::vector<std::string> not_offered{};  // types of tools that would run at the server
};

// The tool that is called so in this API; nullptr: none.
const OfferedTool* find_tool(const std::vector<OfferedTool>& tools, std::string_view name, std::string_view name_space);
// What the model calls a tool of a namespace.
std::string shown_name(std::string_view name, std::string_view name_space);

// What the reply must know.
struct ResponseOptions {
  Json echo = Json::object();  // members of the response that repeat what was asked, with the values in effect
  std::vector<OfferedTool> tools{};
  bool seals_reasoning = false;  // reasoning.encrypted_content is wanted
};

Result<ApiRequest> parse_response(const Json& body, const RequestTerms& terms);

// input, behind instructions, as messages of a chat.
std::vector<Message> read_input(Fields& fields, const RequestTerms& terms, std::vector<std::string>& warnings);
// Messages of the system where the model's chat template has a place for them, else as words of the message beside
// them: never moved to the front. The developer's are such where the template does not know that role.
std::vector<Message> place_system(std::vector<Message> messages, const ModelForm& form,
                                  std::vector<std::string>& warnings);
// tools, tool_choice and parallel_tool_calls.
ToolSet read_tools(Fields& fields, std::vector<std::string>& warnings);
void read_tool_choice(Fields& fields, ToolSet& tools, ChatPrompt& chat, ApiRequest& result);

std::unique_ptr<Reply> make_response_reply(const Engine& engine, ReplyHead head, ResponseOptions options);

}  // namespace candor::serve::responses
