// What editors and web pages send that cannot run here, word for word as their sources write it: llama.vim, Continue
// (its providers for Ollama), Open WebUI (its Ollama connection and its reranker).

#include <gtest/gtest.h>

#include <string>

#include "serve/client.h"
#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

constexpr int kFirstMark = 300;  // the ids from here on are marks for filling in

// A small model that can fill in, and knows chats and tools.
class editors : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    TinyModelOptions model;
    model.vocab = 320;
    model.context_tokens = 512;
    uint64_t id = kFirstMark;
    for (const char* key : {"fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep"})
      model.extra_keys.push_back({std::string("tokenizer.ggml.") + key + "_token_id", formats::MetaValue(id++)});
    model.extra_keys.push_back(
        {"tokenizer.chat_template",
         std::string_view("{% for t in tools or [] %}{{ t | tojson }}<tool_call>{% endfor %}"
                          "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}")});
    folder_ = std::make_unique<TempFolder>();
    RunningOptions options = Running::defaults();
    options.engine.model_path = folder_->path() / "fim.gguf";
    ASSERT_TRUE(write_model(*make_tiny_model(model), options.engine.model_path));
    running_ = std::make_unique<Running>(options);
  }
  static void TearDownTestSuite() {
    running_.reset();
    folder_.reset();
  }
  static uint16_t port() { return running_->port(); }
  static Json answered(const char* path, const Json& body, const Headers& headers = {}) {
    const ClientReply reply = post(port(), path, body, headers);
    EXPECT_EQ(reply.status, 200) << path << " " << body << " -> " << reply.body;
    return reply.json();
  }
  static Json lines(const std::string& body) {
    Json list = Json::array();
    for (size_t at = 0; at < body.size();) {
      const size_t end = std::min(body.find('\n', at), body.size());
      list.push_back(Json::parse(body.substr(at, end - at), nullptr, false));
      at = end + 1;
    }
    return list;
  }
  static inline std::unique_ptr<TempFolder> folder_;
  static inline std::unique_ptr<Running> running_;
};

// Its model's name is empty, and so is its key, where the user sets none.
TEST_F(editors, llama_vim_gets_what_stands_between_and_may_warm_up) {
  const Headers headers = {"Content-Type: application/json", "Authorization: Bearer "};
  const Json extra = Json::array({{{"text", "int one();"}, {"time", Json::array({1, 2})}, {"filename", "one.h"}}});
  const Json warm = {{"id_slot", 0},
                     {"input_prefix", ""},
                     {"input_suffix", ""},
                     {"input_extra", extra},
                     {"prompt", ""},
                     {"n_predict", 0},
                     {"temperature", 0.0},
                     {"samplers", Json::array()},
                     {"stream", false},
                     {"cache_prompt", true},
                     {"t_max_prompt_ms", 1},
                     {"t_max_predict_ms", 1},
                     {"response_fields", {""}},
                     {"model", ""}};
  answered("/infill", warm, headers);
  Json fill = warm;
  fill.erase("temperature");
  fill.update({{"input_prefix", "int f() {\n"},
               {"input_suffix", "\n}\n"},
               {"prompt", "  ret"},
               {"n_predict", 12},
               {"stop", Json::array()},
               {"n_indent", 2},
               {"top_k", 40},
               {"top_p", 0.9},
               {"samplers", {"top_k", "top_p", "infill"}},
               {"t_max_prompt_ms", 500},
               {"t_max_predict_ms", 60000},
               {"response_fields",
                {"content", "timings/prompt_n", "timings/prompt_ms", "timings/prompt_per_token_ms",
                 "timings/prompt_per_second", "timings/predicted_n", "timings/predicted_ms",
                 "timings/predicted_per_token_ms", "timings/predicted_per_second", "truncated", "tokens_cached"}}});
  const Json filled = answered("/infill", fill, headers);
  EXPECT_TRUE(filled["content"].is_string()) << filled;
  for (const char* name : {"prompt_n", "prompt_ms", "prompt_per_second", "predicted_n", "predicted_per_second"})
    EXPECT_TRUE(filled.contains(std::string("timings/") + name)) << filled;
  EXPECT_EQ(filled["truncated"], false) << filled;
}

