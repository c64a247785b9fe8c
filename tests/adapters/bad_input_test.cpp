// Adapters that are wrong, and requests that name them wrongly: one clear line each, and the engine goes on.

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "adapters/golden.h"
#include "candor/engine.h"
#include "formats/safetensors/safetensors_file.h"
#include "formats/safetensors/safetensors_writer.h"
#include "model/adapter/peft_config.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

namespace fs = std::filesystem;

struct Tensor {
  Shape shape;
  std::vector<float> values;
};

// A folder of PEFT in memory.
struct Folder {
  nlohmann::json config;
  std::map<std::string, Tensor> tensors;

  static Folder read(const std::string& name) {
    Folder folder;
    std::ifstream(adapter_path(name) / "adapter_config.json") >> folder.config;
    const auto file = formats::safetensors::SafetensorsFile::open(adapter_path(name) / "adapter_model.safetensors");
    EXPECT_TRUE(file);
    for (const TensorView& view : file->tensors()) {
      Tensor tensor{view.shape, std::vector<float>(static_cast<size_t>(view.shape.n_elements()))};
      decode_rows(view, tensor.values.data());
      folder.tensors[std::string(view.name)] = std::move(tensor);
    }
    return folder;
  }

  Tensor& first(std::string_view end) {
    for (auto& [name, tensor] : tensors) {
      if (name.ends_with(end)) return tensor;
    }
    ADD_FAILURE() << end;
    return tensors.begin()->second;
  }

  // The first tensor that ends so has another name.
  void rename(std::string_view end, const std::string& from, const std::string& to) {
    for (auto at = tensors.begin(); at != tensors.end(); ++at) {
      std::string name = at->first;
      const size_t place = name.find(from);
      if (!name.ends_with(end) || place == std::string::npos) continue;
      auto node = tensors.extract(at);
      node.key() = name.replace(place, from.size(), to);
      tensors.insert(std::move(node));
      return;
    }
    ADD_FAILURE() << from;
  }

  void write(const fs::path& path) const {
    fs::create_directories(path);
    std::ofstream(path / "adapter_config.json") << config.dump();
    std::vector<formats::safetensors::NewTensor> targets;
    for (const auto& [name, tensor] : tensors) targets.push_back({name, DType::kF32, tensor.shape});
    auto writer = formats::safetensors::SafetensorsWriter::create(path / "adapter_model.safetensors", targets);
    ASSERT_TRUE(writer) << writer.error().message;
    for (const auto& [name, tensor] : tensors)
      ASSERT_TRUE(writer->write_tensor(std::as_bytes(std::span(tensor.values))));
    ASSERT_TRUE(writer->finish());
  }
};

std::unique_ptr<Engine> opened(const std::string& base = "llama") {
  EngineOptions options;
  options.model_path = model_path(base);
  options.n_threads = 1;
  options.n_ctx = 128;
  auto engine = Engine::open(options);
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? std::move(*engine) : nullptr;
}

Request greedy(int64_t n_tokens, std::vector<RequestAdapter> adapters = {}) {
  Request request;
  request.prompt = TokenPrompt{1, 40, 77};
  request.sampling.temperature = 0.0;
  request.sampling.max_tokens = n_tokens;
  request.sampling.ignore_eos = true;
  request.adapters = std::move(adapters);
  return request;
}

void expect_refused(Engine& engine, const fs::path& path, const std::string& reason) {
  const auto loaded = engine.load_adapter({"wrong", path, 1.0});
  ASSERT_FALSE(loaded) << reason;
  const std::string& message = loaded.error().message;
  EXPECT_NE(message.find(reason), std::string::npos) << message << "\nexpected: " << reason;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_TRUE(engine.adapters().empty());
}

