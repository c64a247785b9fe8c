// What the tests of candor.h share.
#pragma once

#include <candor/candor.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "support/shared_data.h"

namespace candor::testing {

inline std::string model() {
  return project_file("models/pocket/pocket-q8_0.gguf").string();
}

inline std::string text_of(candor_data data) {
  size_t size = 0;
  const char* text = candor_text(data, &size);
  const std::string copy = text == nullptr ? "" : std::string(text, size);
  EXPECT_EQ(candor_close(data), CANDOR_OK);
  return copy;
}

inline std::string message_of(candor_error error) {
  const std::string copy = candor_error_message(error);
  EXPECT_EQ(candor_close(error), CANDOR_OK);
  return copy;
}

class CInterface : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(candor_open(model().c_str(), 0, &engine_, &error_), CANDOR_OK) << message(); }
  void TearDown() override { candor_close(engine_); }
  std::string message() const { return candor_error_message(error_); }

  candor_request request(const std::string& text, std::initializer_list<std::pair<const char*, const char*>> options) {
    candor_request made = 0;
    EXPECT_EQ(candor_request_new(&made, &error_), CANDOR_OK);
    EXPECT_EQ(candor_prompt_text(made, text.data(), text.size(), &error_), CANDOR_OK);
    for (const auto& [name, value] : options) {
      EXPECT_EQ(candor_set(made, name, value, &error_), CANDOR_OK) << message();
    }
    return made;
  }
  // To its end.
  std::string pull(candor_run run) {
    candor_event event{};
    event.size = sizeof event;
    std::string text;
    candor_status status;
    while ((status = candor_next(run, &event, 20000, &error_)) == CANDOR_OK) text.append(event.text, event.text_size);
    EXPECT_EQ(status, CANDOR_END) << message();
    return text;
  }

  candor_engine engine_ = 0;
  candor_error error_ = 0;
};

}  // namespace candor::testing
