#pragma once
// Engines on the goldens of models that take images, and requests with images.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "candor/engine.h"
#include "vision_golden.h"

namespace candor::testing {

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// A BMP of 24 bits: no library is needed to write one.
inline std::string bmp_of(const image::Image& image) {
  const auto row_bytes = static_cast<size_t>((3 * image.width + 3) / 4 * 4);
  const size_t n_bytes = 54 + row_bytes * static_cast<size_t>(image.height);
  std::string file(n_bytes, '\0');
  const auto put = [&](size_t at, size_t value, size_t n) {
    for (size_t i = 0; i < n; ++i) file[at + i] = static_cast<char>(value >> (8 * i) & 0xFF);
  };
  file[0] = 'B';
  file[1] = 'M';
  put(2, n_bytes, 4);
  put(10, 54, 4);
  put(14, 40, 4);
  put(18, static_cast<size_t>(image.width), 4);
  put(22, static_cast<size_t>(image.height), 4);
  put(26, 1, 2);
  put(28, 24, 2);
  for (int32_t y = 0; y < image.height; ++y) {
    for (int32_t x = 0; x < image.width; ++x) {
      const size_t from = 3 * static_cast<size_t>(y * image.width + x);
      const size_t to = 54 + static_cast<size_t>(image.height - 1 - y) * row_bytes + 3 * static_cast<size_t>(x);
      for (size_t i = 0; i < 3; ++i) file[to + i] = static_cast<char>(image.rgb[from + 2 - i]);
    }
  }
  return file;
}

// Other pixels for each seed.
inline std::string other_image(int32_t seed) {
  image::Image image{20 + seed % 13, 30 + seed % 7, {}};
  for (int32_t i = 0; i < 3 * image.width * image.height; ++i) {
    image.rgb.push_back(static_cast<uint8_t>((i * (31 + seed) + i * i % 97 + 50 * seed) & 0xFF));
  }
  return bmp_of(image);
}

inline ChatPrompt question_of(const std::string& name) {
  const std::string text = expected_of(name).at("question");
  Message message{.role = "user", .content = text};
  message.extra_json = nlohmann::json{{"content", {{{"type", "image"}}, {{"type", "text"}, {"text", text}}}}}.dump();
  message.images.push_back(read_bytes(vision_golden(name) / "image.png"));
  return {.messages = {message}};
}

// Words, images and words, by turns.
inline ChatPrompt long_talk(const std::string& name, int32_t n_images) {
  ChatPrompt chat;
  for (int32_t i = 0; i < n_images; ++i) {
    Message message{.role = "user"};
    message.extra_json = nlohmann::json{{"content",
                                         {{{"type", "text"}, {"text", "see " + std::to_string(i)}},
                                          {{"type", "image"}},
                                          {{"type", "text"}, {"text", "what is it?"}}}}}
                             .dump();
    message.images.push_back(i == 0 ? read_bytes(vision_golden(name) / "image.png") : other_image(i));
    chat.messages.push_back(message);
    if (i + 1 < n_images) chat.messages.push_back({.role = "assistant", .content = "a picture"});
  }
  return chat;
}

inline EngineOptions options_of(const std::string& name) {
  EngineOptions options;
  options.model_path = vision_golden(name);
  options.n_ctx = 512;
  options.n_threads = 2;
  options.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};
  return options;
}

using Change = std::function<void(EngineOptions&)>;
inline std::unique_ptr<Engine> open(const std::string& name, const Change& change = {}) {
  EngineOptions options = options_of(name);
  if (change) change(options);
  auto engine = Engine::open(options);
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? std::move(*engine) : nullptr;
}

inline Request request_of(ChatPrompt chat, double temperature = 0.8) {
  Request request{.prompt = std::move(chat)};
  request.sampling.temperature = temperature;
  request.sampling.seed = 5;
  request.sampling.max_tokens = 12;
  request.sampling.ignore_eos = true;
  request.sampling.logprobs = 5;
  return request;
}

using Answer = std::tuple<std::vector<TokenId>, std::vector<double>>;
inline Answer answer_of(const Completion& done) {
  std::vector<double> logprobs;
  for (const TokenLogprob& one : done.logprobs) logprobs.push_back(one.logprob);
  return {done.tokens, logprobs};
}
inline Answer answer(Engine& engine, const Request& request) {
  const auto done = engine.generate(request);
  EXPECT_TRUE(done) << done.error().message;
  return done ? answer_of(*done) : Answer{};
}

}  // namespace candor::testing
