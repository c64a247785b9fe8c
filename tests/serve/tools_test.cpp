// Tools: a choice that must be a call is one, streamed and plain; what cannot be a tool is refused.

#include "serve/client.h"

namespace candor::testing {
namespace {

class tools : public ServerTest {
 protected:
  static Json weather() {
    Json body = user_says("What is the weather?", 120);
    const Json place = {{"type", "string"}, {"enum", {"Rome", "Oslo"}}};
    const Json parameters = {{"type", "object"},
                             {"properties", {{"place", place}}},
                             {"required", {"place"}},
                             {"additionalProperties", false}};
    body["tools"] = {{{"type", "function"}, {"function", {{"name", "weather"}, {"parameters", parameters}}}}};
    return body;
  }
};

TEST_F(tools, a_prompt_that_is_shown_is_the_one_that_a_chat_would_answer) {
  Json body = weather();
  const Json told = {{"role", "developer"}, {"content", "Be kind"}};
  body["messages"].insert(body["messages"].begin(), told);
  body["max_tokens"] = 1;
  body["chat_template_kwargs"] = {{"mood", "gay"}};
  body["documents"] = Json::array({{{"title", "T"}}});
  const Json shown = post(port(), "/apply-template", body).json();
  const Json counted = post(port(), "/tokenize", body).json();
  const Json answered = post(port(), "/v1/chat/completions", body).json();
  EXPECT_NE(shown["prompt"].get<std::string>().find("<|system|>\nBe kind<|end|>"), std::string::npos) << shown;
  EXPECT_EQ(counted["count"], answered["usage"]["prompt_tokens"]) << counted;
  for (const Json& reply : {shown, counted, answered}) {
    EXPECT_NE(reply["warnings"].dump().find("does not show tools"), std::string::npos) << reply;
    EXPECT_NE(reply["warnings"].dump().find("does not know the role developer"), std::string::npos) << reply;
  }
}

TEST_F(tools, what_a_chat_refuses_is_refused_where_its_prompt_is_shown) {
  for (const char* route : {"/apply-template", "/tokenize"}) {
    Json body = weather();
    body["nope"] = 1;
    EXPECT_NE(post(port(), route, body).json()["warnings"].dump().find("nope"), std::string::npos) << route;
    const Json spoiled = {{"tools", {1}}, {"chat_template_kwargs", 5}, {"documents", "x"}};
    for (const auto& [name, value] : spoiled.items()) {
      Json wrong = weather();
      wrong[name] = value;
      const ClientReply refused = post(port(), route, wrong);
      EXPECT_EQ(refused.status, 400) << route << name;
      EXPECT_EQ(refused.json()["error"]["param"], name) << refused.body;
    }
    EXPECT_EQ(post(port(), route, {{"model", "pocket"}}).status, 400) << route;
  }
}

TEST_F(tools, a_named_choice_is_enforced) {
  Json body = weather();
  body["tool_choice"] = {{"type", "function"}, {"function", {{"name", "weather"}}}};
  const Json choice = post_until_whole(port(), body).json()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_TRUE(choice["message"]["content"].is_null());
  const Json& call = choice["message"]["tool_calls"][0];
  EXPECT_EQ(call["function"]["name"], "weather");
  const Json arguments = Json::parse(call["function"]["arguments"].get<std::string>());
  EXPECT_TRUE(arguments["place"] == "Rome" || arguments["place"] == "Oslo");
}

TEST_F(tools, a_streamed_call_has_its_name_once_and_arguments_that_join_to_json) {
  Json body = weather();
  body["tool_choice"] = "required";
  body["stream"] = true;
  std::string arguments;
  int n_names = 0;
  Json finish;
  for (const Json& event : post_until_whole(port(), body).events()) {
    const Json& choice = event["choices"][0];
    if (!choice["finish_reason"].is_null()) finish = choice["finish_reason"];
    if (!choice["delta"].contains("tool_calls")) continue;
    const Json& call = choice["delta"]["tool_calls"][0];
    EXPECT_EQ(call["index"], 0);
    n_names += call["function"].contains("name") ? 1 : 0;
    arguments += call["function"].value("arguments", "");
  }
  EXPECT_EQ(n_names, 1);
  EXPECT_EQ(finish, "tool_calls");
  EXPECT_TRUE(Json::parse(arguments)["place"].is_string());
}

TEST_F(tools, what_is_no_tool_is_refused) {
  const auto status = [](const Json& change) {
    Json body = weather();
    body.update(change);
    return post(port(), "/v1/chat/completions", body).status;
  };
  EXPECT_EQ(status({{"tools",
                     {{{"type", "function"}, {"function", {{"name", "f"}, {"parameters", {{"type", "objekt"}}}}}}}}}),
            400);
  EXPECT_EQ(status({{"tools", {1}}}), 400);
  EXPECT_EQ(status({{"tool_choice", "sometimes"}}), 400);
  EXPECT_EQ(status({{"tool_choice", {{"type", "function"}, {"function", {{"name", "other"}}}}}}), 400);
  EXPECT_EQ(status({{"tools", nullptr}, {"tool_choice", "required"}}), 400);
  EXPECT_EQ(status({{"tool_choice", "none"}}), 200);
}

TEST_F(tools, a_choice_among_allowed_tools_leaves_the_others_out) {
  Json body = weather();
  Json other = body["tools"][0];
  other["function"]["name"] = "time";
  body["tools"].push_back(other);
  const Json allowed = {{"type", "function"}, {"function", {{"name", "time"}}}};
  body["tool_choice"] = {{"type", "allowed_tools"},
                         {"allowed_tools", {{"mode", "required"}, {"tools", Json::array({allowed})}}}};
  const Json choice = post_until_whole(port(), body).json()["choices"][0];
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["name"], "time");
  for (const Json& wrong : Json{{{"mode", "sometimes"}, {"tools", Json::array({allowed})}},
                                {{"mode", "auto"}},
                                {{"mode", "auto"}, {"tools", Json::array({5})}},
                                {{"mode", "auto"}, {"tools", Json::array()}}}) {
    body["tool_choice"]["allowed_tools"] = wrong;
    EXPECT_EQ(post(port(), "/v1/chat/completions", body).status, 400) << wrong;
  }
}

TEST_F(tools, functions_of_old_are_called_in_their_own_form) {
  Json body = weather();
  body["functions"] = Json::array({body["tools"][0]["function"]});
  body.erase("tools");
  body["function_call"] = {{"name", "weather"}};
  const Json choice = post_until_whole(port(), body).json()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "function_call");
  EXPECT_EQ(choice["message"]["function_call"]["name"], "weather");
  EXPECT_TRUE(Json::parse(choice["message"]["function_call"]["arguments"].get<std::string>()).contains("place"));
  body["messages"].push_back(
      {{"role", "assistant"}, {"content", nullptr}, {"function_call", {{"name", "weather"}, {"arguments", "{}"}}}});
  body["messages"].push_back({{"role", "function"}, {"name", "weather"}, {"content", "sun"}});
  body["function_call"] = "none";
  const ClientReply refused = post(port(), "/v1/chat/completions", body);  // the shipped model's template has its say
  EXPECT_NE(refused.body.find("Pocket knows the roles system, user and assistant, not tool"), std::string::npos);
}

TEST_F(tools, tools_that_the_template_does_not_show_are_said_to_be_so) {
  const Json reply = post(port(), "/v1/chat/completions", weather()).json();
  EXPECT_NE(reply["warnings"].dump().find("does not show tools"), std::string::npos);
}

}  // namespace
}  // namespace candor::testing
