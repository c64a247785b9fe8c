// candor.h as a caller uses it, and as one who makes every mistake.

#include <candor/candor.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "candor/engine.h"
#include "capi/c_interface.h"
#include "support/shared_data.h"

namespace candor::testing {
namespace {

TEST_F(CInterface, has_the_answers_of_the_library) {
  const candor_request wanted =
      request("Once upon a time", {{"temperature", "0.8"}, {"seed", "7"}, {"max_tokens", "40"}});
  candor_run run = 0;
  ASSERT_EQ(candor_start(engine_, wanted, &run, &error_), CANDOR_OK) << message();
  const std::string text = pull(run);

  Request same;
  same.prompt = TextPrompt{"Once upon a time"};
  same.sampling.temperature = 0.8;
  same.sampling.seed = 7;
  same.sampling.max_tokens = 40;
  const auto engine = Engine::open({.model_path = model()});
  EXPECT_EQ(text, (*engine)->generate(same)->text);

  candor_data summary = 0;
  ASSERT_EQ(candor_summary(run, &summary, &error_), CANDOR_OK) << message();
  const auto json = nlohmann::json::parse(text_of(summary));
  EXPECT_EQ(json.at("completion_tokens"), 40);
  EXPECT_EQ(json.at("seed"), 7);
  EXPECT_EQ(candor_close(run), CANDOR_OK);
  EXPECT_EQ(candor_close(wanted), CANDOR_OK);
}

TEST_F(CInterface, events_tell_of_logprobs_choices_and_ends) {
  const candor_request wanted =
      request("Once", {{"temperature", "0"}, {"n", "2"}, {"max_tokens", "3"}, {"logprobs", "2"}, {"explain", "true"}});
  candor_run run = 0;
  ASSERT_EQ(candor_start(engine_, wanted, &run, &error_), CANDOR_OK) << message();
  candor_event event{};
  event.size = sizeof event;
  int n_ended = 0;
  int n_events = 0;
  while (candor_next(run, &event, -1, &error_) == CANDOR_OK) {
    ++n_events;
    ASSERT_EQ(event.n_top, 2u);
    EXPECT_EQ(event.has_logprob, 1);
    EXPECT_EQ(event.top[0].token, event.token);
    EXPECT_EQ(event.top[0].logprob, event.logprob);
    EXPECT_EQ(std::strlen(event.text), event.text_size);
    n_ended += event.finish == CANDOR_LENGTH ? 1 : 0;
    candor_data explanation = 0;
    ASSERT_EQ(candor_explanation(run, &explanation, &error_), CANDOR_OK) << message();
    EXPECT_TRUE(nlohmann::json::parse(text_of(explanation)).is_object());
  }
  EXPECT_EQ(n_events, 6);
  EXPECT_EQ(n_ended, 2);
}

TEST_F(CInterface, a_receipt_is_given_and_verified) {
  candor_run run = 0;
  const candor_request wanted = request("Once", {{"max_tokens", "9"}, {"seed", "4"}, {"receipt", "true"}});
  ASSERT_EQ(candor_start(engine_, wanted, &run, &error_), CANDOR_OK) << message();
  candor_event event{};
  event.size = sizeof event;
  while (candor_next(run, &event, -1, &error_) == CANDOR_OK) EXPECT_EQ(event.has_logprob, 0);
  candor_data json = 0;
  ASSERT_EQ(candor_receipt(run, &json, &error_), CANDOR_OK) << message();
  std::string receipt = text_of(json);
  ASSERT_EQ(candor_verify(engine_, receipt.data(), receipt.size(), &json, &error_), CANDOR_OK) << message();
  EXPECT_EQ(nlohmann::json::parse(text_of(json))["verified"], true);
  receipt.replace(receipt.find("\"seed\":\"4\""), 10, "\"seed\":\"5\"");
  ASSERT_EQ(candor_verify(engine_, receipt.data(), receipt.size(), &json, &error_), CANDOR_OK) << message();
  EXPECT_EQ(nlohmann::json::parse(text_of(json))["verified"], false);
  EXPECT_EQ(candor_verify(engine_, "{}", 2, &json, &error_), CANDOR_INVALID_INPUT);
}

TEST_F(CInterface, text_tokens_vectors_and_scores) {
  candor_data tokens = 0;
  ASSERT_EQ(candor_tokenize(engine_, "The dog sat.", 12, 1, 0, &tokens, &error_), CANDOR_OK) << message();
  size_t n = 0;
  const int32_t* ids = candor_tokens(tokens, &n);
  ASSERT_GT(n, 3u);
  candor_data scores = 0;
  ASSERT_EQ(candor_score(engine_, ids, n, &scores, &error_), CANDOR_OK) << message();
  size_t n_scores = 0;
  const float* logprobs = candor_floats(scores, &n_scores);
  ASSERT_EQ(n_scores, n - 1);
  for (size_t i = 0; i < n_scores; ++i) EXPECT_LE(logprobs[i], 0.0f);
  candor_data text = 0;
  ASSERT_EQ(candor_detokenize(engine_, ids, n, &text, &error_), CANDOR_OK) << message();
  EXPECT_NE(text_of(text).find("The dog sat."), std::string::npos);
  candor_data vector = 0;
  ASSERT_EQ(candor_embed(engine_, "The dog", 7, "mean", &vector, &error_), CANDOR_OK) << message();
  size_t dim = 0;
  candor_floats(vector, &dim);
  candor_data info = 0;
  ASSERT_EQ(candor_info(engine_, &info, &error_), CANDOR_OK);
  EXPECT_EQ(nlohmann::json::parse(text_of(info)).at("dim"), dim);
  EXPECT_EQ(candor_text(vector, &dim), nullptr) << "numbers are no text";
  EXPECT_EQ(dim, 0u);
}

TEST_F(CInterface, figures_say_that_no_device_computes) {
  candor_data json = 0;
  ASSERT_EQ(candor_metrics(engine_, &json, &error_), CANDOR_OK);
  EXPECT_TRUE(nlohmann::json::parse(text_of(json)).at("device").is_null());
}

TEST_F(CInterface, rows_are_those_that_scores_come_from) {
  const std::vector<int32_t> ids = {1, 50, 60, 70};
  candor_data json = 0;
  ASSERT_EQ(candor_info(engine_, &json, &error_), CANDOR_OK);
  const auto info = nlohmann::json::parse(text_of(json));
  const auto n_vocab = info["n_vocab"].get<size_t>();
  candor_data logits = 0, hidden = 0, scores = 0;
  ASSERT_EQ(candor_logits(engine_, ids.data(), ids.size(), &logits, &error_), CANDOR_OK) << message();
  ASSERT_EQ(candor_hidden(engine_, ids.data(), ids.size(), &hidden, &error_), CANDOR_OK) << message();
  ASSERT_EQ(candor_score(engine_, ids.data(), ids.size(), &scores, &error_), CANDOR_OK) << message();
  size_t n_logits = 0;
  size_t n_hidden = 0;
  const float* rows = candor_floats(logits, &n_logits);
  EXPECT_NE(candor_floats(hidden, &n_hidden), nullptr);
  ASSERT_EQ(n_logits, ids.size() * n_vocab);
  EXPECT_EQ(n_hidden, ids.size() * info["dim"].get<size_t>());
  const float* expected = candor_floats(scores, nullptr);
  candor_data from = 0;
  ASSERT_EQ(candor_score_from(engine_, ids.data(), ids.size(), 2, &from, &error_), CANDOR_OK) << message();
  size_t n_from = 0;
  const float* pairs = candor_floats(from, &n_from);
  ASSERT_EQ(n_from, 2 * (ids.size() - 2));
  for (size_t i = 0; i < n_from / 2; ++i) {
    EXPECT_EQ(pairs[2 * i], expected[i + 1]);
    EXPECT_GE(pairs[2 * i + 1], pairs[2 * i]);
  }
  candor_close(from);
  for (const size_t bad : {size_t{0}, ids.size() + 1, size_t{1} << 40}) {
    EXPECT_EQ(candor_score_from(engine_, ids.data(), ids.size(), bad, &from, &error_), CANDOR_INVALID_INPUT) << bad;
    EXPECT_NE(message().find("first_scored is "), std::string::npos) << message();
  }
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    const float* row = rows + i * n_vocab;
    double sum = 0;
    for (size_t token = 0; token < n_vocab; ++token) sum += std::exp(static_cast<double>(row[token]));
    EXPECT_NEAR(row[ids[i + 1]] - std::log(sum), expected[i], 1e-4);
  }
  // The first tokens' rows do not depend on what follows, nor on what the cache holds.
  candor_data shorter = 0;
  ASSERT_EQ(candor_logits(engine_, ids.data(), 2, &shorter, &error_), CANDOR_OK) << message();
  EXPECT_EQ(std::memcmp(candor_floats(shorter, nullptr), rows, 2 * n_vocab * sizeof(float)), 0);
  candor_data none = 0;
  EXPECT_EQ(candor_logits(engine_, ids.data(), 0, &none, nullptr), CANDOR_INVALID_INPUT);
  const std::vector<int32_t> many(100000, 5);
  EXPECT_NE(candor_logits(engine_, many.data(), many.size(), &none, &error_), CANDOR_OK);
  EXPECT_FALSE(message_of(error_).empty());
  for (const candor_data data : {logits, hidden, scores, shorter}) EXPECT_EQ(candor_close(data), CANDOR_OK);
}

TEST_F(CInterface, a_run_is_waited_for_by_poll) {
  const candor_request wanted = request("Once upon a time", {{"max_tokens", "20"}, {"ignore_eos", "true"}});
  candor_run run = 0;
  ASSERT_EQ(candor_start(engine_, wanted, &run, &error_), CANDOR_OK) << message();
  int fd = -1;
  ASSERT_EQ(candor_run_fd(run, &fd, &error_), CANDOR_OK) << message();
  candor_event event = {};
  event.size = sizeof event;
  int n_events = 0;
  for (candor_status status = CANDOR_OK; status != CANDOR_END;) {
    status = candor_next(run, &event, 0, &error_);
    if (status == CANDOR_OK) ++n_events;
    if (status != CANDOR_TIMEOUT) continue;
    pollfd waits{.fd = fd, .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&waits, 1, 20000), 1);
  }
  EXPECT_GE(n_events, 20);
  pollfd waits{.fd = fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&waits, 1, 0), 0) << "readable, and nothing is there";
  candor_close(run);
  EXPECT_EQ(candor_run_fd(run, &fd, nullptr), CANDOR_NOT_FOUND);
  EXPECT_EQ(candor_run_fd(run, nullptr, nullptr), CANDOR_INVALID_INPUT);
  candor_close(wanted);
}

