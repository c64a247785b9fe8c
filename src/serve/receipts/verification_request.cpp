#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "candor/verify.h"
#include "receipt/verification.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/message_parts.h"
#include "serve/core/reply.h"
#include "serve/receipts/requests.h"

namespace candor::serve::receipts {
namespace {

class VerificationReply final : public Reply {
 public:
  VerificationReply(const Engine& engine, std::shared_ptr<receipt::Verification> verification)
      : engine_(engine), verification_(std::move(verification)) {}

  void open(size_t, const Emit&) override {}
  void on_event(size_t, const TokenEvent& event, const Emit&) override { verification_->on_event(event); }
  bool has_enough() const override { return verification_->is_decided(); }
  void close(const Emit&) override {}

  Json whole() override {
    Json json = {{"object", "receipt.verification"}};
    json.update(Json::parse(to_json(verification_->verdict(), engine_)));
    return json;
  }

 private:
  const Engine& engine_;
  const std::shared_ptr<receipt::Verification> verification_;
};

constexpr const char* kImages = "images";

// Base64, as in Ollama's messages.
Result<std::vector<std::string>> read_images(const Json& list, const ApiLimits& limits) {
  if (!list.is_array()) {
    return Error{ErrorKind::kInvalidInput, "images is no list: expected the prompt's images, each in base64", kImages};
  }
  ImageFiles files(limits);
  std::vector<std::string> images;
  for (size_t i = 0; i < list.size(); ++i) {
    auto file = files.of_listed(list[i]);
    if (!file) {
      return Error{file.error().kind, fmt::format("images[{}] {}", i, file.error().message), kImages};
    }
    images.push_back(std::move(*file));
  }
  return images;
}

}  // namespace

Result<ApiRequest> parse_verification(std::string_view body, const RequestTerms& terms) {
  CANDOR_ASSIGN(const Json json, parse_body(body));
  ApiRequest result;
  std::vector<std::string> images;
  const bool is_wrapped = json.contains("receipt") && json["receipt"].is_object();
  if (is_wrapped) {
    Fields fields(json);
    check_model(fields, terms.limits(), result.model);
    fields.raw("receipt");
    if (const Json* list = fields.raw(kImages)) {
      CANDOR_ASSIGN(images, read_images(*list, terms.limits()));
    }
    settle_unknown(fields, terms.limits(), result.warnings);
    if (fields.fault()) return *fields.fault();
  }
  CANDOR_ASSIGN(Receipt receipt, parse_receipt(is_wrapped ? to_text(json["receipt"]) : std::string(body)));
  CANDOR_ASSIGN(auto verification, receipt::Verification::prepare(terms.engine(), std::move(receipt), images));
  const auto shared = std::make_shared<receipt::Verification>(std::move(verification));
  result.requests = {shared->request()};
  result.n_choices = shared->request().n;
  result.keeps_adapters = true;
  result.names = {.prompt = "receipt", .constraint = "receipt"};
  result.make_reply = [shared](const Engine& engine, const ReplyHead&, size_t) -> std::unique_ptr<Reply> {
    return std::make_unique<VerificationReply>(engine, shared);
  };
  return result;
}

}  // namespace candor::serve::receipts
