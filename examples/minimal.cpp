// Opens a model, continues a text, shows it as it comes: minimal MODEL.gguf TEXT

#include <cstdio>

#include "candor/engine.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: %s MODEL.gguf TEXT\n", argv[0]), 2;
  candor::EngineOptions options;
  options.model_path = argv[1];
  const auto engine = candor::Engine::open(options);
  if (!engine) return std::fprintf(stderr, "%s\n", engine.error().message.c_str()), 2;

  candor::Request request;
  request.prompt = candor::TextPrompt{argv[2]};
  request.sampling.temperature = 0.7;
  request.sampling.top_p = 0.9;
  request.sampling.seed = 1;
  request.sampling.max_tokens = 60;
  std::printf("%s", argv[2]);
  const auto story = (*engine)->generate(request, [](const candor::TokenEvent& event) {
    std::printf("%s", event.text.c_str());
    std::fflush(stdout);
  });
  if (!story) return std::fprintf(stderr, "%s\n", story.error().message.c_str()), 1;
  const candor::RequestTimings& timings = story->summary.timings;
  std::printf("\n(%s; TTFT %.1f ms, %.0f tokens/s)\n", candor::to_string(story->finish), timings.ttft_ms,
              timings.decode_tokens_per_s);
  return 0;
}