struct HookUser {
  int n_calls = 0;
  int n_released = 0;
};

TEST_F(CInterface, a_hook_changes_logits_and_is_released_once) {
  HookUser user;
  const auto hook = [](void* given, const candor_row* row) {
    auto& counts = *static_cast<HookUser*>(given);
    EXPECT_EQ(row->size, sizeof(candor_row));
    EXPECT_EQ(row->n_output, static_cast<size_t>(counts.n_calls % 6));
    ++counts.n_calls;
    row->logits[5] = 1000.0f;
    return row->n_text > 0 ? 0 : 1;
  };
  const auto release = [](void* given) { ++static_cast<HookUser*>(given)->n_released; };
  const candor_request wanted =
      request("Once upon a time", {{"temperature", "0"}, {"max_tokens", "6"}, {"ignore_eos", "true"}});
  ASSERT_EQ(candor_on_logits(wanted, hook, &user, release, &error_), CANDOR_OK) << message();
  for (int i = 0; i < 2; ++i) {
    candor_run run = 0;
    ASSERT_EQ(candor_start(engine_, wanted, &run, &error_), CANDOR_OK) << message();
    candor_event event = {};
    event.size = sizeof event;
    while (candor_next(run, &event, 20000, &error_) == CANDOR_OK) {
      EXPECT_TRUE(event.token == 5 || event.token == -1) << event.token;
    }
    EXPECT_EQ(candor_close(run), CANDOR_OK);
  }
  EXPECT_EQ(user.n_calls, 12);
  EXPECT_EQ(user.n_released, 0);
  EXPECT_EQ(candor_close(wanted), CANDOR_OK);
  for (int i = 0; i < 2000 && user.n_released == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(user.n_released, 1);
  EXPECT_EQ(candor_on_logits(wanted, hook, &user, nullptr, nullptr), CANDOR_NOT_FOUND);
  EXPECT_EQ(candor_on_logits(0, nullptr, &user, nullptr, nullptr), CANDOR_INVALID_INPUT);
}

TEST_F(CInterface, a_conversation_branches) {
  candor_session first = 0;
  ASSERT_EQ(candor_session_new(engine_, &first, &error_), CANDOR_OK);
  ASSERT_EQ(candor_session_say(first, "user", "Tell me a story", 15, &error_), CANDOR_OK);
  const candor_request turn = request("", {{"temperature", "0"}, {"max_tokens", "12"}});
  candor_run run = 0;
  ASSERT_EQ(candor_session_start(first, turn, &run, &error_), CANDOR_OK) << message();
  const std::string answer = pull(run);
  candor_session second = 0;
  ASSERT_EQ(candor_session_branch(first, &second, &error_), CANDOR_OK);
  ASSERT_EQ(candor_session_say(second, "user", "Go on", 5, &error_), CANDOR_OK);
  candor_data messages = 0;
  ASSERT_EQ(candor_session_messages(first, &messages, &error_), CANDOR_OK);
  const auto json = nlohmann::json::parse(text_of(messages));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[1].at("content"), answer);
  ASSERT_EQ(candor_session_messages(second, &messages, &error_), CANDOR_OK);
  EXPECT_EQ(nlohmann::json::parse(text_of(messages)).size(), 3u);
}

