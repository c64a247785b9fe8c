#pragma once
// A model on a backend, without an engine, and its adapters.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/golden.h"
#include "backend/all/make_backend.h"
#include "model/adapter/adapter.h"
#include "model/adapter/adapter_file.h"
#include "model/hub/hub_folder.h"

namespace candor::testing {

// Of the largest logit.
inline constexpr float kReference = 2e-5f;
inline constexpr float kCpu = 0.05f;

inline float size_of(const std::vector<Logits>& rows) {
  return largest_difference(rows, std::vector<Logits>(rows.size(), Logits(rows.front().size())));
}

// A model, and adapters by the order of their names.
class AdaptedModel {
 public:
  AdaptedModel(const std::filesystem::path& path, const std::string& backend, int32_t n_threads = 1)
      : AdaptedModel(model::open_model(path), backend, n_threads) {}
  AdaptedModel(Result<std::unique_ptr<formats::ModelFile>> file, const std::string& backend, int32_t n_threads = 1) {
    auto made = backend::make_backend(backend, {.n_threads = n_threads});
    EXPECT_TRUE(made);
    load(std::move(file), std::move(*made));
  }
  AdaptedModel(const std::filesystem::path& path, std::unique_ptr<backend::Backend> backend) {
    load(model::open_model(path), std::move(backend));
  }

  bool add(const std::filesystem::path& path) {
    if (!runner_) return false;
    model::Model& model = runner_->model();
    auto adapter = model::AdapterFile::open(path, model.spec(), *file_);
    EXPECT_TRUE(adapter) << adapter.error().message;
    if (!adapter) return false;
    const auto lengths = model::row_lengths(**adapter, model.spec(), *file_);
    EXPECT_TRUE(lengths) << lengths.error().message;
    if (!lengths) return false;
    const auto id = model.add_adapter(**adapter, *lengths);
    EXPECT_TRUE(id) << id.error().message;
    EXPECT_EQ(*model::upload_bytes(**adapter, model.spec(), runner_->backend()), model.adapter_bytes(*id));
    return id.has_value();
  }

  std::vector<Logits> logits(const std::vector<backend::AdapterUse>& uses, size_t chunk = 16) {
    return runner_ ? runner_->run(golden_prompt(), chunk, uses) : std::vector<Logits>();
  }

 private:
  void load(Result<std::unique_ptr<formats::ModelFile>> file, std::unique_ptr<backend::Backend> backend) {
    EXPECT_TRUE(file) << file.error().message;
    if (!file) return;
    file_ = std::move(*file);
    runner_ = ModelRunner::make(*file_, std::move(backend), {.n_blocks = 16, .n_ctx = 32});
  }

  std::unique_ptr<formats::ModelFile> file_;
  std::unique_ptr<ModelRunner> runner_;
};

}  // namespace candor::testing
