// Replies of POST /v1/messages: blocks of thinking, text and calls, each closed before the next opens.

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "serve/anthropic/requests.h"
#include "serve/core/answer_reader.h"
#include "serve/core/json_body.h"
#include "serve/core/reply.h"

namespace candor::serve::anthropic {
namespace {

using Kind = text::OutputPiece::Kind;

// Claude Code gives a stream up that said nothing but ping for 300 s. An event that changes nothing is heard; clients
// that sum up the usage of such events find nothing to add.
constexpr double kMostPingedMs = 120'000;

// Clients keep thinking that is signed, and send it back. It is not looked at again.
std::string signature_of(std::string_view thinking) {
  const auto bytes = std::as_bytes(std::span(thinking));
  return fmt::format("{:016x}{:016x}", hash_bytes(bytes, 1), hash_bytes(bytes, 2));
}

class MessageReply final : public Reply {
 public:
  MessageReply(const Engine& engine, ReplyHead head, const ReplyOptions& options)
      : head_(std::move(head)), options_(options), reader_(engine, head_.form) {}

  void open(size_t /*choice*/, const Emit& emit) override {
    Json message = message_json();
    message["usage"] = usage_json(options_.n_prompt_tokens, 0, 0);
    emit({{"type", "message_start"}, {"message", std::move(message)}});
  }

  void on_wait(const Waiting& waiting, const Emit& emit) override {
    if (waiting.ms - alive_ms_ < kMostPingedMs) return emit({{"type", "ping"}});
    alive_ms_ = waiting.ms;
    emit({{"type", "message_delta"},
          {"delta", {{"stop_reason", nullptr}, {"stop_sequence", nullptr}}},
          {"usage", {{"output_tokens", 0}}}});
  }

  void on_event(size_t /*choice*/, const TokenEvent& event, const Emit& emit) override {
    for (text::OutputPiece& piece : reader_.take(event)) add(piece, emit);
    if (event.summary) {
      usage_.add(*event.summary);
      head_.warnings.insert(head_.warnings.end(), event.summary->warnings.begin(), event.summary->warnings.end());
    }
    if (!event.finish) return;
    close_block(emit);
    if (*event.finish == FinishReason::kStopString && n_calls_ == 0)
      stop_sequence_ = head_.stops.at(event.stop_index.value_or(0));
    stop_reason_ = n_calls_ > 0 ? "tool_use" : stop_reason_of(*event.finish);
    if (std::string warning = reader_.warning(); !warning.empty()) head_.warnings.push_back(std::move(warning));
  }

  Json whole() override {
    Json message = message_json();
    message["content"] = std::move(content_);
    message["stop_reason"] = stop_reason_;
    message["stop_sequence"] = stop_sequence_;
    message["usage"] = final_usage();
    if (!head_.warnings.empty()) message["warnings"] = head_.warnings;
    return message;
  }

  void close(const Emit& emit) override {
    Json last = {{"type", "message_delta"},
                 {"delta", {{"stop_reason", stop_reason_}, {"stop_sequence", stop_sequence_}}},
                 {"usage", final_usage()}};
    if (!head_.warnings.empty()) last["warnings"] = head_.warnings;
    emit(last);
    emit({{"type", "message_stop"}});
  }

 private:
  Json message_json() const {
    return {{"id", head_.id},           {"type", "message"},      {"role", "assistant"},     {"model", head_.model},
            {"content", Json::array()}, {"stop_reason", nullptr}, {"stop_sequence", nullptr}};
  }

  static Json usage_json(int64_t n_prompt, int64_t n_cached, int64_t n_output) {
    return {{"input_tokens", n_prompt - n_cached},
            {"cache_creation_input_tokens", 0},
            {"cache_read_input_tokens", n_cached},
            {"output_tokens", n_output}};
  }

  Json final_usage() const {
    return usage_json(usage_.usage.prompt_tokens, usage_.usage.cached_tokens, usage_.usage.completion_tokens);
  }