TEST_F(CInterface, a_constraint_holds) {
  const candor_request wanted = request("Answer:", {{"max_tokens", "20"}, {"seed", "3"}});
  ASSERT_EQ(candor_constrain(wanted, "choice", R"(["red", "green"])", &error_), CANDOR_OK) << message();
  candor_run run = 0;
  ASSERT_EQ(candor_start(engine_, wanted, &run, &error_), CANDOR_OK) << message();
  const std::string answer = pull(run);
  EXPECT_TRUE(answer == "red" || answer == "green") << answer;
}

TEST_F(CInterface, mistakes_are_errors_that_say_what_is_wrong) {
  const candor_request wanted = request("a", {});
  struct Row {
    const char* name;
    const char* value;
    const char* says;
  };
  const Row rows[] = {{"temperature", "warm", "temperature: 'warm' is not a number"},
                      {"max_tokens", "1.5", "max_tokens: '1.5' is not a whole number"},
                      {"n", "99999999999", "n: '99999999999' is not a whole number from"},
                      {"ignore_eos", "maybe", "is not true or false"},
                      {"logit_bias", "7", "is not a token's id, ':' and a number"},
                      {"length_penalty", "1", "set beams first"},
                      {"on_context_full", "x", "stop or crop"},
                      {"preset", "wild", "wild"},
                      {"n_ctx", "5", "option: 'n_ctx' is not one of a request"},
                      {"", "", "is not one of a request"}};
  for (const Row& row : rows) {
    EXPECT_EQ(candor_set(wanted, row.name, row.value, &error_), CANDOR_INVALID_INPUT) << row.name;
    EXPECT_NE(message_of(error_).find(row.says), std::string::npos) << row.name;
  }
  EXPECT_EQ(candor_set(wanted, "temperature", "500", &error_), CANDOR_OK) << "ranges are the engine's";
  candor_run run = 0;
  EXPECT_EQ(candor_start(engine_, wanted, &run, &error_), CANDOR_INVALID_INPUT);
  EXPECT_STREQ(candor_error_field(error_), "temperature");
  EXPECT_EQ(run, 0u);
  for (const char* messages : {"", "{}", "[1]", "[{}]", "[{\"role\": 1}]", "[{\"role\": \"user\", \"role\": \"x\"}]"}) {
    EXPECT_EQ(candor_prompt_messages(wanted, messages, &error_), CANDOR_INVALID_INPUT) << messages;
  }
  candor_request empty = 0;
  candor_request_new(&empty, nullptr);
  EXPECT_EQ(candor_start(engine_, empty, &run, &error_), CANDOR_INVALID_INPUT);
  EXPECT_NE(message_of(error_).find("no prompt"), std::string::npos);
  candor_engine none = 0;
  EXPECT_EQ(candor_open("/nowhere.gguf", 0, &none, &error_), CANDOR_NOT_FOUND);
  EXPECT_NE(message_of(error_).find("/nowhere.gguf"), std::string::npos);
  EXPECT_EQ(none, 0u);
}

