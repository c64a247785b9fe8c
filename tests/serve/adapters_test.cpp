// Adapters as clients name them: as a model, behind the model's name, by numbers with scales and by names with scales;
// listed, loaded and dropped while the server runs.

#include <filesystem>
#include <fstream>
#include <future>

#include "serve/client.h"
#include "support/temp_folder.h"

namespace candor::testing::adapters {
namespace {

namespace fs = std::filesystem;

fs::path golden(const std::string& name) {
  return project_file("tests/adapters/goldens/" + name);
}

// A small model that knows chats.
const fs::path& base_model() {
  static const TempFolder folder;
  static const fs::path path = [] {
    const fs::path made = folder.path() / "base";
    fs::copy(goldens() / "llama", made);
    std::ifstream stream(made / "tokenizer_config.json");
    Json config = Json::parse(stream);
    config["chat_template"] = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}";
    std::ofstream(made / "tokenizer_config.json") << config.dump();
    return made;
  }();
  return path;
}

RunningOptions adapted(const fs::path& folder = {}) {
  RunningOptions options = Running::defaults();
  options.engine.model_path = base_model();
  options.engine.n_ctx = 128;
  options.service.limits.model = "base";
  options.service.limits.adapter_dir = folder;
  options.engine.adapters = {{"poet", golden("llama_all"), 1.0}, {"cook", golden("llama_dora"), 1.0}};
  return options;
}

class Adapters : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { running_ = std::make_unique<Running>(adapted()); }
  static void TearDownTestSuite() { running_.reset(); }
  static uint16_t port() { return running_->port(); }
  static inline std::unique_ptr<Running> running_;
};

Json asked(const std::string& model, const Json& more = Json::object()) {
  Json body = {
      {"model", model}, {"prompt", "the engine"}, {"max_tokens", 12}, {"temperature", 0}, {"ignore_eos", true}};
  body.update(more);
  return body;
}

Json answered(uint16_t port, const Json& body) {
  const ClientReply reply = post(port, "/v1/completions", body);
  EXPECT_EQ(reply.status, 200) << reply.body;
  return reply.json();
}
std::string text_of(uint16_t port, const Json& body) {
  return answered(port, body)["choices"][0]["text"];
}

TEST_F(Adapters, every_way_to_name_one_gives_the_same) {
  const std::string poet = text_of(port(), asked("poet")), cook = text_of(port(), asked("cook"));
  const std::string base = text_of(port(), asked("base"));
  EXPECT_NE(poet, base);
  EXPECT_NE(cook, base);
  EXPECT_NE(cook, poet);
  EXPECT_EQ(text_of(port(), asked("base:poet")), poet);
  EXPECT_EQ(text_of(port(), asked("base", {{"lora", {{{"id", 0}, {"scale", 1.0}}}}})), poet);
  EXPECT_EQ(text_of(port(), asked("base", {{"adapters", {"poet"}}})), poet);
  EXPECT_EQ(text_of(port(), asked("base", {{"adapters", {{{"name", "poet"}, {"scale", 1}}}}})), poet);
  EXPECT_EQ(text_of(port(), asked("base", {{"adapters", {{{"name", "poet"}, {"scale", 0}}}}})), base);
  const Json two = {{{"id", 0}, {"scale", 0.5}}, {{"id", 1}, {"scale", 0.75}}};
  EXPECT_EQ(text_of(port(), asked("base", {{"lora", two}})),
            text_of(port(),
                    asked("base",
                          {{"adapters", {{{"name", "cook"}, {"scale", 0.75}}, {{"name", "poet"}, {"scale", 0.5}}}}})));
  const ClientReply native = post(port(), "/completion",
                                  {{"prompt", "the engine"},
                                   {"n_predict", 12},
                                   {"temperature", 0},
                                   {"ignore_eos", true},
                                   {"lora", {{{"id", 0}, {"scale", 1.0}}}}});
  EXPECT_EQ(native.json()["content"], poet);
}

TEST_F(Adapters, those_of_one_batch_are_as_alone) {
  const char* names[] = {"poet", "base", "cook", "base:cook"};
  std::vector<std::string> alone;
  for (const char* name : names) alone.push_back(text_of(port(), asked(name)));
  std::vector<std::future<std::string>> together;
  for (int i = 0; i < 12; ++i) {
    together.push_back(std::async(std::launch::async, [&, i] { return text_of(port(), asked(names[i % 4])); }));
  }
  for (int i = 0; i < 12; ++i) EXPECT_EQ(together[static_cast<size_t>(i)].get(), alone[static_cast<size_t>(i % 4)]);
}

