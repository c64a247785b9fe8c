// Replies of /v1/responses: one output item after the other, each told from its opening to its end. The same steps make
// the stream and the whole object, so that they say the same.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "serve/core/answer_reader.h"
#include "serve/core/generations.h"
#include "serve/core/json_body.h"
#include "serve/core/reply.h"
#include "serve/responses/requests.h"
#include "serve/responses/response_words.h"
#include "serve/responses/sealed_text.h"

namespace candor::serve::responses {
namespace {

using Kind = text::OutputPiece::Kind;

Json usage_json(const ReplyUsage& sum) {
  const Usage& usage = sum.usage;
  Json of_input = {{"cached_tokens", usage.cached_tokens}, {"cache_write_tokens", 0}};
  if (usage.image_tokens > 0) of_input["image_tokens"] = usage.image_tokens;
  if (usage.disk_tokens > 0) of_input["disk_tokens"] = usage.disk_tokens;
  if (usage.truncated_tokens > 0) of_input["truncated_tokens"] = usage.truncated_tokens;
  return {{"input_tokens", usage.prompt_tokens},
          {"input_tokens_details", std::move(of_input)},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", {{"reasoning_tokens", sum.reasoning_tokens}}},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

// The text of a custom tool's one parameter, or what stands there instead.
std::string custom_input(const std::string& arguments) {
  const auto parsed = parse_body(arguments);
  const auto input = parsed ? parsed->find(kCustomInput) : Json::const_iterator();
  return parsed && input != parsed->end() && input->is_string() ? input->get<std::string>() : arguments;
}

class ResponseReply final : public Reply {
 public:
  ResponseReply(const Engine& engine, ReplyHead head, ResponseOptions options)
      : engine_(engine),
        head_(std::move(head)),
        options_(std::move(options)),
        reader_(engine, head_.form),
        n_sent_(head_.n_early) {}

  void open(size_t /*choice*/, const Emit& emit) override {
    if (head_.n_early == 0) tell_response("response.created", response("in_progress"), emit);
    tell_response("response.in_progress", response("in_progress"), emit);
  }

  void on_event(size_t /*choice*/, const TokenEvent& event, const Emit& emit) override {
    if (event.summary) {
      usage_.add(*event.summary);
      head_.warnings.insert(head_.warnings.end(), event.summary->warnings.begin(), event.summary->warnings.end());
    }
    if (event.logprob && head_.wants_logprobs) waiting_logprobs_.push_back(logprob_json(event));
    if (event.explanation) explained_.push_back(explanation_json(engine_, event));
    for (text::OutputPiece& piece : reader_.take(event)) take_piece(piece, emit);
    if (event.finish) finish(event, emit);
  }

  void on_wait(const Waiting& /*waiting*/, const Emit& emit) override {
    tell_response("response.in_progress", response("in_progress"), emit);
  }

  bool on_error(const Error& error, const Emit& emit) override {
    tell_response("response.failed", failed_response(response("failed"), error), emit);
    return true;
  }

  Json whole() override { return ended(); }

  void close(const Emit& emit) override {
    const bool is_complete = status_ == "completed";
    tell_response(is_complete ? "response.completed" : "response.incomplete", ended(), emit);
  }

 private:
  // What of an answer grows; calls come whole.
  enum class Growing : uint8_t { kNothing, kMessage, kReasoning };
  struct Words {
    const char* item;    // its type
    const char* prefix;  // of its id
    const char* part;    // its part's type
    const char* event;   // of the part's text
  };

  static Words words_of(Growing kind) {
    if (kind == Growing::kReasoning) return {"reasoning", "rs", "reasoning_text", "response.reasoning_text"};
    return {"message", "msg", "output_text", "response.output_text"};
  }

  void take_piece(text::OutputPiece& piece, const Emit& emit) {
    if (piece.kind == Kind::kCall) return take_call(piece, emit);
    grow(piece.kind == Kind::kReasoning ? Growing::kReasoning : Growing::kMessage, piece.text, emit);
  }

  // Logprobs are those of a message's tokens: what waits belongs to the piece that its tokens have led to.
  void grow(Growing kind, const std::string& text, const Emit& emit) {
    if (growing_ != kind) {
      close_item("completed", emit);
      open_item(kind, emit);
    }
    text_ += text;
    Json event = part_event(words_of(kind).event, ".delta");
    event["delta"] = text;
    Json logprobs = std::exchange(waiting_logprobs_, Json::array());
    if (kind == Growing::kMessage) {
      logprobs_.insert(logprobs_.end(), logprobs.begin(), logprobs.end());
      event["logprobs"] = std::move(logprobs);
    }
    send(std::move(event), emit);
  }

  void open_item(Growing kind, const Emit& emit) {
    growing_ = kind;
    text_.clear();
    logprobs_ = Json::array();
    const Words words = words_of(kind);
    item_id_ = next_id(words.prefix);
    tell_item("response.output_item.added", item("in_progress", Json::array()), emit);
    tell_part("response.content_part.added", part(), emit);
  }

  void close_item(const char* status, const Emit& emit) {
    if (growing_ == Growing::kNothing) return;
    const Words words = words_of(growing_);
    Json done = part_event(words.event, ".done");
    done["text"] = text_;
    if (growing_ == Growing::kMessage) done["logprobs"] = logprobs_;
    send(std::move(done), emit);
    tell_part("response.content_part.done", part(), emit);
    add_item(item(status, Json::array({part()})), emit);
    growing_ = Growing::kNothing;
  }

  Json part() const {
    Json part = {{"type", words_of(growing_).part}, {"text", text_}};
    if (growing_ == Growing::kReasoning) return part;
    part["annotations"] = Json::array();
    part["logprobs"] = logprobs_;
    return part;
  }

  Json item(const char* status, Json content) const {
    Json json = {{"id", item_id_}, {"type", words_of(growing_).item}, {"status", status}};
    if (growing_ == Growing::kMessage) {
      json["role"] = "assistant";
      json["content"] = std::move(content);
      return json;
    }
    const bool is_sealed = options_.seals_reasoning && !content.empty();
    json["summary"] = Json::array();
    json["content"] = std::move(content);
    if (is_sealed) json["encrypted_content"] = sealed(text_);
    return json;
  }

  void take_call(const text::OutputPiece& piece, const Emit& emit) {
    waiting_logprobs_ = Json::array();
    if (head_.only_one_call && n_calls_ > 0) return head_.warnings.push_back(left_out_call(piece.name));
    close_item("completed", emit);
    const OfferedTool tool = tool_of(piece.name);
    const char* const key = tool.is_custom ? kCustomInput : "arguments";
    const std::string words = tool.is_custom ? custom_input(piece.text) : piece.text;
    item_id_ = next_id(tool.is_custom ? "ctc" : "fc");
    Json call = {{"id", item_id_},
                 {"type", tool.is_custom ? "custom_tool_call" : "function_call"},
                 {"status", "in_progress"},
                 {"call_id", fmt::format("call_{}_{}", head_.number, n_calls_++)},
                 {"name", tool.name}};
    if (!tool.name_space.empty()) call["namespace"] = tool.name_space;
    call[key] = "";
    tell_item("response.output_item.added", call, emit);
    const std::string type = tool.is_custom ? "response.custom_tool_call_input" : "response.function_call_arguments";
    Json delta = item_event(type + ".delta");
    delta["delta"] = words;
    send(std::move(delta), emit);
    Json done = item_event(type + ".done");
    if (!tool.is_custom) done["name"] = tool.name;
    done[key] = words;
    send(std::move(done), emit);
    call["status"] = "completed";
    call[key] = words;
    add_item(std::move(call), emit);
  }

  // Models may leave a namespace out that the client has put before a name.
  OfferedTool tool_of(const std::string& name) const {
    const auto is_shown = [&](const OfferedTool& tool) { return tool.shown == name; };
    auto found = std::ranges::find_if(options_.tools, is_shown);
    if (found == options_.tools.end()) found = std::ranges::find(options_.tools, name, &OfferedTool::name);
    return found == options_.tools.end() ? OfferedTool{.shown = name, .name = name} : *found;
  }

  void finish(const TokenEvent& event, const Emit& emit) {
    const bool was_cut = is_cut(*event.finish);
    if (growing_ == Growing::kMessage && !waiting_logprobs_.empty()) grow(Growing::kMessage, "", emit);
    const bool has_answer = growing_ == Growing::kMessage || n_calls_ > 0 || n_messages_ > 0;
    if (!has_answer && !was_cut) {
      close_item("completed", emit);
      open_item(Growing::kMessage, emit);
    }
    close_item(was_cut ? "incomplete" : "completed", emit);
    status_ = was_cut ? "incomplete" : "completed";
    stop_reason_ = stop_reason(head_, event);
    if (std::string warning = reader_.warning(); !warning.empty()) head_.warnings.push_back(std::move(warning));
  }

  Json response(std::string_view status) const {
    return response_json({head_.id, head_.created, head_.model}, status, output_, options_.echo);
  }

  Json ended() const {
    Json json = response(status_);
    const bool is_complete = json["status"] == "completed";
    if (is_complete) json["completed_at"] = unix_seconds();
    if (!is_complete) json["incomplete_details"] = {{"reason", "max_output_tokens"}};
    ReplyUsage usage = usage_;
    usage.reasoning_tokens = reader_.n_reasoning_tokens();
    json["usage"] = usage_json(usage);
    json["timings"] = timings_json(usage, head_.decode_limit);
    if (!stop_reason_.is_null()) json["stop_reason"] = stop_reason_;
    if (!explained_.empty()) json["explain"] = explained_;
    if (!head_.warnings.empty()) json["warnings"] = head_.warnings;
    return json;
  }

  Json logprob_json(const TokenEvent& event) const {
    Json json = token_json(engine_, *event.logprob);
    json["top_logprobs"] = Json::array();
    for (const TokenLogprob& top : event.top_logprobs) json["top_logprobs"].push_back(token_json(engine_, top));
    return json;
  }

  std::string next_id(const char* prefix) const {
    return fmt::format("{}_{}_{}", prefix, head_.number, output_.size());
  }

  // The item is whole.
  void add_item(Json item, const Emit& emit) {
    n_messages_ += item["type"] == "message" ? 1 : 0;
    tell_item("response.output_item.done", item, emit);
    output_.push_back(std::move(item));
  }

  Json item_event(const std::string& type) const {
    return {{"type", type}, {"item_id", item_id_}, {"output_index", output_.size()}};
  }
  Json part_event(const char* type, const char* ending) const {
    Json event = item_event(std::string(type) + ending);
    event["content_index"] = 0;
    return event;
  }
  void tell_part(const char* type, Json part, const Emit& emit) {
    Json event = part_event(type, "");
    event["part"] = std::move(part);
    send(std::move(event), emit);
  }
  void tell_item(const char* type, const Json& item, const Emit& emit) {
    send({{"type", type}, {"output_index", output_.size()}, {"item", item}}, emit);
  }
  void tell_response(const char* type, Json response, const Emit& emit) {
    send(response_event(type, std::move(response)), emit);
  }
  void send(Json event, const Emit& emit) {
    if (!head_.is_stream) return;
    event["sequence_number"] = n_sent_++;
    emit(event);
  }

  const Engine& engine_;
  ReplyHead head_;
  const ResponseOptions options_;
  AnswerReader reader_;

  Json output_ = Json::array();  // items that are whole
  Growing growing_ = Growing::kNothing;
  std::string item_id_;
  std::string text_;  // of the item that grows
  Json logprobs_ = Json::array();
  Json waiting_logprobs_ = Json::array();
  Json explained_ = Json::array();
  size_t n_calls_ = 0;
  size_t n_messages_ = 0;
  int64_t n_sent_;
  std::string_view status_ = "in_progress";
  Json stop_reason_;
  ReplyUsage usage_;
};

}  // namespace

std::unique_ptr<Reply> make_response_reply(const Engine& engine, ReplyHead head, ResponseOptions options) {
  return std::make_unique<ResponseReply>(engine, std::move(head), std::move(options));
}

}  // namespace candor::serve::responses
