// candor show: a model file's architecture as data, its tokenizer, template, tensors and memory.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/commands/vision_text.h"
#include "apps/options/arguments.h"
#include "apps/options/generation_options.h"
#include "apps/options/idle_options.h"
#include "apps/options/model_choice.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "backend/op_specs.h"
#include "candor/kv_type.h"
#include "engine/open/loaded_model.h"
#include "engine/open/loaded_vision.h"
#include "engine/open/memory_plan.h"
#include "formats/model_file.h"
#include "model/arch_cost.h"
#include "model/arch_spec.h"
#include "model/arch_text.h"
#include "model/gguf_settings.h"
#include "model/model.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::apps {
namespace {

struct ShowOptions {
  std::optional<std::string> model, mmproj;
  std::vector<std::string> positionals;
  bool tensors = false, metadata = false, chat_template = false, fast_weights = false, json = false;
};

std::string describe(const formats::MetaValue& value) {
  struct Visitor {
    std::string operator()(int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(uint64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::string_view v) const {
      constexpr size_t kMax = 60;
      return v.size() <= kMax ? printable(v) : printable(v.substr(0, kMax)) + fmt::format("... ({} bytes)", v.size());
    }
    std::string operator()(const formats::MetaArray& v) const {
      return std::visit([](const auto& list) { return fmt::format("[{} values]", list.size()); }, v);
    }
  };
  return std::visit(Visitor{}, value);
}

// Bytes of each type, by layer; -1 is what stands outside the blocks.
using LayerSizes = std::map<int32_t, std::map<std::string_view, size_t>>;

LayerSizes layer_sizes(const formats::ModelFile& file) {
  LayerSizes sizes;
  for (const TensorView& tensor : file.tensors()) {
    int32_t layer = -1;
    if (tensor.name.starts_with("blk.")) {
      std::from_chars(tensor.name.data() + 4, tensor.name.data() + tensor.name.size(), layer);
    }
    sizes[layer][dtype_info(tensor.dtype).name] += tensor.n_bytes;
  }
  return sizes;
}

std::string size_line(const std::string& name, const std::map<std::string_view, size_t>& types) {
  size_t total = 0;
  std::string parts;
  for (const auto& [type, bytes] : types) {
    total += bytes;
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", type, format_bytes(bytes));
  }
  return fmt::format("{:<14} {} ({})\n", name, format_bytes(total), parts);
}

// Layers of equal sizes in a row share a line.
std::string describe_layers(const formats::ModelFile& file) {
  std::string out;
  const LayerSizes sizes = layer_sizes(file);
  for (auto at = sizes.begin(); at != sizes.end();) {
    const auto first = at;
    while (at != sizes.end() && at->second == first->second && (first->first >= 0 || at == first)) ++at;
    const int32_t last = std::prev(at)->first;
    const std::string name = first->first < 0       ? "embed, head"
                             : last == first->first ? fmt::format("layer {}", last)
                                                    : fmt::format("layers {}-{}", first->first, last);
    out += size_line(name, first->second);
    if (last != first->first) out.insert(out.size() - 1, " each");
  }
  return out;
}

// Which no other program reads from a GGUF file.
bool is_our_own(std::string_view type) {
  return type == dtype_info(DType::kW8A8).name || type == dtype_info(DType::kFP8).name;
}

std::string describe_weights(const formats::ModelFile& file) {
  std::map<std::string_view, std::pair<int64_t, size_t>> by_type;
  int64_t n_parameters = 0;
  size_t n_bytes = 0;
  for (const TensorView& tensor : file.tensors()) {
    auto& [elements, bytes] = by_type[dtype_info(tensor.dtype).name];
    elements += tensor.shape.n_elements();
    bytes += tensor.n_bytes;
    n_parameters += tensor.shape.n_elements();
    n_bytes += tensor.n_bytes;
  }
  std::string out = fmt::format("{:<14} {} parameters in {} tensors, {}\n", "weights", format_count(n_parameters),
                                file.tensors().size(), format_bytes(n_bytes));
  for (const auto& [name, sums] : by_type)
    out += fmt::format("{:<14}   {:<9} {} parameters, {}{}\n", "", name, format_count(sums.first),
                       format_bytes(sums.second), is_our_own(name) ? "; a type of Candor's own" : "");
  return out;
}

// Of latent attention one vector serves as key and as value.
std::string shape_of(const backend::KvLayout& layout) {
  if (!layout.has_values()) return fmt::format("{} layers x a latent of {}", layout.n_layers, layout.head_dim);
  if (layout.heads.empty())
    return fmt::format("2 x {} layers x {} heads x {}", layout.n_layers, layout.n_kv_heads, layout.head_dim);
  std::map<std::pair<int32_t, int32_t>, int32_t> n_alike;
  for (const backend::KvHeads& heads : layout.heads) ++n_alike[{heads.n_kv_heads, heads.head_dim}];
  std::string text;
  for (const auto& [heads, n_layers] : n_alike) {
    text +=
        fmt::format("{}{} layers x {} heads x {}", text.empty() ? "2 x (" : " + ", n_layers, heads.first, heads.second);
  }
  return text + ")";
}

std::string describe_kv(const model::ArchSpec& spec) {
  const KvType type = model::usual_kv(spec, KvType::kBf16);
  const backend::KvLayout layout = model::kv_layout(spec, type);
  const int64_t token_bytes = backend::kv_block_bytes(layout) / backend::kBlockTokens;
  const int64_t padding = backend::kv_pool_block_bytes(layout) / backend::kBlockTokens - token_bytes;
  return fmt::format("{:<14} {} a token in {} ({} x {} bytes), {} for the whole context\n", "K/V memory",
                     format_bytes(static_cast<uint64_t>(token_bytes)), name_of(type), shape_of(layout),
                     type == KvType::kF32 ? 4 : 2,
                     format_bytes(static_cast<uint64_t>(token_bytes) * static_cast<uint64_t>(spec.max_positions))) +
         (padding == 0
              ? std::string()
              : fmt::format("{:<14} {} a token with the {} of padding that keep blocks apart in caches (fit)\n", "",
                            format_bytes(static_cast<uint64_t>(token_bytes + padding)),
                            format_bytes(static_cast<uint64_t>(padding)))) +
         (layout.state.n_layers == 0
              ? std::string()
              : fmt::format("{:<14} {} a state of {} recurrent layers; {} are kept for prefixes\n", "",
                            format_bytes(static_cast<uint64_t>(backend::state_slot_bytes(layout.state))),
                            layout.state.n_layers, engine::kept_states({}, layout.state)));
}

std::string describe_tokenizer(const formats::ModelFile& file) {
  auto tokenizer = text::Tokenizer::from_model_file(file);
  if (!tokenizer) return fmt::format("{:<14} {}\n", "tokenizer", printable(tokenizer.error().message));
  const text::SpecialTokens& special = (*tokenizer)->special();
  const auto piece = [&](TokenId id) {
    return id == kNoToken ? std::string("none") : fmt::format("{} {}", id, printable((*tokenizer)->piece(id)));
  };
  std::string ends;
  for (const TokenId id : (*tokenizer)->end_tokens()) ends += (ends.empty() ? "" : ", ") + piece(id);
  const bool has_template = file.meta("tokenizer.chat_template") != nullptr;
  return fmt::format("{:<14} {}, {} pieces; begins with {}{}; ends at {}\n{:<14} {}\n", "tokenizer",
                     (*tokenizer)->description(), (*tokenizer)->n_vocab(), piece(special.bos),
                     special.add_bos ? " (added)" : " (not added)", ends.empty() ? "none" : ends, "chat template",
                     has_template ? "yes (--template prints it)" : "none");
}

std::string tensor_table(const formats::ModelFile& file) {
  std::string out;
  for (const TensorView& tensor : file.tensors())
    out += fmt::format("{:<36} {:<9} {:<20} {}\n", printable(tensor.name), dtype_info(tensor.dtype).name,
                       to_string(tensor.shape), format_bytes(tensor.n_bytes));
  return out;
}

nlohmann::ordered_json layer_json(const model::BlockSpec& block, const LayerSizes::mapped_type& sizes) {
  nlohmann::ordered_json json = {{"n_heads", block.attn.n_heads},       {"n_kv_heads", block.attn.n_kv_heads},
                                 {"head_dim", block.attn.head_dim},     {"window_tokens", block.attn.window_tokens},
                                 {"rope_dims", block.attn.rope.n_dims}, {"rope_base", block.attn.rope.base},
                                 {"ffn_dim", block.ffn.ffn_dim}};
  if (block.has_latent()) json["latent_dim"] = block.attn.latent_dim;
  if (block.ffn.is_moe()) {
    json["n_experts"] = block.ffn.moe.n_experts;
    json["n_experts_used"] = block.ffn.moe.n_used;
  }
  json["bytes"] = nlohmann::ordered_json::object();
  for (const auto& [type, bytes] : sizes) json["bytes"][std::string(type)] = bytes;
  return json;
}

// What the file leaves out, and whose values hold.
struct Assumptions {
  std::vector<formats::AssumedSetting> settings;
  std::string source;
};
Assumptions assumptions(const formats::ModelFile& file, const Result<model::ArchSpec>& spec) {
  if (!spec || !file.info().assumed.empty()) return {file.info().assumed, file.info().assumed_by};
  return {model::assumed_of_gguf(file, *spec), "llama.cpp"};
}
std::vector<formats::AssumedSetting> suggestions(const formats::ModelFile& file) {
  return file.info().suggested.empty() ? model::suggested_of_gguf(file) : file.info().suggested;
}

std::string list_of(const std::vector<formats::AssumedSetting>& settings) {
  std::vector<std::string> parts;
  for (const formats::AssumedSetting& setting : settings)
    parts.push_back(fmt::format("{} = {}", printable(setting.key), printable(setting.value)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

nlohmann::ordered_json to_json(const formats::ModelFile& file, const Result<model::ArchSpec>& spec) {
  nlohmann::ordered_json json;
  json["format"] = file.info().format;
  json["bytes"] = file.info().n_bytes;
  for (const std::string& name : file.info().left_out) json["left_out"].push_back(printable(name));
  const Assumptions assumed = assumptions(file, spec);
  for (const formats::AssumedSetting& setting : assumed.settings)
    json["assumed"][printable(setting.key)] = printable(setting.value);
  if (!assumed.settings.empty()) json["assumed_by"] = assumed.source;
  for (const std::string& key : file.info().without_effect) json["without_effect"].push_back(printable(key));
  for (const formats::AssumedSetting& setting : suggestions(file))
    json["suggested"][printable(setting.key)] = printable(setting.value);
  for (const formats::MetaEntry& entry : file.metadata())
    json["metadata"][printable(entry.key)] = describe(entry.value);
  for (const TensorView& tensor : file.tensors()) {
    const auto dims = std::vector<int64_t>(tensor.shape.dims.begin(), tensor.shape.dims.begin() + tensor.shape.n_dims);
    json["tensors"].push_back({{"name", std::string(tensor.name)},
                               {"type", std::string(dtype_info(tensor.dtype).name)},
                               {"shape", dims},
                               {"bytes", tensor.n_bytes}});
  }
  if (!spec) {
    json["error"] = spec.error().message;
    return json;
  }
  json["architecture"] = {{"family", spec->family},
                          {"dim", spec->dim},
                          {"vocab", spec->vocab},
                          {"max_positions", spec->max_positions},
                          {"tied_head", spec->head.tied}};
  if (spec->short_context.positions > 0) {
    json["architecture"]["short_context"] = spec->short_context.positions;  // served with -c up to this: other factors
  }
  const LayerSizes sizes = layer_sizes(file);
  for (size_t i = 0; i < spec->blocks.size(); ++i) {
    const auto layer = sizes.find(static_cast<int32_t>(i));
    json["architecture"]["layers"].push_back(
        layer_json(spec->blocks[i], layer == sizes.end() ? LayerSizes::mapped_type() : layer->second));
  }
  return json;
}

std::string describe_left_out(const formats::ModelFile& file) {
  const std::vector<std::string>& names = file.info().left_out;
  if (names.empty()) return {};
  return fmt::format("{:<14} {} tensors that are known and not computed, the first {}\n", "left out", names.size(),
                     printable(names.front()));
}

// What the file leaves out, says in vain, and suggests.
std::string describe_settings(const formats::ModelFile& file, const Result<model::ArchSpec>& spec) {
  std::string out;
  if (const Assumptions assumed = assumptions(file, spec); !assumed.settings.empty())
    out += fmt::format("{:<14} {} (the file leaves them out; the defaults of {})\n", "assumed",
                       list_of(assumed.settings), assumed.source);
  std::vector<std::string> parts;
  for (const std::string& key : file.info().without_effect) parts.push_back(printable(key));
  if (!parts.empty())
    out += fmt::format("{:<14} {} (keys of config.json that the model does not read)\n", "without effect",
                       fmt::join(parts, ", "));
  if (const auto suggested = suggestions(file); !suggested.empty())
    out += fmt::format("{:<14} {} (for generation; not taken: options and requests decide)\n", "suggested",
                       list_of(suggested));
  return out;
}

// What prompts are bound by there: exact sums of bytes are the tensor cores', everything else f32's (docs/gpu.md).
std::string describe_gpu(const formats::ModelFile& file, const model::ArchSpec& spec) {
  const auto cost = model::cost_of(file, spec);
  if (!cost) return {};
  const bool is_int8 = cost->arithmetic == Arithmetic::kInt8;
  return fmt::format(
      "{:<14} {}\n", "on a GPU",
      is_int8 ? "prompts by int8 tensor cores"
              : "prompts by f32 multiply-adds; \"candor quantize\" to w8a8 or q8_0 lets tensor cores read them");
}

std::string overview(const formats::ModelFile& file, const Result<model::ArchSpec>& spec) {
  std::string out =
      fmt::format("{:<14} {}, {}{}\n", "file", file.info().format, format_bytes(file.info().n_bytes),
                  file.info().paths.size() > 1 ? fmt::format(" in {} parts", file.info().paths.size()) : "");
  if (const auto name = formats::meta_string(file, "general.name"); name && *name)
    out += fmt::format("{:<14} {}\n", "name", printable(**name));
  out += spec ? model::to_text(*spec) : fmt::format("{:<14} {}\n", "not runnable", printable(spec.error().message));
  out += describe_weights(file) + describe_left_out(file) + describe_settings(file, spec) + describe_layers(file);
  if (spec) out += describe_kv(*spec) + describe_gpu(file, *spec);
  return out + describe_tokenizer(file);
}

int run(const ShowOptions& options, const CLI::App& command) {
  auto choice = choose_model(options.model, options.positionals);
  if (!choice) return say_error(choice.error().message), kUserInput;
  if (!choice->texts.empty())
    return say_error(fmt::format("show takes one model; what is \"{}\"?", choice->texts[0])), kUserInput;
  const EngineOptions engine{
      .model_path = choice->model, .fast_weights = options.fast_weights, .mmproj_path = options.mmproj.value_or("")};
  auto file = engine::open_model_file(engine);
  if (!file) return say_error(file.error().message), kUserInput;
  if (options.json) note_idle(command, {"--tensors", "--metadata", "--template"}, "--json shows everything");
  const auto spec = model::read_arch(**file);
  const auto vision =
      spec ? engine::vision_figures(engine, *spec) : VisionAnswer(std::optional<engine::VisionFigures>());
  std::string out;
  if (options.json) {
    auto json = to_json(**file, spec);
    json["images"] = vision_json(vision);
    out = json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  } else if (options.chat_template) {
    const auto source = formats::meta_string(**file, "tokenizer.chat_template");
    if (!source || !*source)
      return say_error(fmt::format("{} has no chat template", choice->model.string())), kUserInput;
    out = std::string(**source) + "\n";
  } else if (options.tensors) {
    out = tensor_table(**file);
  } else if (options.metadata) {
    for (const formats::MetaEntry& entry : (*file)->metadata())
      out += fmt::format("{:<44} {}\n", printable(entry.key), describe(entry.value));
  } else {
    out = overview(**file, spec);
    if (const std::string text = vision_text(vision); !text.empty()) out += fmt::format("{:<14} {}\n", "images", text);
  }
  if (const auto whole = (*file)->check_intact(); !whole) return say_error(whole.error().message), kUserInput;
  write_out(out);
  return kDone;
}

}  // namespace

void add_show(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("show", "a model's architecture, tensors, tokenizer, template, memory");
  const auto options = std::make_shared<ShowOptions>();
  command->add_option("model", options->positionals, "[MODEL]");
  command->add_option("-m,--model", options->model, "the model's file")->type_name("FILE");
  add_mmproj(*command, options->mmproj);
  CLI::Option* tensors = command->add_flag("--tensors", options->tensors, "every tensor: name, type, shape, size");
  CLI::Option* metadata = command->add_flag("--metadata", options->metadata, "every key of the file");
  command->add_flag("--template", options->chat_template, "the chat template's source")
      ->excludes(tensors)
      ->excludes(metadata);
  tensors->excludes(metadata);
  add_fast_weights(*command, options->fast_weights);
  command->add_flag("--json", options->json, "everything as JSON");
  command->callback([options, command, &action] { action = [options, command] { return run(*options, *command); }; });
}

}  // namespace candor::apps
