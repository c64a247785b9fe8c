// The commands of `candor`.

#include "apps/commands/commands.h"

namespace candor::apps {

void add_commands(CLI::App& app, Action& action) {
  add_run(app, action);
  add_chat(app, action);
  add_batch(app, action);
  add_embed(app, action);
  add_rerank(app, action);
  add_classify(app, action);
  add_serve(app, action);
  add_ui(app, action);
  add_show(app, action);
  add_fit(app, action);
  add_tokenize(app, action);
  add_bench(app, action);
  add_estimate(app, action);
  add_eval(app, action);
  add_imatrix(app, action);
  add_verify(app, action);
  add_cache(app, action);
  add_explain(app, action);
  add_sample(app, action);
  add_compare(app, action);
  add_quantize(app, action);
  add_convert(app, action);
  add_merge(app, action);
  add_pull(app, action);
  add_list(app, action);
  add_doctor(app, action);
  add_health(app, action);
  add_completion(app, action);
  add_rank(app, action);
}

}  // namespace candor::apps
