// A model file that another program cuts while it is read: one error that names the file, wherever the reader stood.
// Once a model is loaded, nothing of the file is needed any more.

#include <utility>

#include "engine_fixture.h"
#include "model/hub/hub_folder.h"
#include "model/hub/hub_writer.h"

namespace candor {
namespace {

namespace fs = std::filesystem;

class CutFile : public testing::TinyModelTest {
 protected:
  // A folder of the hub, of which model.safetensors can be cut.
  fs::path hub_folder() const {
    const fs::path folder = folder_.path() / "hub";
    fs::copy(testing::goldens() / "llama", folder);
    return folder;
  }

  // Cuts the file at the first report of progress: some tensors were read, most were not.
  static auto cut_at_once(const fs::path& path) {
    return [path, is_cut = false](uint64_t, uint64_t) mutable {
      if (!std::exchange(is_cut, true)) fs::resize_file(path, 1);
      return true;
    };
  }

  static void expect_cut(const std::string& message, const fs::path& path) {
    EXPECT_NE(message.find(path.filename().string()), std::string::npos) << message;
    EXPECT_NE(message.find("the file has 1 bytes, and had "), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
};

TEST_F(CutFile, while_it_is_loaded_is_an_error_of_that_load) {
  for (const char* backend : {"cpu", "reference"}) {
    const fs::path path = tiny_path(tiny_options());
    EngineOptions options = testing::options_for(path);
    options.backend = backend;
    options.n_threads = 2;
    const auto engine = Engine::open(options, cut_at_once(path));
    ASSERT_FALSE(engine);
    expect_cut(engine.error().message, path);
  }
}

TEST_F(CutFile, of_a_folder_of_safetensors_too) {
  const fs::path folder = hub_folder();
  const auto engine = Engine::open(testing::options_for(folder), cut_at_once(folder / "model.safetensors"));
  ASSERT_FALSE(engine);
  expect_cut(engine.error().message, folder / "model.safetensors");
}

TEST_F(CutFile, before_a_copy_is_made_is_told_when_it_is) {
  const fs::path path = tiny_path(tiny_options());
  auto file = model::open_model(path);
  ASSERT_TRUE(file);
  quantize::QuantizeOptions options;
  options.recipe = *quantize::find_recipe("q8_0");
  auto quantised = quantize::quantize_on_load(std::move(*file), options);
  ASSERT_TRUE(quantised);
  const TensorView& matrix = *(*quantised)->find("blk.0.ffn_down.weight");
  fs::resize_file(path, 1);
  const auto made = (*quantised)->make_copy(matrix.bytes());
  ASSERT_FALSE(made);
  expect_cut(made.error().message, path);
}

TEST_F(CutFile, while_it_is_quantised_or_converted_leaves_what_was_there_and_nothing_half) {
  const fs::path results = folder_.path() / "results";
  fs::create_directory(results);
  for (const char* type : {"q8_0", ""}) {
    const fs::path path = tiny_path(tiny_options());
    const auto file = model::open_model(path);
    ASSERT_TRUE(file);
    folder_.file("results/result.gguf", std::string_view("an older result"));
    quantize::QuantizeOptions options;
    if (*type != '\0') options.recipe = *quantize::find_recipe(type);
    options.progress = cut_at_once(path);
    const auto written = quantize::write_gguf(**file, results / "result.gguf", options);
    ASSERT_FALSE(written);
    expect_cut(written.error().message, path);
    EXPECT_EQ(fs::file_size(results / "result.gguf"), 15u);
    EXPECT_EQ(std::distance(fs::directory_iterator(results), fs::directory_iterator()), 1);
  }
}

TEST_F(CutFile, while_it_becomes_a_folder_leaves_no_weights_there) {
  const fs::path path = folder_.path() / "hub.gguf";
  const auto source = model::open_model(hub_folder());
  ASSERT_TRUE(source);
  ASSERT_TRUE(quantize::write_gguf(**source, path, {}));
  const auto file = model::open_model(path);
  ASSERT_TRUE(file);
  model::HubWriteOptions options;
  options.progress = cut_at_once(path);
  const auto written = model::write_hub_folder(**file, folder_.path() / "again", options);
  ASSERT_FALSE(written);
  expect_cut(written.error().message, path);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path() / "again")) {
    EXPECT_EQ(entry.path().string().find("safetensors"), std::string::npos) << entry.path();
  }
}

TEST_F(CutFile, behind_a_loaded_model_changes_no_answer) {
  const fs::path path = tiny_path(tiny_options());
  EngineOptions options = testing::options_for(path);
  options.use_kv_cache = true;
  const auto engine = testing::open_or_fail(options);
  ASSERT_NE(engine, nullptr);
  const Request request = testing::sampled(TokenPrompt{1, 7, 8}, 20, 3);
  const Completion before = testing::complete(*engine, request);
  fs::resize_file(path, 0);
  testing::expect_same(before, testing::complete(*engine, request), "after the cut");
}

}  // namespace
}  // namespace candor