class BadAdapter : public ::testing::Test {
 protected:
  // What a changed folder is refused for.
  void expect_refused(const std::string& name, const std::function<void(Folder&)>& change, const std::string& reason) {
    SCOPED_TRACE(reason);
    Folder folder = Folder::read(name);
    change(folder);
    const fs::path path = folder_.path() / std::to_string(n_written_++);
    folder.write(path);
    testing::expect_refused(*engine_, path, reason);
  }
  void expect_config_refused(const char* key, const nlohmann::json& value, const std::string& reason) {
    expect_refused(
        "llama_all", [&](Folder& folder) { folder.config[key] = value; }, reason);
  }

  const TempFolder folder_;
  const std::unique_ptr<Engine> engine_ = opened();
  int n_written_ = 0;
};

TEST_F(BadAdapter, settings_that_would_change_what_is_computed) {
  expect_config_refused("peft_type", "LOKR", "\"peft_type\"");
  expect_config_refused("r", 0, "\"r\"");
  expect_config_refused("lora_alpha", "much", "\"lora_alpha\"");
  expect_config_refused("lora_alpha", 1e300, "NaN or infinity");
  expect_config_refused("bias", "all", "trained biases");
  expect_config_refused("init_lora_weights", "pissa_niter_16", "path_initial_model");
  expect_config_refused("layer_replication", {{0, 1}}, "blocks are not copied");
  expect_config_refused("alpha_pattern", {{"(a|b)", 3}}, "alpha_pattern");
  expect_config_refused("alpha_pattern", {{"q_proj", "x"}}, "alpha_pattern");
  nlohmann::json many;
  for (int i = 0; i < 65; ++i) many["a*" + std::to_string(i)] = 1;
  expect_config_refused("alpha_pattern", many, "at most 64");
}

TEST_F(BadAdapter, matrices_for_another_model) {
  const auto moved = [](const char* from, const char* to) {
    return [=](Folder& f) {
      for (const char* end : {"lora_A.weight", "lora_B.weight"}) f.rename(end, from, to);
    };
  };
  expect_refused("llama_all", moved("0.self_attn.q_proj", "0.self_attn.z_proj"), "z_proj");
  expect_refused("llama_all", moved("layers.0.mlp.down_proj", "layers.77.mlp.down_proj"), "77");
  const auto widen = [](Folder& f) {
    Tensor& down = f.first("q_proj.lora_A.weight");
    down.shape.dims[1] *= 2;
    down.values.resize(2 * down.values.size());
  };
  expect_refused("llama_all", widen, "another model");
  expect_refused(
      "llama_saved",
      [](Folder& f) {
        Tensor& head = f.first("lm_head.weight");
        head.shape.dims[0] *= 2;
        head.values.resize(2 * head.values.size());
      },
      "another model");
  expect_refused(
      "gpt2", [](Folder&) {}, "is not");
}

TEST_F(BadAdapter, matrices_that_are_broken) {
  const auto no_rank = [](Folder& f) {
    f.first("q_proj.lora_A.weight") = {{2, {0, f.first("q_proj.lora_A.weight").shape[1]}}, {}};
  };
  expect_refused("llama_all", no_rank, "q_proj");
  expect_refused(
      "llama_all", [](Folder& f) { f.first("lora_B.weight").values[3] = std::numeric_limits<float>::quiet_NaN(); },
      "NaN or infinity");
  expect_refused(
      "llama_all", [](Folder& f) { f.first("lora_A.weight").values[0] = std::numeric_limits<float>::infinity(); },
      "NaN or infinity");
  expect_refused(
      "llama_dora",
      [](Folder& f) {
        std::erase_if(f.tensors, [](const auto& each) { return each.first.find("magnitude") != std::string::npos; });
      },
      "magnitude");
  expect_refused(
      "llama_dora",
      [](Folder& f) {
        for (auto& [name, tensor] : f.tensors) {
          if (name.find("magnitude") != std::string::npos) tensor = {{1, {3}}, {1, 1, 1}};
        }
      },
      "magnitude");
  expect_refused(
      "llama_all",
      [](Folder& f) {
        std::erase_if(f.tensors, [](const auto& each) { return each.first.ends_with("q_proj.lora_B.weight"); });
      },
      "lora_B");
  expect_refused(
      "llama_all", [](Folder& f) { f.tensors.clear(); }, "no matrices");
  expect_refused(
      "llama_all", [](Folder& f) { f.rename("lora_A.weight", "lora_A", "lora_C"); }, "lacks one of");
}

