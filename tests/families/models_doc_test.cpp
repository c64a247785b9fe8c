// docs/models.md holds tables that are made here, from the program's own data and the goldens, between the lines
// "<!-- made: NAME -->" and "<!-- end -->". CANDOR_WRITE_DOCS=1 writes them anew.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "model/families/families.h"
#include "model/hub/hub_folder.h"
#include "model/model.h"
#include "quantize/recipe.h"
#include "support/shared_data.h"

namespace candor::testing {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::string positions_of(const model::ArchSpec& spec) {
  std::set<std::string> kinds;
  for (const model::BlockSpec& block : spec.blocks) {
    if (block.attn.max_alibi_bias > 0.0f) kinds.insert("ALiBi");
    if (block.attn.rope.n_dims == 0) continue;
    constexpr const char* kScalings[] = {"rotary", "rotary, linear", "rotary, yarn", "rotary, llama3"};
    const std::string name = kScalings[static_cast<size_t>(block.attn.rope.scaling)];
    kinds.insert(block.attn.rope.frequency_factors.empty() ? name : name + " with factors");
  }
  if (spec.embed.has_positions) kinds.insert("a table");
  const bool skips = std::ranges::any_of(spec.blocks, [](const auto& b) { return b.attn.rope.n_dims == 0; }) &&
                     std::ranges::any_of(spec.blocks, [](const auto& b) { return b.attn.rope.n_dims > 0; });
  std::string text;
  for (const std::string& kind : kinds) text += (text.empty() ? "" : "; ") + kind;
  if (text.empty()) text = "none";
  return text + (skips ? ", not in every block" : "");
}

std::string attention_of(const model::ArchSpec& spec) {
  const model::BlockSpec& block = spec.blocks.front();
  const auto n_windowed = std::ranges::count_if(spec.blocks, [](const auto& b) { return b.attn.window_tokens > 0; });
  std::string text = block.attn.n_kv_heads < block.attn.n_heads ? "grouped" : "all heads";
  if (block.has_latent()) text = "latent";
  if (n_windowed > 0) {
    const bool is_all = n_windowed == static_cast<int64_t>(spec.blocks.size());
    text += is_all ? ", window" : ", window in some blocks";
    if (std::ranges::any_of(spec.blocks, [](const auto& b) { return b.attn.is_two_sided; })) text += " to both sides";
  }
  if (spec.is_bidirectional) {
    text += ", sees ahead";
  }
  if (std::ranges::any_of(spec.blocks, [](const auto& b) { return b.attn.chunk_tokens > 0; }))
    text += ", chunks in some blocks";
  if (block.attn.softcap > 0.0f) text += ", capped";
  if (std::ranges::any_of(spec.blocks, [](const auto& b) { return b.attn.temper.gain > 0.0f; }))
    text += ", queries that grow";
  if (block.attn.has_sinks) text += ", sinks";
  if (block.attn.bias_reach > 0) text += ", biased by distance";
  if (block.has_head_gate) text += ", gated";
  if (block.qk_norm == model::QkNorm::kHeads)
    text += block.norms_after_rope ? ", norms by head behind rotation" : ", norms by head";
  if (std::ranges::any_of(spec.blocks, &model::BlockSpec::shares_kv)) text += ", K/V of other blocks";
  if (block.qk_norm == model::QkNorm::kWhole) text += ", norms over q and k";
  const auto in_blocks = [&](auto has, const char* name) {
    if (std::ranges::none_of(spec.blocks, has)) return;
    text += fmt::format("; {} {}", name, std::ranges::all_of(spec.blocks, has) ? "in every block" : "in some blocks");
  };
  in_blocks(&model::BlockSpec::has_delta, "gated delta rule");
  in_blocks(&model::BlockSpec::has_gated_conv, "gated convolution");
  in_blocks(&model::BlockSpec::has_ssm, "state space");
  return text;
}

std::string norms_of(const model::ArchSpec& spec) {
  const model::BlockSpec& block = spec.blocks.front();
  constexpr const char* kWiring[] = {"before", "after", "before and after", "before both in parallel",
                                     "before each in parallel", "over the stream"};
  return fmt::format("{} {}", block.norm.kind == backend::NormKind::kRms ? "RMS" : "LayerNorm",
                     kWiring[static_cast<size_t>(block.wiring)]);
}

std::string ffn_of(const model::ArchSpec& spec) {
  const auto last = std::find_if(spec.blocks.rbegin(), spec.blocks.rend(), [](const auto& b) { return b.has_ffn(); });
  const auto first = std::ranges::find_if(spec.blocks, &model::BlockSpec::has_ffn);
  const model::FfnSpec& ffn = last->ffn;
  const bool is_mixed = first->ffn.is_moe() != ffn.is_moe();
  constexpr const char* kGates[] = {"SiLU",         "GELU",         "GELU (erf)", "ReLU",
                                    "squared ReLU", "clamped SiLU", "sigmoid",    "product"};
  const bool is_led = std::ranges::is_partitioned(spec.blocks, [](const auto& b) { return !b.ffn.is_moe(); });
  static_assert(std::size(kGates) == backend::kGateKinds);
  std::string text = fmt::format("{}{}", ffn.is_gated ? "gated " : "", kGates[static_cast<size_t>(ffn.gate)]);
  if (ffn.is_moe()) text += ffn.moe.n_groups > 1 ? ", experts out of groups" : ", experts";
  if (ffn.shared_dim > 0) text += ", a shared expert";
  if (spec.embed.layer_dim > 0) text += ", inputs by block";
  return text + (!is_mixed ? "" : is_led ? ", first blocks dense" : ", some blocks dense");
}

// With the types of folders whose text it is.
std::string names_of(const model::HubForm& form) {
  std::string text = fmt::format("`{}`", form.model_type);
  for (const model::HubOuter& outer : form.outer) text += fmt::format(", in `{}`", outer.model_type);
  return text;
}

std::string missing_of(const model::HubForm& form) {
  std::string text = form.outer.empty() ? std::string() : std::string(form.outer.front().media);
  if (form.not_computed.empty()) return text;
  return fmt::format("{}{}{}", text, text.empty() ? "" : ", ", form.not_computed);
}

// Of encoders: tests/encoders. Of texts that come with images alone: tests/vision.
fs::path golden_of(const model::Family& family, const model::HubForm& form) {
  constexpr std::pair<std::string_view, const char*> kEncoders[] = {{"bert", "bert"},
                                                                    {"roberta", "roberta_pairs"},
                                                                    {"xlm-roberta", "xlm_roberta"},
                                                                    {"camembert", "camembert"},
                                                                    {"distilbert", "distilbert"},
                                                                    {"modernbert", "modernbert"},
                                                                    {"nomic_bert", "nomic_bert"},
                                                                    {"gte", "gte"},
                                                                    {"mpnet", "mpnet"},
                                                                    {"new", "new"},
                                                                    {"jina_embeddings_v3", "jina_v3"}};
  if (family.name == "jina-bert-v2") return project_file("tests/encoders/goldens/jina_v2");
  if (family.name == "llama-embed") return project_file("tests/encoders/goldens/llama_embed");
  if (family.name == "nomic-bert-moe") return project_file("tests/encoders/goldens/nomic_moe");
  if (family.name == "jina-bert-v3" && form.model_type == "xlm-roberta") {
    return project_file("tests/encoders/goldens/jina_v3_published");
  }
  const auto* encoder = std::ranges::find(kEncoders, form.model_type, [](const auto& row) { return row.first; });
  if (encoder != std::end(kEncoders)) return project_file(std::string("tests/encoders/goldens/") + encoder->second);
  if (family.name == "gemma-embedding") return project_file("tests/encoders/goldens/gemma_embedding");
  const fs::path with_images = goldens().parent_path() / "vision_goldens";
  if (form.model_type == "qwen2_5_vl_text") return with_images / "qwen2_5_vl";
  if (form.model_type == "qwen3_vl_text") return with_images / "qwen3vl";
  if (form.model_type == "qwen3_vl_moe_text") return with_images / "qwen3vl_moe";
  std::string golden(form.model_type);
  if (golden == "qwen3_moe") golden = "qwen3moe";
  if (golden == "gemma3_text") golden = "gemma3";
  if (family.name == "nemotron_h_moe") golden = "nemotron_h_moe";
  return goldens() / golden;
}

// One row for each golden, which is what a form of a family is proved with.
std::string families_table() {
  std::string table =
      "| `model_type` of config.json | `general.architecture` of GGUF | positions | attention | norms | feed-forward | "
      "proved with | not supported |\n|---|---|---|---|---|---|---|---|\n";
  for (const model::Family& family : model::families()) {
    std::string_view last;
    for (const model::HubForm& form : family.hub) {
      if (std::exchange(last, form.model_type) == form.model_type) continue;
      const fs::path folder = golden_of(family, form);
      const auto file = model::open_model(folder);
      EXPECT_TRUE(file) << "no golden for " << form.model_type;
      if (!file) continue;
      const auto spec = model::read_arch(**file);
      EXPECT_TRUE(spec) << folder;
      if (!spec) continue;
      std::string proof = fs::exists(folder / "model.gguf") ? ", GGUF" : "";
      if (fs::exists(folder / "llama_cpp.json")) proof += ", llama.cpp";
      table += fmt::format("| {} | `{}` | {} | {} | {} | {} | safetensors{} | {} |\n", names_of(form), family.name,
                           positions_of(*spec), attention_of(*spec), norms_of(*spec), ffn_of(*spec), proof,
                           missing_of(form));
    }
  }
  return table;
}

std::string types_table() {
  std::string table = "| type | of most tensors | bits a weight there |\n|---|---|---|\n";
  for (const quantize::Recipe& recipe : quantize::recipes()) {
    const DTypeInfo& info = dtype_info(recipe.dtype);
    table += fmt::format("| `{}` | {} | {} |\n", recipe.name, info.name,
                         8.0 * static_cast<double>(info.block_bytes) / static_cast<double>(info.block_elements));
  }
  return table;
}

void expect_table(const std::string& name, const std::string& table) {
  const fs::path path = project_file("docs/models.md");
  std::string doc = read_text(path);
  const std::string opening = "<!-- made: " + name + " -->\n";
  const size_t begin = doc.find(opening);
  const size_t end = doc.find("<!-- end -->", begin);
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << "docs/models.md has no place for " << name;
  const size_t table_begin = begin + opening.size();
  if (std::getenv("CANDOR_WRITE_DOCS") != nullptr) {
    doc.replace(table_begin, end - table_begin, table);
    std::ofstream(path) << doc;
    return;
  }
  EXPECT_EQ(doc.substr(table_begin, end - table_begin), table)
      << "docs/models.md is out of date: run this test with CANDOR_WRITE_DOCS=1";
}

TEST(models_doc, lists_every_family_as_its_golden_shows_it) {
  expect_table("families", families_table());
}

TEST(models_doc, lists_every_type_that_quantize_writes) {
  expect_table("types", types_table());
}

}  // namespace
}  // namespace candor::testing
