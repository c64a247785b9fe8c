// candor embed: texts to vectors.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/commands/reading_texts.h"
#include "apps/options/arguments.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "candor/info.h"
#include "serve/core/json_body.h"
#include "serve/core/reading_fields.h"

namespace candor::apps {
namespace {

struct EmbedOptions {
  ReadingOptions reading;
  std::string pooling = "model";
  std::optional<std::string> prompt_name, task, npy;
  std::optional<int64_t> dimensions;
  bool keeps_length = false;
  bool is_sparse = false;
};

// NumPy's format 1.0: [n, width] of little-endian f32.
class NpyFile {
 public:
  NpyFile(const std::string& path, size_t n, size_t width) : out_(path, std::ios::binary) {
    std::string header =
        fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", n, width);
    constexpr size_t kAligned = 64, kBefore = 10;
    header.append((kAligned - (kBefore + header.size() + 1) % kAligned) % kAligned, ' ').push_back('\n');
    const auto size = static_cast<uint16_t>(header.size());
    const char begin[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<char>(size & 0xff),
                          static_cast<char>(size >> 8)};
    out_.write(begin, sizeof begin).write(header.data(), static_cast<std::streamsize>(header.size()));
  }
  void add(const std::vector<float>& row) {
    out_.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size() * sizeof(float)));
  }
  bool close() {
    out_.close();
    return !out_.fail();
  }

 private:
  std::ofstream out_;
};

// What stands before each text: the prompt of that name, or the task's own.
Result<std::string> prefix_of(const EmbedOptions& options, const Engine& engine) {
  const ReadingInfo& info = engine.info().reading;
  if (options.task) {
    const std::vector<AdapterInfo> adapters = engine.adapters();
    const auto task = std::ranges::find(adapters, *options.task, &AdapterInfo::name);
    if (task != adapters.end() && !options.prompt_name) return task->prompt;
    std::string names;
    for (const AdapterInfo& adapter : adapters) names += (names.empty() ? "" : ", ") + adapter.name;
    if (task == adapters.end()) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("no adapter \"{}\" is loaded{}", *options.task,
                              names.empty() ? "; --adapter NAME=PATH loads one" : ": there are " + names));
    }
  }
  const std::string name = options.prompt_name.value_or(info.default_prompt);
  if (name.empty()) return std::string();
  const auto found = std::ranges::find(info.prompts, name, &NamedPrompt::name);
  if (found != info.prompts.end()) return found->text;
  std::string names;
  for (const NamedPrompt& prompt : info.prompts) names += (names.empty() ? "" : ", ") + prompt.name;
  return fail(ErrorKind::kInvalidInput, fmt::format("the model has no prompt \"{}\"{}", name,
                                                    names.empty() ? "; its files name none" : ": it has " + names));
}

Pooling pooling_of(const EmbedOptions& options) {
  const std::string& name = options.pooling;
  if (options.is_sparse) return Pooling::kSparse;
  if (name == "mean") return Pooling::kMean;
  if (name == "last") return Pooling::kLast;
  return name == "cls" ? Pooling::kFirst : Pooling::kModel;
}

std::string line_of(const EmbedOptions& options, size_t index, const ReadText& read) {
  const std::string numbers = fmt::format("[{}]", fmt::join(read.numbers, ","));  // as few digits as tell floats apart
  if (!options.reading.json) return numbers + "\n";
  const std::string cut = read.n_cut > 0 ? fmt::format(",\"cut_tokens\":{}", read.n_cut) : "";
  return fmt::format("{{\"index\":{},\"embedding\":{},\"tokens\":{}{}}}\n", index, numbers, read.n_tokens, cut);
}

// "engine:0.31 small:0.22", heaviest first; of words that hold a space or a colon, with quotes.
std::string words_of(const Engine& engine, const EmbedOptions& options, size_t index, ReadText read) {
  std::ranges::stable_sort(read.words, std::greater{}, &WordWeight::weight);
  serve::Json list = serve::Json::array();
  std::string line;
  for (const WordWeight& word : read.words) {
    const auto text = engine.detokenize(std::span(&word.token, 1));
    const std::string shown = text ? *text : std::string();
    list.push_back({{"index", word.token}, {"token", shown}, {"value", word.weight}});
    const bool is_plain = !shown.empty() && shown.find_first_of(" :\"\t\n") == std::string::npos;
    line += fmt::format("{}{}:{:.4g}", line.empty() ? "" : " ", is_plain ? shown : serve::to_text(list.back()["token"]),
                        word.weight);
  }
  if (!options.reading.json) return line + "\n";
  serve::Json object = {{"index", index}, {"sparse", list}, {"tokens", read.n_tokens}};
  if (read.n_cut > 0) object["cut_tokens"] = read.n_cut;
  return serve::to_text(object) + "\n";
}

