// Everything that a client can get wrong in a body, and the reply that it must get: the right status, a message, and
// the field to blame; nothing enters the queue.

#include <fmt/format.h>

#include "candor/sampling_table.h"
#include "serve/client.h"

namespace candor::testing {
namespace {

class bad_input : public ServerTest {
 protected:
  // Sends `body` and expects that status with an error object that blames `param` ("" = null).
  void expect_refused(const std::string& path, const std::string& body, int status, const std::string& param,
                      const std::string& words = {}) {
    const ClientReply reply = ask(port(), "POST", path, body);
    const std::string what = path + " " + body.substr(0, 120) + "\n -> " + reply.body.substr(0, 300);
    EXPECT_EQ(reply.status, status) << what;
    const Json json = reply.json();
    ASSERT_TRUE(json.is_object() && json.contains("error")) << what;
    const Json& error = json["error"];
    EXPECT_EQ(error.size(), 4u) << what;
    EXPECT_TRUE(error["message"].is_string() && !error["message"].get<std::string>().empty()) << what;
    EXPECT_TRUE(error["type"].is_string()) << what;
    EXPECT_TRUE(error["code"].is_null() || error["code"].is_string()) << what;
    EXPECT_EQ(error["param"], param.empty() ? Json(nullptr) : Json(param)) << what;
    EXPECT_NE(error["message"].get<std::string>().find(words), std::string::npos) << what;
  }
  void expect_chat_refused(const std::string& fields, const std::string& param, int status = 400) {
    expect_refused("/v1/chat/completions",
                   R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":2,)" + fields + "}", status, param);
  }
  void expect_completion_refused(const std::string& fields, const std::string& param, int status = 400) {
    expect_refused("/v1/completions", "{" + fields + "}", status, param);
  }
};

TEST_F(bad_input, json_that_is_none_is_refused_with_its_place) {
  const std::string chat = "/v1/chat/completions";
  expect_refused(chat, "", 400, "", "the body is empty");
  expect_refused(chat, "  \n", 400, "", "the body is empty");
  expect_refused(chat, R"({"messages": [)", 400, "", "byte 14");
  expect_refused(chat, "{\"messages\":\"\xff\"}", 400, "", "byte 13");
  expect_refused(chat, R"({"model":"\ud800"})", 400, "", "byte");
  expect_refused(chat, R"({"model":"pocket","model":"pocket"})", 400, "", "twice");
  expect_refused(chat, R"([1])", 400, "", "not a JSON object");
  expect_refused(chat, R"({} {})", 400, "", "byte");
  for (const char* number : {"1e400", "-0", "0x10", "NaN", "Infinity", "01", "+1", "1."}) {
    expect_refused(chat, R"({"temperature":)" + std::string(number) + "}", 400, "");
  }
}

TEST_F(bad_input, nesting_without_end_is_refused_at_the_limit) {
  expect_refused("/v1/chat/completions", "{\"messages\":" + repeated("[", 100'000), 400, "", "nested deeper than 128");
  expect_refused("/v1/chat/completions", repeated("{\"a\":", 100'000), 400, "", "nested deeper than 128");
}

TEST_F(bad_input, a_nul_in_a_string_is_text) {
  const ClientReply reply = ask(port(), "POST", "/tokenize", R"({"content":"a\u0000b"})");
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(ask(port(), "POST", "/detokenize", Json{{"tokens", reply.json()["tokens"]}}.dump()).json()["content"],
            std::string("a\0b", 3));
}

TEST_F(bad_input, messages_of_every_wrong_form_are_refused) {
  for (
      const char* messages :
      {"null", "\"hi\"", "[]", "[123]", "[{}]", R"([{"role":"alien","content":"x"}])",
       R"([{"role":"user","content":5}])", R"([{"role":"user"}])", R"([{"role":"user","content":null}])",
       R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]}])",
       R"([{"role":"user","content":[{"type":"input_audio"}]}])", R"([{"role":"user","content":["x"]}])",
       R"([{"role":"tool","tool_call_id":"nobody","content":"x"}])",
       R"([{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f"}},{"id":"a","function":{"name":"f"}}]}])",
       R"([{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"arguments":"{}"}}]}])"}) {
    expect_refused("/v1/chat/completions", R"({"messages":)" + std::string(messages) + "}", 400, "messages");
  }
  expect_refused("/v1/chat/completions", "{}", 400, "messages");
}

