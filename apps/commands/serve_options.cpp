#include "apps/commands/serve_options.h"

#include "apps/options/adapter_options.h"
#include "apps/options/arguments.h"

namespace candor::apps {

void add_machine_options(CLI::App& command, GenerationOptions& o, const std::string& otherwise) {
  add_int(command, "-c,--ctx-size", o.n_ctx, 0, kMostCount, "context in tokens (the model's)");
  add_int(command, "-t,--threads", o.n_threads, 0, 4096, "0 = what this machine advises");
  add_ranks(command, o.n_ranks, otherwise);
}

void add_compute_options(CLI::App& command, GenerationOptions& o) {
  add_device(command, o.backend);
  add_gpu_parts(command, o);
  add_kv_type(command, o.kv_type);
  add_kept_states(command, o.kept_states);
  add_fast_weights(command, o.fast_weights);
  add_adapters(command, o.adapters, "load a LoRA adapter, for who asks for NAME; may be repeated");
  add_speculation_options(command, o);
}

void add_network_options(CLI::App& command, ServeOptions& o) {
  command.add_option("--host", o.host, "address to listen on; other than loopback needs a key (127.0.0.1)")
      ->type_name("ADDRESS")
      ->capture_default_str();
  add_int(command, "--port", o.port, 0, 65535, "0 = any free one (8080)")->default_str("8080");
  command.add_option("--api-key", o.keys, "a key that clients must show; better in a file")->type_name("KEY");
  command.add_option("--api-key-file", o.key_file, "lines of NAME SECRET")->type_name("FILE");
  command.add_option("--tls-cert", o.tls_cert, "https, by this certificate chain (PEM; read again on SIGHUP)")
      ->type_name("FILE");
  command.add_option("--tls-key", o.tls_key, "its private key (PEM, without a passphrase)")->type_name("FILE");
  command.add_option("--allow-host", o.hosts, "a further name in Host")->type_name("NAME");
  command.add_option("--allow-origin", o.origins, "a web page that may ask: https://chat.example.com")
      ->type_name("ORIGIN");
  command.add_option("--batch-dir", o.batch_dir, "keep files and batches of clients there (none are taken)")
      ->type_name("FOLDER");
  command.add_option("--adapter-dir", o.adapter_dir, "clients may load adapters from there (from nowhere)")
      ->type_name("FOLDER");
  add_int(command, "--max-connections", o.max_connections, 1, 100'000, "(4096)")->default_str("4096");
  add_int(command, "--max-per-key", o.max_per_key, 1, kMostCount,
          "answers in work for one key (--parallel and --max-queued together; of several keys three quarters)");
  add_int(command, "--max-inflight-mb", o.inflight_mb, 1, 1 << 20,
          "all requests and replies held at once (a quarter of the memory that the model leaves, at least 64)");
  add_int(command, "--max-body-mb", o.body_mb, 1, 1024, "largest request body (16)")->default_str("16");
  add_int(command, "--max-n", o.max_n, 1, 128, "most answers to one prompt (128)")->default_str("128");
  add_int(command, "--workers", o.n_workers, 1, 64, "threads for JSON, templates, tokens (2)")->default_str("2");
  command.add_flag("--allow-image-urls", o.allows_image_urls,
                   "fetch images that requests name by http or https, from public addresses alone");
  add_int(command, "--drain-seconds", o.drain_seconds, 0, 3600, "for replies in work, at the end (30)")
      ->default_str("30");
  command.add_option("--log-level", o.log_level, "info, warning, error, off (info)")
      ->type_name("LEVEL")
      ->capture_default_str();
  command.add_flag("--no-ui", o.no_ui, "no page for browsers at /");
  command.add_flag("--strict", o.strict, "unknown fields of a request are errors");
  command.add_flag("--rerank-by-similarity", o.ranks_by_likeness,
                   "/rerank of a model without a head for it: by the likeness of embeddings");
}

void add_several_options(CLI::App& command, ServeOptions& o) {
  command.add_option("--models-dir", o.models_dir, "serve every model of this folder, loaded when it is asked for")
      ->type_name("FOLDER");
  command.add_flag("--pulled", o.has_pulled, "serve what candor pull fetched as well, as user/repo");
  command.add_option("--default", o.default_model, "of several, for requests that name none (the first)")
      ->type_name("NAME");
  command
      .add_option("--keep-alive", o.keep_alive, "an idle one of several goes after it; -1: when room is needed (5m)")
      ->type_name("TIME");
  add_int(command, "--max-loaded", o.max_loaded, 1, 1'000, "of several, at once (as many as fit)");
  add_int(command, "--models-memory-mb", o.models_mb, 1, 1 << 30,
          "planned for all that are loaded (what requests leave of the memory)");
}

}  // namespace candor::apps
