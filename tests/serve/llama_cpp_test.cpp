// llama.cpp's routes: /completion, /infill, what the server says of itself, reranking; and lm-eval's /tokenizer_info.

#include <filesystem>
#include <utility>

#include "serve/client.h"
#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

constexpr const char* kStory = "Once upon a time there was a cat";

Json story(const Json& more = Json::object()) {
  Json body = {{"prompt", kStory}, {"n_predict", 12}, {"seed", 7},  {"temperature", 0.9},
               {"top_k", 30},     {"top_p", 0.9},    {"min_p", 0}, {"repeat_last_n", -1}};
  body.update(more);
  return body;
}

class llama_cpp : public ServerTest {
 protected:
  static Json complete(const Json& body, const char* path = "/completion") {
    const ClientReply reply = post(port(), path, body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json();
  }
};

TEST_F(llama_cpp, a_completion_has_the_tokens_of_the_openai_route_bit_for_bit) {
  Json other = story({{"max_tokens", 12}, {"logprobs", 2}});
  const Json theirs = complete(other, "/v1/completions")["choices"][0];
  for (const char* path : {"/completion", "/completions"}) {
    const Json ours = complete(story({{"n_probs", 2}, {"return_tokens", true}}), path);
    EXPECT_EQ(ours["content"], theirs["text"]);
    const Json& shown = ours["completion_probabilities"];
    ASSERT_EQ(shown.size(), theirs["logprobs"]["tokens"].size());
    ASSERT_EQ(shown.size(), ours["tokens"].size());
    for (size_t i = 0; i < shown.size(); ++i) {
      EXPECT_EQ(shown[i]["token"], theirs["logprobs"]["tokens"][i]);
      EXPECT_EQ(shown[i]["logprob"], theirs["logprobs"]["token_logprobs"][i]);
      EXPECT_EQ(shown[i]["id"], ours["tokens"][i]);
      EXPECT_EQ(shown[i]["top_logprobs"].size(), 2u);
    }
  }
}

TEST_F(llama_cpp, a_reply_has_every_part_and_says_what_was_used) {
  const Json reply = complete(story({{"cache_prompt", true}, {"id_slot", 0}}));
  for (const char* name : {"index", "content", "tokens", "stop", "stop_type", "stopping_word", "tokens_cached",
                           "tokens_evaluated", "tokens_predicted", "truncated", "timings", "generation_settings",
                           "model", "prompt", "has_new_line", "id_slot"}) {
    EXPECT_TRUE(reply.contains(name)) << name;
  }
  EXPECT_EQ(reply["stop_type"], "limit");
  EXPECT_EQ(reply["tokens_predicted"], 12);
  EXPECT_EQ(reply["prompt"], kStory);
  EXPECT_FALSE(reply["truncated"].get<bool>());
  const Json& settings = reply["generation_settings"];
  EXPECT_EQ(settings["temperature"], 0.9);
  EXPECT_EQ(settings["top_k"], 30);
  EXPECT_EQ(settings["seed"], 7);
  EXPECT_EQ(settings["n_predict"], 12);
  EXPECT_EQ(complete({{"prompt", kStory}, {"n_predict", 1}})["generation_settings"]["top_k"], 40);
}

TEST_F(llama_cpp, an_empty_grammar_is_none) {
  EXPECT_EQ(complete(story({{"grammar", ""}}))["content"], complete(story())["content"]);
}

TEST_F(llama_cpp, the_seed_that_was_made_gives_the_text_again) {
  const Json first = complete(story({{"seed", -1}}));
  const Json again = complete(story({{"seed", first["generation_settings"]["seed"]}}));
  EXPECT_EQ(first["content"], again["content"]);
}

TEST_F(llama_cpp, stops_are_told_apart) {
  const std::string text = complete(story({{"temperature", 0}}))["content"];
  const std::string word = text.substr(text.size() / 2, 2);
  const Json stopped = complete(story({{"temperature", 0}, {"stop", Json::array({"\x01", word})}}));
  EXPECT_EQ(stopped["stop_type"], "word");
  EXPECT_EQ(stopped["stopping_word"], word);
  EXPECT_EQ(stopped["content"], text.substr(0, text.find(word)));
}

TEST_F(llama_cpp, prompts_come_as_ids_mixed_and_in_lists) {
  const Json plain = complete(story());
  const Json ids = post(port(), "/tokenize", {{"content", kStory}, {"add_special", true}}).json()["tokens"];
  EXPECT_EQ(complete(story({{"prompt", ids}}))["content"], plain["content"]);
  const Json list = complete(story({{"prompt", Json::array({kStory, ids})}}));
  ASSERT_EQ(list.size(), 2u);
  for (size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i]["content"], plain["content"]);
    EXPECT_EQ(list[i]["index"], i);
  }
  const Json some = post(port(), "/tokenize", {{"content", "Once upon"}, {"add_special", true}}).json()["tokens"];
  Json joined = some;
  joined.push_back(ids[2]);
  const Json mixed = complete(story({{"prompt", Json::array({"Once upon", ids[2]})}}));
  EXPECT_EQ(mixed["tokens_evaluated"], joined.size());
  EXPECT_EQ(mixed["content"], complete(story({{"prompt", joined}}))["content"]);
}

