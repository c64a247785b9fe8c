// What a receipt cannot be, and what it does not hide.

#include <gtest/gtest.h>

#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "candor/verify.h"
#include "receipts/answers.h"

namespace candor::testing::receipts {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKey = R"(-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIC4xuMXlInsu83eUA1ZsTYAl16n9iiTj6XLtjgRHHgMn
-----END PRIVATE KEY-----
)";
constexpr const char* kPublicKey = R"(-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAOH62AazlF34WwtH3cm+9O0XAI1IkFtWUNno+3ioOBYE=
-----END PUBLIC KEY-----
)";
constexpr const char* kOtherKey = R"(-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIOclfmbDU9VMAaaWdJ7o64iB4qQQ7sKMFgJGqORuR0Lk
-----END PRIVATE KEY-----
)";

class BadReceipts : public ::testing::Test {
 protected:
  void SetUp() override {
    engine_ = opened(Engine::open(options_of(model_cases().front())));
    ASSERT_NE(engine_, nullptr);
    receipt_ = answer_of(
        {.prompt = TextPrompt{.text = "Once upon a time"}, .sampling = {.seed = 5, .max_tokens = 20}, .receipt = true});
  }
  Receipt answer_of(const Request& request) { return receipts_of(*engine_, {request}).front(); }
  void expect_refused(const Json& json, const std::string& words) {
    const auto parsed = parse_receipt(json.dump());
    ASSERT_FALSE(parsed) << words;
    EXPECT_NE(parsed.error().message.find(words), std::string::npos) << parsed.error().message;
    EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  }
  void expect_unchecked(const Receipt& receipt, const std::string& words) {
    const auto verdict = verify(*engine_, receipt);
    ASSERT_FALSE(verdict) << words;
    EXPECT_NE(verdict.error().message.find(words), std::string::npos) << verdict.error().message;
  }

  std::unique_ptr<Engine> engine_;
  Receipt receipt_;
};

TEST_F(BadReceipts, its_json_is_the_same_when_it_is_read_and_written_again) {
  const std::string json = to_json(receipt_);
  const auto parsed = parse_receipt(json);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(to_json(*parsed), json);
}

TEST_F(BadReceipts, every_field_that_is_missing_unknown_or_of_another_kind_is_named) {
  const Json json = Json::parse(to_json(receipt_));
  const auto spoil = [&](const Json::json_pointer& at, const std::string& name) {
    for (const auto& [key, value] : json.at(at).items()) {
      Json without = json;
      without.at(at).erase(key);
      expect_refused(without, key);
      Json other = json;
      other.at(at)[key] = Json::object({{"x", 1}});
      expect_refused(other, key);
    }
    Json more = json;
    more.at(at)["surprise"] = 1;
    expect_refused(more, name + "surprise");
  };
  spoil(Json::json_pointer(""), "");
  spoil(Json::json_pointer("/model"), "model.");
  spoil(Json::json_pointer("/sampling"), "sampling.");
  spoil(Json::json_pointer("/answers/0"), "answers[0].");
}

