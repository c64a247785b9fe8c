// Ollama's interface: the same tokens as OpenAI's, lines of JSON, and whatever a client gets wrong.

#include "serve/client.h"

namespace candor::testing {
namespace {

class ollama : public ServerTest {
 protected:
  static Json question(const std::string& text, int n_predict = 12) {
    return {{"model", "pocket"},
            {"messages", Json::array({{{"role", "user"}, {"content", text}}})},
            {"options", {{"num_predict", n_predict}, {"seed", 5}}},
            {"stream", false}};
  }
  static Json with(Json body, const Json& more) {
    body.update(more);
    return body;
  }
  // Each line of a stream.
  static std::vector<Json> lines_of(const ClientReply& reply) {
    std::vector<Json> lines;
    for (size_t at = 0; at < reply.body.size();) {
      const size_t end = reply.body.find('\n', at);
      lines.push_back(Json::parse(reply.body.substr(at, end - at), nullptr, false));
      at = end == std::string::npos ? reply.body.size() : end + 1;
    }
    return lines;
  }
  static void expect_refused(const std::string& path, const std::string& body, int status, const std::string& words) {
    const ClientReply reply = ask(port(), "POST", path, body);
    const std::string what = path + " " + body.substr(0, 160) + "\n -> " + reply.body.substr(0, 300);
    EXPECT_EQ(reply.status, status) << what;
    const Json json = reply.json();
    ASSERT_TRUE(json.is_object() && json.size() == 1 && json.contains("error") && json["error"].is_string()) << what;
    EXPECT_NE(json["error"].get<std::string>().find(words), std::string::npos) << words << "\n" << what;
  }
};

TEST_F(ollama, a_chat_has_the_tokens_of_openais) {
  for (const int seed : {1, 2, 3}) {
    Json body = question("Tell me a story about a fox", 40);
    body["options"]["seed"] = seed;
    const ClientReply lines = post(port(), "/api/chat", body);
    ASSERT_EQ(lines.status, 200) << lines.body;
    Json same = {{"messages", body["messages"]}, {"max_tokens", 40},    {"seed", seed}, {"temperature", 0.8},
                 {"top_k", 40},                  {"top_p", 0.9},        {"repeat_last_n", 64},
                 {"logprobs", true}};
    const Json chat = post(port(), "/v1/chat/completions", same).json();
    EXPECT_EQ(lines.json()["message"]["content"], chat["choices"][0]["message"]["content"]) << seed;
    EXPECT_EQ(lines.json()["eval_count"], chat["usage"]["completion_tokens"]);
    EXPECT_EQ(lines.json()["prompt_eval_count"], chat["usage"]["prompt_tokens"]);
    const Json scored = post(port(), "/api/chat", with(body, {{"logprobs", true}})).json();
    ASSERT_EQ(scored["logprobs"].size(), chat["choices"][0]["logprobs"]["content"].size());
    for (size_t i = 0; i < scored["logprobs"].size(); ++i) {
      const Json& other = chat["choices"][0]["logprobs"]["content"][i];
      EXPECT_EQ(scored["logprobs"][i]["token"], other["token"]);
      EXPECT_EQ(scored["logprobs"][i]["logprob"], other["logprob"]);
    }
  }
}

TEST_F(ollama, lines_stream_by_default_and_say_the_same) {
  Json body = question("Tell me a story", 24);
  const Json whole = post(port(), "/api/chat", body).json();
  body.erase("stream");
  const ClientReply stream = post(port(), "/api/chat", body);
  EXPECT_NE(stream.head.find("application/x-ndjson"), std::string::npos) << stream.head;
  const std::vector<Json> lines = lines_of(stream);
  ASSERT_GT(lines.size(), 2u);
  std::string text;
  for (const Json& line : lines) {
    ASSERT_TRUE(line.is_object()) << stream.body;
    EXPECT_EQ(line["model"], "pocket");
    EXPECT_EQ(line["message"]["role"], "assistant");
    EXPECT_EQ(line["created_at"].get<std::string>().back(), 'Z');
    EXPECT_EQ(line["done"], &line == &lines.back());
    text += line["message"]["content"];
  }
  EXPECT_EQ(text, whole["message"]["content"]);
  EXPECT_EQ(lines.back()["done_reason"], whole["done_reason"]);
  EXPECT_EQ(lines.back()["eval_count"], whole["eval_count"]);
  for (const char* name : {"total_duration", "load_duration", "prompt_eval_duration", "eval_duration"})
    EXPECT_TRUE(lines.back()[name].is_number_integer()) << name;
  EXPECT_GT(whole["total_duration"].get<int64_t>(), whole["eval_duration"].get<int64_t>());
}

TEST_F(ollama, generate_answers_and_its_context_goes_on) {
  const Json body = {{"model", "pocket:latest"}, {"prompt", "Tell me a story"}, {"stream", false},
                     {"options", {{"num_predict", 8}, {"temperature", 0}}}};
  const ClientReply reply = post(port(), "/api/generate", body);
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json first = reply.json();
  const Json chat = post(port(), "/v1/chat/completions", user_says("Tell me a story", 8)).json();
  EXPECT_EQ(first["response"], chat["choices"][0]["message"]["content"]);
  EXPECT_EQ(first["context"].size(), first["prompt_eval_count"].get<size_t>() + first["eval_count"].get<size_t>());
  const Json second =
      post(port(), "/api/generate", with(body, {{"context", first["context"]}, {"prompt", "More"}})).json();
  EXPECT_GT(second["prompt_eval_count"].get<size_t>(), first["context"].size());
  const Json raw = post(port(), "/api/generate", with(body, {{"raw", true}, {"prompt", "Once upon a time"}})).json();
  const Json text =
      post(port(), "/v1/completions", {{"prompt", "Once upon a time"}, {"max_tokens", 8}, {"temperature", 0}}).json();
  EXPECT_EQ(raw["response"], text["choices"][0]["text"]);
}

TEST_F(ollama, nulls_are_absent_and_the_options_of_machines_have_no_say) {
  Json body = question("hi", 3);
  for (const char* name : {"mirostat", "num_ctx", "num_gpu", "top_k", "top_p", "tfs_z", "stop", "temperature", "seed"})
    body["options"][name] = nullptr;
  for (const char* name : {"format", "tools", "think", "keep_alive"}) body[name] = nullptr;
  EXPECT_EQ(post(port(), "/api/chat", body).status, 200);
  body = with(question("hi", 3), {{"tools", Json::array()}, {"format", ""}, {"keep_alive", "5m"}, {"think", false}});
  body["options"].update(
      {{"num_ctx", 1 << 20}, {"num_batch", 512}, {"num_gpu", 99}, {"use_mmap", true}, {"mirostat", 0}});
  const ClientReply reply = post(port(), "/api/chat", body);
  EXPECT_EQ(reply.status, 200) << reply.body;
  const std::string warnings = reply.json()["warnings"].dump();
  EXPECT_NE(warnings.find("options.num_ctx"), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("keep_alive"), std::string::npos) << warnings;
  EXPECT_EQ(warnings.find("num_gpu"), std::string::npos) << warnings;
}

TEST_F(ollama, what_asks_for_nothing_loads_or_unloads) {
  const auto reason = [](const std::string& path, const Json& body) {
    return post(port(), path, body).json().value("done_reason", "");
  };
  EXPECT_EQ(reason("/api/chat", {{"model", "pocket"}}), "load");
  EXPECT_EQ(reason("/api/chat", {{"model", "pocket"}, {"messages", Json::array()}, {"keep_alive", "10m"}}), "load");
  EXPECT_EQ(reason("/api/generate", {{"model", "pocket"}, {"prompt", ""}, {"keep_alive", 0}}), "unload");
  EXPECT_EQ(reason("/api/generate", {{"model", "pocket"}, {"keep_alive", "0s"}}), "unload");
  EXPECT_EQ(reason("/api/generate", {{"model", "pocket"}, {"keep_alive", -1}}), "load");
  EXPECT_TRUE(running().becomes_idle());
}

TEST_F(ollama, a_format_is_kept_and_tools_are_called_with_objects) {
  const Json schema = {{"type", "object"}, {"properties", {{"a", {{"enum", {1, 2}}}}}}, {"required", {"a"}},
                       {"additionalProperties", false}};
  const Json formed = post(port(), "/api/chat", with(question("hi", 60), {{"format", schema}})).json();
  EXPECT_EQ(Json::parse(formed["message"]["content"].get<std::string>(), nullptr, false)["a"].is_number(), true)
      << formed;
  const Json loose = post(port(), "/api/generate", {{"model", "pocket"}, {"prompt", "hi"}, {"format", "json"},
                                                    {"stream", false}, {"options", {{"num_predict", 4}}}}).json();
  EXPECT_EQ(loose["response"].get<std::string>().front(), '{') << loose;
  const Json call = {{"function", {{"name", "weather"}, {"arguments", {{"place", "Rome"}}}}}};
  const Json turns = Json::array({{{"role", "user"}, {"content", "hi"}},
                                  {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}},
                                  {{"role", "user"}, {"content", "and?"}}});
  EXPECT_EQ(post(port(), "/api/chat", with(question("hi", 3), {{"messages", turns}})).status, 200);
}

TEST_F(ollama, texts_become_vectors) {
  const Json two = post(port(), "/api/embed", {{"model", "pocket"}, {"input", {"a cat", "a dog"}}}).json();
  ASSERT_EQ(two["embeddings"].size(), 2u) << two;
  const Json other = post(port(), "/v1/embeddings", {{"input", {"a cat", "a dog"}}}).json();
  EXPECT_EQ(two["embeddings"][1], other["data"][1]["embedding"]);
  EXPECT_EQ(two["prompt_eval_count"], other["usage"]["prompt_tokens"]);
  const Json one =
      post(port(), "/api/embeddings", {{"model", "pocket"}, {"prompt", "a cat"}, {"options", {{"top_k", nullptr}}}})
          .json();
  EXPECT_EQ(one["embedding"], two["embeddings"][0]);
  EXPECT_EQ(post(port(), "/api/embed", {{"model", "pocket"}, {"input", Json::array()}}).json()["embeddings"].size(),
            0u);
  EXPECT_EQ(post(port(), "/api/embed", {{"model", "pocket"}, {"input", "x"}, {"dimensions", 4}})
                .json()["embeddings"][0]
                .size(),
            4u);
}

TEST_F(ollama, what_is_served_is_described) {
  const ClientReply root = ask(port(), "GET", "/");
  EXPECT_EQ(root.body, "Ollama is running");
  EXPECT_EQ(ask(port(), "HEAD", "/").status, 200);
  EXPECT_TRUE(ask(port(), "GET", "/api/version").json()["version"].is_string());
  const Json tags = ask(port(), "GET", "/api/tags").json();
  ASSERT_EQ(tags["models"].size(), 1u) << tags;
  const Json& model = tags["models"][0];
  EXPECT_EQ(model["model"], "pocket:latest");
  EXPECT_EQ(model["digest"].get<std::string>().size(), 64u);
  const Json running_now = ask(port(), "GET", "/api/ps").json()["models"][0];
  EXPECT_EQ(running_now["context_length"], running().engine().info().n_ctx);
  for (const char* name : {"model", "name"}) {
    const ClientReply shown = post(port(), "/api/show", {{name, model["model"]}});
    ASSERT_EQ(shown.status, 200) << shown.body;
    const Json info = shown.json()["model_info"];
    const std::string family = info["general.architecture"];
    EXPECT_EQ(info[family + ".context_length"], running().engine().info().n_ctx);
    EXPECT_EQ(shown.json()["capabilities"][0], "completion");
  }
  const std::vector<Json> pulled = lines_of(post(port(), "/api/pull", {{"model", "pocket"}}));
  ASSERT_FALSE(pulled.empty());
  EXPECT_EQ(pulled.back()["status"], "success");
  EXPECT_EQ(post(port(), "/api/pull", {{"model", "pocket"}, {"stream", false}}).json()["status"], "success");
}

TEST_F(ollama, models_are_not_changed_by_clients) {
  const std::string one = "the server has one model";
  for (const char* path : {"/api/copy", "/api/create", "/api/push", "/api/blobs/sha256:0"})
    expect_refused(path, R"({"model":"pocket"})", 400, one);
  const ClientReply reply = ask(port(), "DELETE", "/api/delete", R"({"model":"pocket"})");
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find(one), std::string::npos) << reply.body;
  expect_refused("/api/pull", R"({"model":"llama3.2"})", 400, "candor pull");
}