TEST_F(llama_cpp, a_stream_has_the_text_of_the_whole_reply_and_ends_without_done) {
  const Json plain = complete(story({{"return_tokens", true}}));
  const ClientReply streamed = post(port(), "/completion", story({{"stream", true}}));
  EXPECT_EQ(streamed.body.find("[DONE]"), std::string::npos);
  std::string text;
  Json tokens = Json::array();
  Json last;
  for (const Json& event : streamed.events()) {
    text += event["content"];
    for (const Json& token : event["tokens"]) tokens.push_back(token);
    EXPECT_TRUE(last.is_null() || !last["stop"].get<bool>());
    last = event;
  }
  EXPECT_EQ(text, plain["content"]);
  EXPECT_EQ(tokens, plain["tokens"]);
  EXPECT_EQ(last["stop"], true);
  EXPECT_EQ(last["generation_settings"], plain["generation_settings"]);
  EXPECT_EQ(last["stop_type"], plain["stop_type"]);
}

TEST_F(llama_cpp, response_fields_pick_and_lead_into_objects) {
  const Json names = {"content", "timings/prompt_n", "generation_settings/top_k", "nothing", "content/of", ""};
  const Json reply = complete(story({{"response_fields", names}}));
  EXPECT_EQ(reply.size(), 3u) << reply;
  EXPECT_EQ(reply["generation_settings/top_k"], 30);
  EXPECT_TRUE(reply.contains("timings/prompt_n"));
}

TEST_F(llama_cpp, a_warm_up_reads_the_prompt_and_makes_nothing) {
  const std::string text = repeated("a warm and sunny day ", 12);
  const Json warm = complete({{"prompt", text}, {"n_predict", 0}});
  EXPECT_EQ(warm["content"], "");
  EXPECT_EQ(warm["tokens_predicted"], 0);
  EXPECT_EQ(warm["generation_settings"]["n_predict"], 0);
  const Json then = complete({{"prompt", text}, {"n_predict", 2}});
  EXPECT_GT(then["tokens_cached"], 0);
}

TEST_F(llama_cpp, samplers_name_the_stages_that_count) {
  const Json reply = complete(story({{"samplers", Json::array({"top_k", "top_p", "infill"})}, {"min_p", 0.2}}));
  EXPECT_EQ(reply["generation_settings"]["min_p"], 0);
  EXPECT_EQ(reply["generation_settings"]["temperature"], 1);
  const std::string warnings = reply["warnings"].dump();
  EXPECT_NE(warnings.find("infill"), std::string::npos);
  EXPECT_NE(warnings.find("min_p"), std::string::npos);
  EXPECT_NE(warnings.find("temperature"), std::string::npos);
}

TEST_F(llama_cpp, a_time_limit_cuts_between_tokens_and_says_so) {
  const Json lines = Json::array({Json::array({"\n", 4})});
  Json body = story({{"temperature", 0}, {"n_predict", 60}, {"return_tokens", true}, {"logit_bias", lines}});
  const Json whole = complete(body);
  body["t_max_predict_ms"] = 0.001;
  const Json cut = complete(body);
  const std::string text = cut["content"];
  EXPECT_TRUE(whole["content"].get<std::string>().starts_with(text));
  if (cut["tokens_predicted"] < whole["tokens_predicted"]) {
    EXPECT_NE(text.find('\n'), std::string::npos);  // a line is complete first
    EXPECT_EQ(cut["stop_type"], "limit");
    EXPECT_NE(cut["warnings"].dump().find("not reproducible"), std::string::npos);
    EXPECT_EQ(cut["tokens"].size(), cut["tokens_predicted"]);
  }
  const Json late = complete(story({{"prompt", repeated("never read to its end ", 30)}, {"t_max_prompt_ms", 0.001}}));
  EXPECT_EQ(late["content"], "");
  EXPECT_EQ(late["stop_type"], "limit");
  EXPECT_NE(late["warnings"].dump().find("not reproducible"), std::string::npos);
  EXPECT_TRUE(running().becomes_idle());
}

