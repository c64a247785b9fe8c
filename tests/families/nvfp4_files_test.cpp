// Folders and GGUF files in NVFP4 against the folder of floats that codes * scales * factors mean.

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "changed_golden.h"
#include "golden_logits.h"
#include "made_folder.h"
#include "model/hub/hub_folder.h"
#include "model/hub/hub_nvfp4.h"
#include "quantize/quantizer.h"
#include "support/temp_folder.h"
#include "tensor/quant/fp4.h"

namespace candor::testing::nvfp4_folders {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kIn = 128;
constexpr int64_t kOut = 128;

template <class Number>
void append(std::string& bytes, Number value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The parts of a matrix [n_out, n_in], and the numbers that they mean.
struct Parts {
  std::string codes, scales, numbers;
  float factor = 0.0f;
};

Parts parts_of(const std::string& name, int64_t n_out, int64_t n_in, bool is_inverse) {
  uint64_t at = std::hash<std::string>()(name);
  const auto next = [&at] { return static_cast<uint32_t>((made_uniform(at++) + 1.0) * 8388608.0); };
  Parts parts;
  parts.factor = is_inverse ? 1.0f / 3000.0f : 2e-4f;
  for (int64_t i = 0; i < n_out * n_in / 16; ++i) {
    const auto scale = static_cast<uint8_t>(0x50 + next() % 0x20);
    append(parts.scales, scale);
    for (int j = 0; j < 8; ++j) {
      const auto pair = static_cast<uint8_t>(next() & 255);
      append(parts.codes, pair);
      for (const int code : {pair & 15, pair >> 4}) {
        append(parts.numbers,
               parts.factor * (quant::kE2M1Values[static_cast<size_t>(code)] * quant::e4m3_to_f32(scale)));
      }
    }
  }
  return parts;
}

json config_of(const json& quantization) {
  json config = {{"architectures", {"LlamaForCausalLM"}},
                 {"model_type", "llama"},
                 {"vocab_size", 288},
                 {"hidden_size", kIn},
                 {"intermediate_size", 192},
                 {"num_hidden_layers", 1},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 4},
                 {"max_position_embeddings", 256},
                 {"rms_norm_eps", 1e-6},
                 {"rope_theta", 10000.0},
                 {"hidden_act", "silu"},
                 {"tie_word_embeddings", false},
                 {"bos_token_id", 0},
                 {"eos_token_id", 0},
                 {"torch_dtype", "bfloat16"}};
  if (!quantization.is_null()) config["quantization_config"] = quantization;
  return config;
}

const json kModelOptConfig = {{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}, {"ignore", {"lm_head"}}};
const json kCompressedConfig = {
    {"quant_method", "compressed-tensors"},
    {"format", "nvfp4-pack-quantized"},
    {"ignore", {"lm_head"}},
    {"config_groups",
     {{"group_0",
       {{"weights",
         {{"type", "float"}, {"num_bits", 4}, {"symmetric", true}, {"group_size", 16}, {"strategy", "tensor_group"}}},
        {"input_activations", {{"type", "float"}, {"num_bits", 4}, {"group_size", 16}}},
        {"targets", {"Linear"}}}}}}};

enum class Form : uint8_t { kFloats, kModelOpt, kCompressed };

using Change = std::function<void(std::vector<StoredTensor>&)>;

// Matrices of the block by parts or, of kFloats, as numbers; all else by formula. is_inverse: their factors are those
// of compressed-tensors.
void write_folder(const fs::path& folder, Form form, bool is_inverse, const json& config, const Change& change = {}) {
  std::vector<StoredTensor> tensors;
  const std::string layer = "model.layers.0.";
  const auto add_plain = [&](const std::string& name, const std::vector<int64_t>& shape) {
    tensors.push_back({name, "BF16", shape, made_weight(name, shape)});
  };
  const std::map<std::string, std::pair<int64_t, int64_t>> matrices = {
      {"self_attn.q_proj", {kOut, kIn}}, {"self_attn.k_proj", {kOut, kIn}}, {"self_attn.v_proj", {kOut, kIn}},
      {"self_attn.o_proj", {kOut, kIn}}, {"mlp.gate_proj", {192, kIn}},     {"mlp.up_proj", {192, kIn}},
      {"mlp.down_proj", {kOut, 192}}};
  for (const auto& [stem, shape] : matrices) {
    const std::string name = layer + stem + ".weight";
    const auto [n_out, n_in] = shape;
    const Parts parts = parts_of(name, n_out, n_in, is_inverse);
    if (form == Form::kFloats) {
      tensors.push_back({name, "F32", {n_out, n_in}, parts.numbers});
      continue;
    }
    const bool is_packed = form == Form::kCompressed;
    std::string factor;
    append(factor, is_packed ? 3000.0f : parts.factor);
    tensors.push_back({name + (is_packed ? "_global_scale" : "_scale_2"), "F32", json::array({1}), factor});
    tensors.push_back(
        {layer + stem + (is_packed ? ".input_global_scale" : ".input_scale"), "F32", json::array({1}), factor});
    tensors.push_back({name + (is_packed ? "_packed" : ""), "U8", {n_out, n_in / 2}, parts.codes});
    tensors.push_back({name + "_scale", "F8_E4M3", {n_out, n_in / 16}, parts.scales});
  }
  if (form == Form::kModelOpt) {
    tensors.push_back({layer + "self_attn.k_proj.k_scale", "F32", json::array({1}), std::string(4, '\0')});
  }
  for (const char* norm : {"input_layernorm.weight", "post_attention_layernorm.weight"}) add_plain(layer + norm, {kIn});
  add_plain("model.norm.weight", {kIn});
  add_plain("model.embed_tokens.weight", {288, kIn});
  add_plain("lm_head.weight", {288, kIn});
  if (change) change(tensors);
  std::ranges::stable_sort(tensors, std::greater<>(), [](const StoredTensor& t) { return t.dtype == "F32"; });
  write_safetensors(folder / "model.safetensors", tensors);
  std::ofstream(folder / "config.json") << config.dump();
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"}) {
    fs::copy_file(golden_folder("llama") / file, folder / file, fs::copy_options::overwrite_existing);
  }
}