struct BadRequest {
  const char* path;
  const char* fields;  // of the body, behind the model
  const char* words;   // of the error
};

constexpr BadRequest kBadRequests[] = {
    {"/api/chat", R"("messages":"hi")", "messages"},
    {"/api/chat", R"("messages":{"role":"user"})", "messages"},
    {"/api/chat", R"("messages":[5])", "messages[0]"},
    {"/api/chat", R"("messages":[{}])", "messages[0].role"},
    {"/api/chat", R"("messages":[{"role":"alien","content":"x"}])", "messages[0].role"},
    {"/api/chat", R"("messages":[{"role":5,"content":"x"}])", "messages[0].role"},
    {"/api/chat", R"("messages":[{"role":"user","content":5}])", "messages[0].content"},
    {"/api/chat", R"("messages":[{"role":"user","content":[{"type":"text","text":"x"}]}])", "messages[0].content"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x","images":["AAAA"]}])", "images"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x","images":"AAAA"}])", "images"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x","thinking":5}])", "messages[0].thinking"},
    {"/api/chat", R"("messages":[{"role":"tool","content":"x"}])", "messages[0]"},
    {"/api/chat", R"("messages":[{"role":"tool","content":"x","tool_call_id":"a"}])", "tool_call_id"},
    {"/api/chat", R"("messages":[{"role":"tool","content":"x","tool_name":5}])", "tool_name"},
    {"/api/chat", R"("messages":[{"role":"user","tool_calls":[{"function":{"name":"f","arguments":{}}}]}])",
     "tool_calls"},
    {"/api/chat", R"("messages":[{"role":"assistant","tool_calls":{}}])", "tool_calls"},
    {"/api/chat", R"("messages":[{"role":"assistant","tool_calls":[5]}])", "tool_calls"},
    {"/api/chat", R"("messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":{}}}]}])", "name"},
    {"/api/chat", R"("messages":[{"role":"assistant","tool_calls":[{"function":{"name":5,"arguments":{}}}]}])", "name"},
    {"/api/chat",
     R"("messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f"}},{"id":"a","function":{"name":"f"}}]}])",
     "tool_calls has the id \"a\" twice"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"tools":{})", "tools"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"tools":[{}])", "tools[0]"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"tools":[{"function":{"name":""}}])", "tools[0]"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"tools":[{"function":{"name":"f","parameters":5}}])",
     "tools[0]"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"format":"yaml")", "format"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"format":5)", "format"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"format":{"type":"nothing"})", "format"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"stream":"yes")", "stream"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"think":true)", "does not support thinking"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"think":"high")", "does not support thinking"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"think":"deeply")", "think"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"think":5)", "think"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"keep_alive":"soon")", "keep_alive"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"keep_alive":"5")", "keep_alive"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"keep_alive":[])", "keep_alive"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"options":[])", "options"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"options":{"temperature":"warm"})",
     "options.temperature"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"options":{"temperature":-1})", "options.temperature"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"options":{"top_k":1.5})", "options.top_k"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"options":{"top_p":2})", "options.top_p"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"options":{"num_predict":"many"})",
     "options.num_predict"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"options":{"num_ctx":"large"})", "options.num_ctx"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"options":{"mirostat":1})", "Mirostat"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"options":{"seed":"x"})", "options.seed"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"options":{"stop":5})", "stop"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"options":{"stop":[5]})", "stop"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"logprobs":1)", "logprobs"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"top_logprobs":5)", "top_logprobs"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"logprobs":true,"top_logprobs":99)", "top_logprobs"},
    {"/api/chat", R"("messages":[{"role":"user","content":"x"}],"truncate":"no")", "truncate"},
    {"/api/generate", R"("prompt":5)", "prompt"},
    {"/api/generate", R"("prompt":["a"])", "prompt"},
    {"/api/generate", R"("prompt":"x","system":5)", "system"},
    {"/api/generate", R"("prompt":"x","raw":true,"system":"y")", "system"},
    {"/api/generate", R"("prompt":"x","raw":"yes")", "raw"},
    {"/api/generate", R"("prompt":"x","template":"{{ .Prompt }}")", "template"},
    {"/api/generate", R"("prompt":"x","suffix":"y")", "does not support insert"},
    {"/api/generate", R"("prompt":"x","images":["AAAA"])", "images"},
    {"/api/generate", R"("prompt":"x","context":"1 2")", "context"},
    {"/api/generate", R"("prompt":"x","context":[-1])", "context"},
    {"/api/generate", R"("prompt":"x","context":[2147483647])", "vocabulary"},
    {"/api/generate", R"("prompt":"x","context":[1.5])", "context"},
    {"/api/embed", R"("input":5)", "input"},
    {"/api/embed", R"("input":[{}])", "input"},
    {"/api/embed", R"("input":"x","dimensions":-1)", "dimensions"},
    {"/api/embed", R"("input":"x","dimensions":1000000)", "dimensions"},
    {"/api/embed", R"("input":"x","truncate":5)", "truncate"},
    {"/api/embed", R"("input":"x","options":5)", "options"},
    {"/api/embeddings", R"("prompt":["a","b"])", "prompt"},
    {"/api/embeddings", R"("prompt":5)", "prompt"},
    {"/api/pull", R"("stream":5)", "stream"},
};