TEST_F(llama_cpp, what_it_says_of_itself) {
  const Json props = ask(port(), "GET", "/props").json();
  EXPECT_EQ(props["default_generation_settings"]["params"]["top_k"], 40);
  EXPECT_EQ(props["default_generation_settings"]["n_ctx"], running().engine().info().n_ctx);
  EXPECT_TRUE(props["chat_template"].is_string());
  EXPECT_EQ(ask(port(), "GET", "/lora-adapters").body, "[]");
  EXPECT_TRUE(ask(port(), "GET", "/slots?fail_on_no_slot=1").json().is_array());
  EXPECT_EQ(ask(port(), "POST", "/slots/0?action=save", "{}").status, 400);
  const Json info = ask(port(), "GET", "/tokenizer_info").json();
  const ModelInfo& model = running().engine().info();
  EXPECT_EQ(info["eos_token"], std::string(running().engine().piece(model.eos)));
  EXPECT_EQ(info["chat_template"], model.chat_template);
  EXPECT_TRUE(info.contains("bos_token") && info.contains("pad_token"));
  EXPECT_FALSE(model.chat_template.empty());
}

TEST_F(llama_cpp, pieces_are_the_text_of_their_tokens_or_bytes_of_it) {
  const std::string text = "the cat \xf0\x9f\x90\x88 sat";
  const Json reply = post(port(), "/tokenize", {{"content", text}, {"with_pieces", true}}).json();
  std::string joined;
  bool has_bytes = false;
  for (const Json& token : reply["tokens"]) {
    const Json& piece = token["piece"];
    has_bytes = has_bytes || piece.is_array();
    if (piece.is_string()) joined += piece.get<std::string>();
    for (const Json& byte : piece.is_array() ? piece : Json::array()) joined += static_cast<char>(byte.get<int>());
  }
  EXPECT_TRUE(joined == text || joined == " " + text) << joined;
  EXPECT_TRUE(has_bytes) << reply;
}

TEST(llama_cpp_slots, none_is_free_while_all_places_are_taken) {
  RunningOptions options = Running::defaults();
  options.engine.max_running = 1;
  options.engine.max_queued = 0;
  Running running(options);
  RawClient story(running.port());
  begin_story(story, 300);
  EXPECT_EQ(ask(running.port(), "GET", "/slots").status, 200);
  const int status = ask(running.port(), "GET", "/slots?fail_on_no_slot=1").status;
  EXPECT_TRUE(status == 503 || running.becomes_idle()) << status;
}

TEST_F(llama_cpp, documents_are_ranked_in_both_shapes) {
  const Json texts = {"a dog in the rain", "a cat", "numbers and sums"};
  Json first;
  for (const char* path : {"/rerank", "/reranking", "/v1/rerank", "/v1/reranking"}) {
    const Json jina = complete({{"query", "a cat"}, {"documents", texts}, {"top_n", 2}}, path);
    ASSERT_EQ(jina["results"].size(), 2u);
    EXPECT_EQ(jina["results"][0]["index"], 1);
    EXPECT_NEAR(jina["results"][0]["relevance_score"].get<double>(), 1.0, 1e-5);
    EXPECT_GE(jina["results"][0]["relevance_score"], jina["results"][1]["relevance_score"]);
    EXPECT_NE(jina["warnings"].dump().find("cosine"), std::string::npos);
    EXPECT_GT(jina["usage"]["total_tokens"], 0);
    first = jina;
  }
  const ClientReply reply = post(port(), "/rerank", {{"query", "a cat"}, {"texts", texts}, {"return_text", true}});
  EXPECT_NE(reply.head.find("x-candor-warnings: [\"scores are cosines"), std::string::npos);
  const Json tei = reply.json();
  ASSERT_EQ(tei.size(), 3u);
  EXPECT_EQ(tei[0]["text"], "a cat");
  EXPECT_EQ(tei[0]["score"], first["results"][0]["relevance_score"]);
}

