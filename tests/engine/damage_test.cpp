// Damaged models that a loader cannot tell from good ones: they may say nonsense, they may say that they cannot, and
// nothing else. Bits of a real model are flipped one at a time; what loads must generate a token.

#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "engine_fixture.h"
#include "support/mutate.h"

namespace candor {
namespace {

using testing::greedy;

#ifdef CANDOR_SANITIZED
constexpr size_t kFlips = 300;
#else
constexpr size_t kFlips = 5000;
#endif
constexpr size_t kHeaderBytes = 16000;  // metadata and tensor directory of stories260K
constexpr int kSecondsEach = 2;

EngineOptions small_engine(const std::filesystem::path& path) {
  EngineOptions options = testing::options_for(path);
  options.kv_blocks = 1;
  options.max_running = 1;
  options.max_rows = 8;
  return options;
}

// "loaded" when the file could be opened; whatever happens, it happens in time and without a signal.
std::string try_model(const std::filesystem::path& path) {
  const testing::CpuTimeLimit limit(kSecondsEach);
  const auto engine = Engine::open(small_engine(path));
  if (!engine) return engine.error().message;
  const auto completion = (*engine)->generate(greedy(TokenPrompt{1}, 1));
  if (completion) {
    EXPECT_EQ(completion->tokens.size(), 1u);
  } else {
    EXPECT_FALSE(completion.error().message.empty());
  }
  return "loaded";
}

void flip_in_file(const std::filesystem::path& path, std::span<const std::byte> original, uint64_t bit) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  const auto byte = original[bit / 8] ^ static_cast<std::byte>(1u << (bit % 8));
  ASSERT_EQ(::pwrite(file, &byte, 1, static_cast<off_t>(bit / 8)), 1);
  ::close(file);
}

void restore_in_file(const std::filesystem::path& path, std::span<const std::byte> original, uint64_t bit) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::pwrite(file, &original[bit / 8], 1, static_cast<off_t>(bit / 8)), 1);
  ::close(file);
}

TEST(damage, a_model_with_a_flipped_bit_is_refused_or_generates_a_token) {
  CANDOR_REQUIRE_DATA(testing::stories_path());
  const std::vector<std::byte> original = testing::read_bytes(testing::stories_path());
  const testing::TempFolder folder;
  const auto path = folder.file("flipped.gguf", original);
  size_t n_loaded = 0;
  for (const uint64_t bit : testing::bits_to_flip(kFlips, kHeaderBytes, original.size(), 20)) {
    flip_in_file(path, original, bit);
    const std::string verdict = try_model(path);
    EXPECT_FALSE(verdict.empty()) << "bit " << bit;
    n_loaded += verdict == "loaded" ? 1 : 0;
    restore_in_file(path, original, bit);
    if (HasFailure()) return;
  }
  EXPECT_GT(n_loaded, kFlips / 4);
  EXPECT_EQ(try_model(path), "loaded");
}

class BrokenWeights : public testing::TinyModelTest {
 protected:
  // The tiny model with every value of one tensor replaced.
  std::filesystem::path path_with(const std::string& name, float value) {
    const auto file = testing::make_tiny_model(tiny_options());
    const TensorView view = *file->find(name);
    std::vector<std::byte> bytes(view.n_bytes);
    for (size_t i = 0; i + sizeof(value) <= bytes.size(); i += sizeof(value)) {
      std::memcpy(bytes.data() + i, &value, sizeof(value));
    }
    file->remove_tensor(name);
    file->add_tensor(name, view.dtype, view.shape, std::move(bytes));
    const auto path = folder_.path() / ("broken" + std::to_string(n_files_++) + ".gguf");
    EXPECT_TRUE(testing::write_model(*file, path).has_value());
    return path;
  }
};

// What of the model computes with the tensor.
std::string place_of(const std::string& name) {
  if (name == "token_embd.weight") return "the embedding";
  if (name.starts_with("output")) return "the head";
  return "block " + name.substr(4, 1) + " (tensors " + name.substr(0, 6) + "*)";
}

TEST_F(BrokenWeights, weights_that_are_no_numbers_are_refused_or_end_the_request_in_an_error) {
  for (const char* name : {"token_embd.weight", "output.weight", "blk.0.attn_q.weight", "blk.1.ffn_down.weight",
                           "blk.0.attn_norm.weight", "output_norm.weight"}) {
    for (const float value : {std::nanf(""), std::numeric_limits<float>::infinity(), 3e38f}) {
      for (const char* backend : {"cpu", "reference"}) {
        EngineOptions options = small_engine(path_with(name, value));
        options.backend = backend;
        const auto engine = Engine::open(options);
        if (!engine) {
          EXPECT_NE(engine.error().message.find(name), std::string::npos) << engine.error().message;
          continue;
        }
        Request request = greedy(TokenPrompt{1, 7, 8}, 2);
        request.sampling.temperature = 1.0;
        request.sampling.logprobs = 5;
        const auto completion = (*engine)->generate(request);
        if (completion) continue;
        const std::string& message = completion.error().message;
        EXPECT_EQ(completion.error().kind, ErrorKind::kIo) << message;
        EXPECT_NE(message.find("weights"), std::string::npos) << message;
        EXPECT_NE(message.find("came out of " + place_of(name)), std::string::npos) << name << ": " << message;
      }
    }
  }
}

}  // namespace
}  // namespace candor
