// embed, rerank and classify, as they are typed.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {


std::string encoder(const std::string& name) {
  return project_file("tests/encoders/goldens/" + name).string();
}

std::vector<nlohmann::json> lines_of(const std::string& text) {
  std::vector<nlohmann::json> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(nlohmann::json::parse(text.substr(at, end - at), nullptr, false));
    at = end + 1;
  }
  return lines;
}

TEST(cli_reading, vectors_of_arguments_files_and_objects_are_the_same) {
  const TempFolder folder;
  const std::string file = (folder.path() / "texts.txt").string(), objects = (folder.path() / "texts.jsonl").string();
  std::ofstream(file) << "the engine\nwhy?\n";
  std::ofstream(objects) << R"({"body":"the engine"})" << "\n" << R"({"body":"why?"})" << "\n";
  const RunResult typed = run_candor({"embed", encoder("bert"), "the engine", "why?"});
  ASSERT_EQ(typed.exit_code, 0) << typed.err;
  const auto vectors = lines_of(typed.out);
  ASSERT_EQ(vectors.size(), 2u);
  EXPECT_EQ(vectors[0].size(), 32u);
  EXPECT_EQ(run_candor({"embed", encoder("bert"), "--file", file}).out, typed.out);
  EXPECT_EQ(run_candor({"embed", encoder("bert"), "--jsonl", objects, "--field", "body"}).out, typed.out);
  const auto named = lines_of(run_candor({"embed", encoder("bert"), "--json", "the engine", "why?"}).out);
  EXPECT_EQ(named.at(1)["embedding"], vectors[1]);
  const std::string npy = (folder.path() / "v.npy").string();
  EXPECT_EQ(run_candor({"embed", encoder("bert"), "--npy", npy, "--dimensions", "8", "the engine", "why?"}).exit_code, 0);
  std::ifstream array(npy, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(array)), {});
  EXPECT_EQ(bytes.size(), 128 + 2 * 8 * sizeof(float));
  EXPECT_NE(bytes.find("'shape': (2, 8)"), std::string::npos);
}

TEST(cli_reading, words_with_weights_and_tasks) {
  const RunResult words = run_candor({"embed", encoder("bge_m3"), "--sparse", "the engine reads"});
  EXPECT_EQ(words.exit_code, 0) << words.err;
  EXPECT_NE(words.out.find(':'), std::string::npos) << words.out;
  const auto object = lines_of(run_candor({"embed", encoder("bge_m3"), "--sparse", "--json", "the engine reads"}).out);
  ASSERT_EQ(object.size(), 1u);
  EXPECT_GT(object[0]["sparse"][0]["value"], 0.0);
  const std::string model = encoder("jina_v3_published");
  const RunResult plain = run_candor({"embed", model, "the engine"});
  const RunResult query = run_candor({"embed", model, "--task", "retrieval.query", "the engine"});
  EXPECT_EQ(query.exit_code, 0) << query.err;
  EXPECT_NE(query.out, plain.out);
}

TEST(cli_reading, documents_are_ranked_and_texts_labelled) {
  const RunResult ranked = run_candor({"rerank", encoder("bert_pairs"), "--json", "why?", "the engine", "a text", "--top", "1"});
  ASSERT_EQ(ranked.exit_code, 0) << ranked.err;
  ASSERT_EQ(lines_of(ranked.out).size(), 1u);
  const RunResult labelled = run_candor({"classify", encoder("distilbert"), "--json", "the engine"});
  ASSERT_EQ(labelled.exit_code, 0) << labelled.err;
  EXPECT_EQ(lines_of(labelled.out).at(0)["scores"].size(), 2u);
  const RunResult tokens = run_candor({"classify", encoder("bert_tokens"), "--json", "the engine"});
  EXPECT_GT(lines_of(tokens.out).at(0)["tokens"].size(), 3u);
}

struct Wrong {
  std::vector<std::string> arguments;
  const char* words;
};

TEST(cli_reading, what_is_wrong_is_one_line) {
  const std::string longest = [] {
    std::string text;
    for (int i = 0; i < 100; ++i) text += "engine ";
    return text;
  }();
  const Wrong kWrong[] = {
      {{"embed", encoder("bert"), longest}, "--truncate"},
      {{"embed", encoder("bert"), "--prompt-name", "other", "a"}, "query"},
      {{"embed", encoder("bert"), "--task", "retrieval.query", "a"}, "--adapter NAME=PATH"},
      {{"embed", encoder("jina_v3_published"), "--task", "poems", "a"}, "retrieval.query"},
      {{"embed", encoder("bert"), "--sparse", "a"}, "no sparse vectors"},
      {{"embed", encoder("bge_m3"), "--sparse", "--dimensions", "8", "a"}, "--sparse goes without"},
      {{"embed", encoder("bert"), "--dimensions", "33", "a"}, "32"},
      {{"embed", encoder("bert"), "--file", "nowhere.txt"}, "nowhere.txt"},
      {{"embed", encoder("bert"), "--file", "a", "b"}, "two ways"},
      {{"rerank", encoder("bert"), "a", "b"}, "no head"},
      {{"rerank", encoder("roberta_pairs"), "a", "b"}, "classifies"},
      {{"classify", encoder("bert"), "a"}, "no head"},
      {{"run", encoder("bert"), "a"}, "reads texts and writes none"},
  };
  for (const Wrong& wrong : kWrong) {
    const RunResult run = run_candor(wrong.arguments);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_NE(run.err.find(wrong.words), std::string::npos) << run.err;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
  const RunResult cut = run_candor({"embed", encoder("bert"), "--truncate", longest});
  EXPECT_EQ(cut.exit_code, 0);
  EXPECT_NE(cut.err.find("1 of 1 texts"), std::string::npos) << cut.err;
}

}  // namespace
}  // namespace candor::testing