std::vector<Logits> logits_of(const fs::path& path, const char* backend) {
  const auto file = model::open_model(path);
  EXPECT_TRUE(file) << file.error().message;
  return file ? run_golden_prompt(**file, backend) : std::vector<Logits>{};
}

void expect_near(const std::vector<Logits>& a, const std::vector<Logits>& b, float share) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_LE(largest_difference(a, b, a.size()), share * largest_logit(b));
}

DType type_of(const fs::path& path, const char* tensor) {
  return (*model::open_model(path))->find(tensor)->dtype;
}

TEST(nvfp4_files, mean_the_numbers_of_their_codes_scales_and_factors) {
  for (const Form form : {Form::kModelOpt, Form::kCompressed}) {
    const TempFolder floats, coded;
    const bool is_inverse = form == Form::kCompressed;
    write_folder(floats.path(), Form::kFloats, is_inverse, config_of(nullptr));
    write_folder(coded.path(), form, is_inverse, config_of(is_inverse ? kCompressedConfig : kModelOptConfig));
    EXPECT_EQ(type_of(coded.path(), "blk.0.attn_q.weight"), DType::kFP4);
    EXPECT_EQ(type_of(coded.path(), "blk.0.ffn_down.weight"), DType::kF32);  // 192 inputs are no whole blocks
    expect_near(logits_of(coded.path(), "reference"), logits_of(floats.path(), "reference"), 1e-5f);
    expect_near(logits_of(coded.path(), "cpu"), logits_of(floats.path(), "reference"), 0.05f);
  }
}

TEST(nvfp4_files, older_folders_say_so_in_a_file_of_their_own) {
  const TempFolder folder;
  write_folder(folder.path(), Form::kModelOpt, false, config_of(nullptr));
  const json said = {{"producer", {{"name", "modelopt"}}},
                     {"quantization", {{"quant_algo", "NVFP4"}, {"group_size", 16}}}};
  std::ofstream(folder.path() / "hf_quant_config.json") << said.dump();
  EXPECT_EQ(type_of(folder.path(), "blk.0.attn_q.weight"), DType::kFP4);
}

TEST(nvfp4_files, become_a_gguf_file_of_the_same_bits) {
  const TempFolder folder;
  write_folder(folder.path(), Form::kModelOpt, false, config_of(kModelOptConfig));
  const auto hub = model::open_model(folder.path());
  ASSERT_TRUE(hub) << hub.error().message;
  ASSERT_TRUE(quantize::write_gguf(**hub, folder.path() / "m.gguf", {}));
  EXPECT_EQ(type_of(folder.path() / "m.gguf", "blk.0.ffn_up.weight"), DType::kFP4);
  EXPECT_EQ(logits_of(folder.path() / "m.gguf", "cpu"), logits_of(folder.path(), "cpu"));
}

// FP4's blocks as GGUF's type 40 has them, without their factor.
std::vector<std::byte> as_type_40(const TensorView& tensor) {
  std::vector<std::byte> bytes;
  for (size_t at = 0; at < tensor.n_bytes; at += sizeof(quant::BlockFP4)) {
    quant::BlockFP4 block;
    std::memcpy(&block, tensor.data + at, sizeof block);
    const auto code = [&block](int k) { return block.qs[k / 2] >> (k % 2 * 4) & 15; };
    for (int half = 0; half < 2; ++half) {
      for (int g = 0; g < 4; ++g) bytes.push_back(static_cast<std::byte>(block.scales[4 * half + g]));
      for (int i = 0; i < 32; ++i) {
        const int k = 64 * half + i / 8 * 16 + i % 8;
        bytes.push_back(static_cast<std::byte>(code(k) | code(k + 8) << 4));
      }
    }
  }
  return bytes;
}