TEST_F(BadAdapter, files_that_are_none) {
  testing::expect_refused(*engine_, folder_.path() / "nowhere", "no such file");
  testing::expect_refused(*engine_, folder_.path(), "no adapter_config.json");
  testing::expect_refused(*engine_, model_path("llama"), "no adapter_config.json");
  testing::expect_refused(*engine_, model_path("llama") / "expected.f32", "'");
  const fs::path path = folder_.path() / "pickled";
  Folder::read("llama_all").write(path);
  fs::rename(path / "adapter_model.safetensors", path / "adapter_model.bin");
  testing::expect_refused(*engine_, path, "pickle");
  fs::remove(path / "adapter_model.bin");
  testing::expect_refused(*engine_, path, "adapter_model.safetensors");
  for (const char* text : {"", "{", "[]", "null", "{}"}) {
    std::ofstream(path / "adapter_config.json") << text;
    testing::expect_refused(*engine_, path, "adapter_config.json");
  }
}

TEST_F(BadAdapter, a_file_that_was_cut_at_any_place) {
  const fs::path path = folder_.path() / "cut";
  Folder::read("llama_all").write(path);
  const fs::path file = path / "adapter_model.safetensors";
  const auto n_bytes = static_cast<int64_t>(fs::file_size(file));
  for (int64_t keep = n_bytes - 1; keep >= 0; keep = keep * 2 / 3 - 1) {
    fs::resize_file(file, static_cast<uintmax_t>(keep));
    testing::expect_refused(*engine_, path, "'");
  }
}

TEST_F(BadAdapter, names_and_scales) {
  const fs::path path = adapter_path("llama_all");
  const std::vector<std::string> bad_names = {"", "a b", "a:b", "\n", std::string(129, 'x')};
  for (const std::string& name : bad_names) {
    EXPECT_FALSE(engine_->load_adapter({name, path, 1.0})) << name;
  }
  for (const double scale : {1e9, -1e9, std::nan("")}) EXPECT_FALSE(engine_->load_adapter({"a", path, scale}));
  ASSERT_TRUE(engine_->load_adapter({"a", path, 1.0}));
  const auto again = engine_->load_adapter({"a", path, 1.0});
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("loaded already"), std::string::npos);
  const auto refused = [&](std::vector<RequestAdapter> adapters, const char* reason) {
    const auto answer = engine_->generate(greedy(4, std::move(adapters)));
    ASSERT_FALSE(answer) << reason;
    EXPECT_NE(answer.error().message.find(reason), std::string::npos) << answer.error().message;
    EXPECT_EQ(answer.error().field, "adapters");
  };
  refused({{"b", 1.0}}, "there is 'a'");
  refused({{"a", 1.0}, {"a", 0.5}}, "twice");
  refused({{"a", std::nan("")}}, "scale");
  refused({{"a", 1e9}}, "scale");
  refused(std::vector<RequestAdapter>(17, {"a", 1.0}), "at most 16");
  EXPECT_TRUE(engine_->generate(greedy(4, {{"a", 1.0}})));
  EXPECT_FALSE(engine_->drop_adapter("b"));
}