TEST_F(ollama, bad_requests_are_refused_with_the_field_that_is_to_blame) {
  static_assert(std::size(kBadRequests) >= 55);
  for (const BadRequest& bad : kBadRequests)
    expect_refused(bad.path, std::string(R"({"model":"pocket",)") + bad.fields + "}", 400, bad.words);
  for (const char* path : {"/api/chat", "/api/generate", "/api/embed", "/api/embeddings", "/api/show", "/api/pull"}) {
    expect_refused(path, "", 400, "the body is empty");
    expect_refused(path, "[1]", 400, "not a JSON object");
    expect_refused(path, R"({"model":)", 400, "byte");
    expect_refused(path, "{}", 400, "model is missing");
    expect_refused(path, R"({"model":5})", 400, "model");
    if (std::string(path) != "/api/pull") expect_refused(path, R"({"model":"other"})", 404, "model 'other' not found");
  }
  EXPECT_TRUE(running().becomes_idle());
}

TEST_F(ollama, a_prompt_that_does_not_fit_is_refused_or_cut_where_asked_for) {
  const Json body = question(repeated("fox and hen ", 2000), 2);
  const ClientReply refused = post(port(), "/api/chat", body);
  EXPECT_EQ(refused.status, 400) << refused.body.substr(0, 300);
  EXPECT_NE(refused.json()["error"].get<std::string>().find("context"), std::string::npos) << refused.body;
  const Json cut = post(port(), "/api/chat", with(body, {{"truncate", true}})).json();
  EXPECT_NE(cut["warnings"].dump().find("left out"), std::string::npos) << cut;
}

TEST_F(ollama, a_client_that_leaves_frees_its_work) {
  {
    RawClient client(port());
    Json body = question("Tell me a story", 400);
    body["options"]["ignore_eos"] = true;
    body.erase("stream");
    const std::string text = body.dump();
    client.send("POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(text.size()) +
                "\r\n\r\n" + text);
    EXPECT_NE(client.read_until("\"done\":false").find("200 OK"), std::string::npos);
  }
  EXPECT_TRUE(running().becomes_idle());
}

}  // namespace
}  // namespace candor::testing
