#pragma once
// What the tests of /v1/responses share: bodies, checks of the schema, and a server whose small random model has a
// template for tools and reasoning.

#include <string>
#include <vector>

#include "serve/client.h"

namespace candor::testing {

// Every member that the schema asks for, with its type.
void expect_response(const Json& response);
// The events of one stream: each as the schema has it, numbered from 0, items one after another, each told from its
// opening to its end. The last event's response.
Json expect_stream(const std::vector<Json>& events);
// Names of the events, without "response.", repeated deltas once.
std::vector<std::string> outline(const std::vector<Json>& events);
// The response without what differs between two replies of the same tokens: ids, times.
Json without_ids(Json response);

Json asks(const std::string& text, int max_output_tokens = 12);
ClientReply post_response(uint16_t port, Json body);
// The streamed reply to the same body.
std::vector<Json> stream_response(uint16_t port, Json body);
// Asks with one seed after the other until the answer is not cut, as post_until_whole(); the body keeps that seed.
Json whole_response(uint16_t port, Json& body);

// A random model that knows every role, tools, their results, and reasoning.
RunningOptions tool_model();

}  // namespace candor::testing