TEST_F(bad_input, every_number_of_sampling_is_refused_beyond_its_range_under_each_of_its_names) {
  for (const SamplingNumber& number : kSamplingNumbers) {
    for (const std::string_view name : {number.name, number.other_field}) {
      if (name.empty()) continue;
      for (const double value : {number.api_least - 1, number.api_most + 1}) {
        expect_chat_refused(fmt::format(R"("{}":{:.10g})", name, value), std::string(name));
      }
    }
  }
}

TEST_F(bad_input, numbers_out_of_range_are_refused_by_name) {
  for (const char* value : {"-5", "1.5", "9223372036854775808", "\"5\"", "true", "0"}) {
    expect_chat_refused(R"("max_completion_tokens":)" + std::string(value), "max_completion_tokens");
  }
  for (const char* value : {"-1", "1e308", "\"hot\"", "2.5", "[]"}) {
    expect_chat_refused(R"("temperature":)" + std::string(value), "temperature");
  }
  expect_chat_refused(R"("top_k":-2147483648)", "top_k");
  expect_chat_refused(R"("top_p":1.5)", "top_p");
  expect_chat_refused(R"("frequency_penalty":3)", "frequency_penalty");
  for (const char* bias : {R"({"999999999":5})", R"({"-7":1})", R"({"x":1})", R"({"5":101})", R"([[5]])", R"([["",1]])",
                           R"([[-5,1]])", R"([[5,true]])", R"([[" a","1"]])", R"([5])", R"("5")"}) {
    expect_chat_refused(R"("logit_bias":)" + std::string(bias), "logit_bias");
  }
  expect_chat_refused(R"("min_p":-1)", "min_p");
  expect_chat_refused(R"("n":0)", "n");
  expect_chat_refused(R"("n":1000000)", "n");
  expect_chat_refused(R"("seed":1180591620717411303424)", "seed");
  expect_chat_refused(R"("top_logprobs":1000000000,"logprobs":true)", "top_logprobs");
  expect_chat_refused(R"("top_logprobs":2)", "top_logprobs");
  expect_chat_refused(R"("id_slot":-5)", "id_slot");
  expect_chat_refused(R"("id_slot":1000000000)", "id_slot");
  expect_chat_refused(R"("stream":"yes")", "stream");
  expect_chat_refused(R"("stream_options":5)", "stream_options");
  expect_completion_refused(R"("prompt":"a","best_of":10000)", "best_of");
  expect_completion_refused(R"("prompt":"a","logprobs":1000000000)", "logprobs");
}

TEST_F(bad_input, stop_strings_beyond_the_limits_are_refused) {
  expect_chat_refused(R"("stop":"")", "stop");
  expect_chat_refused(R"("stop":5)", "stop");
  expect_chat_refused(R"("stop":["a",5])", "stop");
  expect_chat_refused(R"("stop":")" + std::string(1u << 20, 'x') + "\"", "stop");
  expect_chat_refused(R"("stop":[)" + repeated("\"a\",", 999) + "\"a\"]", "stop");
  Json sixteen = user_says("hi", 2);
  for (int i = 0; i < 16; ++i) sixteen["stop"].push_back(std::string(256, static_cast<char>('a' + i)));
  EXPECT_EQ(post(port(), "/v1/chat/completions", sixteen).status, 200);
}

TEST_F(bad_input, prompts_that_cannot_be_read_are_refused) {
  expect_completion_refused(R"("prompt":[1,99999999,-5])", "prompt");
  expect_completion_refused(R"("prompt":[1,99999999])", "prompt");
  expect_completion_refused(R"("prompt":5)", "prompt");
  expect_completion_refused(R"("prompt":{})", "prompt");
  expect_completion_refused(R"("prompt":[true])", "prompt");
  expect_completion_refused(R"("prompt":[[1],["a"]])", "prompt");
  expect_completion_refused(R"("prompt":[)" + repeated("\"a\",", 9999) + "\"a\"]", "prompt");
  expect_completion_refused("", "prompt");
}

TEST_F(bad_input, a_prompt_longer_than_the_context_says_both_numbers) {
  for (const std::string& unit : {std::string("A"), std::string("\\n"), std::string("\xF0\x9F\x98\x80")}) {
    const ClientReply reply = ask(port(), "POST", "/v1/completions", R"({"prompt":")" + repeated(unit, 50'000) + "\"}");
    EXPECT_EQ(reply.status, 400);
    const Json error = reply.json()["error"];
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_EQ(error["code"], "context_length_exceeded");
    EXPECT_EQ(error["param"], "prompt");
    EXPECT_GT(error["n_prompt_tokens"], 512);
    EXPECT_EQ(error["n_ctx"], 512);
    const std::string message = error["message"];
    EXPECT_NE(message.find(std::to_string(error["n_prompt_tokens"].get<int>()) + " tokens"), std::string::npos);
  }
}