TEST_F(CInterface, null_and_handles_of_another_kind_are_refused) {
  candor_data data = 0;
  candor_run run = 0;
  candor_event event{};
  EXPECT_EQ(candor_open(nullptr, 0, &engine_, &error_), CANDOR_INVALID_INPUT);
  EXPECT_EQ(candor_open("x", 0, nullptr, nullptr), CANDOR_INVALID_INPUT);
  EXPECT_EQ(candor_open("x", engine_, &run, nullptr), CANDOR_NOT_FOUND);
  EXPECT_EQ(candor_tokenize(engine_, nullptr, 3, 1, 0, &data, nullptr), CANDOR_INVALID_INPUT);
  EXPECT_EQ(candor_tokenize(engine_, nullptr, 0, 0, 0, &data, nullptr), CANDOR_OK) << "nothing has no tokens";
  EXPECT_EQ(candor_tokenize(data, "a", 1, 1, 0, &data, nullptr), CANDOR_NOT_FOUND);
  EXPECT_EQ(candor_set(0, "a", "b", nullptr), CANDOR_NOT_FOUND);
  EXPECT_EQ(candor_set(engine_, "n_ctx", "5", nullptr), CANDOR_NOT_FOUND);
  EXPECT_EQ(candor_set(engine_, nullptr, nullptr, nullptr), CANDOR_INVALID_INPUT);
  EXPECT_EQ(candor_next(0, nullptr, 0, nullptr), CANDOR_INVALID_INPUT);
  EXPECT_EQ(candor_next(0, &event, 0, nullptr), CANDOR_INVALID_INPUT) << "a size of 0";
  event.size = sizeof event;
  EXPECT_EQ(candor_next(engine_, &event, 0, nullptr), CANDOR_NOT_FOUND);
  EXPECT_EQ(candor_close(0), CANDOR_NOT_FOUND);
  EXPECT_EQ(candor_close(~candor_handle{0}), CANDOR_NOT_FOUND);
  EXPECT_EQ(candor_text(12345, nullptr), nullptr);
  EXPECT_STREQ(candor_error_message(12345), "");
  EXPECT_EQ(candor_error_kind(0), CANDOR_NOT_FOUND);
}

