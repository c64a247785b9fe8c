// candor verify: is what stands in receipts what the model gives?

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/options/adapter_options.h"
#include "apps/options/arguments.h"
#include "apps/options/generation_options.h"
#include "apps/options/image_files.h"
#include "apps/options/model_choice.h"
#include "apps/options/prompt_source.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "candor/kv_type.h"
#include "candor/verify.h"
#include "formats/new_file.h"

namespace candor::apps {
namespace {

namespace fs = std::filesystem;

struct VerifyOptions {
  std::optional<std::string> model, mmproj, signer, junit;
  std::vector<std::string> positionals, adapters, images;
  std::optional<int64_t> n_threads, n_ranks;
  std::string quantize;
  bool fast_weights = false;
  bool json = false;
};

// One receipt, and what came of it.
struct Checked {
  std::string name{};
  Receipt receipt{};
  std::optional<Error> error{};  // it could not be checked
  std::string line{}, json{};
  std::optional<ReceiptVerdict> verdict{};
  double seconds = 0.0;

  bool is_verified() const { return verdict && !verdict->difference; }
};

// Receipts of the same are checked on one engine.
using EngineKey = std::tuple<std::string, int64_t>;  // K/V type, context

Result<void> add_receipts(const std::string& path, std::vector<std::string>& paths) {
  std::error_code status;
  if (!fs::is_directory(path, status)) return paths.push_back(path), Result<void>();
  std::vector<std::string> found;
  for (fs::directory_iterator at(path, status), end; !status && at != end; at.increment(status)) {
    if (at->path().extension() == ".json" && at->is_regular_file(status)) found.push_back(at->path().string());
  }
  if (status) return fail(ErrorKind::kIo, fmt::format("the folder {} cannot be read: {}", path, status.message()));
  if (found.empty()) return fail(ErrorKind::kNotFound, fmt::format("the folder {} has no receipt (*.json)", path));
  std::ranges::sort(found);
  paths.insert(paths.end(), found.begin(), found.end());
  return {};
}

// The receipts and the model: what is a model by its name, if it is not the first.
struct Named {
  fs::path model;
  std::vector<std::string> receipts;
};

Result<Named> read_names(const VerifyOptions& options) {
  if (options.positionals.empty()) {
    return fail(ErrorKind::kInvalidInput, "no receipt given: candor verify RECEIPT [MODEL], or a folder of receipts");
  }
  Named named;
  std::vector<std::string> models;
  CANDOR_TRY(add_receipts(options.positionals.front(), named.receipts));
  for (size_t i = 1; i < options.positionals.size(); ++i) {
    const std::string& each = options.positionals[i];
    if (each.ends_with(".json"))
      CANDOR_TRY(add_receipts(each, named.receipts));
    else
      models.push_back(each);
  }
  if (!models.empty() && !looks_like_model(models.front())) {
    return fail(ErrorKind::kNotFound, fmt::format("{} is neither a receipt (*.json) nor a model", models.front()));
  }
  CANDOR_ASSIGN(ModelAndTexts chosen, choose_model(options.model, std::move(models)));
  if (!chosen.texts.empty()) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{} is not a receipt (*.json)", chosen.texts.front()));
  }
  named.model = std::move(chosen.model);
  return named;
}

Result<Receipt> read_receipt(const std::string& path, const std::optional<std::string>& signer) {
  std::error_code status;
  if (const auto n_bytes = fs::file_size(path, status); !status && n_bytes > kMaxReceiptBytes) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("it has {} bytes, a receipt at most {}", n_bytes, kMaxReceiptBytes));
  }
  CANDOR_ASSIGN(const std::string text, read_text_file(path, "the receipt"));
  CANDOR_ASSIGN(Receipt receipt, parse_receipt(text));
  if (signer) CANDOR_TRY(check_signature(receipt, *signer));
  return receipt;
}

EngineOptions engine_for(const VerifyOptions& options, const fs::path& model, const EngineKey& key,
                         const std::vector<Checked*>& receipts) {
  EngineOptions opened;
  opened.model_path = model;
  opened.quantize = options.quantize;
  opened.fast_weights = options.fast_weights;
  opened.n_threads = static_cast<int32_t>(options.n_threads.value_or(0));
  apply_ranks(options.n_ranks, opened);
  opened.adapters = read_adapters(options.adapters);
  opened.mmproj_path = options.mmproj.value_or("");
  opened.kv_type = find_kv_type(std::get<0>(key));
  opened.n_ctx = std::get<1>(key);
  opened.max_running = 1;
  for (const Checked* each : receipts) {
    const int32_t n = each->receipt.beams ? each->receipt.beams->width : std::min(each->receipt.n, 16);
    opened.max_running = std::max(opened.max_running, n);
  }
  return opened;
}

void check(Engine& engine, const std::vector<std::string>& images, Checked& checked) {
  ProgressBar bar("verifying " + fs::path(checked.name).filename().string(), ProgressUnit::kTokens);
  const auto began = std::chrono::steady_clock::now();
  const auto progress = [&bar](int64_t done, int64_t total) {
    bar.update(static_cast<uint64_t>(done), static_cast<uint64_t>(std::max<int64_t>(1, total)));
    return !interrupted();
  };
  auto verdict = verify(engine, checked.receipt, progress, images);
  bar.finish();
  checked.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (!verdict) {
    checked.error = verdict.error();
    return;
  }
  checked.line = to_string(*verdict, engine);
  checked.json = to_json(*verdict, engine);
  checked.verdict = std::move(*verdict);
}

