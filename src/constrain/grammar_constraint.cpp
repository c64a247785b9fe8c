#include "constrain/grammar_constraint.h"

#include <cstddef>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "candor_bridge.h"
#include "constrain/gbnf.h"
#include "constrain/token_mask.h"
#include "sandbox/helper_process.h"

namespace candor::constrain {
namespace {

ErrorKind kind_of(candor_status status) {
  switch (status) {
    case CANDOR_UNSUPPORTED:
      return ErrorKind::kUnsupported;
    case CANDOR_INTERNAL:
      return ErrorKind::kInternal;
    case CANDOR_BUSY:
      return ErrorKind::kBusy;
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

void append(std::string& bytes, size_t number) {
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(number >> shift & 0xff);
}

// In the form of candor_helper.h.
sandbox::SharedAsset vocabulary_of(const candor_vocab& vocab) {
  constexpr size_t kSpecial = size_t{1} << 31;
  sandbox::HelperAsset asset{.kind = sandbox::HelperAsset::Kind::kVocabulary};
  append(asset.bytes, vocab.n_tokens);
  append(asset.bytes, vocab.n_eos_tokens);
  for (size_t i = 0; i < vocab.n_eos_tokens; ++i) append(asset.bytes, vocab.eos_tokens[i]);
  for (size_t i = 0; i < vocab.n_tokens; ++i) {
    const candor_bytes& token = vocab.tokens[i];
    append(asset.bytes, token.size | (vocab.is_special[i] ? kSpecial : 0));
    if (token.size > 0) asset.bytes.append(reinterpret_cast<const char*>(token.data), token.size);
  }
  return std::make_shared<const sandbox::HelperAsset>(std::move(asset));
}

// Shows that compiling it hurts nobody.
Result<void> try_out(sandbox::HelperPool& helpers, const sandbox::SharedAsset& vocabulary, candor_grammar_kind kind,
                     std::string_view source) {
  auto reply = helpers.try_constraint(vocabulary, static_cast<uint8_t>(kind), source);
  if (!reply) return fail(reply.error().kind, "constraint: " + reply.error().message);
  if (reply->status == sandbox::HelperStatus::kOk) return {};
  return fail(kind_of(static_cast<candor_status>(reply->status)),
              (reply->is_end ? "constraint: it " : "") + reply->text);
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

struct FreeConstraint {
  void operator()(candor_constraint* handle) const { candor_constraint_free(handle); }
};
using Handle = std::unique_ptr<candor_constraint, FreeConstraint>;

class GrammarConstraint final : public Constraint {
 public:
  explicit GrammarConstraint(Handle handle) : handle_(std::move(handle)) {}

  Result<void> mask(TokenMask& mask) override {
    BridgeError error;
    const auto words = mask.words();
    const candor_status status = candor_constraint_mask(handle_.get(), words.data(), words.size(), error.out());
    if (status != CANDOR_OK) return error.take(status);
    return {};
  }

  Result<void> accept(TokenId token) override {
    BridgeError error;
    const candor_status status = candor_constraint_accept(handle_.get(), static_cast<uint32_t>(token), error.out());
    if (status != CANDOR_OK) return error.take(status);
    return {};
  }

  Result<std::unique_ptr<Constraint>> fork() const override {
    Handle copy(candor_constraint_fork(handle_.get()));
    if (copy == nullptr) return fail(ErrorKind::kInternal, "constraint: its state could not be copied");
    return std::make_unique<GrammarConstraint>(std::move(copy));
  }

  bool may_end() override { return candor_constraint_is_accepting(handle_.get()); }
  bool must_end() const override { return candor_constraint_is_stopped(handle_.get()); }

 private:
  Handle handle_;
};

}  // namespace

Result<std::unique_ptr<GrammarCompiler>> GrammarCompiler::create(const text::Tokenizer& tokenizer,
                                                                 sandbox::HelperPool& helpers) {
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
  candor_tok_env* made = nullptr;
  const candor_status status = candor_tok_env_create(&vocab, &made, error.out());
  TokEnv env(made);
  if (status != CANDOR_OK) return error.take(status);
  return std::unique_ptr<GrammarCompiler>(new GrammarCompiler(std::move(env), vocabulary_of(vocab), helpers));
}

void GrammarCompiler::FreeTokEnv::operator()(candor_tok_env* env) const {
  candor_tok_env_free(env);
}

Result<std::unique_ptr<Constraint>> GrammarCompiler::compile(GrammarKind kind, std::string_view source) const {
  std::string converted;
  if (kind == GrammarKind::kGbnf) {
    CANDOR_ASSIGN(converted, lark_of_gbnf(source));
    source = converted;
  }
  const candor_grammar_kind number = bridge_kind(kind);
  if (auto known = refused_.find(number, source)) return std::move(*known);
  auto compiled = compile_afresh(number, source);
  if (!compiled) refused_.add(number, source, compiled.error());
  return compiled;
}

Result<std::unique_ptr<Constraint>> GrammarCompiler::compile_afresh(int32_t number, std::string_view source) const {
  const auto kind = static_cast<candor_grammar_kind>(number);
  BridgeError error;
  candor_constraint* handle = nullptr;
  candor_status status = candor_constraint_known(env_.get(), kind, bytes_of(source), &handle, error.out());
  if (status == CANDOR_OK && handle == nullptr) {
    CANDOR_TRY(try_out(helpers_, vocabulary_, kind, source));
    status = candor_constraint_compile(env_.get(), kind, bytes_of(source), &handle, error.out());
  }
  if (status != CANDOR_OK) return error.take(status);
  return std::make_unique<GrammarConstraint>(Handle(handle));
}

Result<std::vector<std::string>> GrammarCompiler::without_effect(GrammarKind kind, std::string_view source) {
  if (kind != GrammarKind::kJsonSchema && kind != GrammarKind::kLark) return std::vector<std::string>{};
  BridgeError error;
  candor_text text{};
  const candor_status status =
      candor_constraint_without_effect(bridge_kind(kind), bytes_of(source), &text, error.out());
  if (status != CANDOR_OK) return error.take(status);
  std::vector<std::string> sentences;
  std::istringstream lines(std::string(text.data == nullptr ? "" : text.data, text.size));
  candor_text_free(&text);
  for (std::string line; std::getline(lines, line);) sentences.push_back(line);
  return sentences;
}

}  // namespace candor::constrain