TEST_F(CInterface, things_are_closed_twice_and_in_any_order) {
  const candor_request wanted = request("Once", {{"max_tokens", "400"}, {"ignore_eos", "1"}});
  candor_run run = 0;
  ASSERT_EQ(candor_start(engine_, wanted, &run, &error_), CANDOR_OK);
  EXPECT_EQ(candor_close(wanted), CANDOR_OK);
  EXPECT_EQ(candor_close(wanted), CANDOR_NOT_FOUND);
  EXPECT_EQ(candor_close(engine_), CANDOR_OK);
  candor_event event{};
  event.size = sizeof event;
  candor_status status;
  candor_finish finish = CANDOR_GOES_ON;
  while ((status = candor_next(run, &event, 20000, &error_)) == CANDOR_OK) finish = event.finish;
  EXPECT_EQ(status, CANDOR_END);
  EXPECT_TRUE(finish == CANDOR_WAS_CANCELLED || finish == CANDOR_CONTEXT_FULL || finish == CANDOR_LENGTH) << finish;
  candor_data data = 0;
  EXPECT_EQ(candor_info(engine_, &data, nullptr), CANDOR_NOT_FOUND);
  EXPECT_EQ(candor_cancel(run, nullptr), CANDOR_OK) << "nothing is left to cancel";
  EXPECT_EQ(candor_close(run), CANDOR_OK);
  EXPECT_EQ(candor_next(run, &event, 0, nullptr), CANDOR_NOT_FOUND);
}