TEST_F(editors, continue_finds_out_that_a_gap_can_be_filled_and_has_it_filled) {
  const Json shown = answered("/api/show", {{"name", "pocket"}});
  EXPECT_NE(shown["template"].get<std::string>().find(".Suffix"), std::string::npos) << shown;
  EXPECT_NE(shown["capabilities"].dump().find("\"insert\""), std::string::npos) << shown;
  for (size_t at = 0; at < shown["parameters"].get<std::string>().size();) {
    const std::string all = shown["parameters"];
    const std::string line = all.substr(at, all.find('\n', at) - at);
    EXPECT_NE(line.find(' '), std::string::npos) << "a name and a value: " << line;
    at += line.size() + 1;
  }
  const Json options = {{"temperature", 0}, {"num_predict", 8}, {"num_ctx", 512}, {"stop", {"\n\n"}}};
  const Json gap = {{"model", "pocket"}, {"prompt", "int f() {"}, {"suffix", "}"}, {"options", options},
                    {"keep_alive", 1800}, {"stream", false}};
  const Json filled = answered("/api/generate", gap);
  const Json same = answered("/infill", {{"input_prefix", "int f() {"}, {"input_suffix", "}"}, {"n_predict", 8},
                                         {"temperature", 0}, {"stop", {"\n\n"}}});
  EXPECT_EQ(filled["prompt_eval_count"], same["tokens_evaluated"]);
  EXPECT_EQ(filled["response"], same["content"]);
  Json streamed = gap;
  streamed["stream"] = true;
  EXPECT_EQ(lines(post(port(), "/api/generate", streamed).body).back()["done"], true);
  for (const auto& [name, value] :
       {std::pair("raw", Json(true)), std::pair("system", Json("x")), std::pair("context", Json{1})}) {
    Json odd = gap;
    odd[name] = value;
    const ClientReply refused = post(port(), "/api/generate", odd);
    EXPECT_EQ(refused.status, 400) << refused.body;
    EXPECT_NE(refused.body.find("suffix"), std::string::npos) << refused.body;
  }
}

// Where an editor writes the marks itself, it asks raw: they are marks, and in a chat they stay text.
TEST_F(editors, control_tokens_of_a_raw_prompt_are_what_they_are) {
  const Json options = {{"num_predict", 1}, {"temperature", 0}};
  const Json body = {{"model", "pocket"}, {"prompt", "a</s>b"}, {"raw", true}, {"stream", false}, {"options", options}};
  const Json control = answered("/completion", {{"prompt", "a</s>b"}, {"n_predict", 0}});
  EXPECT_EQ(answered("/api/generate", body)["prompt_eval_count"], control["tokens_evaluated"]);
  const Json chat = {{"model", "pocket"}, {"stream", false}, {"options", options},
                     {"messages", Json::array({{{"role", "user"}, {"content", "a</s>b"}}})}};
  const Json other = {{"model", "pocket"}, {"stream", false}, {"options", options},
                      {"messages", Json::array({{{"role", "user"}, {"content", "a<xx>b"}}})}};
  EXPECT_EQ(answered("/api/chat", chat)["prompt_eval_count"], answered("/api/chat", other)["prompt_eval_count"]);
}

TEST_F(editors, continue_chats_with_tools_unstreamed) {
  const Json function = {{"name", "look"}, {"description", "looks"}, {"parameters", {{"type", "object"}}}};
  const Json tools = Json::array({{{"type", "function"}, {"function", function}}});
  const Json reply = answered("/api/chat", {{"model", "pocket"},
                                            {"messages", Json::array({{{"role", "user"}, {"content", "hi"}}})},
                                            {"options", {{"num_predict", 4}, {"num_ctx", 512}}},
                                            {"keep_alive", 1800},
                                            {"stream", false},
                                            {"tools", tools}});
  EXPECT_EQ(reply["message"]["role"], "assistant");
}

TEST_F(editors, open_webui_finds_models_chats_embeds_ranks_and_unloads) {
  EXPECT_TRUE(Json::parse(ask(port(), "GET", "/api/version").body)["version"].is_string());
  const Json tags = Json::parse(ask(port(), "GET", "/api/tags").body);
  const std::string model = tags["models"][0]["model"];
  EXPECT_EQ(model, "pocket:latest");
  EXPECT_EQ(Json::parse(ask(port(), "GET", "/api/ps").body)["models"][0]["model"], model);
  answered("/api/show", {{"model", model}, {"name", model}});
  const Json messages =
      Json::array({{{"role", "system"}, {"content", "Be kind"}}, {{"role", "user"}, {"content", "hi"}}});
  const ClientReply chat = post(port(), "/api/chat", {{"model", model}, {"messages", messages}, {"stream", true},
                                                      {"options", {{"num_predict", 4}, {"stop", {"#"}}}}});
  EXPECT_NE(chat.head.find("application/x-ndjson"), std::string::npos);
  EXPECT_EQ(lines(chat.body).back()["done"], true);
  const ClientReply openai = post(port(), "/v1/chat/completions",
                                  {{"model", model}, {"messages", messages}, {"stream", true}, {"max_tokens", 4}});
  EXPECT_EQ(openai.status, 200) << openai.body;
  EXPECT_EQ(answered("/api/embed", {{"model", model}, {"input", {"a", "b"}}, {"truncate", true}})["embeddings"].size(),
            2u);
  const Json ranked =
      answered("/v1/rerank", {{"model", model}, {"query", "a"}, {"documents", {"a", "b"}}, {"top_n", 2}});
  ASSERT_EQ(ranked["results"].size(), 2u);
  EXPECT_TRUE(ranked["results"][0]["index"].is_number() && ranked["results"][0]["relevance_score"].is_number());
  EXPECT_EQ(answered("/api/generate", {{"model", model}, {"keep_alive", 0}, {"prompt", ""}})["done_reason"], "unload");
  EXPECT_EQ(lines(post(port(), "/api/pull", {{"model", model}, {"insecure", true}}).body).back()["status"], "success");
}

}  // namespace
}  // namespace candor::testing