TEST(nvfp4_files, blocks_of_gguf_files_and_their_factors_are_joined) {
  const TempFolder folder;
  write_folder(folder.path(), Form::kModelOpt, false, config_of(kModelOptConfig));
  const auto hub = model::open_model(folder.path());
  ASSERT_TRUE(hub) << hub.error().message;
  auto file = std::make_unique<MemoryModelFile>(copy_of_gguf(**hub));
  for (const TensorView& tensor : (*hub)->tensors()) {
    if (tensor.dtype != DType::kFP4) continue;
    ASSERT_TRUE((*hub)->make_copy(tensor.bytes()));
    const std::string name(tensor.name);
    float factor;
    std::memcpy(&factor, tensor.data, sizeof factor);
    std::vector<std::byte> number(sizeof factor);
    std::memcpy(number.data(), &factor, sizeof factor);
    file->remove_tensor(name);
    file->add_tensor(name, DType::kNVFP4, tensor.shape, as_type_40(tensor));
    for (const char* end : {"scale", "input_scale"}) {
      file->add_tensor(name.substr(0, name.rfind('.') + 1) + end, DType::kF32, {1, {1}}, number);
    }
  }
  const auto joined = model::with_joined_nvfp4(std::move(file));
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_EQ((*joined)->tensors().size(), (*hub)->tensors().size());
  for (const TensorView& tensor : (*hub)->tensors()) {
    if (tensor.dtype != DType::kFP4) continue;
    const TensorView* same = (*joined)->find(tensor.name);
    ASSERT_NE(same, nullptr) << tensor.name;
    ASSERT_TRUE((*hub)->make_copy(tensor.bytes()) && (*joined)->make_copy(same->bytes()));
    ASSERT_EQ(same->n_bytes, tensor.n_bytes);
    EXPECT_EQ(std::memcmp(same->data, tensor.data, tensor.n_bytes), 0) << tensor.name;
  }
}

TEST(nvfp4_files, what_does_not_fit_is_refused_by_name) {
  const auto find = [](std::vector<StoredTensor>& tensors, std::string_view end) {
    return std::ranges::find_if(tensors, [end](const StoredTensor& t) { return t.name.ends_with(end); });
  };
  const auto refusal = [](const json& config, const Change& change) {
    const TempFolder folder;
    write_folder(folder.path(), Form::kModelOpt, false, config, change);
    const auto file = model::open_model(folder.path());
    if (!file) return file.error().message;
    const auto backend = backend::make_backend("cpu", {.n_threads = 1});
    const auto loaded = model::Model::load(**file, **backend, {});
    return loaded ? std::string() : loaded.error().message;
  };
  struct Case {
    Change change;
    const char* named;
  };
  const Case cases[] = {
      {[&](auto& t) { t.erase(find(t, "q_proj.weight_scale")); }, "q_proj.weight_scale' is missing"},
      {[&](auto& t) { t.erase(find(t, "q_proj.weight_scale_2")); }, "q_proj.weight_scale_2' is missing"},
      {[&](auto& t) {
         find(t, "q_proj.weight_scale")->shape = {64, 16};
       },
       "[64, 16] does not fit its matrix, expected [128, 8]"},
      {[&](auto& t) { find(t, "q_proj.weight_scale")->dtype = "U8"; }, "I8 of shape [128, 8] does not fit"},
      {[&](auto& t) { find(t, "q_proj.weight_scale")->bytes[9] = 0x7f; }, "blk.0.attn_q.weight"},
      {[&](auto& t) { find(t, "q_proj.weight_scale")->bytes[9] = '\x90'; }, "blk.0.attn_q.weight"},
      {[&](auto& t) { find(t, "q_proj.weight_scale_2")->bytes = std::string("\0\0\x80\x7f", 4); },
       "is no factor of weights"},
  };
  for (const Case& row : cases) {
    const std::string message = refusal(config_of(kModelOptConfig), row.change);
    EXPECT_NE(message.find(row.named), std::string::npos) << row.named << ": " << message;
  }
  json other = kModelOptConfig;
  other["quant_algo"] = "W4A8_AWQ";
  EXPECT_NE(refusal(config_of(other), {}).find("quant_algo is \"W4A8_AWQ\", expected \"NVFP4\""), std::string::npos);
}

}  // namespace
}  // namespace candor::testing::nvfp4_folders
