#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "candor/verify.h"
#include "receipt/verification.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
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

}  // namespace

Result<ApiRequest> parse_verification(std::string_view body, const RequestTerms& terms) {
  CANDOR_ASSIGN(const Json json, parse_body(body));
  ApiRequest result;
  const bool is_wrapped = json.contains("receipt") && json["receipt"].is_object();
  if (is_wrapped) {
    Fields fields(json);
    check_model(fields, terms.limits(), result.model);
    fields.raw("receipt");
    settle_unknown(fields, terms.limits(), result.warnings);
    if (fields.fault()) return *fields.fault();
  }
  CANDOR_ASSIGN(Receipt receipt, parse_receipt(is_wrapped ? to_text(json["receipt"]) : std::string(body)));
  CANDOR_ASSIGN(auto verification, receipt::Verification::prepare(terms.engine(), std::move(receipt)));
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