std::string line_of(const Checked& checked) {
  return checked.error ? "not checked: " + checked.error->message : checked.line;
}

std::string json_of(const Checked& checked) {
  using Json = nlohmann::ordered_json;
  Json json = {{"receipt", checked.name}, {"checked", checked.verdict.has_value()}};
  json.update(checked.verdict ? Json::parse(checked.json) : Json{{"verified", false}, {"message", line_of(checked)}});
  json["seconds"] = checked.seconds;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string in_xml(const std::string& text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string junit_of(const std::vector<Checked>& all) {
  const auto n_failed = std::ranges::count_if(all, [](const Checked& c) { return c.verdict && !c.is_verified(); });
  const auto n_errors = std::ranges::count_if(all, [](const Checked& c) { return !c.verdict; });
  std::string xml = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"candor verify\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n",
      all.size(), n_failed, n_errors);
  for (const Checked& each : all) {
    xml +=
        fmt::format("  <testcase classname=\"receipts\" name=\"{}\" time=\"{:.3f}\"", in_xml(each.name), each.seconds);
    if (each.is_verified()) {
      xml += "/>\n";
      continue;
    }
    const char* element = each.verdict ? "failure" : "error";
    xml += fmt::format(">\n    <{} message=\"{}\"/>\n  </testcase>\n", element, in_xml(line_of(each)));
  }
  return xml + "</testsuite>\n";
}

int code_of(const std::vector<Checked>& all) {
  const auto is_wrong = [](const Checked& each) { return each.verdict && !each.is_verified(); };
  if (std::ranges::any_of(all, is_wrong)) return kNotVerified;
  const auto broken = std::ranges::find_if(all, [](const Checked& each) { return !each.verdict; });
  return broken == all.end() ? kDone : exit_code(*broken->error);
}

int report(const VerifyOptions& options, const std::vector<Checked>& all) {
  for (const Checked& each : all) {
    if (options.json)
      write_out(json_of(each));
    else if (each.error)
      say_error(fmt::format("{}: {}", each.name, each.error->message));
    else
      write_out(all.size() > 1 ? fmt::format("{}: {}\n", each.name, each.line) : each.line + "\n");
  }
  if (all.size() > 1 && !options.json) {
    const auto n = std::ranges::count_if(all, &Checked::is_verified);
    write_out(fmt::format("{} of {} receipts verified\n", n, all.size()));
  }
  if (options.junit) {
    const auto written = formats::write_file(*options.junit, junit_of(all));
    if (!written) return say_error(written.error().message), kUserInput;
  }
  return code_of(all);
}

Result<std::vector<std::string>> read_images(const VerifyOptions& options) {
  std::vector<std::string> images;
  for (const std::string& path : options.images) {
    CANDOR_ASSIGN(std::string bytes, read_image_file(path));
    images.push_back(std::move(bytes));
  }
  return images;
}

int run(const VerifyOptions& options) {
  const auto named = read_names(options);
  if (!named) return say_error(named.error().message), kUserInput;
  const auto images = read_images(options);
  if (!images) return say_error(images.error().message), kUserInput;
  std::optional<std::string> signer;
  if (options.signer) {
    auto pem = read_text_file(*options.signer, "the signer's key");
    if (!pem) return say_error(pem.error().message), kUserInput;
    signer = std::move(*pem);
  }
  std::vector<Checked> all(named->receipts.size());
  std::map<EngineKey, std::vector<Checked*>> groups;
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].name = named->receipts[i];
    auto receipt = read_receipt(all[i].name, signer);
    if (!receipt) {
      all[i].error = receipt.error();
      continue;
    }
    all[i].receipt = std::move(*receipt);
    groups[{all[i].receipt.model.kv_type, all[i].receipt.model.n_ctx}].push_back(&all[i]);
  }
  for (const auto& [key, receipts] : groups) {
    int code = kDone;
    const auto engine = open_engine(engine_for(options, named->model, key, receipts), code);
    if (!engine) return code;
    for (Checked* each : receipts) {
      check(*engine, *images, *each);
      if (interrupted()) return kInterrupted;
    }
  }
  return report(options, all);
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("verify", "check receipts: is each answer what the model gives?");
  const auto options = std::make_shared<VerifyOptions>();
  command->add_option("receipts", options->positionals, "RECEIPT... [MODEL]");
  command->add_option("-m,--model", options->model, "the model's file")->type_name("FILE");
  command
      ->add_option("--image", options->images, "an image of a receipt's prompt, found by its digest; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command
      ->add_option("--mmproj", options->mmproj, "the part that reads images, for a GGUF file (mmproj*.gguf beside it)")
      ->type_name("FILE");
  command->add_option("--signer", options->signer, "refuse what this Ed25519 key (PEM) has not signed")
      ->type_name("FILE");
  command->add_option("--junit", options->junit, "write the outcome of each as JUnit's XML")->type_name("FILE");
  command->add_flag("--json", options->json, "one JSON object for each receipt");
  add_int(*command, "-t,--threads", options->n_threads, 1, 1024, "threads (see candor doctor)");
  add_ranks(*command, options->n_ranks);
  add_adapters(*command, options->adapters, "an adapter that receipts use; may be repeated");
  command->add_option("--quantize", options->quantize, "encode the weights while loading, as the receipt's engine did")
      ->type_name("TYPE");
  add_fast_weights(*command, options->fast_weights);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace candor::apps
