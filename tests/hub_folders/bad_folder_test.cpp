// Folders of safetensors that are not what they should be: refused in one line that names the file and the reason, by
// the reader of the folder or when the model is loaded; never a signal, a hang or a large allocation.

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "backend/all/make_backend.h"
#include "model/hub/hub_folder.h"
#include "model/model.h"
#include "support/mutate.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kFiles[] = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
                                  "tokenizer_config.json"};
constexpr size_t kMemory = size_t{512} << 20;
constexpr int kSeconds = 2;

std::string read_text(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_text(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

// What stands in the way of the model of this folder; "" where it loads.
std::string refusal_of(const fs::path& folder) {
  const MemoryLimit memory(kMemory);
  const CpuTimeLimit time(kSeconds);
  const auto file = model::open_model(folder);
  if (!file) return file.error().message;
  const auto tokenizer = text::Tokenizer::from_model_file(**file);
  if (!tokenizer) return tokenizer.error().message;
  const auto spec = model::read_arch(**file);
  if (!spec) return spec.error().message;
  const auto backend = backend::make_backend("reference", {.n_threads = 1});
  const auto loaded = model::Model::load(**file, **backend, {});
  return loaded ? std::string() : loaded.error().message;
}

class BadFolder : public ::testing::Test {
 protected:
  BadFolder() {
    for (const char* name : kFiles) fs::copy_file(golden() / name, folder() / name);
  }
  static fs::path golden() { return goldens() / "llama"; }
  const fs::path& folder() const { return folder_.path(); }

  void expect_refused(const std::string& what, const std::string& reason) const {
    const std::string message = refusal_of(folder());
    EXPECT_NE(message.find(reason), std::string::npos) << what << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << what << ": " << message;
    EXPECT_FALSE(message.empty()) << what;
  }
  // The golden's file with a change.
  void change(const char* name, const std::function<void(json&)>& edit) const {
    json content = json::parse(read_text(golden() / name));
    edit(content);
    write_text(folder() / name, content.dump());
  }

  TempFolder folder_;
};

TEST_F(BadFolder, the_unchanged_folder_loads) {
  EXPECT_EQ(refusal_of(folder()), "");
}

struct ConfigCase {
  const char* key;
  json value;
  const char* reason;
};

TEST_F(BadFolder, values_of_config_json_that_make_no_model_are_refused_by_name) {
  const ConfigCase kCases[] = {
      {"model_type", "alien", "model_type 'alien' is not known; the nearest known ones are "},
      {"model_type", "llama5", "the nearest known ones are llama, llama4, "},
      {"model_type", 7, "names no model_type"},
      {"hidden_size", -5, "\"hidden_size\" is '-5', expected a whole number"},
      {"hidden_size", "64", "expected a whole number"},
      {"hidden_size", 1e30, "expected a whole number"},
      {"hidden_size", 0, "embedding_length"},
      {"hidden_size", uint64_t{1} << 63, "embedding_length"},
      {"hidden_size", 128, "token_embd"},
      {"num_hidden_layers", 1000000000, "block_count"},
      {"num_hidden_layers", 3, "blk.2"},
      {"num_hidden_layers", 1, "blk.1"},
      {"num_attention_heads", 3, "head"},
      {"num_attention_heads", 0, "head"},
      {"num_key_value_heads", 3, "head"},
      {"head_dim", 0, "key_length"},
      {"intermediate_size", 97, "ffn"},
      {"rms_norm_eps", "small", "\"rms_norm_eps\""},
      {"rms_norm_eps", -1.0, "epsilon"},
      {"max_position_embeddings", 0, "context_length"},
      {"hidden_act", "relu", "\"hidden_act\" is '\"relu\"', which is not supported"},
      {"sliding_window", "wide", ""},  // no key of Llama's class
      {"rope_parameters", json::array(), "an object"},
      {"rope_parameters", {{"rope_type", "alien"}}, "\"rope_type\""},
      {"rope_parameters", {{"rope_type", "llama3"}, {"factor", -1.0}}, "rope_scaling"},
      {"rope_parameters", {{"rope_type", "yarn"}, {"factor", 4.0}, {"mscale", "long"}}, "mscale"},
      {"rope_parameters", {{"rope_type", "linear"}, {"factor", 0.0}, {"rope_theta", 1e4}}, "factor"},
      {"rope_parameters", {{"rope_theta", -3.0}}, "freq_base"},
      {"tie_word_embeddings", true, ""},
  };
  for (const ConfigCase& one : kCases) {
    change("config.json", [&](json& config) { config[one.key] = one.value; });
    const std::string what = std::string(one.key) + " = " + one.value.dump();
    if (*one.reason == '\0') {
      EXPECT_EQ(refusal_of(folder()), "") << what;
    } else {
      expect_refused(what, one.reason);
    }
  }
}

// A folder that holds these files, each "{}".
std::string refusal_of_files(std::initializer_list<const char*> names) {
  const TempFolder folder;
  for (const char* name : names) folder.file(name, "{}");
  return refusal_of(folder.path());
}

TEST(OtherFolder, is_named_for_what_it_is) {
  struct Case {
    std::initializer_list<const char*> files;
    const char* reason;
  };
  const Case cases[] = {
      {{}, "is a folder without config.json: name a folder that holds config.json"},
      {{"adapter_config.json", "adapter_model.safetensors", "tokenizer.json"}, "is an adapter's folder (PEFT) and no"},
      {{"params.json", "consolidated.safetensors", "tekken.json"}, "is in its maker's own layout (params.json"},
      {{"model.safetensors"}, "holds safetensors without config.json"},
      {{"b.gguf", "a.gguf"}, "a.gguf'"},
      {{"model_index.json"}, "is a pipeline of several models"},
      {{"snapshots", "refs"}, "snapshots/ that holds config.json"},
  };
  for (const Case& row : cases) {
    const std::string message = refusal_of_files(row.files);
    EXPECT_NE(message.find(row.reason), std::string::npos) << row.reason << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(OtherFolder, of_an_adapter_names_its_base) {
  const TempFolder folder;
  folder.file("adapter_config.json", R"({"base_model_name_or_path": "maker/base"})");
  folder.file("adapter_model.safetensors", "");
  for (const fs::path& path : {folder.path(), folder.path() / "adapter_model.safetensors"}) {
    EXPECT_NE(refusal_of(path).find("(PEFT) of 'maker/base' and no model: name its base"), std::string::npos);
  }
  folder.file("adapter_config.json", R"({"base_model_name_or_path": {"a": [)");
  EXPECT_NE(refusal_of(folder.path()).find("(PEFT) and no model"), std::string::npos);
}

TEST_F(BadFolder, files_that_are_no_json_are_named) {
  const std::pair<std::string, const char*> kTexts[] = {
      {"", "config.json"},           {"{\"a\":", "no valid JSON at byte"},
      {"[1]", "model_type"},         {"{\"a\":1,\"a\":2}", "appears twice"},
      {"<html></html>", "no valid"}, {std::string(1000, '['), "deeper than 64"},
      {"{\"a\":\"\xff\"}", "JSON"},  {std::string((size_t{16} << 20) + 1, ' '), "at most 16777216"}};
  for (const auto& [text, reason] : kTexts) {
    write_text(folder() / "config.json", text);
    expect_refused(text.substr(0, 20), reason);
  }
}

TEST_F(BadFolder, weights_in_other_forms_are_refused) {
  const std::string good = read_text(folder() / "model.safetensors");
  const std::pair<std::string, const char*> kBytes[] = {
      {"", "0 bytes"},
      {"abc", "too few"},
      {good.substr(0, good.size() - 1), "bytes"},
      {"version https://git-lfs.github.com/spec/v1\n", "LFS"},
      {"<!DOCTYPE html><html></html>", "header of"},
  };
  for (const auto& [bytes, reason] : kBytes) {
    write_text(folder() / "model.safetensors", bytes);
    expect_refused(bytes.substr(0, 12), reason);
  }
  fs::remove(folder() / "model.safetensors");
  expect_refused("no weights", "neither model.safetensors nor its index");
  write_text(folder() / "pytorch_model.bin", "PK");
  expect_refused("pickle", "Python pickle");
}

TEST_F(BadFolder, an_adapter_beside_a_whole_model_is_refused) {
  write_text(folder() / "adapter_config.json", R"({"base_model_name_or_path": "maker/base"})");
  expect_refused("adapter", "holds an adapter (PEFT) of 'maker/base' beside a whole model");
}

TEST_F(BadFolder, an_index_stays_in_its_folder_and_tells_the_truth) {
  const auto index = [&](const json& map) {
    write_text(folder() / "model.safetensors.index.json", json{{"weight_map", map}}.dump());
  };
  index({{"model.norm.weight", "../other.safetensors"}});
  expect_refused("parent", "expected a .safetensors file of the folder itself");
  index({{"model.norm.weight", "/etc/passwd"}});
  expect_refused("absolute", "of the folder itself");
  index({{"model.norm.weight", "x.bin"}});
  expect_refused("pickle", "of the folder itself");
  index({{"model.norm.weight", 3}});
  expect_refused("number", "of the folder itself");
  index({{"model.norm.weight", "absent.safetensors"}});
  expect_refused("missing shard", "absent.safetensors");
  index({{"no.such.weight", "model.safetensors"}});
  expect_refused("missing tensor", "'no.such.weight' is not in 'model.safetensors'");
  index(json::array());
  expect_refused("array", "no object \"weight_map\"");
  fs::copy_file(folder() / "model.safetensors", folder() / "b.safetensors");
  index({{"model.norm.weight", "model.safetensors"}, {"lm_head.weight", "b.safetensors"}});
  expect_refused("twice", "two shards hold tensor");
}

// The same file with another header.
std::string with_header(const std::string& bytes, const std::function<void(json&)>& edit) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  json header = json::parse(bytes.substr(8, length));
  edit(header);
  const std::string text = header.dump();
  length = text.size();
  std::string result(8, '\0');
  std::memcpy(result.data(), &length, sizeof(length));
  uint64_t old_length = 0;
  std::memcpy(&old_length, bytes.data(), sizeof(old_length));
  return result + text + bytes.substr(8 + old_length);
}

TEST_F(BadFolder, tensors_without_a_place_or_with_another_shape_are_named) {
  const std::string good = read_text(folder() / "model.safetensors");
  const auto write = [&](const std::function<void(json&)>& edit) {
    write_text(folder() / "model.safetensors", with_header(good, edit));
  };
  write([](json& header) {
    header["model.extra.weight"] = header["model.norm.weight"];
    header.erase("model.norm.weight");
  });
  expect_refused("unknown", "'model.extra.weight'");
  write([](json& header) {
    json& row = header["model.layers.0.self_attn.q_proj.weight"];
    row["shape"] = {row["shape"][0].get<int>() * 2, row["shape"][1].get<int>() / 2};
  });
  expect_refused("shape", "attn_q");
  write([](json& header) { header["model.norm.weight"]["dtype"] = "I16"; });
  expect_refused("integers", "output_norm");
  write([](json& header) {
    json& row = header["model.layers.0.self_attn.q_proj.weight"];
    row["shape"] = {row["shape"][0].get<int>() * row["shape"][1].get<int>()};
  });
  expect_refused("vector", "q");
}

TEST_F(BadFolder, weights_that_are_no_numbers_are_named) {
  std::string bytes = read_text(folder() / "model.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  const json header = json::parse(bytes.substr(8, length));
  const size_t at = 8 + length + header["model.norm.weight"]["data_offsets"][0].get<size_t>();
  bytes[at] = '\xC0';
  bytes[at + 1] = '\x7F';  // NaN in bf16
  write_text(folder() / "model.safetensors", bytes);
  expect_refused("NaN", "output_norm.weight");
}

TEST_F(BadFolder, tokenizers_that_contradict_themselves_are_refused_by_name) {
  const std::tuple<const char*, json, const char*> kCases[] = {
      {"/model/type", "WordPiece", "WordPiece"},
      {"/model/vocab", json::array(), "model.vocab is no object"},
      {"/model/merges", 5, "model.merges is no array"},
      {"/model/merges", json::array({"x"}), "merge 0 is no pair"},
      {"/model/merges", json::array({json::array({"a", "zzzz"})}), "no token"},
      {"/normalizer", {{"type", "Alien"}}, "Alien"},
      {"/pre_tokenizer", {{"type", "Alien"}}, "Alien"},
      {"/decoder", {{"type", "Alien"}}, "Alien"},
      {"/post_processor", {{"type", "Alien"}}, "Alien"},
      {"/added_tokens/0/id", 100000, "not below 288"},
      {"/added_tokens/0/id", -1, "not below 288"},
      {"/added_tokens/0/single_word", true, "single_word"},
      {"/model/byte_fallback", true, "not supported"},
  };
  for (const auto& [pointer, value, reason] : kCases) {
    change("tokenizer.json", [&](json& tokenizer) { tokenizer[json::json_pointer(pointer)] = value; });
    expect_refused(std::string(pointer) + " = " + value.dump(), reason);
  }
}

// The same damage always gets the same verdict.
TEST_F(BadFolder, flipped_bits_and_cut_files_are_refused_or_load) {
  size_t n_loaded = 0;
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    const std::vector<std::byte> good = read_bytes(golden() / name);
    const size_t header = std::min<size_t>(good.size(), 3000);
    for (const uint64_t bit : bits_to_flip(60, header, header, 7)) {
      std::vector<std::byte> bytes = good;
      flip_bit(bytes, bit);
      write_text(folder() / name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      const std::string first = refusal_of(folder());
      EXPECT_EQ(first, refusal_of(folder())) << name << " bit " << bit;
      EXPECT_EQ(first.find('\n'), std::string::npos) << first;
      n_loaded += first.empty() ? 1 : 0;
    }
    for (size_t n = 0; n < header; n += 97) {
      write_text(folder() / name, {reinterpret_cast<const char*>(good.data()), n});
      EXPECT_NE(refusal_of(folder()), "") << name << " cut to " << n;
    }
    fs::copy_file(golden() / name, folder() / name, fs::copy_options::overwrite_existing);
  }
  EXPECT_GT(n_loaded, 0u);
}

}  // namespace
}  // namespace candor::testing