TEST_F(Adapters, replies_name_what_was_asked_and_fingerprints_differ) {
  const Json poet = answered(port(), asked("poet")), base = answered(port(), asked("base"));
  EXPECT_EQ(poet["model"], "poet");
  EXPECT_NE(poet["system_fingerprint"], base["system_fingerprint"]);
  EXPECT_EQ(poet["system_fingerprint"], answered(port(), asked("base:poet"))["system_fingerprint"]);
}

TEST_F(Adapters, lists_have_them) {
  const Json list = ask(port(), "GET", "/v1/models").json()["data"];
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0]["id"], "base");
  for (const Json& each : {list[1], list[2]}) EXPECT_EQ(each["parent"], "base");
  EXPECT_EQ(ask(port(), "GET", "/v1/models/poet").json()["id"], "poet");
  const Json numbers = ask(port(), "GET", "/lora-adapters").json();
  ASSERT_EQ(numbers.size(), 2u);
  EXPECT_EQ(numbers[0]["id"], 0);
  EXPECT_EQ(numbers[0]["name"], "poet");
  EXPECT_EQ(numbers[0]["scale"], 0.0);
}

TEST_F(Adapters, scales_that_hold_are_for_requests_that_say_nothing) {
  const std::string base = text_of(port(), asked("base")), poet = text_of(port(), asked("poet"));
  EXPECT_EQ(ask(port(), "POST", "/lora-adapters", R"([{"id":0,"scale":1}])").status, 200);
  EXPECT_EQ(ask(port(), "GET", "/lora-adapters").json()[0]["scale"], 1.0);
  EXPECT_EQ(text_of(port(), asked("base")), poet);
  EXPECT_EQ(text_of(port(), asked("base", {{"lora", Json::array()}})), base);
  EXPECT_EQ(ask(port(), "POST", "/lora-adapters", "[]").status, 200);
  EXPECT_EQ(text_of(port(), asked("base")), base);
}

TEST_F(Adapters, chats_sockets_and_other_words_know_them) {
  Json chat = {
      {"model", "poet"}, {"messages", {{{"role", "user"}, {"content", "hi"}}}}, {"max_tokens", 8}, {"temperature", 0}};
  const Json poet = post(port(), "/v1/chat/completions", chat).json();
  chat["model"] = "base";
  const Json base = post(port(), "/v1/chat/completions", chat).json();
  EXPECT_NE(poet["choices"][0]["message"]["content"], base["choices"][0]["message"]["content"]);
  EXPECT_EQ(post(port(), "/v1/messages", chat).status, 200);
  chat["model"] = "base:poet";
  const Json messages = post(port(), "/v1/messages", chat).json();
  EXPECT_EQ(messages["content"][0]["text"], poet["choices"][0]["message"]["content"]);
  const Json ollama = post(port(), "/api/chat",
                           {{"model", "poet"},
                            {"messages", chat["messages"]},
                            {"stream", false},
                            {"options", {{"num_predict", 8}, {"temperature", 0}}}})
                          .json();
  EXPECT_EQ(ollama["message"]["content"], poet["choices"][0]["message"]["content"]);
  const Json responses =
      post(port(), "/v1/responses", {{"model", "poet"}, {"input", "hi"}, {"max_output_tokens", 8}, {"temperature", 0}})
          .json();
  EXPECT_EQ(responses["output"][0]["content"][0]["text"], poet["choices"][0]["message"]["content"]);
}

TEST_F(Adapters, vectors_are_those_of_the_adapter) {
  const auto vector_of = [](const char* model) {
    return post(port(), "/v1/embeddings", {{"model", model}, {"input", "the engine"}}).json()["data"][0]["embedding"];
  };
  EXPECT_NE(vector_of("poet"), vector_of("base"));
  EXPECT_EQ(vector_of("poet"), vector_of("base:poet"));
}

struct Wrong {
  const char* path;
  const char* body;
  int status;
  const char* words;
};

