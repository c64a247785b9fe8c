#pragma once
// One function per sub-command: it adds its options to the command line and stores what to run. A callback returns the
// exit code through `result`.

#include <functional>

namespace CLI {
class App;
}

namespace candor::apps {

// The chosen sub-command; run after parsing succeeded.
using Action = std::function<int()>;

// Those of the program that is linked: all_commands.cpp or run_alone.cpp.
void add_commands(CLI::App& app, Action& action);

void add_run(CLI::App& app, Action& action);
void add_chat(CLI::App& app, Action& action);
void add_fit(CLI::App& app, Action& action);
void add_batch(CLI::App& app, Action& action);
void add_embed(CLI::App& app, Action& action);
void add_rerank(CLI::App& app, Action& action);
void add_classify(CLI::App& app, Action& action);
void add_serve(CLI::App& app, Action& action);
void add_ui(CLI::App& app, Action& action);
void add_show(CLI::App& app, Action& action);
void add_tokenize(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_estimate(CLI::App& app, Action& action);
void add_cache(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_imatrix(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_sample(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_quantize(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_merge(CLI::App& app, Action& action);
void add_pull(CLI::App& app, Action& action);
void add_list(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_health(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
// Not for people: what rank 0 starts.
void add_rank(CLI::App& app, Action& action);

}  // namespace candor::apps