struct BadLlama {
  const char* path;
  const char* fields;  // beside the good ones
  const char* param;   // "" where none is to blame
  int status = 400;
};

constexpr BadLlama kBadLlama[] = {
    {"/completion", R"("prompt":null)", "prompt"},
    {"/completion", R"("prompt":5)", "prompt"},
    {"/completion", R"("prompt":{})", "prompt"},
    {"/completion", R"("prompt":true)", "prompt"},
    {"/completion", R"("prompt":[])", "prompt"},
    {"/completion", R"("prompt":[[]])", "prompt"},
    {"/completion", R"("prompt":[-1])", "prompt"},
    {"/completion", R"("prompt":[1.5])", "prompt"},
    {"/completion", R"("prompt":[99999999])", "prompt"},
    {"/completion", R"("prompt":[1,true])", "prompt"},
    {"/completion", R"("prompt":["a",[1,null]])", "prompt"},
    {"/completion", R"("prompt":[1,["a"]])", "prompt"},
    {"/completion", R"("prompt":{"prompt_string":"a","multimodal_data":["x"]})", "prompt"},
    {"/completion", R"("n_predict":-2)", "n_predict"},
    {"/completion", R"("n_predict":1.5)", "n_predict"},
    {"/completion", R"("n_predict":"5")", "n_predict"},
    {"/completion", R"("temperature":-1)", "temperature"},
    {"/completion", R"("temperature":"hot")", "temperature"},
    {"/completion", R"("top_k":-2)", "top_k"},
    {"/completion", R"("top_p":1.1)", "top_p"},
    {"/completion", R"("min_p":-0.1)", "min_p"},
    {"/completion", R"("typical_p":2)", "typical_p"},
    {"/completion", R"("repeat_penalty":0)", "repeat_penalty"},
    {"/completion", R"("repeat_last_n":-2)", "repeat_last_n"},
    {"/completion", R"("seed":"x")", "seed"},
    {"/completion", R"("seed":1.5)", "seed"},
    {"/completion", R"("stop":5)", "stop"},
    {"/completion", R"("stop":[5])", "stop"},
    {"/completion", R"("stop":[""])", "stop"},
    {"/completion", R"("n_probs":21)", "n_probs"},
    {"/completion", R"("n_probs":-1)", "n_probs"},
    {"/completion", R"("logit_bias":[[1]])", "logit_bias"},
    {"/completion", R"("samplers":"kp")", "samplers"},
    {"/completion", R"("samplers":["best"])", "samplers"},
    {"/completion", R"("samplers":[5])", "samplers"},
    {"/completion", R"("mirostat":2)", "mirostat"},
    {"/completion", R"("mirostat":"on")", "mirostat"},
    {"/completion", R"("lora":[{"id":0,"scale":1}])", "lora"},
    {"/completion", R"("lora":"x")", "lora"},
    {"/completion", R"("t_max_predict_ms":-2)", "t_max_predict_ms"},
    {"/completion", R"("t_max_prompt_ms":"soon")", "t_max_prompt_ms"},
    {"/completion", R"("t_max_ms":-1)", "t_max_ms"},
    {"/completion", R"("response_fields":"content")", "response_fields"},
    {"/completion", R"("response_fields":[5])", "response_fields"},
    {"/completion", R"("return_tokens":"yes")", "return_tokens"},
    {"/completion", R"("return_progress":1)", "return_progress"},
    {"/completion", R"("stream":"yes")", "stream"},
    {"/completion", R"("n_indent":-1)", "n_indent"},
    {"/completion", R"("n_cmpl":0)", "n_cmpl"},
    {"/completion", R"("n":1000000)", "n"},
    {"/completion", R"("id_slot":-2)", "id_slot"},
    {"/completion", R"("cache_prompt":"no")", "cache_prompt"},
    {"/completion", R"("n_keep":-2)", "n_keep"},
    {"/completion", R"("grammar":5)", "grammar"},
    {"/completion", R"("grammar":"root ::= (")", "grammar"},
    {"/completion", R"("json_schema":{"type":"x"})", "json_schema"},
    {"/completion", R"("json_schema":{},"grammar":"root ::= \"a\"")", "grammar"},
    {"/completion", R"("model":"other")", "model", 404},
    {"/infill", R"("input_prefix":5)", "input_prefix"},
    {"/infill", R"("input_suffix":[])", "input_suffix"},
    {"/infill", R"("input_prefix":null)", "input_prefix"},
    {"/infill", R"("prompt":5)", "prompt"},
    {"/infill", R"("input_extra":"x")", "input_extra"},
    {"/infill", R"("input_extra":[5])", "input_extra"},
    {"/infill", R"("input_extra":[{"filename":"a"}])", "input_extra"},
    {"/infill", R"("input_extra":[{"filename":5,"text":"a"}])", "input_extra"},
    {"/infill", R"("n_predict":16)", ""},  // the vocabulary has no marks
    {"/rerank", R"("query":null)", "query"},
    {"/rerank", R"("query":5)", "query"},
    {"/rerank", R"("documents":null)", "documents"},
    {"/rerank", R"("documents":[])", "documents"},
    {"/rerank", R"("documents":"a")", "documents"},
    {"/rerank", R"("documents":[5])", "documents"},
    {"/rerank", R"("documents":[{"title":"a"}])", "documents"},
    {"/rerank", R"("texts":[null])", "texts"},
    {"/rerank", R"("top_n":0)", "top_n"},
    {"/rerank", R"("return_documents":"x")", "return_documents"},
    {"/rerank", R"("model":"other")", "model", 404},
};
static_assert(std::size(kBadLlama) >= 55);

TEST_F(llama_cpp, every_bad_field_is_refused_by_its_name) {
  for (const BadLlama& bad : kBadLlama) {
    const std::string path = bad.path;
    Json body = {{"prompt", "a"}, {"n_predict", 2}};
    if (path == "/infill") body = {{"input_prefix", "a"}, {"input_suffix", "b"}};
    if (path == "/rerank") body = {{"query", "a"}, {"documents", {"b"}}};
    body.update(Json::parse(std::string("{") + bad.fields + "}"));
    const ClientReply reply = post(port(), path, body);
    const std::string what = path + " " + bad.fields + " -> " + reply.body.substr(0, 300);
    EXPECT_EQ(reply.status, bad.status) << what;
    const Json json = reply.json();
    ASSERT_TRUE(json.is_object() && json.contains("error")) << what;
    EXPECT_FALSE(json["error"]["message"].get<std::string>().empty()) << what;
    EXPECT_EQ(json["error"]["param"], *bad.param == '\0' ? Json(nullptr) : Json(bad.param)) << what;
  }
  EXPECT_TRUE(running().becomes_idle());
}

// A small model whose vocabulary has marks for filling in: ids 300 to 305.
class llama_cpp_infill : public ::testing::Test {
 protected:
  static RunningOptions options(const TempFolder& folder) {
    TinyModelOptions model;
    model.vocab = 320;
    model.context_tokens = 256;
    const char* const kKeys[] = {"fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep"};
    uint64_t id = 300;
    for (const char* key : kKeys)
      model.extra_keys.push_back({std::string("tokenizer.ggml.") + key + "_token_id", formats::MetaValue(id++)});
    RunningOptions options = Running::defaults();
    options.engine.model_path = folder.path() / "fim.gguf";
    EXPECT_TRUE(write_model(*make_tiny_model(model), options.engine.model_path));
    options.service.limits.n_ctx = model.context_tokens;
    return options;
  }
  TempFolder folder_;
  Running running_{options(folder_)};

  Json fill(const Json& body) {
    const ClientReply reply = post(running_.port(), "/infill", body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json();
  }
  Json ids_of(const std::string& text) {
    return post(running_.port(), "/tokenize", {{"content", text}}).json()["tokens"];
  }
  static void append(Json& all, const Json& more) {
    for (const Json& id : more) all.push_back(id);
  }
};

TEST_F(llama_cpp_infill, the_prompt_is_made_of_the_marks) {
  Json ids = Json::array({1, 304});
  append(ids, ids_of("project\n"));
  ids.push_back(305);
  append(ids, ids_of("a.h\nint a;"));
  ids.push_back(305);
  append(ids, ids_of("filename\n"));
  ids.push_back(300);
  append(ids, ids_of("int f() {"));
  ids.push_back(301);
  append(ids, ids_of("}"));
  ids.push_back(302);
  const Json more = {{"n_predict", 8}, {"seed", 3}, {"return_tokens", true}};
  Json filled = {{"input_prefix", "int f()"},
                 {"prompt", " {"},
                 {"input_suffix", "}"},
                 {"input_extra", Json::array({{{"filename", "a.h"}, {"text", "int a;"}}})}};
  filled.update(more);
  Json plain = {{"prompt", ids}, {"stop_token_ids", {303, 304, 305, 300, 301, 302}}};
  plain.update(more);
  const Json reply = fill(filled);
  const ClientReply other = post(running_.port(), "/completion", plain);
  EXPECT_EQ(reply["tokens_evaluated"], ids.size());
  EXPECT_EQ(reply["tokens"], other.json()["tokens"]) << other.body;
}

TEST_F(llama_cpp_infill, marks_are_found_by_the_names_of_published_vocabularies) {
  TinyModelOptions model;
  model.vocab = 320;
  const auto file = make_tiny_model(model);
  const auto pieces = formats::meta_strings(*file, "tokenizer.ggml.tokens");
  const auto kinds = formats::meta_ints(*file, "tokenizer.ggml.token_type");
  ASSERT_TRUE(pieces && *pieces && kinds && *kinds);
  std::vector<std::string_view> named = **pieces;
  std::vector<int64_t> kinds_now = **kinds;
  constexpr int64_t kControl = 3;
  size_t id = 310;
  for (const char* name : {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>", "<reponame>"}) {
    named[id] = name;
    kinds_now[id++] = kControl;
  }
  named[315] = "<|fim_prefix|>";  // text of an ordinary piece is no mark
  file->set("tokenizer.ggml.tokens", formats::MetaArray(named));
  file->set_ints("tokenizer.ggml.token_type", kinds_now);
  EngineOptions options;
  options.model_path = folder_.path() / "named.gguf";
  options.n_threads = 1;
  ASSERT_TRUE(write_model(*file, options.model_path));
  const auto engine = Engine::open(options);
  ASSERT_TRUE(engine) << engine.error().message;
  const FimTokens& fim = (*engine)->info().fim;
  EXPECT_EQ(fim.prefix, 310);
  EXPECT_EQ(fim.suffix, 311);
  EXPECT_EQ(fim.middle, 312);
  EXPECT_EQ(fim.pad, 313);
  EXPECT_EQ(fim.repo, 314);
  EXPECT_EQ(fim.separator, -1);
}

TEST_F(llama_cpp_infill, what_has_no_room_is_said) {
  const Json reply = fill({{"input_prefix", repeated("p", 400)},
                           {"input_suffix", repeated("s", 400)},
                           {"input_extra", Json::array({{{"text", repeated("x", 300)}}})},
                           {"n_predict", 4}});
  const std::string warnings = reply["warnings"].dump();
  EXPECT_NE(warnings.find("of input_prefix the last"), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("input_extra"), std::string::npos) << warnings;
}

TEST(llama_cpp_progress, a_silent_stream_says_how_much_of_its_prompt_is_read) {
  RunningOptions options = Running::defaults();
  options.service.quiet = std::chrono::milliseconds(4);
  options.engine.prefill_rows = 1;
  Running running(options);
  const std::string text = repeated("a cat and a dog ", 60);
  for (const char* path : {"/completion", "/v1/chat/completions"}) {
    Json body = {{"stream", true}, {"return_progress", true}, {"n_predict", 2}, {"cache_salt", path}};
    if (std::string_view(path) == "/completion") {
      body["prompt"] = text;
    } else {
      body["messages"] = Json::array({{{"role", "user"}, {"content", text}}});
    }
    int64_t n_read = -1;
    bool was_between = false;
    const ClientReply reply = post(running.port(), path, body);
    for (const Json& event : reply.events()) {
      if (!event.contains("prompt_progress")) continue;
      const Json& progress = event["prompt_progress"];
      EXPECT_GE(progress["processed"], n_read);
      EXPECT_LE(progress["processed"], progress["total"]);
      EXPECT_EQ(progress["cache"], 0);
      n_read = progress["processed"];
      was_between = was_between || (n_read > 0 && progress["processed"] < progress["total"]);
    }
    EXPECT_TRUE(was_between) << path << " " << reply.body.substr(0, 400);
  }
}

}  // namespace
}  // namespace candor::testing