TEST_F(bad_input, a_model_that_is_not_here_is_404) {
  expect_chat_refused(R"("model":"../../etc/passwd")", "model", 404);
  expect_chat_refused(R"("model":5)", "model");
  EXPECT_EQ(ask(port(), "GET", "/v1/models/other").status, 404);
}

TEST_F(bad_input, schemas_that_cannot_be_enforced_are_refused) {
  const auto with_schema = [](const std::string& schema) {
    return R"("response_format":{"type":"json_schema","json_schema":{"name":"x","schema":)" + schema + "}}";
  };
  for (const std::string schema :
       {R"({"type":123})", R"({"type":"stsring"})", R"({"type":"array","minItems":1000000000})", R"({"enum":[]})",
        R"({"type":"integer","minimum":5,"maximum":1})", R"({"type":"string","pattern":"["})",
        R"({"type":"string","pattern":"foo**("})", R"({"$ref":"http://example.com/x"})", R"({"$ref":"#/nowhere"})"}) {
    expect_refused("/v1/chat/completions",
                   R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":2,)" + with_schema(schema) + "}", 400,
                   "response_format");
  }
  expect_chat_refused(with_schema("123"), "response_format");
  expect_chat_refused(R"("response_format":{"type":"yaml"})", "response_format");
  expect_chat_refused(R"("response_format":"json")", "response_format");
  expect_chat_refused(R"("guided_regex":5)", "guided_regex");
  expect_chat_refused(R"("guided_regex":"[a-z]{1,2000000000}")", "guided_regex");
  expect_chat_refused(R"("grammar":"foo: \"a\"")", "grammar");
  expect_chat_refused(R"("structured_outputs":{"regex":"["})", "structured_outputs.regex");
  expect_chat_refused(R"("structured_outputs":{"structural_tag":"x"})", "structured_outputs.structural_tag");
}

TEST_F(bad_input, unknown_fields_are_named_in_warnings) {
  Json body = user_says("hi", 2);
  body["n_keep"] = 3;
  body["flux"] = {{"x", 1}};
  const Json reply = post(port(), "/v1/chat/completions", body).json();
  ASSERT_TRUE(reply.contains("warnings")) << reply;
  EXPECT_NE(reply["warnings"].dump().find("n_keep"), std::string::npos);
  EXPECT_NE(reply["warnings"].dump().find("flux"), std::string::npos);
}

TEST_F(bad_input, null_is_the_same_as_absent) {
  Json body = user_says("hi", 2);
  for (const char* name :
       {"n", "stop", "seed", "top_p", "logprobs", "stream", "stream_options", "response_format", "user"}) {
    body[name] = nullptr;
  }
  EXPECT_EQ(post(port(), "/v1/chat/completions", body).status, 200);
}

// Short form: every truncation of a valid body, and every field with values at and beyond the edges.
TEST_F(bad_input, no_body_whatever_becomes_a_fault_of_the_server) {
  const std::string valid = Json{{"model", "pocket"}, {"prompt", "a"}, {"max_tokens", 1}, {"stop", {"x"}}}.dump();
  for (size_t n = 0; n < valid.size(); ++n)
    EXPECT_EQ(ask(port(), "POST", "/v1/completions", valid.substr(0, n)).status, 400);
  for (size_t bit = 0; bit < valid.size() * 8; bit += 3) {
    std::string flipped = valid;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const int status = ask(port(), "POST", "/v1/completions", flipped).status;
    EXPECT_TRUE(status == 200 || status == 400 || status == 404) << flipped << " -> " << status;
  }
  const Json values = {-1,  0,    1,       2147483648u,   9223372036854775808ull, 1e308,
                       "5", true, nullptr, Json::array(), Json::object(),         0.5};
  for (const char* name :
       {"model", "prompt", "max_tokens", "temperature", "top_p", "top_k", "n", "logprobs", "stop", "seed", "echo",
        "stream_options", "best_of", "suffix", "user", "min_p", "stop_token_ids", "logit_bias"}) {
    for (const Json& value : values) {
      Json body = {{"prompt", "a"}, {"max_tokens", 1}};
      body[name] = value;
      const ClientReply reply = post(port(), "/v1/completions", body);
      EXPECT_TRUE(reply.status == 200 || (reply.status >= 400 && reply.status < 500)) << body << " -> " << reply.status;
    }
  }
  EXPECT_TRUE(running().becomes_idle());
}

}  // namespace
}  // namespace candor::testing
