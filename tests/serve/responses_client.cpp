#include "serve/responses_client.h"

#include "serve/schema_check.h"
#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

constexpr const char* kTemplate =
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}"
    "{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif "
    "%}"
    "{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.name }}"
    "{% for k, v in c.function.arguments | items %} {{ k }}={{ v }}{% endfor %}</tool_call>{% endfor %}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

const SchemaCheck& facts() {
  static const SchemaCheck check("tests/serve/data/open_responses.json");
  return check;
}

void replace_ids(Json& value) {
  if (value.is_object()) {
    for (const char* name : {"id", "call_id", "item_id"}) {
      if (value.contains(name)) value[name] = "";
    }
  }
  if (value.is_structured()) {
    for (Json& inner : value) replace_ids(inner);
  }
}

// What the stream has told of one item, checked against the item in its end.
class ItemWatch {
 public:
  void take(const Json& event) {
    const std::string type = event["type"];
    if (type == "response.output_item.added") {
      EXPECT_FALSE(is_open_) << event;
      is_open_ = true;
      item_ = event["item"];
      text_.clear();
      EXPECT_EQ(item_["status"], "in_progress");
    }
    EXPECT_TRUE(is_open_) << event;
    EXPECT_EQ(event["output_index"], n_done_) << event;
    EXPECT_EQ(event.value("item_id", item_["id"]), item_["id"]) << event;
    EXPECT_EQ(event.value("content_index", 0), 0) << event;
    if (event.contains("delta")) text_ += event["delta"].get<std::string>();
    for (const char* name : {"text", "arguments", "input"}) {
      EXPECT_EQ(event.value(name, text_), text_) << event;
    }
    if (type == "response.output_item.done") close(event["item"]);
  }
  size_t n_done() const { return n_done_; }
  bool is_open() const { return is_open_; }

 private:
  void close(const Json& item) {
    EXPECT_EQ(item["id"], item_["id"]);
    const bool has_content = item.contains("content");
    ASSERT_TRUE(!has_content || item["content"].size() == 1) << item;
    const Json text = has_content              ? item["content"][0]["text"]
                      : item.contains("input") ? item["input"]
                                               : item["arguments"];
    EXPECT_EQ(text, text_) << item;
    is_open_ = false;
    ++n_done_;
  }

  bool is_open_ = false;
  size_t n_done_ = 0;
  Json item_;
  std::string text_;
};

bool is_of_response(const std::string& type) {
  for (const char* ending : {"created", "in_progress", "completed", "incomplete", "failed"}) {
    if (type == std::string("response.") + ending) return true;
  }
  return false;
}

}  // namespace

void expect_response(const Json& response) {
  EXPECT_EQ(facts().fault("response", response), "") << response;
}

Json expect_stream(const std::vector<Json>& events) {
  ItemWatch watch;
  Json last;
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(facts().fault("event", events[i]), "") << events[i];
    EXPECT_EQ(events[i]["sequence_number"], i) << events[i];
    const std::string type = events[i].value("type", "");
    EXPECT_TRUE(i != 0 || type == "response.created") << type;
    EXPECT_TRUE(i != 1 || type == "response.in_progress") << type;
    if (is_of_response(type)) {
      EXPECT_EQ(events[i]["response"]["output"].size(), watch.n_done());
    } else {
      watch.take(events[i]);
    }
    last = events[i];
  }
  EXPECT_FALSE(watch.is_open());
  const std::string type = last.value("type", "");
  EXPECT_TRUE(is_of_response(type) && type != "response.in_progress") << last;
  EXPECT_EQ("response." + last["response"]["status"].get<std::string>(), type);
  return last["response"];
}

std::vector<std::string> outline(const std::vector<Json>& events) {
  constexpr std::string_view kPrefix = "response.";
  std::vector<std::string> names;
  for (const Json& event : events) {
    const std::string name = event.value("type", "").substr(kPrefix.size());
    const bool is_repeated = name.ends_with(".delta") && !names.empty() && names.back() == name;
    if (!is_repeated) names.push_back(name);
  }
  return names;
}

Json without_ids(Json response) {
  replace_ids(response);
  for (const char* name : {"created_at", "completed_at", "timings"}) response.erase(name);
  if (response.contains("usage") && response["usage"].is_object()) response["usage"].erase("input_tokens_details");
  return response;
}

Json asks(const std::string& text, int max_output_tokens) {
  return {{"model", "pocket"}, {"input", text}, {"max_output_tokens", max_output_tokens}, {"temperature", 0}};
}

ClientReply post_response(uint16_t port, Json body) {
  body.erase("stream");
  return post(port, "/v1/responses", body);
}

std::vector<Json> stream_response(uint16_t port, Json body) {
  body["stream"] = true;
  const ClientReply reply = post(port, "/v1/responses", body);
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_NE(reply.head.find("text/event-stream"), std::string::npos);
  EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos);
  return reply.events();
}

Json whole_response(uint16_t port, Json& body) {
  Json response = Json::object();
  body["temperature"] = 0.7;
  for (int seed = 1; seed <= 30 && response.value("status", "") != "completed"; ++seed) {
    body["seed"] = seed;
    response = post_response(port, body).json();
    expect_response(response);
  }
  EXPECT_EQ(response["status"], "completed") << response;
  return response;
}

RunningOptions tool_model() {
  TinyModelOptions model{.dim = 32, .n_layers = 1, .n_heads = 2, .n_kv_heads = 1, .ffn_dim = 32};
  model.vocab = 320;
  model.context_tokens = 16384;
  model.extra_keys = {{"tokenizer.chat_template", std::string_view(kTemplate)}};
  static const TempFolder folder;
  const std::filesystem::path path = folder.path() / "tools.gguf";
  EXPECT_TRUE(write_model(*make_tiny_model(model), path).has_value());
  RunningOptions options = Running::defaults();
  options.engine.model_path = path;
  return options;
}

}  // namespace candor::testing
