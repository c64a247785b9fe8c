#pragma once
// The goldens of encoders (make_goldens.py): a folder each, and what the reference makes of two texts.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "candor/engine.h"
#include "support/shared_data.h"

namespace candor::testing {

inline constexpr const char* kEncoders[] = {"bert",
                                            "bert_pairs",
                                            "bert_tokens",
                                            "roberta_pairs",
                                            "xlm_roberta",
                                            "xlm_roberta_pairs",
                                            "distilbert",
                                            "modernbert",
                                            "nomic_bert",
                                            "gte",
                                            "jina_v3",
                                            "gemma_embedding",
                                            "qwen3_embedding",
                                            "camembert",
                                            "new",
                                            "nomic_published",
                                            "bert_weighted",
                                            "mpnet",
                                            "jina_v2",
                                            "mpnet_pairs",
                                            "llama_labels",
                                            "qwen3_labels",
                                            "qwen2_tokens",
                                            "mistral_embedding",
                                            "new_scaled",
                                            "jina_v3_published",
                                            "nomic_moe",
                                            "llama_embed",
                                            "gte_qwen2"};

inline std::filesystem::path encoder_path(const std::string& name) {
  return project_file("tests/encoders/goldens/" + name);
}

struct Expected {
  explicit Expected(const std::string& name) {
    std::ifstream file(encoder_path(name) / "expected.json");
    json = nlohmann::json::parse(file);
  }
  std::string text(size_t i) const { return json.at("texts")[i]; }
  std::vector<float> floats(const char* key) const { return json.at(key).get<std::vector<float>>(); }
  bool has(const char* key) const { return json.contains(key); }

  nlohmann::json json;
};

inline std::unique_ptr<Engine> open_encoder(const std::filesystem::path& path, const std::string& backend = "cpu",
                                            int32_t n_threads = 1) {
  EngineOptions options;
  options.model_path = path;
  options.backend = backend;
  options.n_threads = n_threads;
  auto engine = Engine::open(options);
  if (engine) return std::move(*engine);
  ADD_FAILURE() << engine.error().message;
  return nullptr;
}

inline Request reading(Prompt prompt, Pooling pooling, PromptRows rows = PromptRows::kNone) {
  Request request;
  request.prompt = std::move(prompt);
  request.pooling = pooling;
  request.rows = rows;
  return request;
}

// The vector, or the rows.
inline std::vector<float> read_text(Engine& engine, const Request& request) {
  auto completion = engine.generate(request);
  if (!completion) {
    ADD_FAILURE() << completion.error().message;
    return {};
  }
  return request.rows == PromptRows::kNone ? completion->embedding : completion->prompt_rows;
}

}  // namespace candor::testing