TEST_F(CInterface, a_caller_with_a_smaller_struct_gets_what_fits) {
  const candor_request wanted = request("Once", {{"max_tokens", "1"}, {"temperature", "0"}});
  candor_run run = 0;
  ASSERT_EQ(candor_start(engine_, wanted, &run, &error_), CANDOR_OK);
  candor_event event{};
  event.finish = CANDOR_FAILED;
  event.size = offsetof(candor_event, text);
  ASSERT_EQ(candor_next(run, &event, -1, &error_), CANDOR_OK);
  EXPECT_GE(event.token, 0);
  EXPECT_EQ(event.finish, CANDOR_FAILED) << "beyond the caller's size nothing is written";
}

TEST_F(CInterface, many_threads_ask_and_close) {
  std::atomic<int> n_whole{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) {
        candor_request wanted = 0;
        candor_request_new(&wanted, nullptr);
        candor_prompt_text(wanted, "The", 3, nullptr);
        candor_set(wanted, "max_tokens", "8", nullptr);
        candor_run run = 0;
        if (candor_start(engine_, wanted, &run, nullptr) == CANDOR_OK) {
          if ((i + round) % 3 == 0) std::thread([run] { candor_close(run); }).join();
          candor_event event{};
          event.size = sizeof event;
          candor_status status;
          while ((status = candor_next(run, &event, 20000, nullptr)) == CANDOR_OK) {
          }
          n_whole += status == CANDOR_END ? 1 : 0;
        }
        candor_close(run);
        candor_close(wanted);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_whole, 20);
}

// What programs that are compiled already rely on. A change here breaks them: only add.
TEST(CInterfaceAbi, is_the_recorded_one) {
  EXPECT_EQ(sizeof(candor_handle), 8u);
  EXPECT_EQ(sizeof(candor_logprob), 8u);
  EXPECT_EQ(offsetof(candor_event, choice), 8u);
  EXPECT_EQ(offsetof(candor_event, token), 12u);
  EXPECT_EQ(offsetof(candor_event, text), 16u);
  EXPECT_EQ(offsetof(candor_event, text_size), 24u);
  EXPECT_EQ(offsetof(candor_event, finish), 32u);
  EXPECT_EQ(offsetof(candor_event, stop_index), 36u);
  EXPECT_EQ(offsetof(candor_event, has_logprob), 40u);
  EXPECT_EQ(offsetof(candor_event, logprob), 44u);
  EXPECT_EQ(offsetof(candor_event, top), 48u);
  EXPECT_EQ(offsetof(candor_event, n_top), 56u);
  EXPECT_EQ(sizeof(candor_event), 64u);
  EXPECT_EQ(CANDOR_INTERNAL, 11);
  EXPECT_EQ(CANDOR_FAILED, 8);
  EXPECT_EQ(candor_abi(), CANDOR_ABI);
  EXPECT_STREQ(candor_version(), "0.1.0");
}

}  // namespace
}  // namespace candor::testing
