// `candor explain`, `/explain` and `candor compare`: they tell what `run` and `chat` do, and change nothing of it.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/terminal/terminal.h"
#include "program.h"
#include "support/shared_data.h"

namespace candor::testing {
namespace {

using Json = nlohmann::json;
using Arguments = std::vector<std::string>;

Json json_of(const Arguments& arguments, const RunInput& input = {}) {
  const RunResult result = run_candor(arguments, input);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return Json::parse(result.out, nullptr, false);
}

Json tokens_of(const Json& explained) {
  Json tokens = Json::array();
  for (const Json& token : explained.at("tokens")) tokens.push_back(token.at("token"));
  return tokens;
}

TEST(explain_command, tells_of_the_tokens_that_run_gives) {
  for (const Arguments& more : std::vector<Arguments>{{"--seed", "5"},
                                                      {"--seed", "6", "--raw"},
                                                      {"--temperature", "0", "--system", "be brief"},
                                                      {"--seed", "7", "--temperature", "1.3", "--top-k", "40",
                                                       "--repeat-penalty", "1.2", "--xtc-probability", "0.5"},
                                                      {"--beams", "3"}}) {
    Arguments run = {"run", "Tell me a story about a fox", "-n", "12", "--json"}, explain = run;
    explain[0] = "explain";
    run.insert(run.end(), more.begin(), more.end());
    explain.insert(explain.end(), more.begin(), more.end());
    EXPECT_EQ(tokens_of(json_of(explain)), json_of(run).at("tokens")) << more.front() << " " << more.back();
  }
}

TEST(explain_command, reads_the_prompt_as_run_does) {
  const Json with = json_of({"explain", "hi", "-n", "1", "--json"});
  const Json raw = json_of({"explain", "hi", "-n", "1", "--json", "--raw"});
  EXPECT_GT(with["prompt"].size(), raw["prompt"].size());
  const RunResult idle = run_candor({"explain", "hi", "-n", "1", "--raw", "--system", "be brief"});
  EXPECT_NE(idle.err.find("--system has no effect"), std::string::npos) << idle.err;
}

TEST(explain_command, shows_what_each_stage_cut_and_changed) {
  const Arguments base = {"explain", "--raw", "the fox and the fox and the", "-n", "2", "--seed", "3", "--top-k", "5",
                          "--presence-penalty", "0", "--repeat-penalty", "1.5", "--temperature", "0.5"};
  Arguments as_json = base;
  as_json.push_back("--json");
  const Json first = json_of(as_json).at("tokens")[0];
  for (const Json& stage : first.at("stages")) {
    if (stage["name"] == "top_k") {
      EXPECT_EQ(stage["n_left"], 5);
      EXPECT_GT(stage["n_cut"], 100);
      EXPECT_FALSE(stage["cut"].empty());
      EXPECT_GT(stage["cut_probability"], 0.0);
    }
    if (stage["name"] == "penalties") {
      EXPECT_GT(stage["n_changed"], 1);
    }
    if (stage["name"] == "temperature") {
      const Json& before = first["stages"][1]["best"][0];
      EXPECT_NEAR(stage["best"][0]["logit"].get<double>(), before["logit"].get<double>() / 0.5, 1e-4);
    }
  }
  const std::string page = run_candor(base).out;
  for (const char* word : {"temperature 0.5: every logit becomes z / T", " text twice", " cut with 0.", " more cut",
                           "positions, all layers: rotary", "length ", "row "})
    EXPECT_NE(page.find(word), std::string::npos) << word << " not in:\n" << page;
}

TEST(explain_command, is_brief_where_that_is_asked_for) {
  const RunResult brief = run_candor({"explain", "hi", "-n", "3", "--seed", "1", "--level", "brief"});
  ASSERT_EQ(brief.exit_code, 0) << brief.err;
  EXPECT_LT(count_lines(brief.out), 10) << brief.out;
  EXPECT_NE(brief.out.find("     3 "), std::string::npos) << brief.out;
  EXPECT_EQ(run_candor({"explain", "hi", "--level", "loud"}).exit_code, 2);
}

TEST(explain_command, looks_inside_the_layers) {
  const Json json = json_of({"explain", "--raw", "Once upon a", "-n", "2", "--temperature", "0", "--attention",
                             "--layers", "--json"});
  ASSERT_FALSE(json.at("layers").empty());
  for (const Json& layer : json["layers"]) {
    ASSERT_EQ(layer.at("next").size(), 2u);
    ASSERT_FALSE(layer.at("heads").empty());
    double before = 2;
    for (const Json& one : layer["heads"][0]["best"]) {
      EXPECT_LE(one["share"].get<double>(), before);
      before = one["share"].get<double>();
      EXPECT_LT(one["position"].get<size_t>(), json["prompt"].size());
    }
  }
  // Behind the last layer stands what the model says: the token that was taken.
  EXPECT_EQ(json["layers"].back()["next"][0]["token"], json["tokens"][0]["token"]);
  EXPECT_EQ(json["layers"].back()["next"][1]["token"], json["tokens"][1]["token"]);
  const std::string page = run_candor({"explain", "--raw", "Once upon a", "-n", "1", "--attention", "--layers"}).out;
  EXPECT_NE(page.find("attention of the prompt's last token"), std::string::npos) << page;
  EXPECT_NE(page.find("layer 0"), std::string::npos);
}

TEST(explain_command, says_what_is_not_shown_of_other_layers) {
  for (const auto& [family, words] : std::vector<std::pair<const char*, const char*>>{
           {"qwen3_next", "layer 0: recurrent, looks at a state and at no position"},
           {"deepseek_v2", "key of all 4 heads"},
           {"gemma3", "sees the last 12 tokens"},
           {"bloom", "ALiBi"},
           {"gpt2", "a row of the table of positions"}}) {
    const std::string model = (goldens() / family / "model.gguf").string();
    const RunResult page = run_candor({"explain", model, "--raw", "hello you", "-n", "2", "--attention", "--layers"});
    ASSERT_EQ(page.exit_code, 0) << family << ": " << page.err;
    EXPECT_NE(page.out.find(words), std::string::npos) << words << " not in:\n" << page.out;
    EXPECT_NE(page.out.find(" head 0 "), std::string::npos) << page.out;
  }
}

TEST(run_command, shows_several_answers_and_logprobs) {
  const Arguments base = {"run", "Once upon a time", "-n", "6", "--seed", "4", "--answers", "3", "--logprobs", "2"};
  Arguments as_json = base;
  as_json.push_back("--json");
  const Json json = json_of(as_json);
  ASSERT_EQ(json["others"].size(), 2u);
  EXPECT_NE(json["tokens"], json["others"][0]["tokens"]);
  ASSERT_EQ(json["logprobs"].size(), json["tokens"].size());
  EXPECT_EQ(json["logprobs"][0]["top"].size(), 2u);
  EXPECT_LE(json["logprobs"][0]["logprob"], 0.0);
  const RunResult page = run_candor(base);
  for (const char* word : {"(1)", "(3)", "logprob"}) EXPECT_NE(page.out.find(word), std::string::npos) << page.out;
  EXPECT_NE(page.err.find("3 answers, 18 tokens"), std::string::npos) << page.err;
  Arguments beams = base;
  beams.insert(beams.end(), {"--beams", "3"});
  const RunResult refused = run_candor(beams);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--n-best"), std::string::npos) << refused.err;
  Arguments one = as_json;
  one[7] = "1";
  EXPECT_EQ(json_of(one)["tokens"], json["tokens"]) << "the first of several is the only one of one";
}

TEST(run_command, prints_a_seed_only_where_something_was_drawn) {
  const RunResult greedy = run_candor({"run", "hi", "-n", "3", "--temperature", "0"});
  EXPECT_EQ(greedy.err.find("seed"), std::string::npos) << greedy.err;
  EXPECT_TRUE(json_of({"run", "hi", "-n", "3", "--beams", "2", "--json"})["seed"].is_null());
  const RunResult drawn = run_candor({"run", "hi", "-n", "3"});
  for (const char* word : {"seed", "ITL", "queue", "template", "tokenise", "prefill"})
    EXPECT_NE(drawn.err.find(word), std::string::npos) << word << " not in: " << drawn.err;
}

TEST(chat_command, explains_its_last_answer) {
  const RunResult result = run_candor({"chat", "--seed", "5", "-n", "6"},
                                      {.stdin_text = "/explain\nHello!\n/explain\n/explain 2\n/explain 99\n"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("nothing to explain yet"), std::string::npos) << result.err;
  EXPECT_NE(result.out.find("others"), std::string::npos) << result.out;  // the brief table
  EXPECT_NE(result.out.find("6 token 2: from "), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("6 token 1: from "), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("\"99\" is no token"), std::string::npos) << result.err;
}

TEST(chat_command, sets_every_option_of_sampling) {
  const RunResult result = run_candor(
      {"chat", "-n", "4"},
      {.stdin_text =
           "/set repetition_penalty 1.2\n/set dry-multiplier 0.8\n/set samplers top_k\n/set samplers "
           "penalties,dry,temperature,top_p\n/set top_k 5\n/set stop END\n/set logit_bias 5=ban\n/set logit_bias "
           "x\n/set answers 2\n/set logprobs 1\n/set wild 3\n/set temperature hot\nHello\n/answer 2\n/answer 3\n"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* words :
       {"repetition_penalty 1.2", "dry_multiplier 0.8", "samplers leaves out", "leaves out top_k", "stop \"END\"",
        "1 biases", "\"x\" is no bias", "answers 2", "logprobs 1", "nothing is called \"wild\": temperature",
        "\"hot\" is not a number from 0 to 100", "goes on from answer 2", "\"3\" is no answer: there are 1 to 2"})
    EXPECT_NE(result.err.find(words), std::string::npos) << words << " not in: " << result.err;
  EXPECT_NE(result.out.find("(2)"), std::string::npos) << result.out;
}

TEST(compare_command, sets_answers_side_by_side_with_one_seed) {
  const Arguments base = {"compare", "Once upon a time", "-n", "12", "--with", "greedy", "--with", "creative", "--with",
                          "--temperature 2 --top-k 3", "--seed", "9"};
  Arguments as_json = base;
  as_json.push_back("--json");
  const Json json = json_of(as_json);
  ASSERT_EQ(json["answers"].size(), 3u);
  EXPECT_EQ(json["answers"][0]["tokens"],
            json_of({"run", "Once upon a time", "-n", "12", "--temperature", "0", "--json"})["tokens"]);
  EXPECT_EQ(json["answers"][1]["tokens"], json_of({"run", "Once upon a time", "-n", "12", "--preset", "creative",
                                                   "--seed", "9", "--json"})["tokens"]);
  for (const char* columns : {"80", "120"}) {
    const RunResult page = run_candor(base, {.environment = {std::string("COLUMNS=") + columns}});
    ASSERT_EQ(page.exit_code, 0) << page.err;
    EXPECT_NE(page.out.find("greedy"), std::string::npos) << page.out;
    for (size_t begin = 0; begin < page.out.size();) {
      const size_t end = page.out.find('\n', begin);
      EXPECT_LE(end - begin, std::stoul(columns)) << page.out;
      begin = end + 1;
    }
  }
}

TEST(compare_command, refuses_what_it_cannot_compare) {
  for (const auto& [arguments, word] : std::vector<std::pair<Arguments, std::string>>{
           {{"compare", "hi"}, "--with"},
           {{"compare", "hi", "--with", "a", "--with", "greedy"}, "\"a\""},
           {{"compare", "hi", "--with", "--temprature 1"}, "did you mean --temperature"},
           {{"compare", "hi", "--with", "--temperature hot"}, "hot"},
           {{"compare", "hi", "--with", "chat", "--with", "chat", "--with", "chat", "--with", "chat", "--with", "chat"},
            "5 were given"}}) {
    const RunResult result = run_candor(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
    EXPECT_NE(result.err.find(word), std::string::npos) << word << " not in: " << result.err;
  }
}

TEST(eval_command, reads_documents_one_by_one_and_control_tokens_when_asked) {
  const std::string text = "Once upon a time there was a fox.<|end|>The cat sat on the mat.";
  const Json plain = json_of({"eval", "--json", text});
  const Json parsed = json_of({"eval", "--json", "--parse-special", text});
  EXPECT_GT(plain["tokens"], parsed["tokens"]);
  const Json split = json_of({"eval", "--json", "--split-at", "<|end|>", text});
  ASSERT_EQ(split["documents"].size(), 2u);
  const Json first = json_of({"eval", "--json", "Once upon a time there was a fox."});
  EXPECT_EQ(split["documents"][0]["perplexity"], first["perplexity"]) << "as if it stood alone";
  EXPECT_EQ(run_candor({"eval", "--split-at", "", text}).exit_code, 2);
}

TEST(show_command, agrees_with_fit_about_keys_and_values) {
  const std::string show = run_candor({"show"}).out, fit = run_candor({"fit"}).out;
  const Json plan = json_of({"fit", "--json"});
  const uint64_t whole = plan["kv_bytes_per_token"], padding = plan["kv_padding_per_token"];
  EXPECT_NE(show.find(apps::format_bytes(whole - padding) + " a token in bf16"), std::string::npos) << show;
  ASSERT_GT(padding, 0u);  // the shipped model has an even number of heads in all
  EXPECT_NE(show.find(apps::format_bytes(whole) + " a token with the " + apps::format_bytes(padding) + " of padding"),
            std::string::npos)
      << show;
  EXPECT_NE(fit.find("of it padding"), std::string::npos) << fit;
}

TEST(help, tells_defaults) {
  const std::string help = run_candor({"run", "--help-all"}).out;
  for (const char* words : {"[0.7]", "[1.75]", "[auto]", "[stop]", "[chat]"})
    EXPECT_NE(help.find(words), std::string::npos) << words << " not in:\n" << help;
}

}  // namespace
}  // namespace candor::testing