  const char* stop_reason_of(FinishReason reason) const {
    const bool is_cut_by_context = usage_.usage.completion_tokens < options_.max_tokens;
    switch (reason) {
      case FinishReason::kStopId:
      case FinishReason::kStopString:
        return "stop_sequence";
      case FinishReason::kLength:
        return is_cut_by_context ? "model_context_window_exceeded" : "max_tokens";
      case FinishReason::kContextFull:
        return "model_context_window_exceeded";
      case FinishReason::kDeadline:
        return "max_tokens";
      default:
        return "end_turn";
    }
  }

  void add(text::OutputPiece& piece, const Emit& emit) {
    if (piece.kind == Kind::kCall) return add_call(piece, emit);
    if (piece.text.empty()) return;
    const bool is_thinking = piece.kind == Kind::kReasoning;
    if (open_ != piece.kind) {
      close_block(emit);
      open_block(piece.kind,
                 is_thinking ? Json{{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}
                             : Json{{"type", "text"}, {"text", ""}},
                 emit);
    }
    text_ += piece.text;
    const char* key = is_thinking ? "thinking" : "text";
    tell_delta({{"type", std::string(key) + "_delta"}, {key, std::move(piece.text)}}, emit);
  }

  void add_call(text::OutputPiece& piece, const Emit& emit) {
    close_block(emit);
    if (head_.only_one_call && n_calls_ > 0) return head_.warnings.push_back(left_out_call(piece.name));
    const std::string id = fmt::format("toolu_{}_{}", head_.number, n_calls_++);
    open_block(piece.kind, {{"type", "tool_use"}, {"id", id}, {"name", piece.name}, {"input", Json::object()}}, emit);
    text_ = std::move(piece.text);
    tell_delta({{"type", "input_json_delta"}, {"partial_json", text_}}, emit);
    close_block(emit);
  }

  void open_block(Kind kind, Json block, const Emit& emit) {
    open_ = kind;
    text_.clear();
    block_ = std::move(block);
    if (head_.is_stream) emit({{"type", "content_block_start"}, {"index", n_blocks_}, {"content_block", block_}});
  }

  void tell_delta(Json delta, const Emit& emit) const {
    if (!head_.is_stream) return;
    emit({{"type", "content_block_delta"}, {"index", n_blocks_}, {"delta", std::move(delta)}});
  }

  void close_block(const Emit& emit) {
    if (!open_) return;
    if (*open_ == Kind::kReasoning) {
      block_["signature"] = signature_of(text_);
      tell_delta({{"type", "signature_delta"}, {"signature", block_["signature"]}}, emit);
      block_["thinking"] = std::move(text_);
    } else if (*open_ == Kind::kContent) {
      block_["text"] = std::move(text_);
    } else {
      block_["input"] = read_written(text_).value_or(Json::object());
    }
    if (head_.is_stream) {
      emit({{"type", "content_block_stop"}, {"index", n_blocks_}});
    } else {
      content_.push_back(std::move(block_));
    }
    ++n_blocks_;
    open_.reset();
  }

  ReplyHead head_;
  const ReplyOptions options_;
  AnswerReader reader_;
  ReplyUsage usage_;

  double alive_ms_ = 0;  // when the last event of a waiting stream was more than a ping

  // The block that is open, if one is.
  std::optional<Kind> open_;
  Json block_;
  std::string text_;

  Json content_ = Json::array();
  size_t n_blocks_ = 0;  // closed
  size_t n_calls_ = 0;
  Json stop_reason_;
  Json stop_sequence_;
};

}  // namespace

std::unique_ptr<Reply> make_message_reply(const Engine& engine, ReplyHead head, const ReplyOptions& options) {
  return std::make_unique<MessageReply>(engine, std::move(head), options);
}

}  // namespace candor::serve::anthropic