// Where vectors are cut to `width` numbers and go.
std::string refusal(const EmbedOptions& options, const ReadingInfo& info, size_t width) {
  if (options.is_sparse && (options.npy || options.dimensions || options.keeps_length || options.pooling != "model")) {
    return "--sparse goes without --npy, --dimensions, --no-normalize and --pooling: it gives weights of words";
  }
  if (width <= static_cast<size_t>(info.dim)) return {};
  return fmt::format("--dimensions is {}, but the model's vectors have {}", width, info.dim);
}

int run(const EmbedOptions& options) {
  int code = kDone;
  auto reader = open_reader(options.reading, code);
  if (!reader) return code;
  const ReadingInfo& info = reader->engine->info().reading;
  auto texts = texts_of(options.reading, std::move(reader->texts));
  if (!texts) return say_error(texts.error().message), kUserInput;
  const auto prefix = prefix_of(options, *reader->engine);
  if (!prefix) return say_error(prefix.error().message), kUserInput;
  if (info.writes && info.pooling == Pooling::kNone && options.pooling == "model" && !options.is_sparse) {
    say_warning("this model was made to write: its files do not say how its states become a vector, and their mean is "
                "taken");
  }
  std::vector<Request> requests(texts->size());
  for (size_t i = 0; i < texts->size(); ++i) {
    requests[i].prompt = TextPrompt{.text = *prefix + (*texts)[i]};
    requests[i].pooling = pooling_of(options);
    if (options.keeps_length) requests[i].normalise = false;
    if (options.task) requests[i].adapters = {{.name = *options.task}};
  }
  const auto width = static_cast<size_t>(options.dimensions.value_or(info.dim));
  if (const std::string reason = refusal(options, info, width); !reason.empty()) return say_error(reason), kUserInput;
  std::optional<NpyFile> npy;
  if (options.npy) npy.emplace(*options.npy, texts->size(), width);
  code = read_all(*reader->engine, options.reading, requests, [&](size_t index, ReadText read) {
    if (options.is_sparse) {
      write_out(words_of(*reader->engine, options, index, std::move(read)));
      return;
    }
    if (options.keeps_length)
      read.numbers.resize(width);
    else
      serve::shorten(read.numbers, width);
    if (npy)
      npy->add(read.numbers);
    else
      write_out(line_of(options, index, read));
  });
  if (npy && !npy->close() && code == kDone) {
    return say_error(fmt::format("cannot write {}", *options.npy)), kUserInput;
  }
  if (npy && code == kDone) write_err(fmt::format("candor: {} vectors of {} in {}\n", texts->size(), width, *options.npy));
  return code;
}

}  // namespace

void add_embed(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("embed", "texts to vectors, one a line or as a NumPy file");
  const auto options = std::make_shared<EmbedOptions>();
  add_reading_options(*command, options->reading, "[MODEL] TEXT...");
  add_choice(*command, "--pooling", options->pooling, {"model", "mean", "cls", "last"},
             "which rows become the vector (model: what its files say)");
  command->add_option("--prompt-name", options->prompt_name, "the model's own prompt that stands before each text")
      ->type_name("NAME");
  command->add_option("--task", options->task, "the adapter for a use, with its own prompt (jina-embeddings-v3's)")
      ->type_name("NAME");
  add_int(*command, "--dimensions", options->dimensions, 1, 1 << 20, "the first so many numbers, at length 1 again");
  command->add_flag("--no-normalize", options->keeps_length, "vectors keep their length");
  command->add_flag("--sparse", options->is_sparse, "weights of words in place of vectors, where the model gives them");
  command->add_option("--npy", options->npy, "write them as one NumPy array instead")->type_name("FILE");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace candor::apps
