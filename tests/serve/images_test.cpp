// Images through every interface: one conversation, the same tokens; and what is refused, by the name of its part.

#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/base64.h"
#include "net/public_files.h"
#include "serve/client.h"
#include "support/scripted_server.h"
#include "support/temp_folder.h"
#include "vision/vision_golden.h"

namespace candor::testing {
namespace {

std::string golden_png() {
  std::ifstream stream(vision_golden("smolvlm") / "image.png", std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// A BMP of 8 x 8 pixels in one colour.
std::string small_bmp(char colour) {
  constexpr size_t kSide = 8;
  constexpr size_t kHead = 54;
  std::string file(kHead + 3 * kSide * kSide, colour);
  const auto put = [&](size_t at, size_t value, size_t n) {
    for (size_t i = 0; i < n; ++i) file[at + i] = static_cast<char>(value >> (8 * i) & 0xFF);
  };
  for (size_t i = 0; i < kHead; ++i) file[i] = '\0';
  file[0] = 'B';
  file[1] = 'M';
  put(2, file.size(), 4);
  put(10, kHead, 4);
  put(14, 40, 4);
  put(18, kSide, 4);
  put(22, kSide, 4);
  put(26, 1, 2);
  put(28, 24, 2);
  return file;
}

std::string data_url(const std::string& file, const std::string& type = "image/png") {
  return "data:" + type + ";base64," + formats::to_base64(file);
}

// A text, or the file of an image.
struct Part {
  std::string text{};
  std::string file{};
};
using Parts = std::vector<Part>;

Json chat_content(const Parts& parts, bool as_string = false) {
  Json content = Json::array();
  for (const Part& part : parts) {
    if (part.file.empty()) {
      content.push_back({{"type", "text"}, {"text", part.text}});
    } else {
      const Json url = data_url(part.file);
      content.push_back(
          {{"type", "image_url"}, {"image_url", as_string ? url : Json{{"url", url}, {"detail", "low"}}}});
    }
  }
  return content;
}

Json response_content(const Parts& parts) {
  Json content = Json::array();
  for (const Part& part : parts) {
    if (part.file.empty()) content.push_back({{"type", "input_text"}, {"text", part.text}});
    if (!part.file.empty()) content.push_back({{"type", "input_image"}, {"image_url", data_url(part.file)}});
  }
  return content;
}

Json message_content(const Parts& parts) {
  Json content = Json::array();
  for (const Part& part : parts) {
    if (part.file.empty()) {
      content.push_back({{"type", "text"}, {"text", part.text}});
      continue;
    }
    content.push_back(
        {{"type", "image"},
         {"source", {{"type", "base64"}, {"media_type", "image/png"}, {"data", formats::to_base64(part.file)}}}});
  }
  return content;
}

Json files_of(const Parts& parts) {
  Json files = Json::array();
  for (const Part& part : parts) {
    if (!part.file.empty()) files.push_back(formats::to_base64(part.file));
  }
  return files;
}

constexpr int kMost = 10;

Json user_turn(const Json& content) {
  return Json::array({{{"role", "user"}, {"content", content}}});
}

Json chat(Json messages) {
  return {{"messages", std::move(messages)}, {"max_tokens", kMost}, {"temperature", 0}, {"logprobs", true}};
}
Json response(Json input) {
  return {{"input", std::move(input)}, {"max_output_tokens", kMost}, {"temperature", 0}};
}
Json message(Json messages) {
  return {{"model", "smolvlm"}, {"messages", std::move(messages)}, {"max_tokens", kMost}, {"temperature", 0}};
}
Json ollama(Json body) {
  body["stream"] = false;
  body["options"] = {{"temperature", 0}, {"num_predict", kMost}, {"repeat_penalty", 1.0}};
  return body;
}

// What a reply told, whatever its words.
struct Told {
  std::string text;
  int64_t n_prompt = 0;
  bool operator==(const Told&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Told& told) {
  return out << told.n_prompt << " tokens: " << told.text;
}

class images : public ::testing::Test {
 protected:
  static RunningOptions smolvlm(const std::filesystem::path& folder = vision_golden("smolvlm")) {
    RunningOptions options = Running::defaults();
    options.engine.model_path = folder;
    options.service.limits.model = "smolvlm";
    return options;
  }
  static void SetUpTestSuite() { running_ = std::make_unique<Running>(smolvlm()); }
  static void TearDownTestSuite() { running_.reset(); }
  static uint16_t port() { return running_->port(); }

  static Json reply(const std::string& path, const Json& body) {
    const ClientReply got = post(port(), path, body);
    EXPECT_EQ(got.status, 200) << path << ": " << got.body;
    return got.status == 200 ? got.json() : Json();
  }
  static Told by_chat(const Json& messages) {
    const Json got = reply("/v1/chat/completions", chat(messages));
    if (got.is_null()) return {};
    return {got["choices"][0]["message"]["content"], got["usage"]["prompt_tokens"]};
  }
  static Told by_response(const Json& input) {
    const Json got = reply("/v1/responses", response(input));
    if (got.is_null()) return {};
    return {got["output"][0]["content"][0]["text"], got["usage"]["input_tokens"]};
  }
  static Told by_message(const Json& messages) {
    const Json got = reply("/v1/messages", message(messages));
    if (got.is_null()) return {};
    const Json& usage = got["usage"];
    return {got["content"][0]["text"],
            usage["input_tokens"].get<int64_t>() + usage["cache_read_input_tokens"].get<int64_t>()};
  }
  static Told by_ollama_chat(const Json& messages) {
    const Json got = reply("/api/chat", ollama({{"model", "smolvlm"}, {"messages", messages}}));
    return got.is_null() ? Told{} : Told{got["message"]["content"], got["prompt_eval_count"]};
  }
  static Told by_generate(Json body) {
    body["model"] = "smolvlm";
    const Json got = reply("/api/generate", ollama(std::move(body)));
    EXPECT_FALSE(got.contains("context"));
    return got.is_null() ? Told{} : Told{got["response"], got["prompt_eval_count"]};
  }
  static Told by_completion(const std::string& text, const Json& files) {
    const Json got = reply(
        "/completion",
        {{"prompt", {{"prompt_string", text}, {"multimodal_data", files}}}, {"n_predict", kMost}, {"temperature", 0}});
    if (got.is_null()) return {};
    return {got["content"], got["timings"]["prompt_n"].get<int64_t>() + got["timings"]["cache_n"].get<int64_t>()};
  }

  static inline std::unique_ptr<Running> running_;
};

TEST_F(images, between_texts_give_the_same_tokens_in_every_interface) {
  const Parts parts = {{"look "}, {{}, golden_png()}, {" and "}, {{}, small_bmp('a')}, {{}, small_bmp('z')},
                       {" what?"}};
  const Told expected = by_chat(user_turn(chat_content(parts)));
  EXPECT_GT(expected.n_prompt, 100);
  EXPECT_EQ(by_chat(user_turn(chat_content(parts, true))), expected) << "the URL as a string";
  EXPECT_EQ(by_response(user_turn(response_content(parts))), expected) << "responses";
  EXPECT_EQ(by_message(user_turn(message_content(parts))), expected) << "anthropic";
  EXPECT_EQ(by_completion("user: look <__media__> and <__media__><__media__> what?\nassistant:", files_of(parts)),
            expected)
      << "llama.cpp";
}

TEST_F(images, before_a_text_give_the_same_tokens_in_every_interface) {
  const Parts parts = {{{}, small_bmp('q')}, {{}, golden_png()}, {"what is it?"}};
  const Told expected = by_chat(user_turn(chat_content(parts)));
  const Json files = files_of(parts);
  EXPECT_EQ(by_ollama_chat(Json::array({{{"role", "user"}, {"content", "what is it?"}, {"images", files}}})), expected);
  EXPECT_EQ(by_generate({{"prompt", "what is it?"}, {"images", files}}), expected) << "generate";
  const Told raw = by_generate({{"prompt", " what?\nassistant:"}, {"raw", true}, {"images", files}});
  EXPECT_EQ(raw, by_completion("<__media__><__media__> what?\nassistant:", files)) << "raw";
  EXPECT_EQ(by_message(user_turn(message_content(parts))), expected);
}

TEST_F(images, keep_their_order) {
  const auto logprobs = [](const Parts& parts) {
    return reply("/v1/chat/completions", chat(user_turn(chat_content(parts))))["choices"][0]["logprobs"];
  };
  const std::string a = small_bmp('a');
  const std::string b = golden_png();
  EXPECT_EQ(logprobs({{{}, a}, {"x"}, {{}, b}}), logprobs({{{}, a}, {"x"}, {{}, b}}));
  EXPECT_NE(logprobs({{{}, a}, {"x"}, {{}, b}}), logprobs({{{}, b}, {"x"}, {{}, a}}));
}

// Behind the result, as the user's: templates show images there.
TEST_F(images, of_a_tools_result_are_shown_behind_it) {
  const Json call = {{"id", "c1"}, {"type", "function"}, {"function", {{"name", "look"}, {"arguments", "{}"}}}};
  const Parts shown = {{{}, golden_png()}, {"go on"}};
  const Told expected = by_chat({{{"role", "user"}, {"content", "look"}},
                                 {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}},
                                 {{"role", "tool"}, {"tool_call_id", "c1"}, {"content", "a picture"}},
                                 {{"role", "user"}, {"content", chat_content(shown)}}});
  const Json result = {{"type", "tool_result"},
                       {"tool_use_id", "c1"},
                       {"content", message_content({{"a picture"}, {{}, golden_png()}})}};
  const Json messages = {
      {{"role", "user"}, {"content", "look"}},
      {{"role", "assistant"},
       {"content", Json::array({{{"type", "tool_use"}, {"id", "c1"}, {"name", "look"}, {"input", Json::object()}}})}},
      {{"role", "user"}, {"content", Json::array({result, {{"type", "text"}, {"text", "go on"}}})}}};
  EXPECT_EQ(by_message(messages), expected);
  Json input = {{{"role", "user"}, {"content", "look"}},
                {{"type", "function_call"}, {"call_id", "c1"}, {"name", "look"}, {"arguments", "{}"}},
                {{"type", "function_call_output"},
                 {"call_id", "c1"},
                 {"output", response_content({{"a picture"}, {{}, golden_png()}})}},
                {{"role", "user"}, {"content", "go on"}}};
  EXPECT_EQ(by_response(input), expected);
  const Json got = reply("/v1/messages", message(messages));
  EXPECT_NE(got["warnings"].dump().find("messages[2].content[0].content[1].source is shown to the model behind"),
            std::string::npos)
      << got["warnings"];
  input.erase(3);
  EXPECT_GT(by_response(input).n_prompt, 50);
}

TEST_F(images, are_counted) {
  const int64_t n_rows = expected_of("smolvlm").at("n_rows").get<int64_t>();
  const Parts parts = {{{}, golden_png()}, {"what?"}};
  const Json got = reply("/v1/chat/completions", chat(user_turn(chat_content(parts))));
  EXPECT_EQ(got["usage"]["prompt_tokens_details"]["image_tokens"], n_rows);
  EXPECT_EQ(got["timings"]["image_n"], n_rows);
  EXPECT_GT(got["timings"]["images_ms"], 0.0);
  EXPECT_EQ(reply("/v1/responses",
                  response(user_turn(response_content(parts))))["usage"]["input_tokens_details"]["image_tokens"],
            n_rows);
  const Json text = reply("/v1/chat/completions", chat(user_turn("what?")));
  EXPECT_FALSE(text["usage"]["prompt_tokens_details"].contains("image_tokens"));
  EXPECT_FALSE(text["timings"].contains("images_ms"));
  Json streamed = chat(user_turn(chat_content(parts)));
  streamed.update({{"stream", true}, {"stream_options", {{"include_usage", true}}}});
  const std::vector<Json> events = post(port(), "/v1/chat/completions", streamed).events();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back()["usage"]["prompt_tokens_details"]["image_tokens"], n_rows);
  Json counted = message(user_turn(message_content(parts)));
  EXPECT_EQ(reply("/v1/messages/count_tokens", counted)["input_tokens"], got["usage"]["prompt_tokens"]);
  EXPECT_EQ(reply("/tokenize", {{"messages", user_turn(chat_content(parts))}})["count"], got["usage"]["prompt_tokens"]);
  const std::string metrics = ask(port(), "GET", "/metrics").body;
  for (const char* name :
       {"candor_images_encoded_total ", "candor_images_reused_total ", "candor_image_encode_seconds_total ",
        "candor_image_cache_bytes ", "candor_vision_tower_bytes "}) {
    const size_t at = metrics.find(std::string("\n") + name);
    ASSERT_NE(at, std::string::npos) << name;
    EXPECT_GT(std::stod(metrics.substr(at + 1 + std::string_view(name).size())), 0.0) << name;
  }
}

TEST_F(images, are_told_of_where_clients_look) {
  const auto get = [](const std::string& path) { return ask(port(), "GET", path).json(); };
  EXPECT_NE(get("/v1/models")["data"][0]["capabilities"].dump().find("\"vision\""), std::string::npos);
  EXPECT_NE(get("/api/tags")["models"][0]["capabilities"].dump().find("\"vision\""), std::string::npos);
  EXPECT_NE(reply("/api/show", {{"model", "smolvlm"}})["capabilities"].dump().find("\"vision\""), std::string::npos);
  EXPECT_EQ(get("/props")["modalities"]["vision"], true);
  EXPECT_EQ(get("/v1/ui/parameters")["model"]["images"], true);
  EXPECT_EQ(get("/v1/ui/parameters")["model"]["attention"], true);
}

void expect_refused(uint16_t port, const std::string& path, const Json& body, const std::string& words) {
  const ClientReply got = post(port, path, body);
  EXPECT_EQ(got.status, 400) << path << ": " << got.body.substr(0, 300);
  const Json error = got.json()["error"];
  const std::string said = error.is_string() ? error.get<std::string>() : error["message"].get<std::string>();
  EXPECT_NE(said.find(words), std::string::npos) << path << ": \"" << said << "\", expected \"" << words << "\"";
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  EXPECT_LT(said.size(), 500u);
}

struct BadUrl {
  std::string url;
  std::string words;
  bool names_part = true;  // else the image by its number
};

TEST_F(images, that_are_none_are_refused_by_the_name_of_their_part) {
  const std::string png = golden_png();
  const BadUrl kBad[] = {
      {"", "begins with \"\": expected the image itself"},
      {"data:", "is no data URL in base64"},
      {"data:image/png,abcd", "is no data URL in base64"},
      {"data:image/png;base64", "is no data URL in base64"},
      {"data:image/png;base64,", "holds no base64"},
      {"data:image/png;base64,iVBO Rw0", "holds no base64"},
      {"data:image/png;base64,iVBORw0=K", "holds no base64"},
      {"data:image/png;base64,====", "holds no base64"},
      {data_url(png) + "\n", "holds no base64"},
      {data_url(png, "text/plain"), "is of type \"text/plain\": expected an image"},
      {data_url(png, "application/pdf"), "is of type \"application/pdf\": expected an image"},
      {"file:///etc/passwd", "begins with \"file\": expected the image itself"},
      {"/etc/passwd", "begins with \"/etc/passwd\""},
      {"http://127.0.0.1/a.png", "is an address, and this server fetches no images"},
      {"HTTPS://example.org/a.png", "is an address, and this server fetches no images"},
      {data_url(png.substr(0, png.size() / 2)), "image 1: ", false},
      {data_url("no image at all"), "image 1: ", false},
      {data_url("%PDF-1.7 ..."), "image 1: ", false},
      {data_url("<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "image/svg+xml"), "image 1: ", false},
  };
  for (const BadUrl& bad : kBad) {
    const Json part = {{"type", "image_url"}, {"image_url", {{"url", bad.url}}}};
    const Json text = {{"type", "text"}, {"text", "x"}};
    const std::string at = bad.names_part ? "messages[0].content[1].image_url.url " : "";
    expect_refused(port(), "/v1/chat/completions", chat(user_turn(Json::array({text, part}))), at + bad.words);
    const Json input = {{"type", "input_image"}, {"image_url", bad.url}};
    expect_refused(port(), "/v1/responses", response(user_turn(Json::array({input}))),
                   (bad.names_part ? "input[0].content[0].image_url " : "") + bad.words);
    const Json block = {{"type", "image"}, {"source", {{"type", "url"}, {"url", bad.url}}}};
    expect_refused(port(), "/v1/messages", message(user_turn(Json::array({text, block}))),
                   (bad.names_part ? "messages[0].content[1].source.url " : "") + bad.words);
  }
  EXPECT_TRUE(running_->becomes_idle());
}

TEST_F(images, in_base64_alone_are_refused_by_the_name_of_their_part) {
  for (const Json& bad : {Json(""), Json("a b="), Json("iVBO\nRw0K"), Json(5), Json(nullptr), Json("%PDF")}) {
    const Json files = Json::array({formats::to_base64(golden_png()), bad});
    expect_refused(port(), "/api/chat",
                   ollama({{"model", "smolvlm"},
                           {"messages", Json::array({{{"role", "user"}, {"content", "x"}, {"images", files}}})}}),
                   "messages[0].images[1] ");
    expect_refused(port(), "/api/generate", ollama({{"model", "smolvlm"}, {"prompt", "x"}, {"images", files}}),
                   "images[1] ");
    expect_refused(port(), "/completion",
                   {{"prompt", {{"prompt_string", "<__media__><__media__>"}, {"multimodal_data", files}}}},
                   "prompt.multimodal_data[1] ");
  }
  const Json pdf = {{"type", "image"},
                    {"source", {{"type", "base64"}, {"media_type", "application/pdf"}, {"data", "AA=="}}}};
  expect_refused(port(), "/v1/messages", message(user_turn(Json::array({pdf}))),
                 "messages[0].content[0].source.media_type is \"application/pdf\", expected an image's");
  const Json one = Json::array({formats::to_base64(golden_png())});
  expect_refused(port(), "/completion", {{"prompt", {{"prompt_string", "no mark"}, {"multimodal_data", one}}}},
                 "the prompt has 0 marks <__media__>, and 1 images");
  expect_refused(port(), "/completion", {{"prompt", {{"multimodal_data", one}}}}, "prompt");
  expect_refused(port(), "/api/generate",
                 ollama({{"model", "smolvlm"}, {"prompt", "x"}, {"images", one}, {"context", {1, 2}}}),
                 "context has no place beside images");
  EXPECT_TRUE(running_->becomes_idle());
}

TEST_F(images, of_more_than_64_are_refused) {
  Json parts = Json::array();
  for (int i = 0; i < 65; ++i)
    parts.push_back({{"type", "image_url"}, {"image_url", {{"url", data_url(small_bmp('a'))}}}});
  expect_refused(port(), "/v1/chat/completions", chat(user_turn(parts)),
                 "messages[0].content[64].image_url.url is image 65, expected at most 64 in a request");
}

// A template that shows images of the user alone.
TEST_F(images, in_a_role_that_the_template_does_not_show_are_refused) {
  const TempFolder folder;
  std::filesystem::copy(vision_golden("smolvlm"), folder.path(), std::filesystem::copy_options::recursive);
  const std::filesystem::path path = folder.path() / "tokenizer_config.json";
  Json config = Json::parse(std::ifstream(path));
  config["chat_template"] =
      "{% for m in messages %}{{ m['role'] + ': ' }}{% if m['content'] is string %}{{ m['content'] }}{% else %}"
      "{% for part in m['content'] %}{% if part['type'] == 'text' %}{{ part['text'] }}{% elif m['role'] == 'user' %}"
      "{{ '<image>' }}{% endif %}{% endfor %}{% endif %}\n{% endfor %}assistant:";
  std::ofstream(path) << config.dump();
  Running running(smolvlm(folder.path()));
  const Json shown = chat_content({{{}, golden_png()}, {"x"}});
  for (const char* role : {"system", "assistant"}) {
    const Json messages = {{{"role", role}, {"content", shown}}, {{"role", "user"}, {"content", shown}}};
    const ClientReply got = post(running.port(), "/v1/chat/completions", chat(messages));
    EXPECT_EQ(got.status, 400);
    EXPECT_NE(got.body.find("has places for 1 images, and the messages hold 2"), std::string::npos) << got.body;
    EXPECT_NE(got.body.find(std::string(role) + " 1"), std::string::npos) << got.body;
  }
  EXPECT_EQ(post(running.port(), "/v1/chat/completions", chat(user_turn(shown))).status, 200);
  EXPECT_TRUE(running.becomes_idle());
}

TEST_F(images, for_a_text_model_are_refused_by_the_name_of_their_part) {
  Running running;
  const Parts parts = {{"x"}, {{}, golden_png()}};
  const std::string words = " is an image: this is a text model, it takes no images";
  const Json files = files_of(parts);
  Json body = message(user_turn(message_content(parts)));
  body["model"] = "pocket";
  expect_refused(running.port(), "/v1/chat/completions", chat(user_turn(chat_content(parts))),
                 "messages[0].content[1].image_url.url" + words);
  expect_refused(running.port(), "/v1/responses", response(user_turn(response_content(parts))),
                 "input[0].content[1].image_url" + words);
  expect_refused(running.port(), "/v1/messages", body, "messages[0].content[1].source.data" + words);
  expect_refused(running.port(), "/api/generate", ollama({{"model", "pocket"}, {"prompt", "x"}, {"images", files}}),
                 "images[0]" + words);
  expect_refused(running.port(), "/completion",
                 {{"prompt", {{"prompt_string", "<__media__>"}, {"multimodal_data", files}}}},
                 "prompt.multimodal_data[0]" + words);
  const auto get = [&](const std::string& path) { return ask(running.port(), "GET", path).json(); };
  EXPECT_EQ(get("/v1/models")["data"][0]["capabilities"].dump(), R"(["completion"])");
  EXPECT_EQ(get("/props")["modalities"]["vision"], false);
  EXPECT_EQ(get("/v1/ui/parameters")["model"]["images"], false);
  EXPECT_EQ(get("/v1/ui/parameters")["model"]["attention"], false);
}

// Where the server may fetch: from any address here, since the only other server is this test's.
TEST_F(images, by_address_are_fetched_where_that_is_allowed) {
  const std::string png = golden_png();
  const std::string answer = with_body("200 OK", png, "Content-Type: image/png\r\n");
  ScriptedServer files({{answer}, {answer}, {answer}, {with_body("200 OK", "<html>", "Content-Type: text/html\r\n")}});
  RunningOptions options = smolvlm();
  bool may_reach = true;
  options.service.limits.fetches_images = [&may_reach] {
    client::PublicFileRules rules;
    rules.may_reach = [&may_reach](std::span<const uint8_t>) { return may_reach; };
    const auto door = std::make_shared<client::PublicFileDoor>(rules);
    const auto session = std::make_shared<client::PublicFiles>(door);
    return serve::FetchImage([session](const std::string& url) { return session->fetch(url); });
  };
  Running running(options);
  const std::string url = files.url("/a.png");
  const Json part = {{"type", "image_url"}, {"image_url", {{"url", url}}}};
  const ClientReply got = post(running.port(), "/v1/chat/completions", chat(user_turn(Json::array({part}))));
  ASSERT_EQ(got.status, 200) << got.body;
  const Told expected = by_chat(user_turn(chat_content({{{}, png}})));
  EXPECT_EQ(got.json()["choices"][0]["message"]["content"], expected.text);
  const Json input = {{"type", "input_image"}, {"image_url", url}};
  EXPECT_EQ(post(running.port(), "/v1/responses", response(user_turn(Json::array({input})))).status, 200);
  const Json block = {{"type", "image"}, {"source", {{"type", "url"}, {"url", url}}}};
  EXPECT_EQ(post(running.port(), "/v1/messages", message(user_turn(Json::array({block})))).status, 200);
  expect_refused(running.port(), "/v1/chat/completions", chat(user_turn(Json::array({part}))),
                 "messages[0].content[0].image_url.url cannot be fetched: ");
  may_reach = false;
  expect_refused(running.port(), "/v1/chat/completions", chat(user_turn(Json::array({part}))),
                 "its address is not one of the public internet");
  expect_refused(running.port(), "/v1/chat/completions",
                 chat(user_turn(Json::array({{{"type", "image_url"}, {"image_url", "file:///etc/passwd"}}}))),
                 "begins with \"file\"");
}

}  // namespace
}  // namespace candor::testing
