// Objects of many keys, wherever a client may put one: read, checked and shown to the template in time linear in them.

#include <ctime>

#include "serve/client.h"
#include "serve/openai/requests.h"

namespace candor::testing {
namespace {

double thread_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string object_of(int n_keys) {
  std::string text = "{";
  for (int i = 0; i < n_keys; ++i) text += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\":1";
  return text + "}";
}

std::string chat_with(const std::string& fields) {
  return R"({"messages":[{"role":"user","content":"hi"}],)" + fields + "}";
}

std::string escaped(const std::string& text) {
  return Json(text).dump();
}

using BodyOf = std::string (*)(const std::string& object);

std::string in_kwargs(const std::string& object) {
  return chat_with("\"chat_template_kwargs\":" + object);
}
std::string in_tools(const std::string& object) {
  return chat_with(R"("tools":[{"type":"function","function":{"name":"f","parameters":)" + object + "}}]");
}
std::string in_a_tool(const std::string& object) {
  return chat_with(R"("tools":[{"function":{"name":"f"},"more":)" + object + "}]");
}
std::string in_a_forced_tool(const std::string& object) {
  return chat_with(R"("tool_choice":"required","tools":[{"function":{"name":"f"},"more":)" + object + "}]");
}
std::string in_arguments(const std::string& object) {
  return R"({"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"x","tool_calls":[{"id":"a","type":"function",)"
         R"("function":{"name":"f","arguments":)" +
         escaped(object) + "}}]},{\"role\":\"user\",\"content\":\"x\"}]}";
}
std::string in_the_body(const std::string& object) {
  return R"({"messages":[{"role":"user","content":"hi"}],)" + object.substr(1);
}
std::string in_a_message(const std::string& object) {
  return R"({"messages":[{"role":"user","content":"hi",)" + object.substr(1) + "]}";
}
std::string in_metadata(const std::string& object) {
  return chat_with("\"metadata\":" + object);
}

class many_keys : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    engine_ = std::move(*Engine::open(Running::defaults().engine));
    limits_ = {.model = "pocket", .n_ctx = engine_->info().n_ctx};
    terms_ = std::make_unique<serve::RequestTerms>(*engine_, limits_);
  }
  static void TearDownTestSuite() {
    terms_.reset();
    engine_.reset();
  }
  // Of this thread, from the bytes of a body to the prompt.
  static double seconds_of(const std::string& body) {
    const double began = thread_cpu_seconds();
    const auto json = serve::parse_body(body);
    EXPECT_TRUE(json);
    const auto request = serve::openai::parse_chat(*json, *terms_);
    EXPECT_TRUE(request) << (request ? "" : request.error().message);
    if (!request) return 0;
    const auto prompt = engine_->apply_template(std::get<ChatPrompt>(request->requests.front().prompt));
    EXPECT_TRUE(prompt) << (prompt ? "" : prompt.error().message);
    return thread_cpu_seconds() - began;
  }

  static inline std::unique_ptr<Engine> engine_;
  static inline serve::ApiLimits limits_;
  static inline std::unique_ptr<serve::RequestTerms> terms_;
};

TEST_F(many_keys, cost_in_proportion_wherever_they_stand) {
  for (const BodyOf body_of : {in_kwargs, in_tools, in_a_tool, in_a_forced_tool, in_arguments, in_the_body,
                               in_a_message, in_metadata}) {
    const std::string few = body_of(object_of(20'000));
    const std::string many = body_of(object_of(80'000));
    EXPECT_LT(seconds_of(many), 8 * seconds_of(few) + 0.1) << few.substr(0, 120);
  }
}

TEST_F(many_keys, named_twice_are_refused_without_showing_all_of_the_name) {
  const std::string name(1u << 20, 'x');
  const auto json = serve::parse_body("{\"" + name + "\":1,\"" + name + "\":2}");
  ASSERT_FALSE(json);
  EXPECT_NE(json.error().message.find("twice"), std::string::npos);
  EXPECT_LT(json.error().message.size(), 200u);
}

}  // namespace
}  // namespace candor::testing
