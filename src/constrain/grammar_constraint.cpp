#include "constrain/grammar_constraint.h"

#include <string>
#include <vector>

#include "candor_bridge.h"
#include "constrain/gbnf.h"

namespace candor::constrain {
namespace {

ErrorKind kind_of(candor_status status) {
  switch (status) {
    case CANDOR_UNSUPPORTED:
      return ErrorKind::kUnsupported;
    case CANDOR_INTERNAL:
      return ErrorKind::kInternal;
    default:
      return ErrorKind::kInvalidInput;
  }
}

// An error that the bridge reported; frees it.
class BridgeError {
 public:
  BridgeError() = default;
  ~BridgeError() { candor_error_clear(&error_); }
  BridgeError(const BridgeError&) = delete;
  BridgeError& operator=(const BridgeError&) = delete;

  candor_error* out() { return &error_; }
  Error take(candor_status status) const {
    const candor_text& message = error_.message;
    return Error{kind_of(status), message.data == nullptr ? "constraint: refused without a reason"
                                                          : std::string(message.data, message.size)};
  }

 private:
  candor_error error_{};
};

candor_bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

candor_grammar_kind bridge_kind(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::kJsonSchema:
      return CANDOR_JSON_SCHEMA;
    case GrammarKind::kJsonObject:
      return CANDOR_JSON_OBJECT;
    case GrammarKind::kRegex:
      return CANDOR_REGEX;
    case GrammarKind::kLark:
    case GrammarKind::kGbnf:
      return CANDOR_LARK;
    case GrammarKind::kChoice:
      return CANDOR_CHOICE;
  }
  return CANDOR_JSON_OBJECT;
}

class GrammarConstraint final : public Constraint {
 public:
  explicit GrammarConstraint(candor_constraint* handle) : handle_(handle) {}
  ~GrammarConstraint() override { candor_constraint_free(handle_); }

  Expected<void> mask(TokenMask& mask) override {
    BridgeError error;
    const auto words = mask.words();
    const candor_status status = candor_constraint_mask(handle_, words.data(), words.size(), error.out());
    if (status != CANDOR_OK) return fail(error.take(status));
    return {};
  }

  Expected<void> accept(TokenId token) override {
    BridgeError error;
    const candor_status status = candor_constraint_accept(handle_, static_cast<uint32_t>(token), error.out());
    if (status != CANDOR_OK) return fail(error.take(status));
    return {};
  }

  Expected<std::unique_ptr<Constraint>> fork() const override {
    candor_constraint* copy = candor_constraint_fork(handle_);
    if (copy == nullptr) return fail(ErrorKind::kInternal, "constraint: its state could not be copied");
    return std::make_unique<GrammarConstraint>(copy);
  }

  bool may_end() override { return candor_constraint_is_accepting(handle_); }
  bool must_end() const override { return candor_constraint_is_stopped(handle_); }

 private:
  candor_constraint* handle_;  // owned
};

}  // namespace

Expected<std::unique_ptr<GrammarCompiler>> GrammarCompiler::create(const text::Tokenizer& tokenizer) {
  const size_t n_tokens = static_cast<size_t>(tokenizer.n_vocab());
  std::vector<candor_bytes> tokens(n_tokens);
  const auto is_special = std::make_unique<bool[]>(n_tokens);
  for (size_t i = 0; i < n_tokens; ++i) {
    const TokenId id = static_cast<TokenId>(i);
    const text::TokenKind kind = tokenizer.kind(id);
    is_special[i] = kind == text::TokenKind::kControl || kind == text::TokenKind::kUnknown;
    tokens[i] = bytes_of(is_special[i] ? std::string_view{} : tokenizer.bytes_of(id));
  }
  std::vector<uint32_t> ends;
  for (const TokenId id : tokenizer.end_tokens()) ends.push_back(static_cast<uint32_t>(id));
  if (ends.empty()) {
    return fail(ErrorKind::kUnsupported, "constraints need an end token, and this model's tokenizer names none");
  }
  const candor_vocab vocab{tokens.data(), is_special.get(), n_tokens, ends.data(), ends.size()};
  BridgeError error;
  candor_tok_env* env = nullptr;
  const candor_status status = candor_tok_env_create(&vocab, &env, error.out());
  if (status != CANDOR_OK) return fail(error.take(status));
  return std::unique_ptr<GrammarCompiler>(new GrammarCompiler(env));
}

GrammarCompiler::~GrammarCompiler() {
  candor_tok_env_free(env_);
}

Expected<std::unique_ptr<Constraint>> GrammarCompiler::compile(GrammarKind kind, std::string_view source) const {
  std::string converted;
  if (kind == GrammarKind::kGbnf) {
    CANDOR_ASSIGN(converted, lark_of_gbnf(source));
    source = converted;
  }
  BridgeError error;
  candor_constraint* handle = nullptr;
  const candor_status status =
      candor_constraint_compile(env_, bridge_kind(kind), bytes_of(source), &handle, error.out());
  if (status != CANDOR_OK) return fail(error.take(status));
  return std::make_unique<GrammarConstraint>(handle);
}

}  // namespace candor::constrain
