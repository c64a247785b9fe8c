// Options that were given and change nothing: each is named, none passed over in silence.

#include <gtest/gtest.h>

#include "program.h"

namespace candor::testing {
namespace {

struct IdleCase {
  std::vector<std::string> arguments;
  std::vector<std::string> notes;  // beginnings of the notes, none else may come
};

TEST(idle_options, are_named_with_the_reason) {
  const IdleCase kCases[] = {
      {{"run", "hi", "-n", "2", "--beams", "2", "--temperature", "1", "--top-k", "5", "--seed", "3"},
       {"--top-k has no effect: --beams", "--seed has no effect: --beams", "--temperature has no effect: --beams"}},
      {{"run", "hi", "-n", "2", "--temperature", "0", "--top-p", "0.5", "--xtc-threshold", "0.2"},
       {"--top-p has no effect: at temperature 0", "--xtc-threshold has no effect: at temperature 0"}},
      {{"run", "hi", "-n", "2", "--dry-base", "2", "--repeat-last-n", "5", "--stop-scope", "both"},
       {"--repeat-last-n has no effect", "--dry-base has no effect", "--stop-scope has no effect"}},
      {{"run", "hi", "-n", "2", "--grammar-syntax", "gbnf", "--xtc-threshold", "0.2", "--dynatemp-exponent", "2"},
       {"--dynatemp-exponent has no effect", "--xtc-threshold has no effect", "--grammar-syntax has no effect"}},
      {{"run", "hi", "-n", "2", "--raw", "--system", "be brief"}, {"--system has no effect"}},
      {{"explain", "hi", "-n", "2", "--raw", "--system", "be brief"}, {"--system has no effect: the prompt goes in"}},
      {{"explain", "hi", "-n", "2", "--system", "be brief"}, {}},
      {{"explain", "hi", "-n", "2", "--json", "--level", "brief"}, {"--level has no effect: --json"}},
      {{"explain", "hi", "-n", "2", "--temperature", "0", "--min-p", "0.1"}, {"--min-p has no effect"}},
      {{"compare", "hi", "-n", "2", "--with", "greedy", "--with", "--temperature 0 --top-k 5"},
       {"--top-k has no effect"}},
      {{"show", "--json", "--tensors"}, {"--tensors has no effect: --json"}},
      {{"tokenize", "5", "--decode", "--no-special"}, {"--no-special has no effect: --decode"}},
      {{"estimate", "--parameters", "7e9", "--hardware", "a100", "--flops", "1e12", "--bandwidth", "1e11"},
       {"--hardware has no effect"}},
      {{"run", "hi", "-n", "2", "--top-k", "5", "--seed", "3", "--stop", "x", "--stop-scope", "both"}, {}},
      {{"run", "hi", "-n", "2", "--beams", "2", "--n-best", "2"}, {}},
  };
  for (const IdleCase& one : kCases) {
    const RunResult result = run_candor(one.arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    size_t n_notes = 0;
    for (size_t at = result.err.find("has no effect"); at != std::string::npos; ++n_notes) {
      at = result.err.find("has no effect", at + 1);
    }
    EXPECT_EQ(n_notes, one.notes.size()) << one.arguments[0] << ": " << result.err;
    for (const std::string& note : one.notes) {
      EXPECT_NE(result.err.find("candor: note: " + note), std::string::npos) << note << " not in: " << result.err;
    }
  }
}

TEST(idle_options, what_an_estimate_takes_for_granted_is_said) {
  const RunResult bare = run_candor({"estimate", "--parameters", "7e9", "--layers", "30", "--hardware", "h100"});
  EXPECT_NE(bare.out.find("assumed as in llama-2-7b: --heads 32, --kv-heads 32, --head-dim 128"), std::string::npos)
      << bare.out;
  const RunResult named = run_candor({"estimate", "--parameters", "7e9", "--layers", "32", "--heads", "32",
                                      "--kv-heads", "8", "--head-dim", "128", "--hardware", "h100"});
  EXPECT_EQ(named.out.find("assumed"), std::string::npos) << named.out;
}

TEST(idle_options, contradictions_are_refused) {
  EXPECT_EQ(run_candor({"show", "--tensors", "--template"}).exit_code, 2);
  EXPECT_EQ(run_candor({"show", "--tensors", "--metadata"}).exit_code, 2);
  EXPECT_EQ(run_candor({"bench", "generate", "one", "two"}).exit_code, 2);
  EXPECT_EQ(run_candor({"bench", "serve", "http://127.0.0.1:1", "two"}).exit_code, 2);
}

TEST(idle_options, explain_obeys_a_full_context) {
  std::string text;
  for (int i = 0; i < 700; ++i) text += "fox ";
  EXPECT_EQ(run_candor({"explain", text, "-n", "1"}).exit_code, 2);
  EXPECT_EQ(run_candor({"explain", text, "-n", "1", "--on-context-full", "crop"}).exit_code, 0);
}

TEST(output, that_cannot_be_written_is_an_error) {
  const RunResult result = run_candor({"show", "--json"}, {.stdout_path = "/dev/full"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("standard output cannot be written: No space left on device"), std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace candor::testing
