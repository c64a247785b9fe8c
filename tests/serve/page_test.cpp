// The page at "/" for browsers, and what it asks: parameters, figures.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "candor/presets.h"
#include "candor/sampling_table.h"
#include "serve/client.h"
#include "serve/core/step_history.h"

namespace candor::testing {
namespace {

const Headers kBrowser = {"Accept: text/html,application/xhtml+xml", "Accept-Encoding: gzip, deflate, br"};

class page : public ServerTest {};

std::string header_of(const ClientReply& reply, const std::string& name) {
  const size_t at = reply.head.find("\r\n" + name + ": ");
  if (at == std::string::npos) return {};
  const size_t begin = at + 2 + name.size() + 2;
  return reply.head.substr(begin, reply.head.find("\r\n", begin) - begin);
}

TEST_F(page, browsers_get_it_and_everybody_else_what_ollama_says) {
  const ClientReply shown = ask(port(), "GET", "/", {}, kBrowser);
  EXPECT_EQ(shown.status, 200);
  EXPECT_EQ(header_of(shown, "content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(header_of(shown, "content-encoding"), "gzip");
  EXPECT_EQ(shown.body.substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(ask(port(), "GET", "/", {}, {"Accept: */*"}).body, "Ollama is running");
  EXPECT_EQ(ask(port(), "GET", "/").body, "Ollama is running");
}

TEST_F(page, lets_nothing_in_from_elsewhere) {
  for (const char* path : {"/", "/ui/app.js", "/ui/app.css", "/ui/math.js", "/ui/pdf.js"}) {
    const std::string policy = header_of(ask(port(), "GET", path, {}, kBrowser), "content-security-policy");
    EXPECT_NE(policy.find("default-src 'none'; script-src 'self'; style-src 'self';"), std::string::npos) << path;
    EXPECT_NE(policy.find("require-trusted-types-for 'script'"), std::string::npos) << path;
    EXPECT_EQ(policy.find("unsafe"), std::string::npos) << path;
  }
}

TEST_F(page, is_not_sent_again_to_who_has_it) {
  const ClientReply first = ask(port(), "GET", "/ui/app.js", {}, kBrowser);
  Headers headers = kBrowser;
  headers.push_back("If-None-Match: " + header_of(first, "etag"));
  const ClientReply second = ask(port(), "GET", "/ui/app.js", {}, headers);
  EXPECT_EQ(second.status, 304);
  EXPECT_EQ(second.body, "");
  EXPECT_LT(first.body.size(), 150'000u);
}

TEST_F(page, scripts_that_are_loaded_late_are_scripts_of_their_own) {
  for (const char* path : {"/ui/math.js", "/ui/pdf.js"}) {
    const ClientReply reply = ask(port(), "GET", path, {}, kBrowser);
    EXPECT_EQ(reply.status, 200) << path;
    EXPECT_EQ(header_of(reply, "content-type"), "text/javascript; charset=utf-8") << path;
    EXPECT_EQ(reply.body.substr(0, 2), "\x1f\x8b") << path;
  }
}

TEST_F(page, who_takes_no_gzip_is_told) {
  const ClientReply reply = ask(port(), "GET", "/ui/app.js", {}, {"Accept-Encoding: identity"});
  EXPECT_EQ(reply.status, 406);
  EXPECT_NE(reply.body.find("Accept-Encoding: gzip"), std::string::npos);
}

TEST_F(page, parameters_are_the_engines_table) {
  const Json json = Json::parse(ask(port(), "GET", "/v1/ui/parameters").body);
  ASSERT_EQ(json["numbers"].size(), std::size(kSamplingNumbers));
  for (size_t i = 0; i < std::size(kSamplingNumbers); ++i) {
    const SamplingNumber& number = kSamplingNumbers[i];
    EXPECT_EQ(json["numbers"][i]["name"], number.name);
    EXPECT_EQ(json["numbers"][i]["least"], number.api_least);
    EXPECT_EQ(json["numbers"][i]["most"], number.api_most);
    EXPECT_EQ(json["numbers"][i]["help"], number.help);
  }
  EXPECT_EQ(json["presets"].size(), std::size(kSamplingPresets));
  EXPECT_EQ(json["stages"].front(), "penalties");
}

TEST_F(page, figures_count_what_was_asked) {
  const auto live = [] { return Json::parse(ask(port(), "GET", "/v1/ui/live").body); };
  const int64_t before = live()["sampled_tokens"].get<int64_t>();
  ASSERT_EQ(post(port(), "/v1/chat/completions", user_says("Tell me a story", 9)).status, 200);
  ASSERT_TRUE(running().becomes_idle());
  const Json after = live();
  EXPECT_EQ(after["sampled_tokens"], before + 9);
  EXPECT_EQ(after["running"], 0);
  EXPECT_GT(after["kv_blocks"]["total"], 0);
  EXPECT_GT(after["tpot_ms"]["count"], 0);
}

TEST_F(page, a_stage_shows_what_it_cut_as_it_was) {
  Json body = user_says("Tell me a story", 1);
  body["explain"] = true;
  body["temperature"] = 0.7;
  body["top_k"] = 3;
  const Json reply = Json::parse(post(port(), "/v1/chat/completions", body).body);
  const Json& stages = reply["choices"][0]["explain"][0]["stages"];
  const Json& before = stages[stages.size() - 2];
  const Json& top_k = stages.back();
  ASSERT_EQ(top_k["name"], "top_k");
  EXPECT_EQ(top_k["best"].size(), 3u);
  EXPECT_EQ(top_k["cut"].size(), before["best"].size()) << "the best of those that were cut";
  for (size_t i = 0; i + 3 < before["best"].size(); ++i) EXPECT_EQ(top_k["cut"][i], before["best"][i + 3]);
  EXPECT_TRUE(top_k["lowered"].empty());
}

TEST_F(page, a_penalty_shows_what_it_lowered_as_it_is) {
  Json body = user_says("dog dog dog dog", 12);
  body["explain"] = true;
  body["repetition_penalty"] = 60;
  body["temperature"] = 0;
  const Json reply = Json::parse(post(port(), "/v1/chat/completions", body).body);
  size_t n_lowered = 0;
  for (const Json& token : reply["choices"][0]["explain"]) {
    const Json& logits = token["stages"][0];
    const Json& penalties = token["stages"][1];
    ASSERT_EQ(penalties["name"], "penalties");
    std::set<int> seen;
    for (const Json& one : penalties["best"]) seen.insert(one["token"].get<int>());
    for (const Json& one : penalties["lowered"]) seen.insert(one["token"].get<int>());
    for (const Json& one : logits["best"]) EXPECT_TRUE(seen.contains(one["token"].get<int>()));
    n_lowered += penalties["lowered"].size();
  }
  EXPECT_GT(n_lowered, 0u);
}

TEST(no_page, leaves_the_root_to_ollama_and_nothing_at_its_other_places) {
  RunningOptions options = Running::defaults();
  options.service.has_page = false;
  Running running(options);
  EXPECT_EQ(ask(running.port(), "GET", "/", {}, kBrowser).body, "Ollama is running");
  for (const char* path : {"/ui/app.js", "/v1/ui/parameters", "/v1/ui/live"}) {
    EXPECT_EQ(ask(running.port(), "GET", path, {}, kBrowser).status, 404) << path;
  }
}

TEST(step_history, keeps_the_newest_and_counts_all) {
  serve::StepHistory history;
  constexpr int64_t kSteps = 2 * serve::StepHistory::kKept;
  for (int64_t i = 0; i < kSteps; ++i) {
    history.take({.step = i, .n_rows = 7, .n_prefill_rows = 4, .n_draft_rows = 1, .compute_ms = 1.0});
  }
  const auto all = history.since(0);
  EXPECT_EQ(all.totals.n_steps, kSteps);
  EXPECT_EQ(all.totals.n_decode_rows, 2 * kSteps);
  ASSERT_EQ(all.steps.size(), serve::StepHistory::kKept);
  EXPECT_EQ(all.steps.front().report.step, kSteps - static_cast<int64_t>(serve::StepHistory::kKept));
  EXPECT_EQ(history.since(kSteps - 3).steps.size(), 3u);
  EXPECT_TRUE(history.since(kSteps).steps.empty());
}

TEST(step_history, operations_are_worth_measuring_for_a_while_after_a_look) {
  serve::StepHistory history;
  EXPECT_FALSE(history.is_looked_at(0));
  EXPECT_FALSE(history.is_looked_at(serve::StepHistory::kLook_ns)) << "nobody looked yet";
  history.look(1000);
  EXPECT_TRUE(history.is_looked_at(1000 + serve::StepHistory::kLook_ns - 1));
  EXPECT_FALSE(history.is_looked_at(1000 + serve::StepHistory::kLook_ns));
  history.take({.n_rows = 1}, {1, 2, 3});
  EXPECT_EQ(history.since(0).steps.front().operation_us[2], 3);
}

}  // namespace
}  // namespace candor::testing