TEST_F(Adapters, what_is_wrong_is_told) {
  const Wrong kWrong[] = {
      {"/v1/completions", R"({"model":"nobody","prompt":"a"})", 404, "nobody"},
      {"/v1/completions", R"({"model":"base:nobody","prompt":"a"})", 404, "base:nobody"},
      {"/v1/completions", R"({"model":"poet:poet","prompt":"a"})", 404, "poet:poet"},
      {"/v1/completions", R"({"model":"base","prompt":"a","lora":[{"id":7}]})", 400, "the adapter 7"},
      {"/v1/completions", R"({"model":"base","prompt":"a","lora":[{"scale":7}]})", 400, "without an id"},
      {"/v1/completions", R"({"model":"base","prompt":"a","lora":[{"id":0},{"id":0}]})", 400, "twice"},
      {"/v1/completions", R"({"model":"base","prompt":"a","lora":[0]})", 400, "objects"},
      {"/v1/completions", R"({"model":"base","prompt":"a","lora":[{"id":0,"scale":1e9}]})", 400, "scale"},
      {"/v1/completions", R"({"model":"base","prompt":"a","adapters":"poet"})", 400, "adapters"},
      {"/v1/completions", R"({"model":"base","prompt":"a","adapters":[5]})", 400, "adapters"},
      {"/v1/completions", R"({"model":"base","prompt":"a","adapters":["nobody"]})", 404, "'cook', 'poet'"},
      {"/lora-adapters", R"({"id":0})", 400, "no list"},
      {"/lora-adapters", R"([{"id":9,"scale":1}])", 400, "the adapter 9"},
      {"/v1/load_lora_adapter", R"({"lora_name":"x","lora_path":"/etc"})", 400, "--adapter-dir"},
      {"/v1/unload_lora_adapter", R"({"lora_name":"poet"})", 400, "--adapter-dir"}};
  for (const Wrong& wrong : kWrong) {
    const ClientReply reply = ask(port(), "POST", wrong.path, wrong.body);
    EXPECT_EQ(reply.status, wrong.status) << wrong.body << reply.body;
    EXPECT_NE(reply.body.find(wrong.words), std::string::npos) << wrong.body << reply.body;
  }
  EXPECT_TRUE(running_->becomes_idle());
}

TEST(adapter_folders, are_where_clients_load_adapters_from_and_nowhere_else) {
  const TempFolder folder;
  const fs::path inside = folder.path() / "adapters";
  fs::create_directories(inside);
  fs::copy(golden("llama_patterns"), inside / "new", fs::copy_options::recursive);
  fs::copy(golden("llama_patterns"), folder.path() / "secret", fs::copy_options::recursive);
  fs::create_directory_symlink(folder.path() / "secret", inside / "link");
  std::ofstream(inside / "text") << "no adapter";
  Running running(adapted(inside));
  const auto load = [&](const std::string& name, const std::string& path) {
    return post(running.port(), "/v1/load_lora_adapter", {{"lora_name", name}, {"lora_path", path}});
  };
  const std::string secret = (folder.path() / "secret").string();
  for (const std::string& path : std::vector<std::string>{"../secret", "link", secret, ".", "", "nowhere", "text",
                                                          "new/../../secret", "new/adapter_config.json/x"}) {
    const ClientReply reply = load("x", path);
    EXPECT_EQ(reply.status, 400) << path << reply.body;
  }
  fs::copy(golden("gpt2"), inside / "foreign", fs::copy_options::recursive);
  const ClientReply foreign = load("x", "foreign");
  EXPECT_NE(foreign.body.find("'foreign'"), std::string::npos) << foreign.body;
  EXPECT_EQ(foreign.body.find(folder.path().string()), std::string::npos) << foreign.body;
  EXPECT_EQ(load("a b", "new").status, 400);
  const ClientReply loaded = load("fresh", "new");
  EXPECT_EQ(loaded.status, 200) << loaded.body;
  EXPECT_EQ(load("fresh", "new").status, 400);
  EXPECT_EQ(load("other", (inside / "new").string()).status, 200);
  EXPECT_EQ(text_of(running.port(), asked("fresh")), text_of(running.port(), asked("other")));
  EXPECT_NE(text_of(running.port(), asked("fresh")), text_of(running.port(), asked("base")));
  EXPECT_EQ(ask(running.port(), "GET", "/v1/models").json()["data"].size(), 5u);
  EXPECT_EQ(post(running.port(), "/v1/unload_lora_adapter", {{"lora_name", "fresh"}}).status, 200);
  EXPECT_EQ(post(running.port(), "/v1/unload_lora_adapter", {{"lora_name", "fresh"}}).status, 404);
  EXPECT_EQ(post(running.port(), "/v1/completions", asked("fresh")).status, 404);
  EXPECT_TRUE(running.becomes_idle());
}

TEST(adapter_folders, one_that_is_unloaded_while_it_writes_ends_well) {
  Running running(adapted(golden("")));
  const Json body = asked("poet", {{"max_tokens", 100}});
  const std::string wanted = text_of(running.port(), body);
  auto text = std::async(std::launch::async, [&] { return text_of(running.port(), body); });
  while (running.engine().stats().n_running == 0 &&
         text.wait_for(std::chrono::milliseconds(0)) != std::future_status::ready) {
  }
  EXPECT_EQ(post(running.port(), "/v1/unload_lora_adapter", {{"lora_name", "poet"}}).status, 200);
  EXPECT_EQ(text.get(), wanted);
  EXPECT_EQ(post(running.port(), "/v1/completions", body).status, 404);
}

}  // namespace
}  // namespace candor::testing::adapters
