// Streams that have nothing to say yet: while a prompt is read, and while what the model writes is held back.

#include <string>
#include <vector>

#include "serve/client.h"

namespace candor::testing {
namespace {

struct Case {
  const char* path;
  Json body;
  std::string sign;  // that the work goes on
  const char* word;  // the first of the answer itself
};

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// Each with a text of its own, so that no other's is found in the prefix cache.
std::vector<Case> cases() {
  const auto text = [](const char* words) { return repeated(words, 60); };
  const auto says = [&](const char* words) { return Json::array({{{"role", "user"}, {"content", text(words)}}}); };
  const Json greedy = {{"temperature", 0}, {"num_predict", 2}};
  return {
      {"/v1/chat/completions", {{"messages", says("a cat and a dog ")}}, "\"delta\":{\"content\":\"\"}", "[DONE]"},
      {"/v1/completions", {{"prompt", text("a dog and a cat ")}}, "\"text\":\"\"", "[DONE]"},
      {"/v1/messages", {{"messages", says("an ant and a bee ")}}, "event: ping", "content_block_start"},
      {"/v1/responses", {{"input", text("a bee and a cow ")}}, "event: response.in_progress", "output_item.added"},
      {"/api/chat",
       {{"model", "pocket"}, {"messages", says("one owl and a hen ")}, {"options", greedy}},
       "\"content\":\"\"},\"done\":false",
       "\"done\":true"},
      {"/api/generate",
       {{"model", "pocket"}, {"prompt", text("two hens and a ram ")}, {"options", greedy}},
       "\"response\":\"\",\"done\":false",
       "\"done\":true"},
      {"/completion", {{"prompt", text("the fox and a hen ")}}, "\"content\":\"\"", "\"stop\":true"},
  };
}

TEST(waiting, while_a_prompt_is_read_every_stream_says_so_again_and_again) {
  RunningOptions options = Running::defaults();
  options.service.quiet = std::chrono::milliseconds(4);
  options.engine.prefill_rows = 1;
  Running running(options);
  for (Case& one : cases()) {
    SCOPED_TRACE(one.path);
    one.body["stream"] = true;
    if (!one.body.contains("options")) one.body[one.body.contains("input") ? "max_output_tokens" : "max_tokens"] = 4;
    const std::string body = post(running.port(), one.path, one.body).body;
    const std::string before = body.substr(0, body.find(one.word));
    EXPECT_GE(count(before, one.sign), 2u) << body.substr(0, 2000);
  }
}

}  // namespace
}  // namespace candor::testing
