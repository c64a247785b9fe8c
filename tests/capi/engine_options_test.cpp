// Options of an engine by candor.h: adapters, and what drafts.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "capi/c_interface.h"
#include "support/shared_data.h"

namespace candor::testing {
namespace {

TEST_F(CInterface, adapters_are_loaded_used_and_dropped) {
  const std::string base = (goldens() / "llama").string();
  const std::string adapter = project_file("tests/adapters/goldens/llama_all").string();
  candor_options options = 0;
  candor_engine engine = 0;
  ASSERT_EQ(candor_options_new(&options, &error_), CANDOR_OK);
  EXPECT_EQ(candor_set(options, "adapter", "poet", &error_), CANDOR_INVALID_INPUT);
  ASSERT_EQ(candor_set(options, "adapter", ("poet=" + adapter).c_str(), &error_), CANDOR_OK) << message();
  ASSERT_EQ(candor_open(base.c_str(), options, &engine, &error_), CANDOR_OK) << message();
  candor_data json = 0;
  ASSERT_EQ(candor_adapters(engine, &json, &error_), CANDOR_OK) << message();
  const auto list = nlohmann::json::parse(text_of(json));
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["name"], "poet");
  const auto answer = [&](const char* used) {
    const candor_request wanted =
        request("the engine", {{"temperature", "0"}, {"max_tokens", "12"}, {"ignore_eos", "true"}});
    if (used != nullptr) {
      EXPECT_EQ(candor_set(wanted, "adapter", used, &error_), CANDOR_OK) << message();
    }
    candor_run run = 0;
    EXPECT_EQ(candor_start(engine, wanted, &run, &error_), CANDOR_OK) << message();
    return pull(run);
  };
  EXPECT_NE(answer("poet"), answer(nullptr));
  EXPECT_EQ(answer("poet:0"), answer(nullptr));
  EXPECT_EQ(candor_load_adapter(engine, "poet", adapter.c_str(), 1.0, &error_), CANDOR_INVALID_INPUT);
  EXPECT_EQ(candor_load_adapter(engine, "same", adapter.c_str(), 1.0, &error_), CANDOR_OK) << message();
  EXPECT_EQ(answer("same"), answer("poet"));
  EXPECT_EQ(candor_load_adapter(engine, nullptr, adapter.c_str(), 1.0, &error_), CANDOR_INVALID_INPUT);
  EXPECT_EQ(candor_drop_adapter(engine, "poet", &error_), CANDOR_OK) << message();
  EXPECT_EQ(candor_drop_adapter(engine, "poet", &error_), CANDOR_NOT_FOUND);
  const candor_request wanted = request("the engine", {});
  EXPECT_EQ(candor_set(wanted, "adapter", "same:x", &error_), CANDOR_INVALID_INPUT);
  EXPECT_EQ(candor_set(wanted, "adapter", "poet", &error_), CANDOR_OK);
  candor_run run = 0;
  EXPECT_EQ(candor_start(engine, wanted, &run, &error_), CANDOR_NOT_FOUND);
  candor_data floats = 0;
  EXPECT_EQ(candor_read(engine, R"({"texts": ["a"], "adapters": {"same": 1}})", &floats, &error_), CANDOR_OK)
      << message();
  EXPECT_EQ(candor_read(engine, R"({"texts": ["a"], "adapters": ["same"]})", &floats, &error_), CANDOR_INVALID_INPUT);
  EXPECT_EQ(candor_close(engine), CANDOR_OK);
}

TEST_F(CInterface, drafts_of_a_head_alone_and_with_ngrams_beside_it_change_no_token) {
  const std::string head = project_file("models/pocket/mtp-pocket-q8_0.gguf").string();
  const auto answer = [&](candor_engine engine) {
    const candor_request wanted = request(
        "One day a fox", {{"temperature", "0.8"}, {"seed", "11"}, {"max_tokens", "60"}, {"ignore_eos", "true"}});
    candor_run run = 0;
    EXPECT_EQ(candor_start(engine, wanted, &run, &error_), CANDOR_OK) << message();
    return pull(run);
  };
  const std::string expected = answer(engine_);
  for (const char* beside : {"true", "false"}) {
    candor_options options = 0;
    ASSERT_EQ(candor_options_new(&options, &error_), CANDOR_OK);
    EXPECT_EQ(candor_set(options, "ngrams_beside", "perhaps", &error_), CANDOR_INVALID_INPUT);
    EXPECT_EQ(candor_set(options, "ngrams_beside", beside, &error_), CANDOR_OK) << message();
    EXPECT_EQ(candor_set(options, "speculation", "draft", &error_), CANDOR_OK) << message();
    EXPECT_EQ(candor_set(options, "draft_path", head.c_str(), &error_), CANDOR_OK) << message();
    candor_engine engine = 0;
    ASSERT_EQ(candor_open(model().c_str(), options, &engine, &error_), CANDOR_OK) << message();
    EXPECT_EQ(answer(engine), expected) << beside;
    EXPECT_EQ(candor_close(engine), CANDOR_OK);
  }
}

}  // namespace
}  // namespace candor::testing