TEST_F(BadAdapter, two_hundred_are_held_and_told_apart) {
  for (int i = 0; i < 200; ++i) {
    const auto loaded = engine_->load_adapter({"n" + std::to_string(i), adapter_path("llama_all"), 0.01 * i});
    ASSERT_TRUE(loaded) << i << ": " << loaded.error().message;
  }
  EXPECT_EQ(engine_->adapters().size(), 200u);
  const auto some = engine_->generate(greedy(12, {{"n100", 1.0}})), none = engine_->generate(greedy(12, {{"n0", 1.0}}));
  ASSERT_TRUE(some && none);
  EXPECT_EQ(none->tokens, engine_->generate(greedy(12))->tokens);
  EXPECT_NE(some->tokens, none->tokens);
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(engine_->drop_adapter("n" + std::to_string(i)));
  EXPECT_TRUE(engine_->adapters().empty());
}

TEST_F(BadAdapter, one_that_is_dropped_serves_its_requests_to_their_end) {
  ASSERT_TRUE(engine_->load_adapter({"a", adapter_path("llama_all"), 1.0}));
  const Request request = greedy(100, {{"a", 1.0}});
  const auto wanted = engine_->generate(request);
  ASSERT_TRUE(wanted);
  std::atomic<bool> was_dropped = false;
  const auto seen = engine_->generate(request, [&](const TokenEvent& event) {
    if (event.token >= 0 && !was_dropped.exchange(true)) {
      EXPECT_TRUE(engine_->drop_adapter("a"));
    }
  });
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_TRUE(was_dropped);
  EXPECT_EQ(seen->tokens, wanted->tokens);
  EXPECT_FALSE(engine_->generate(request));
  // Another under the same name is another, whatever the cache has of the first.
  ASSERT_TRUE(engine_->load_adapter({"a", adapter_path("llama_patterns"), 1.0}));
  const auto other = engine_->generate(request);
  ASSERT_TRUE(other);
  EXPECT_NE(other->tokens, wanted->tokens);
  const auto fresh = opened();
  ASSERT_TRUE(fresh->load_adapter({"a", adapter_path("llama_patterns"), 1.0}));
  EXPECT_EQ(fresh->generate(request)->tokens, other->tokens);
}

TEST_F(BadAdapter, loaded_and_dropped_by_many_threads_at_once) {
  std::vector<std::future<void>> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.push_back(std::async(std::launch::async, [&, thread] {
      for (int i = 0; i < 20; ++i) {
        const std::string name = "n" + std::to_string((thread + i) % 3);
        (void)engine_->load_adapter({name, adapter_path("llama_all"), 1.0});
        const auto answer = engine_->generate(greedy(3, {{name, 1.0}}));
        if (!answer) {
          EXPECT_EQ(answer.error().kind, ErrorKind::kNotFound) << answer.error().message;
        }
        (void)engine_->drop_adapter(name);
      }
    }));
  }
  for (auto& thread : threads) thread.get();
  EXPECT_TRUE(engine_->generate(greedy(3)));
}

TEST(module_patterns, fit_what_the_librarys_regular_expressions_fit) {
  struct Row {
    const char* pattern;
    const char* module;
    bool fits;
  };
  const Row rows[] = {{"q_proj", "model.layers.0.self_attn.q_proj", true},
                      {"q_proj", "model.layers.0.self_attn.xq_proj", false},
                      {"proj", "model.layers.0.self_attn.q_proj", false},
                      {"self_attn.q_proj", "model.layers.0.self_attn.q_proj", true},
                      {"self.attn.q_proj", "model.layers.0.self_attn.q_proj", true},
                      {"layers\\.0\\..*q_proj", "model.layers.0.self_attn.q_proj", true},
                      {"layers\\.0\\..*q_proj", "model.layers.10.self_attn.q_proj", false},
                      {"layers\\.[0-3]\\..*", "model.layers.2.mlp.up_proj", true},
                      {"layers\\.\\d+\\.mlp.*", "model.layers.22.mlp.up_proj", true},
                      {"^model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.q_proj", true},
                      {"^layers.*", "model.layers.0.self_attn.q_proj", false},
                      {"a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false}};
  for (const Row& row : rows) EXPECT_EQ(model::fits_module(row.pattern, row.module), row.fits) << row.pattern;
}

}  // namespace
}  // namespace candor::testing
