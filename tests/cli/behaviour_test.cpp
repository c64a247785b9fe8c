// What a user sees when all is well, and when the terminal, the pipe or the person leaves.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/bench/draft_gains.h"
#include "program.h"
#include "support/shared_data.h"

namespace candor::testing {
namespace {

TEST(command, help_fits_a_screen) {
  const RunResult result = run_candor({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_LE(count_lines(result.out), 40) << result.out;
  for (const char* name : {"run", "chat", "serve", "show", "tokenize", "explain", "doctor"}) {
    const RunResult help = run_candor({name, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_LE(count_lines(help.out), 40) << help.out;
    EXPECT_EQ(help.out.find('\x1b'), std::string::npos);
  }
  EXPECT_NE(run_candor({"bench", "generate", "--help"}).out.find("Usage: candor bench generate"), std::string::npos);
  const RunResult all = run_candor({"run", "--help-all"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_NE(all.out.find("--dry-base"), std::string::npos) << all.out;
}

TEST(command, run_streams_text_and_ends_with_its_figures) {
  const RunResult result = run_candor({"run", "Once upon a time", "-n", "20", "--temperature", "0"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GT(result.out.size(), 20u);
  for (const char* word : {"TTFT", "prefill", "decode", "tok/s", "ITL"})
    EXPECT_NE(result.err.find(word), std::string::npos) << result.err;
  EXPECT_EQ((result.out + result.err).find('\x1b'), std::string::npos) << "colours without a terminal";
}

// What scripts/run.sh builds first.
TEST(command, the_program_of_run_alone_says_the_same) {
  const std::vector<std::string> arguments = {"run", "Once upon a time", "-n", "30", "--seed", "5"};
  const RunResult whole = run_candor(arguments);
  const RunResult alone = run_candor(arguments, {.program = CANDOR_RUN_PROGRAM});
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_EQ(alone.out, whole.out);
  const RunResult other = run_candor({"serve"}, {.program = CANDOR_RUN_PROGRAM});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("unknown command \"serve\""), std::string::npos) << other.err;
}

TEST(command, the_same_seed_gives_the_same_text_whatever_the_threads) {
  const std::vector<std::string> base = {"run", "Tell me a story about a fox", "-n", "60", "--seed", "5", "--json"};
  std::string first;
  for (const char* threads : {"1", "2", "3"}) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), {"-t", threads});
    const RunResult result = run_candor(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::string tokens = nlohmann::json::parse(result.out).at("tokens").dump();
    if (first.empty()) first = tokens;
    EXPECT_EQ(tokens, first);
  }
}

TEST(command, fast_weights_give_one_answer_too_and_are_shown) {
  std::string first;
  for (const auto& [threads, isa] : {std::pair{"1", ""}, std::pair{"2", ""}, std::pair{"1", "portable"}}) {
    const RunResult result = run_candor({"run", "Tell me a story about a fox", "-n", "30", "--seed", "5", "--quantize",
                                         "q4_k_m", "--fast-weights", "--json", "-t", threads},
                                        {.environment = {std::string("CANDOR_ISA=") + isa}});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_GT(json.at("fast_matrices").get<int>(), 10);
    if (first.empty()) first = json.at("tokens").dump();
    EXPECT_EQ(json.at("tokens").dump(), first) << threads << " " << isa;
  }
}

TEST(command, without_the_kv_cache_the_text_is_the_same) {
  const std::vector<std::string> base = {"run", "--raw", "Once upon a time", "-n", "30", "--seed", "3", "--json"};
  std::vector<std::string> without = base;
  without.push_back("--no-kv-cache");
  const RunResult cached = run_candor(base), computed = run_candor(without);
  ASSERT_EQ(cached.exit_code, 0) << cached.err;
  ASSERT_EQ(computed.exit_code, 0) << computed.err;
  const auto a = nlohmann::json::parse(cached.out), b = nlohmann::json::parse(computed.out);
  EXPECT_EQ(a.at("tokens"), b.at("tokens"));
  EXPECT_GT(b.at("usage").at("token_layers").get<int64_t>(), 5 * a.at("usage").at("token_layers").get<int64_t>());
}

TEST(command, an_interrupt_keeps_what_was_said_and_exits_130) {
  const RunResult result =
      run_candor({"run", "Once upon a time", "--ignore-eos", "--on-context-full", "crop"}, {.interrupt_after_ms = 50});
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_FALSE(result.out.empty());
  EXPECT_NE(result.err.find("interrupted"), std::string::npos) << result.err;
}

TEST(command, a_reader_that_leaves_ends_it_quietly) {
  const RunResult result = run_candor({"run", "Once upon a time", "--ignore-eos", "--on-context-full", "crop"},
                                      {.close_stdout_early = true});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
}

TEST(command, a_closed_standard_input_is_no_prompt) {
  const RunResult result = run_candor({"run"}, {.close_stdin = true});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
}

TEST(command, a_full_context_stops_or_crops_and_says_so) {
  const RunResult stopped = run_candor({"run", "--raw", "Once upon a time", "--ignore-eos", "-c", "64", "--json"});
  ASSERT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_EQ(nlohmann::json::parse(stopped.out).at("finish_reason"), "context_full");
  const RunResult cropped = run_candor({"run", "--raw", "Once upon a time", "--ignore-eos", "-c", "64", "-n", "120",
                                        "--on-context-full", "crop", "--json"});
  ASSERT_EQ(cropped.exit_code, 0) << cropped.err;
  const auto json = nlohmann::json::parse(cropped.out);
  EXPECT_EQ(json.at("tokens").size(), 120u);
  EXPECT_GT(json.at("usage").at("cropped_tokens").get<int>(), 0);
}

TEST(command, stop_text_never_shows) {
  const RunResult result =
      run_candor({"run", "--raw", "Once upon a time", "-n", "100", "--temperature", "0", "--stop", ".", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json.at("finish_reason"), "stop_string");
  EXPECT_EQ(json.at("text").get<std::string>().find('.'), std::string::npos);
}

TEST(command, the_output_obeys_what_was_asked_of_it) {
  const auto run = [](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"run", "--raw", "Once upon a time", "--seed", "4", "-n", "60", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const RunResult result = run_candor(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false).value("text", "");
  };
  const std::string digits = run({"--regex", "[0-9]{4}"});
  EXPECT_EQ(digits.size(), 4u);
  EXPECT_EQ(digits.find_first_not_of("0123456789"), std::string::npos) << digits;
  const std::string chosen = run({"--choice", "yes", "--choice", "no"});
  EXPECT_TRUE(chosen == "yes" || chosen == "no") << chosen;
  EXPECT_EQ(run({"--grammar", "root ::= \"a\"{3}"}), "aaa");
  EXPECT_EQ(run({"--grammar", "start: \"b\" \"c\""}), "bc");
  const std::string schema = R"({"type": "object", "properties": {"n": {"type": "integer", "maximum": 9, "minimum": 0}},
                              "required": ["n"], "additionalProperties": false})";
  const auto value = nlohmann::json::parse(run({"--json-schema", schema}), nullptr, false);
  EXPECT_TRUE(value.is_object() && value.contains("n")) << value.dump();
}

TEST(command, drafts_change_no_answer) {
  const std::vector<std::string> base = {"run", "--raw", "the cat sat, the cat sat, the cat", "-n", "40", "--temp",
                                         "0",   "--json"};
  std::vector<std::string> drafting = base;
  drafting.insert(drafting.end(), {"--speculate", "ngram"});
  const RunResult plain = run_candor(base), drafted = run_candor(drafting);
  ASSERT_EQ(drafted.exit_code, 0) << drafted.err;
  EXPECT_EQ(nlohmann::json::parse(plain.out).at("tokens"), nlohmann::json::parse(drafted.out).at("tokens"));
}

// The head that stands beside the shipped model, with n-grams and without.
TEST(command, n_grams_draft_beside_a_head_unless_it_is_to_draft_alone) {
  const std::string head = project_file("models/pocket/mtp-pocket-q8_0.gguf");
  const auto drafts_with = [](const std::string& speculate, const std::string& draft) {
    const RunResult result =
        run_candor({"run", "the cat sat, the cat sat, the cat sat", "-n", "60", "--temp", "0", "--raw", "--ignore-eos",
                    "--json", "--draft", draft, "--speculate", speculate});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  };
  const auto both = drafts_with("draft", head), alone = drafts_with("draft-only", head);
  EXPECT_EQ(drafts_with("draft-only", "mtp").at("tokens"), alone.at("tokens"));  // found beside the model
  EXPECT_EQ(both.at("tokens"), alone.at("tokens"));
  EXPECT_FALSE(alone.at("usage").at("drafts").contains("ngram")) << alone.dump();
  int64_t n_drafted = 0;
  for (const auto& [name, usage] : both.at("usage").at("drafts").items()) {
    EXPECT_TRUE(name == "ngram" || name == "mtp") << name;
    n_drafted += usage.at("drafted_tokens").get<int64_t>();
  }
  EXPECT_EQ(both.at("usage").at("drafted_tokens"), n_drafted);
}

TEST(command, an_eagle_head_changes_no_answer_and_what_is_none_is_refused) {
  const std::vector<std::string> base = {
      "run",          "-m",    (goldens() / "llama").string(), "--raw", "the cat sat", "-n", "20", "--temp", "0",
      "--ignore-eos", "--json"};
  const auto with_draft = [&](const std::string& draft) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), {"--draft", draft});
    return run_candor(arguments);
  };
  const RunResult plain = run_candor(base);
  const RunResult drafted = with_draft("eagle:" + project_file("tests/eagle/goldens/trained").string());
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  ASSERT_EQ(drafted.exit_code, 0) << drafted.err;
  EXPECT_EQ(nlohmann::json::parse(plain.out).at("tokens"), nlohmann::json::parse(drafted.out).at("tokens"));
  const RunResult refused = with_draft("eagle:" + project_file("models/pocket/pocket-draft-q8_0.gguf").string());
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("no EAGLE-3 head, which \"eagle:\" in front of it asks for"), std::string::npos)
      << refused.err;
}

TEST(command, explain_shows_the_eight_steps) {
  const std::vector<std::string> base = {"explain", "--raw", "Once upon a time", "-n", "2",
                                         "--seed",  "3",     "--top-k",          "5"};
  const RunResult page = run_candor(base);
  ASSERT_EQ(page.exit_code, 0) << page.err;
  for (const char* word :
       {"1 text to 5 tokens", "2 tokens to vectors", "3 ", "4 the last vector", "5 where the time and the bytes went",
        "6 token 1", "top_k", "5 left", "7 the choice", "was drawn", "8 token to text"}) {
    EXPECT_NE(page.out.find(word), std::string::npos) << word << " not in:\n" << page.out;
  }
  EXPECT_EQ(page.out.find('\x1b'), std::string::npos);
  std::vector<std::string> as_json = base;
  as_json.push_back("--json");
  const RunResult result = run_candor(as_json);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json.at("tokens").size(), 2u);
  for (const auto& stage : json.at("tokens")[0].at("stages")) {
    if (stage.at("name") == "top_k") {
      EXPECT_EQ(stage.at("n_left"), 5);
    }
  }
  EXPECT_FALSE(json.at("prompt").empty());
}

TEST(command, explain_lists_the_operations_of_a_step) {
  const std::vector<std::string> base = {"explain",     "--raw", "Once upon a time", "-n", "2", "--operations",
                                         "--speculate", "off"};  // a draft would be one row more
  const RunResult page = run_candor(base);
  ASSERT_EQ(page.exit_code, 0) << page.err;
  for (const char* word :
       {"operations of the last step: ", "    embed         -> x0 [1, ", "    attend        x", "    collect       x"})
    EXPECT_NE(page.out.find(word), std::string::npos) << word << " not in:\n" << page.out;
}

TEST(command, explain_shows_what_beams_kept_and_dropped) {
  const std::vector<std::string> base = {"explain", "Once upon a time", "-n", "3", "--beams", "3", "--n-best", "2"};
  const RunResult page = run_candor(base);
  ASSERT_EQ(page.exit_code, 0) << page.err;
  for (const char* word : {"answer 2, token 3", "kept <", "dropped", "score -"})
    EXPECT_NE(page.out.find(word), std::string::npos) << word << " not in:\n" << page.out;
  std::vector<std::string> as_json = base;
  as_json.push_back("--json");
  const auto json = nlohmann::json::parse(run_candor(as_json).out);
  ASSERT_EQ(json.at("tokens").size(), 6u);
  for (const auto& token : json.at("tokens"))
    EXPECT_EQ(token.at("beam_options").at(token.at("beam_option").get<size_t>()).at("token"), token.at("token"));
  EXPECT_EQ(run_candor({"explain", "Hi", "--n-best", "2"}).exit_code, 2);
}

TEST(command, chat_answers_every_line_and_keeps_the_conversation) {
  const RunResult result = run_candor({"chat", "--temperature", "0", "-n", "40"},
                                      {.stdin_text = "Hello!\n/set top_k 3\n/nonsense\nWhat is 2 + 3?\n/quit\n"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("top_k 3"), std::string::npos);
  EXPECT_NE(result.err.find("unknown command /nonsense"), std::string::npos);
  EXPECT_GE(count_lines(result.out), 2) << result.out;
}

TEST(command, tokenize_prints_ids_and_takes_them_back) {
  const std::string text = "a caf\xC3\xA9, 12 foxes <|end|>\n";
  const RunResult ids = run_candor({"tokenize", "--json", "--no-special", "--stdin"}, {.stdin_text = text});
  ASSERT_EQ(ids.exit_code, 0) << ids.err;
  const RunResult back = run_candor({"tokenize", "--decode", "--stdin"}, {.stdin_text = ids.out});
  EXPECT_EQ(back.out, text);
}

TEST(command, what_a_user_types_never_becomes_a_control_token) {
  const RunResult typed = run_candor({"tokenize", "<|end|>", "--json", "--no-special"});
  const RunResult parsed = run_candor({"tokenize", "<|end|>", "--json", "--no-special", "--parse-special"});
  EXPECT_GT(nlohmann::json::parse(typed.out).size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(parsed.out).size(), 1u);
}

TEST(command, show_and_doctor_speak_json_too) {
  const auto show = nlohmann::json::parse(run_candor({"show", "--json"}).out);
  EXPECT_EQ(show.at("architecture").at("family"), "llama");
  const auto doctor = nlohmann::json::parse(run_candor({"doctor", "--json"}).out);
  EXPECT_TRUE(doctor.contains("threads"));
  EXPECT_NE(run_candor({"show"}).out.find("layers 0-"), std::string::npos);
}

TEST(command, doctor_names_an_instruction_set_that_is_asked_for_and_is_not_the_fastest) {
  const auto kernels = [](const char* isa) {
    return run_candor({"doctor"}, {.environment = {std::string("CANDOR_ISA=") + isa}}).out;
  };
  EXPECT_NE(kernels("portable").find("(CANDOR_ISA=portable; without it "), std::string::npos) << kernels("portable");
  EXPECT_EQ(kernels("").find("CANDOR_ISA"), std::string::npos) << kernels("");
  EXPECT_NE(kernels("z80").find("CANDOR_ISA: 'z80'"), std::string::npos) << kernels("z80");
}

// 3 blocks of 4 keep 3 x 192 inputs and 8 matrices of 32 x 16 instead of K/V.
TEST(command, estimate_and_show_count_the_states_of_a_model_that_keeps_some) {
  const std::string model = (goldens() / "granitemoehybrid/model.gguf").string();
  const auto json = nlohmann::json::parse(run_candor({"estimate", model, "--json"}).out);
  EXPECT_EQ(json.at("state_bytes"), 3 * (3 * 192 + 8 * 32 * 16) * 4.0);
  EXPECT_EQ(json.at("kv_bytes_per_token"), 2 * 2 * 16 * 2.0);
  EXPECT_EQ(nlohmann::json::parse(run_candor({"estimate", "--parameters", "7e9", "--json"}).out).at("state_bytes"),
            0.0);
  const std::string shown = run_candor({"show", model}).out;
  EXPECT_NE(shown.find("a state of 3 recurrent layers"), std::string::npos) << shown;
  EXPECT_NE(shown.find("state space, 8 heads 32 x 16 in 1 groups"), std::string::npos) << shown;
}

TEST(command, bench_generate_draws_what_it_measured) {
  const std::filesystem::path plot =
      std::filesystem::temp_directory_path() / ("candor-" + std::to_string(::getpid()) + ".svg");
  const RunResult result = run_candor({"bench", "generate", "--prompt", "16,32", "--batch", "1,2", "--new", "2", "-r",
                                       "1", "--json", "--svg", plot.string()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("prefill_tokens_per_second"), std::string::npos);
  EXPECT_NE(result.out.find("decode_tokens_per_second"), std::string::npos);
  std::ifstream file(plot);
  const std::string svg{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(svg.substr(0, 4), "<svg");
  EXPECT_NE(svg.find("limit: DRAM, batch 2"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  std::filesystem::remove(plot);
  const RunResult refused =
      run_candor({"bench", "generate", "--prompt", "16", "--new", "1", "-r", "1", "--svg", "/nowhere/a.svg"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("can't write /nowhere/a.svg"), std::string::npos) << refused.err;
}

TEST(command, bench_drafts_says_what_they_gain) {
  const RunResult result = run_candor({"bench", "drafts", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json.at("draft"), "mtp-pocket-q8_0.gguf");
  EXPECT_EQ(json.at("gains").size(), 3u);
  EXPECT_EQ(json.at("gains")[0].at("gains").size(), 6u);
  EXPECT_NE(run_candor({"bench", "drafts"}).out.find("times as fast as without drafts"), std::string::npos);
  const RunResult refused = run_candor({"bench", "drafts", "--speculate", "off"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("nothing drafts for this model"), std::string::npos) << refused.err;
}

// By hand: a step takes 10 ms, each row more 1, and a draft 2.
TEST(draft_gains, follow_from_costs) {
  const StepCosts costs{.points = {{1, 10.0}, {101, 110.0}}, .draft_ms = 2.0};
  const auto gain = [&](double acceptance) { return apps::best_gain(costs, {1, 0, acceptance}); };
  EXPECT_EQ(gain(0.2).n_drafts, 0);  // 1.2 tokens in 13 ms
  EXPECT_EQ(gain(0.2).ratio, 1.0);
  EXPECT_EQ(gain(0.5).n_drafts, 1);  // 1.5 in 13; 1.75 in 16
  EXPECT_NEAR(gain(0.5).ratio, 1.5 * 10 / 13, 1e-9);
  EXPECT_EQ(gain(1.0).n_drafts, 15);
  EXPECT_NEAR(gain(1.0).ratio, 16.0 * 10 / 55, 1e-9);
  EXPECT_EQ(apps::best_gain({}, {1, 0, 0.9}).n_drafts, 0);
}

TEST(command, the_environment_sets_long_options) {
  const RunResult result =
      run_candor({"run", "Once upon a time", "--json"}, {.environment = {"CANDOR_PREDICT=7", "CANDOR_SEED=11"}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json.at("seed"), 11);
  EXPECT_LE(json.at("tokens").size(), 7u);
}

TEST(command, stories_continue) {
  const std::filesystem::path model = shared_data() / "models/stories260K.gguf";
  CANDOR_REQUIRE_DATA(model);
  const RunResult result = run_candor({"run", model.string(), "Once upon a time", "-n", "60", "--temperature", "0"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("there was"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace candor::testing
