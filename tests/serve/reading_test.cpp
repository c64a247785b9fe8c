// Texts that are read: vectors, ranks and labels, in the shapes of TEI, Cohere, Jina, vLLM, OpenAI and Ollama, by small
// encoders; and what the wrong model answers.

#include <cmath>

#include "serve/client.h"

namespace candor::testing {
namespace {

Running& server_of(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Running>> running;
  auto& server = running[name];
  if (server == nullptr) {
    RunningOptions options = Running::defaults();
    options.engine.model_path = project_file("tests/encoders/goldens/" + name);
    options.service.limits.model = name;
    options.service.limits.ranks_by_likeness = false;
    server = std::make_unique<Running>(std::move(options));
  }
  return *server;
}

Json answered(const std::string& name, const std::string& path, const Json& body) {
  const ClientReply reply = post(server_of(name).port(), path, body);
  EXPECT_EQ(reply.status, 200) << path << ": " << reply.body;
  return reply.json();
}

const Json kTexts = {"the small engine", "naive cafes ask: why?", "a text of the engine"};

double length_of(const Json& vector) {
  double square = 0;
  for (const Json& x : vector) square += x.get<double>() * x.get<double>();
  return std::sqrt(square);
}

TEST(reading, vectors_are_the_same_in_every_shape) {
  const Json tei = answered("bert", "/embed", {{"inputs", kTexts}});
  ASSERT_EQ(tei.size(), 3u);
  ASSERT_EQ(tei[0].size(), 32u);
  EXPECT_NEAR(length_of(tei[0]), 1.0, 1e-5);
  const Json openai = answered("bert", "/v1/embeddings", {{"input", kTexts}});
  const Json ollama = answered("bert", "/api/embed", {{"model", "bert"}, {"input", kTexts}});
  const Json cohere = answered(
      "bert", "/v2/embed",
      {{"model", "bert"}, {"texts", kTexts}, {"input_type", "clustering"}, {"embedding_types", {"float", "base64"}}});
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(openai["data"][i]["embedding"], tei[i]);
    EXPECT_EQ(ollama["embeddings"][i], tei[i]);
    EXPECT_EQ(cohere["embeddings"]["float"][i], tei[i]);
  }
  EXPECT_EQ(cohere["embeddings"]["base64"].size(), 3u);
  const Json raw = answered("bert", "/embed", {{"inputs", kTexts[0]}, {"normalize", false}});
  EXPECT_GT(std::abs(length_of(raw[0]) - 1.0), 1e-2);
  const Json short_one = answered("bert", "/v1/embeddings", {{"input", "the engine"}, {"dimensions", 8}});
  EXPECT_EQ(short_one["data"][0]["embedding"].size(), 8u);
  EXPECT_NEAR(length_of(short_one["data"][0]["embedding"]), 1.0, 1e-5);
}

TEST(reading, prompts_stand_before_texts) {
  const Json named = answered("bert", "/embed", {{"inputs", "the engine"}, {"prompt_name", "query"}});
  EXPECT_EQ(named, answered("bert", "/embed", {{"inputs", "the query: the engine"}}));
  const Json typed = answered("bert", "/v2/embed", {{"texts", {"the engine"}}, {"input_type", "search_query"}});
  EXPECT_EQ(typed["embeddings"]["float"], named);
  const ClientReply unknown = post(server_of("bert").port(), "/embed", {{"inputs", "a"}, {"prompt_name", "other"}});
  EXPECT_EQ(unknown.status, 400);
  EXPECT_NE(unknown.body.find("query"), std::string::npos);
}

TEST(reading, tokens_have_vectors_and_sentences_likeness) {
  const Json all = answered("bert", "/embed_all", {{"inputs", {"the engine", "a"}}});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_GT(all[0].size(), all[1].size());
  EXPECT_EQ(all[0][0].size(), 32u);
  const Json alike = answered("bert", "/similarity",
                              {{"inputs", {{"source_sentence", "the engine"}, {"sentences", {"the engine", "why?"}}}}});
  ASSERT_EQ(alike.size(), 2u);
  EXPECT_NEAR(alike[0].get<double>(), 1.0, 1e-6);
  EXPECT_LT(alike[1], alike[0]);
}

TEST(reading, words_have_weights_and_tokens_vectors_of_their_own) {
  const Json words = answered("bge_m3", "/embed_sparse", {{"inputs", kTexts}});
  ASSERT_EQ(words.size(), 3u);
  ASSERT_FALSE(words[0].empty());
  for (const Json& word : words[0]) EXPECT_GT(word["value"], 0.0);
  EXPECT_LT(words[0].front()["index"], words[0].back()["index"]);
  EXPECT_EQ(answered("bge_m3", "/embed_sparse", {{"inputs", kTexts[1]}})[0], words[1]);
  EXPECT_EQ(answered("bge_m3", "/embed_all", {{"inputs", "a text"}})[0][0].size(), 16u);
  EXPECT_EQ(answered("bge_m3", "/embed", {{"inputs", "a text"}})[0].size(), 32u);
  EXPECT_EQ(answered("bert_splade", "/embed_sparse", {{"inputs", kTexts}}).size(), 3u);
}

TEST(reading, coheres_first_version_lists_vectors_where_no_types_are_asked_for) {
  const Json body = {{"texts", {"a text"}}, {"input_type", "search_document"}};
  const Json plain = answered("bert", "/v1/embed", body);
  EXPECT_EQ(plain["response_type"], "embeddings_floats");
  Json typed_body = body;
  typed_body["embedding_types"] = {"float"};
  const Json typed = answered("bert", "/v1/embed", typed_body);
  EXPECT_EQ(plain["embeddings"], typed["embeddings"]["float"]);
  EXPECT_EQ(answered("bert", "/v2/embed", body)["embeddings"]["float"], plain["embeddings"]);
}

TEST(reading, a_text_has_tokens_and_their_strings) {
  const Json tokens = answered("bert", "/v1/tokenize", {{"text", "the engine"}, {"model", "bert"}});
  ASSERT_FALSE(tokens["tokens"].empty());
  EXPECT_EQ(tokens["tokens"].size(), tokens["token_strings"].size());
  EXPECT_EQ(post(server_of("bert").port(), "/v1/tokenize", {{"text", std::string(70000, 'a')}}).status, 400);
  EXPECT_EQ(post(server_of("bert").port(), "/v1/tokenize", {{"text", 3}}).status, 400);
}

TEST(reading, a_task_is_an_adapter_and_its_prompt) {
  const std::string model = "jina_v3_published";
  const Json plain = answered(model, "/embed", {{"inputs", "the query: a text"}});
  const Json task = answered(model, "/embed", {{"inputs", "a text"}, {"task", "retrieval.query"}});
  const Json named =
      answered(model, "/embed", {{"inputs", "the query: a text"}, {"model", model + ":retrieval.query"}});
  EXPECT_NE(task, plain);
  EXPECT_EQ(task, named);
  const Json openai =
      answered(model, "/v1/embeddings", {{"model", model}, {"input", {"a text"}}, {"task", "retrieval.query"}});
  EXPECT_EQ(openai["data"][0]["embedding"], task[0]);
  const ClientReply list = ask(server_of(model).port(), "GET", "/lora-adapters", "");
  EXPECT_EQ(list.json().size(), 3u);
  EXPECT_EQ(list.json()[0]["prompt_prefix"], "the query: ");
}

TEST(reading, long_texts_are_refused_or_cut_and_that_is_said) {
  const std::string text = repeated("engine ", 200);
  const ClientReply refused = post(server_of("bert").port(), "/embed", {{"inputs", text}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("64"), std::string::npos);
  const ClientReply cut = post(server_of("bert").port(), "/embed", {{"inputs", {text, "a"}}, {"truncate", true}});
  EXPECT_EQ(cut.status, 200) << cut.body;
  EXPECT_NE(cut.head.find("x-candor-warnings: [\"1 of 2 texts were longer"), std::string::npos) << cut.head;
}

TEST(reading, documents_are_ranked_by_the_head) {
  const Json jina = answered("bert_pairs", "/v1/rerank",
                             {{"query", "why?"}, {"documents", kTexts}, {"top_n", 2}, {"return_documents", true}});
  ASSERT_EQ(jina["results"].size(), 2u);
  EXPECT_GE(jina["results"][0]["relevance_score"], jina["results"][1]["relevance_score"]);
  EXPECT_FALSE(jina.contains("warnings"));
  EXPECT_EQ(jina["results"][0]["document"]["text"], kTexts[jina["results"][0]["index"].get<size_t>()]);
  const Json cohere =
      answered("bert_pairs", "/v2/rerank", {{"model", "bert_pairs"}, {"query", "why?"}, {"documents", kTexts}});
  const Json tei = answered("bert_pairs", "/rerank", {{"query", "why?"}, {"texts", kTexts}});
  const Json raw = answered("bert_pairs", "/rerank", {{"query", "why?"}, {"texts", kTexts}, {"raw_scores", true}});
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(tei[i]["score"], cohere["results"][i]["relevance_score"]);
    const double logit = raw[i]["score"];
    EXPECT_NEAR(tei[i]["score"].get<double>(), 1.0 / (1.0 + std::exp(-logit)), 1e-12);
  }
  const Json score = answered("bert_pairs", "/v1/score", {{"text_1", "why?"}, {"text_2", kTexts}});
  const size_t best = tei[0]["index"];
  EXPECT_EQ(score["data"][best]["score"], tei[0]["score"]);
}

TEST(reading, a_decoder_that_answers_yes_ranks_documents) {
  const Json texts = {"the small engine", "a text"};
  const std::string model = "qwen3_reranker/model.gguf";
  const Json ranked = answered(model, "/v1/rerank", {{"query", "why?"}, {"documents", texts}});
  ASSERT_EQ(ranked["results"].size(), 2u);
  const Json raw = answered(model, "/rerank", {{"query", "why?"}, {"texts", texts}, {"raw_scores", true}});
  EXPECT_NEAR(ranked["results"][0]["relevance_score"].get<double>(),
              1.0 / (1.0 + std::exp(-raw[0]["score"].get<double>())), 1e-12);
  EXPECT_EQ(post(server_of(model).port(), "/v1/completions", {{"prompt", "a"}}).status, 400);
}

TEST(reading, labels_of_texts_pairs_and_tokens) {
  const Json one = answered("distilbert", "/predict", {{"inputs", "the engine"}});
  ASSERT_EQ(one.size(), 2u);
  EXPECT_GE(one[0]["score"], one[1]["score"]);
  EXPECT_NEAR(one[0]["score"].get<double>() + one[1]["score"].get<double>(), 1.0, 1e-9);
  EXPECT_TRUE(one[0]["label"].get<std::string>().starts_with("label "));
  const Json batch = answered("distilbert", "/predict", {{"inputs", {{"the engine"}, {"the engine", "why?"}}}});
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_EQ(batch[0], one);
  EXPECT_NE(batch[1], one);
  const Json vllm = answered("distilbert", "/classify", {{"model", "distilbert"}, {"input", {"the engine", "why?"}}});
  EXPECT_EQ(vllm["data"][0]["label"], one[0]["label"]);
  EXPECT_EQ(vllm["data"][0]["num_classes"], 2);
  const Json tokens = answered("bert_tokens", "/predict", {{"inputs", "the engine"}});
  ASSERT_GT(tokens.size(), 3u);  // with its marks
  EXPECT_TRUE(tokens[1]["entity"].get<std::string>().starts_with("label "));
}

struct Wrong {
  const char* model;
  const char* path;
  const char* body;
  const char* words;  // of the error
};

constexpr Wrong kWrong[] = {
    {"bert", "/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}]})", "chat template"},
    {"bert", "/v1/completions", R"({"prompt":"hi"})", "reads texts and writes none"},
    {"bert", "/completion", R"({"prompt":"hi"})", "reads texts and writes none"},
    {"bert", "/rerank", R"({"query":"a","texts":["b"]})", "no head that scores"},
    {"bert", "/v1/score", R"({"text_1":"a","text_2":["b"]})", "no head that scores"},
    {"bert", "/predict", R"({"inputs":"a"})", "no head that classifies"},
    {"roberta_pairs", "/rerank", R"({"query":"a","texts":["b"]})", "classifies, and scores no pairs"},
    {"bert_tokens", "/classify", R"({"input":"a"})", "those of tokens"},
    {"bert_pairs", "/rerank", R"({"query":"a","documents":[]})", "expected 1 to"},
    {"bert_pairs", "/v1/score", R"({"text_1":["a","b"],"text_2":["b"]})", "expected one, or as many"},
    {"distilbert", "/predict", R"({"inputs":["a","b","c"]})", "expected a text"},
    {"distilbert", "/predict", R"({"inputs":[["a","b","c"]]})", "expected a text"},
    {"bert", "/embed", R"({"inputs":5})", "inputs"},
    {"jina_v3_published", "/embed", R"({"inputs":"a","task":"poems"})", "expected an adapter that is loaded"},
    {"bert", "/embed_sparse", R"({"inputs":"a"})", "no sparse vectors"},
    {"bert_splade", "/v1/completions", R"({"prompt":"hi"})", "reads texts and writes none"},
    {"bert", "/embed", R"({})", "inputs is missing"},
    {"bert", "/embed", R"({"inputs":"a","pooling":"max"})", "mean, last, cls, weighted or model"},
    {"bert", "/embed", R"({"inputs":"a","truncate":"MIDDLE"})", "NONE, START or END"},
    {"bert", "/v2/embed", R"({"texts":["a"],"embedding_types":["int8"]})", "float or base64"},
    {"bert", "/similarity", R"({"inputs":"a"})", "inputs"},
    {"bert", "/similarity", R"({"inputs":{"sentences":["a"]}})", "source_sentence is missing"},
};

TEST(reading, refuses_what_the_model_cannot) {
  for (const Wrong& wrong : kWrong) {
    const ClientReply reply = ask(server_of(wrong.model).port(), "POST", wrong.path, wrong.body);
    EXPECT_GE(reply.status, 400) << wrong.path << " " << wrong.body << ": " << reply.body;
    EXPECT_LT(reply.status, 502) << wrong.path << " " << wrong.body;
    EXPECT_NE(reply.body.find(wrong.words), std::string::npos) << wrong.path << " " << wrong.body << ": " << reply.body;
  }
  Json many = Json::array();
  for (int i = 0; i < 10000; ++i) many.push_back("a");
  EXPECT_EQ(post(server_of("bert").port(), "/embed", {{"inputs", many}}).status, 400);
  EXPECT_TRUE(server_of("bert").becomes_idle());
}

}  // namespace
}  // namespace candor::testing