TEST_F(BadReceipts, no_json_a_later_version_too_long_or_too_deep) {
  EXPECT_FALSE(parse_receipt(""));
  EXPECT_FALSE(parse_receipt("hello"));
  EXPECT_FALSE(parse_receipt("[1]"));
  EXPECT_FALSE(parse_receipt("null"));
  EXPECT_FALSE(parse_receipt(std::string(100'000, '[')));
  EXPECT_FALSE(parse_receipt(R"({"receipt":1,"receipt":1})"));
  const auto large = parse_receipt(std::string(100'000'000, ' '));
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().message.find("100000000 bytes"), std::string::npos) << large.error().message;
  Json json = Json::parse(to_json(receipt_));
  json["receipt"] = 2;
  expect_refused(json, "vision");
  json["receipt"] = 3;
  expect_refused(json, "version 3");
}

TEST_F(BadReceipts, every_truncation_is_refused) {
  const std::string json = to_json(receipt_);
  for (size_t length = 0; length < json.size(); ++length) EXPECT_FALSE(parse_receipt(json.substr(0, length))) << length;
}

TEST_F(BadReceipts, another_model_numerics_kv_type_or_context) {
  Receipt receipt = receipt_;
  receipt.model.fingerprint ^= 1;
  expect_unchecked(receipt, "another model");
  receipt = receipt_;
  receipt.model.numerics = 1;
  expect_unchecked(receipt, "version 1 of the numerics");
  receipt = receipt_;
  receipt.model.kv_type = "q8_0";
  expect_unchecked(receipt, "--kv-type q8_0");
  receipt = receipt_;
  receipt.on_context_full = OnContextFull::kCrop;
  receipt.model.n_ctx = 64;
  expect_unchecked(receipt, "where the context ends");
  receipt = receipt_;
  receipt.prompt.resize(200, 5);
  expect_unchecked(receipt, "context holds 96");
  receipt = receipt_;
  receipt.adapters.push_back({"poet", 7, 1.0f});
  expect_unchecked(receipt, "the adapter poet");
  receipt = receipt_;
  receipt.answers[0].tokens[3] = 1'000'000;
  expect_unchecked(receipt, "1000000");
  receipt = receipt_;
  receipt.sampling.top_p = 7;
  expect_unchecked(receipt, "top_p");
}

TEST_F(BadReceipts, another_quantisation_is_another_model) {
  EngineOptions options = options_of(model_cases().front());
  options.quantize = "q4_0";
  const auto other = opened(Engine::open(options));
  ASSERT_NE(other, nullptr);
  const auto verdict = verify(*other, receipt_);
  ASSERT_FALSE(verdict);
  EXPECT_NE(verdict.error().message.find("another model"), std::string::npos);
  Receipt forged = receipt_;
  forged.model.fingerprint = other->info().hash;
  const auto seen = verify(*other, forged);
  ASSERT_TRUE(seen) << seen.error().message;
  ASSERT_TRUE(seen->difference);
  EXPECT_EQ(seen->difference->position, 0);
}

TEST_F(BadReceipts, a_signature_is_that_of_its_key_and_of_every_byte) {
  ASSERT_FALSE(check_signature(receipt_, kPublicKey));
  Receipt signed_one = receipt_;
  ASSERT_TRUE(sign(signed_one, kKey));
  EXPECT_TRUE(check_signature(signed_one));
  EXPECT_TRUE(check_signature(signed_one, kPublicKey));
  EXPECT_TRUE(check_signature(signed_one, kKey));
  EXPECT_FALSE(check_signature(signed_one, kOtherKey));
  EXPECT_FALSE(check_signature(signed_one, "no key"));
  EXPECT_FALSE(sign(signed_one, kPublicKey));
  const auto parsed = parse_receipt(to_json(signed_one));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(check_signature(*parsed, kPublicKey));
  EXPECT_TRUE(verify(*engine_, *parsed));
  Receipt forged = signed_one;
  forged.sampling.top_k = 50;
  EXPECT_FALSE(check_signature(forged));
  EXPECT_FALSE(verify(*engine_, forged));
  ASSERT_TRUE(sign(forged, kOtherKey));
  EXPECT_FALSE(check_signature(forged, kPublicKey));
}

TEST_F(BadReceipts, text_end_and_stop_that_are_others_are_found) {
  const auto field_of = [&](const Receipt& receipt) {
    const auto verdict = verify(*engine_, receipt);
    return verdict && verdict->difference ? verdict->difference->field : std::string("none");
  };
  Receipt receipt = receipt_;
  receipt.answers[0].text += "!";
  EXPECT_EQ(field_of(receipt), "text");
  receipt = receipt_;
  receipt.answers[0].finish = FinishReason::kStopId;
  EXPECT_EQ(field_of(receipt), "finish_reason");
  receipt = receipt_;
  receipt.answers[0].stop_index = 0;
  EXPECT_EQ(field_of(receipt), "stop_index");
  receipt = receipt_;
  receipt.answers[0].tokens.pop_back();
  receipt.answers[0].logprobs.pop_back();
  EXPECT_EQ(field_of(receipt), "tokens");
  receipt = receipt_;
  receipt.answers[0].tokens.push_back(7);
  receipt.answers[0].logprobs.push_back(0);
  EXPECT_EQ(field_of(receipt), "tokens");
}

TEST_F(BadReceipts, an_answer_that_was_broken_off_is_checked_as_far_as_it_goes) {
  Request request{.prompt = TextPrompt{.text = "Once upon a time"}, .sampling = {.seed = 5}, .receipt = true};
  request.sampling.ignore_eos = true;
  for (const int n_tokens : {0, 1, 7, 30}) {
    Receipt receipt;
    std::promise<void> ended;
    int n = 0;
    const auto id = engine_->submit(request, [&](const TokenEvent& event) {
      const bool is_last = event.token >= 0 && ++n == n_tokens;
      EXPECT_TRUE(!is_last || engine_->cancel(event.request));
      if (!event.summary) return;
      receipt = *event.summary->receipt;
      ended.set_value();
    });
    ASSERT_TRUE(id);
    EXPECT_TRUE(n_tokens > 0 || engine_->cancel(*id));
    ended.get_future().get();
    EXPECT_EQ(receipt.answers[0].finish, FinishReason::kCancelled);
    const auto verdict = verify(*engine_, receipt);
    ASSERT_TRUE(verdict) << verdict.error().message;
    EXPECT_FALSE(verdict->difference) << to_string(*verdict, *engine_);
    EXPECT_EQ(verdict->n_verified, std::ssize(receipt.answers[0].tokens));
  }
}

TEST_F(BadReceipts, events_have_logprobs_only_where_they_were_asked_for) {
  for (const int32_t logprobs : {-1, 2}) {
    Request request{.prompt = TextPrompt{.text = "Once"}, .sampling = {.seed = 1, .max_tokens = 4}, .receipt = true};
    request.sampling.logprobs = logprobs;
    const auto completion = engine_->generate(request);
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->logprobs.size(), logprobs < 0 ? 0u : 4u);
    ASSERT_NE(completion->summary.receipt, nullptr);
    EXPECT_EQ(completion->summary.receipt->answers[0].logprobs.size(), 4u);
  }
}

TEST_F(BadReceipts, there_is_none_of_a_hook_of_vectors_and_of_prompts_alone) {
  const auto refusal = [&](const Request& request) {
    const auto completion = engine_->generate(request);
    return completion ? std::string() : completion.error().field;
  };
  Request request{.prompt = TextPrompt{.text = "Once"}, .sampling = {.max_tokens = 4}, .receipt = true};
  request.on_logits = [](const LogitsRow&) { return true; };
  EXPECT_EQ(refusal(request), "receipt");
  request.on_logits = {};
  request.pooling = Pooling::kMean;
  EXPECT_EQ(refusal(request), "receipt");
  request.pooling = Pooling::kNone;
  request.sampling.max_tokens = 0;
  request.sampling.prompt_logprobs = 0;
  EXPECT_EQ(refusal(request), "receipt");
  request.sampling = {.stop = {"\xff"}};
  EXPECT_EQ(refusal(request), "receipt");
  Request without{.prompt = TextPrompt{.text = "Once"}, .sampling = {.max_tokens = 4}};
  const auto completion = engine_->generate(without);
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->summary.receipt, nullptr);
}

TEST_F(BadReceipts, a_prediction_that_is_no_answer_is_refused_and_a_wrong_one_changes_nothing) {
  Request request{.prompt = TextPrompt{.text = "Once"}, .sampling = {.seed = 3, .max_tokens = 24, .logprobs = 0}};
  const auto plain = engine_->generate(request);
  ASSERT_TRUE(plain);
  request.predicted = {{1}, {2}};
  EXPECT_FALSE(engine_->generate(request));
  request.predicted = {{1'000'000}};
  EXPECT_FALSE(engine_->generate(request));
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i) {
    std::vector<TokenId> guess = plain->tokens;
    for (size_t at = 0; at < guess.size(); ++at) {
      if (random() % 8 == 0) guess[at] = static_cast<TokenId>(random() % 2000);
    }
    guess.resize(random() % 40, 9);
    request.predicted = {guess};
    const auto answer = engine_->generate(request);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->tokens, plain->tokens);
    EXPECT_EQ(answer->logprobs, plain->logprobs);
  }
}

}  // namespace
}  // namespace candor::testing::receipts
