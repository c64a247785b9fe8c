// Every field of every route, with every kind of value that nobody should send. Whatever comes back, it comes: a reply
// that is no fault of the server, and where it is a refusal, one that cost at most 2 s of processor time and 64 MB.

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>

#include "serve/client.h"

namespace candor::testing {
namespace {

constexpr double kMostSeconds = 2;
constexpr int64_t kMostBytes = 64 << 20;
#ifdef CANDOR_SANITIZED
constexpr double kSlower = 15;  // sanitizers, and -O0 for most of the server
constexpr int64_t kLarger = 6;
constexpr int kEvery = 30;
#else
constexpr double kSlower = 1;
constexpr int64_t kLarger = 1;
constexpr int kEvery = 5;
#endif

// One of so many pairs of field and value is sent: 1 for all of them, by CANDOR_ATTACK_EVERY. Neighbours differ from
// field to field.
size_t sent_every() {
  const char* text = std::getenv("CANDOR_ATTACK_EVERY");
  return static_cast<size_t>(std::max(1, text == nullptr ? kEvery : std::atoi(text)));
}

double process_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The most that was resident since the last call of forget_peak().
int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

void forget_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

struct Attack {
  std::string name;
  std::string value;  // JSON, or what pretends to be
};

std::string joined(std::string_view open, std::string_view item, size_t n, std::string_view close) {
  std::string text(open);
  for (size_t i = 0; i < n; ++i) {
    if (i > 0) text += ',';
    text += item;
  }
  return text.append(close);
}

std::string many_keys(size_t n, std::string_view value) {
  std::string text = "{";
  for (size_t i = 0; i < n; ++i) {
    text += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":";
    text += value;
  }
  return text + "}";
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

// Wrong types, huge, deep, many, not a number, long, Unicode.
const std::vector<Attack>& attacks() {
  static const std::vector<Attack> kAttacks = {
      {"true", "true"},
      {"zero", "0"},
      {"minus one", "-1"},
      {"fraction", "0.5"},
      {"tiny", "5e-324"},
      {"huge", "1e308"},
      {"2^63", "9223372036854775808"},
      {"-2^63", "-9223372036854775808"},
      {"300 digits", std::string(300, '9')},
      {"100000 digits", std::string(100'000, '9')},
      {"NaN", "NaN"},
      {"minus infinity", "-Infinity"},
      {"no text", "\"\""},
      {"text", "\"text\""},
      {"number as text", "\"1e999\""},
      {"1 MB of one letter", quoted(std::string(1u << 20, 'a'))},
      {"1 MB of escapes", quoted(repeated("\\u0001", 170'000))},
      {"1 MB of accents", quoted("a" + repeated("\xcc\x81", 500'000))},
      {"1 MB of emoji", quoted(repeated("\xf0\x9f\xa6\x8a", 250'000))},
      {"lone surrogate", "\"\\ud800\""},
      {"half a character", "\"\xf0\x9f\""},
      {"NUL", "\"a\\u0000b\""},
      {"private use", "\"\xee\x80\x80\xef\xbf\xbf\xf4\x8f\xbf\xbf\""},
      {"control tokens", "\"<|im_start|>system</s><think>[INST]\""},
      {"path", "\"../../../../etc/passwd\""},
      {"address", "\"http://127.0.0.1:1/x\""},
      {"no array", "[]"},
      {"array of null", "[null]"},
      {"100000 numbers", joined("[", "1", 100'000, "]")},
      {"100000 fractions", joined("[", "-1.5", 100'000, "]")},
      {"100000 texts", joined("[", "\"a\"", 100'000, "]")},
      {"100000 objects", joined("[", "{}", 100'000, "]")},
      {"120 deep", repeated("[", 120) + repeated("]", 120)},
      {"120 objects deep", repeated("{\"a\":", 120) + "1" + repeated("}", 120)},
      {"100000 deep", repeated("[", 100'000)},
      {"no object", "{}"},
      {"object of null", "{\"type\":null}"},
      {"alien type", "{\"type\":\"alien\",\"name\":5,\"function\":[],\"json_schema\":true}"},
      {"80000 keys", many_keys(80'000, "1")},
      {"10000 objects", many_keys(10'000, "{\"type\":\"object\"}")},
      {"the same key twice", "{\"a\":1,\"a\":2}"},
  };
  return kAttacks;
}

struct AttackedRoute {
  std::string path;
  std::string rest;  // the fields that make the request a small one where the attack is harmless
  std::vector<std::string> fields;
};

std::vector<std::string> generation_fields() {
  return {"model", "temperature", "top_k", "top_p", "min_p", "typical_p", "dynatemp_range", "dynatemp_exponent",
          "xtc_probability", "xtc_threshold", "repetition_penalty", "repeat_penalty", "repeat_last_n",
          "no_repeat_ngram_size", "dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n",
          "dry_sequence_breakers", "samplers", "allowed_token_ids", "bad_words", "logit_bias", "presence_penalty",
          "frequency_penalty", "seed", "stop", "stop_token_ids", "stop_scope", "min_tokens", "ignore_eos",
          "truncate_prompt_tokens", "use_beam_search", "length_penalty", "early_stopping", "best_of", "guided_json",
          "guided_regex", "guided_grammar", "grammar", "guided_choice", "structured_outputs", "json_schema",
          "response_format", "n_probs", "post_sampling_probs", "prompt_logprobs", "priority", "cache_salt",
          "speculate", "explain", "stream", "stream_options", "n", "user", "metadata", "no_such_field"};
}

std::vector<AttackedRoute> attacked_routes() {
  auto chat = generation_fields();
  for (const char* name : {"messages", "tools", "tool_choice", "functions", "function_call", "parallel_tool_calls",
                           "chat_template_kwargs", "reasoning_effort", "verbosity", "add_generation_prompt",
                           "continue_final_message", "logprobs", "top_logprobs", "modalities", "audio"}) {
    chat.emplace_back(name);
  }
  auto completion = generation_fields();
  for (const char* name : {"prompt", "suffix", "echo", "logprobs"}) completion.emplace_back(name);
  const std::string short_one = R"("max_tokens":1,"t_max_ms":200)";
  const std::string message = R"("messages":[{"role":"user","content":"hi"}])";
  return {
      {"/v1/chat/completions", message + "," + short_one, chat},
      {"/v1/chat/completions", message + R"(,"t_max_ms":100)", {"max_tokens", "max_completion_tokens", "n_predict"}},
      {"/v1/chat/completions", message + R"(,"max_tokens":1)", {"t_max_ms"}},
      {"/v1/completions", R"("prompt":"a",)" + short_one, completion},
      {"/v1/embeddings", R"("input":"a")", {"model", "input", "encoding_format", "dimensions", "pooling", "user"}},
      {"/tokenize",
       R"("content":"a")",
       {"content", "prompt", "messages", "tools", "add_special", "add_special_tokens", "parse_special", "with_pieces",
        "chat_template_kwargs", "model"}},
      {"/detokenize", R"("tokens":[1])", {"tokens", "model"}},
      {"/apply-template", message, {"messages", "tools", "chat_template_kwargs", "add_generation_prompt"}},
      {"/api/chat",
       message + R"(,"model":"pocket","options":{"num_predict":1})",
       {"tools", "think", "format", "stream", "keep_alive", "logprobs", "top_logprobs", "truncate", "shift", "name"}},
      {"/api/chat", R"("model":"pocket","options":{"num_predict":1})", {"messages"}},
      {"/api/generate",
       R"("model":"pocket","prompt":"a","options":{"num_predict":1})",
       {"system", "template", "suffix", "images", "raw", "context", "think", "format", "stream", "keep_alive",
        "truncate"}},
      {"/api/generate", R"("model":"pocket","options":{"num_predict":1})", {"prompt"}},
      {"/api/embed", R"("model":"pocket")", {"input", "options", "keep_alive", "dimensions", "truncate"}},
      {"/api/show", "", {"model", "name", "verbose"}},
      {"/api/pull", "", {"model", "name", "stream"}},
  };
}

// Without a member of that name of its own.
std::string without(const std::string& rest, const std::string& field) {
  const std::string key = "\"" + field + "\":";
  return rest.starts_with(key) && rest.find("]") == std::string::npos ? "" : rest;
}

class attack : public ServerTest {
 protected:
  // What is made once for a model, the vocabulary of constraints, is no cost of the request that comes first.
  void SetUp() override {
    Json body = user_says("hi", 1);
    body["guided_regex"] = "[a-z]*";
    ASSERT_EQ(post(port(), "/v1/chat/completions", body).status, 200);
  }
  void send(const AttackedRoute& route, const std::string& field, const Attack& one) {
    std::string rest = without(route.rest, field);
    if (field == "messages" && !route.path.starts_with("/api/")) rest = R"("max_tokens":1,"t_max_ms":200)";
    const std::string body = "{\"" + field + "\":" + one.value + (rest.empty() ? "" : "," + rest) + "}";
    const std::string what = route.path + " " + field + ": " + one.name;
    const int64_t before = trimmed_resident_bytes();  // gives back what the request before has left
    forget_peak();
    const double began = process_seconds();
    const ClientReply reply = ask(port(), "POST", route.path, body);
    const double seconds = process_seconds() - began;
    const int64_t grown = peak_bytes() - before;
    EXPECT_TRUE(reply.status >= 200 && reply.status < 500)
        << what << " -> " << reply.status << reply.body.substr(0, 200);
    EXPECT_LE(seconds, kMostSeconds * kSlower) << what << " -> " << reply.body.substr(0, 200);
    if (reply.status == 200) return;
    EXPECT_LE(grown, kMostBytes * kLarger) << what << " -> " << reply.body.substr(0, 200);
    EXPECT_LE(reply.body.size(), 4096u) << what << " -> " << reply.body.substr(0, 200);
    const Json json = reply.json();
    EXPECT_TRUE(json.is_object() && json.contains("error")) << what << " -> " << reply.body.substr(0, 200);
  }
};

TEST_F(attack, no_value_of_any_field_costs_much_or_is_a_fault_of_the_server) {
  size_t n_sent = 0;
  for (const AttackedRoute& route : attacked_routes()) {
    for (const std::string& field : route.fields) {
      for (const Attack& one : attacks()) {
        if (n_sent++ % sent_every() == 0) send(route, field, one);
      }
    }
  }
  std::printf("[ attacks ] %zu requests\n", n_sent / sent_every());
  EXPECT_TRUE(running().becomes_idle());
  EXPECT_EQ(post(port(), "/v1/chat/completions", user_says("hi")).status, 200);
}

// What stands inside of the fields that have parts.
TEST_F(attack, no_value_inside_of_a_field_costs_much_or_is_a_fault_of_the_server) {
  const std::vector<std::pair<std::string, std::string>> places = {
      {"messages", R"([{"role":@,"content":"x"}])"},
      {"messages", R"([{"role":"user","content":@}])"},
      {"messages", R"([{"role":"user","content":[{"type":"text","text":@}]}])"},
      {"messages", R"([{"role":"user","content":"x","name":@}])"},
      {"messages", R"([{"role":"user","content":"x","@@":@}])"},
      {"messages", R"([{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":@}])"},
      {"messages",
       R"([{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":@}}]}])"},
      {"tools", R"([{"type":"function","function":{"name":@}}])"},
      {"tools", R"([{"type":"function","function":{"name":"f","description":@}}])"},
      {"tools", R"([{"type":"function","function":{"name":"f","strict":true,"parameters":@}}])"},
      {"tool_choice", R"({"type":"function","function":{"name":@}})"},
      {"response_format", R"({"type":@})"},
      {"response_format", R"({"type":"json_schema","json_schema":{"name":"a","schema":@}})"},
      {"guided_json", R"({"type":"integer","multipleOf":@})"},
      {"guided_json", R"({"type":"integer","minimum":@})"},
      {"guided_json", R"({"type":"string","maxLength":@})"},
      {"guided_json", R"({"type":"string","pattern":@})"},
      {"guided_json", R"({"type":"object","required":@})"},
      {"guided_json", R"({"type":"object","properties":@})"},
      {"guided_json", R"({"type":"object","properties":{"a":@}})"},
      {"guided_json", R"({"enum":@})"},
      {"guided_json", R"({"allOf":@})"},
      {"guided_json", R"({"oneOf":@})"},
      {"guided_json", R"({"not":@})"},
      {"guided_json", R"({"$ref":@})"},
      {"guided_json", R"({"type":"array","items":@,"minItems":2})"},
      {"guided_json", R"({"type":"array","maxItems":@})"},
      {"structured_outputs", R"({"regex":@})"},
      {"structured_outputs", R"({"choice":@})"},
      {"structured_outputs", R"({"grammar":@})"},
      {"logit_bias", R"({"5":@})"},
      {"logit_bias", R"([[@,1]])"},
      {"stop", R"(["a",@])"},
      {"stop_token_ids", R"([1,@])"},
      {"bad_words", R"(["a",@])"},
      {"dry_sequence_breakers", R"(["a",@])"},
      {"samplers", R"(["top_k",@])"},
      {"chat_template_kwargs", R"({"enable_thinking":@})"},
      {"chat_template_kwargs", R"({"documents":@})"},
      {"stream_options", R"({"include_usage":@})"},
  };
  size_t n_sent = 0;
  for (const auto& [field, form] : places) {
    for (const Attack& one : attacks()) {
      if (n_sent++ % sent_every() != 0) continue;
      std::string value = form;
      const size_t at = value.find("@@");
      if (at != std::string::npos) value.replace(at, 2, "extra");
      value.replace(value.find('@'), 1, one.value);
      const std::string rest = field == "messages"
                                   ? R"("max_tokens":1,"t_max_ms":200)"
                                   : R"("messages":[{"role":"user","content":"hi"}],"max_tokens":1,"t_max_ms":200)";
      send({"/v1/chat/completions", rest, {}}, field, {form + " " + one.name, value});
    }
  }
  std::printf("[ attacks ] %zu requests\n", n_sent / sent_every());
  EXPECT_TRUE(running().becomes_idle());
}

}  // namespace
}  // namespace candor::testing
