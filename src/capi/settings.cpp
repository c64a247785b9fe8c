#include "capi/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/error.h"
#include "candor/presets.h"
#include "candor/sampling_table.h"
#include "formats/json_text.h"

namespace candor::capi {
namespace {

using nlohmann::json;

Error refused(std::string_view name, std::string_view value, std::string_view expected) {
  std::string shown(value.substr(0, 80));
  std::ranges::replace_if(
      shown, [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return fail(ErrorKind::kInvalidInput, fmt::format("{}: '{}' is not {}", name, shown, expected), std::string(name));
}

template <class T>
struct ValueOf {
  using Type = T;
};
template <class T>
struct ValueOf<std::optional<T>> {
  using Type = T;
};

template <class T>
Result<T> parse(std::string_view name, std::string_view text) {
  const char* const end = text.data() + text.size();
  if constexpr (std::is_same_v<T, bool>) {
    if (text == "1" || text == "true") return true;
    if (text == "0" || text == "false") return false;
    return refused(name, text, "true or false");
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::filesystem::path>) {
    return T(text);
  } else {
    T value{};
    const auto [at, error] = std::from_chars(text.data(), end, value);
    const bool is_number = error == std::errc() && at == end;
    if constexpr (std::is_floating_point_v<T>) {
      if (is_number && std::isfinite(value)) return value;
      return refused(name, text, "a number");
    } else {
      if (is_number) return value;
      return refused(
          name, text,
          fmt::format("a whole number from {} to {}", std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    }
  }
}

// A member that a value is assigned to.
template <class Owner, class... Types>
struct Option {
  std::string_view name;
  std::variant<Types Owner::*...> member;
};
template <class Owner, class Rows>
std::optional<Result<void>> assign(Owner& owner, const Rows& rows, std::string_view name, std::string_view text) {
  const auto row = std::ranges::find(rows, name, [](const auto& one) { return one.name; });
  if (row == std::end(rows)) return std::nullopt;
  return std::visit(
      [&](auto member) -> Result<void> {
        using Member = std::remove_reference_t<decltype(owner.*member)>;
        CANDOR_ASSIGN(owner.*member, parse<typename ValueOf<Member>::Type>(name, text));
        return {};
      },
      row->member);
}

using E = EngineOptions;
using EngineOption =
    Option<E, bool, int32_t, int64_t, uint64_t, std::string, std::filesystem::path, std::optional<int32_t>>;
constexpr EngineOption kEngineOptions[] = {
    {"backend", &E::backend},
    {"n_threads", &E::n_threads},
    {"n_ctx", &E::n_ctx},
    {"kv_bytes", &E::kv_bytes},
    {"kept_states", &E::kept_states},
    {"max_rows", &E::max_rows},
    {"prefill_rows", &E::prefill_rows},
    {"max_running", &E::max_running},
    {"max_queued", &E::max_queued},
    {"quantize", &E::quantize},
    {"fast_weights", &E::fast_weights},
    {"prefix_cache", &E::prefix_cache},
    {"draft_path", &E::draft_path},
    {"cache_dir", &E::cache_dir},
    {"cache_bytes", &E::cache_bytes},
    {"ngrams_beside", &E::ngrams_beside},
};

using P = SamplingParams;
using SamplingOption = Option<P, bool, int32_t, std::optional<uint64_t>, std::optional<int64_t>>;
constexpr SamplingOption kSamplingOptions[] = {
    {"seed", &P::seed},
    {"max_tokens", &P::max_tokens},
    {"logprobs", &P::logprobs},
    {"logprobs_after_chain", &P::logprobs_after_chain},
    {"ignore_eos", &P::ignore_eos},
    {"explain", &P::explain},
    {"speculate", &P::speculate},
};
using RequestOption = Option<Request, bool, int32_t, std::optional<int64_t>>;
constexpr RequestOption kRequestOptions[] = {
    {"n", &Request::n}, {"max_prompt_tokens", &Request::max_prompt_tokens}, {"receipt", &Request::receipt}};
using S = Scheduling;
using SchedulingOption = Option<S, int32_t, double, std::string>;
constexpr SchedulingOption kSchedulingOptions[] = {
    {"priority", &S::priority},
    {"deadline_ms", &S::deadline_ms},
    {"cache_scope", &S::cache_scope},
    {"fair_key", &S::fair_key},
};
using TextOption = Option<TextPrompt, bool>;
constexpr TextOption kTextOptions[] = {{"add_special", &TextPrompt::add_special},
                                       {"parse_special", &TextPrompt::parse_special}};
using ChatOption = Option<ChatPrompt, bool, std::string>;
constexpr ChatOption kChatOptions[] = {
    {"add_generation_prompt", &ChatPrompt::add_generation_prompt},
    {"continue_final", &ChatPrompt::continue_final},
    {"tools", &ChatPrompt::tools_json},
    {"template_kwargs", &ChatPrompt::kwargs_json},
};

// Each call adds one.
using ListOption = Option<P, std::vector<std::string>, std::vector<TokenId>>;
constexpr ListOption kLists[] = {{"stop", &P::stop},
                                 {"stop_id", &P::stop_ids},
                                 {"bad_word", &P::bad_words},
                                 {"allowed_token_id", &P::allowed_token_ids},
                                 {"sampler", &P::samplers}};

Result<void> set_number(SamplingParams& sampling, const SamplingNumber& number, std::string_view text) {
  return std::visit(
      [&](auto member) -> Result<void> {
        using Member = std::remove_reference_t<decltype(sampling.*member)>;
        CANDOR_ASSIGN(sampling.*member, parse<Member>(number.name, text));
        return {};
      },
      number.member);
}

Result<void> add_to_list(SamplingParams& sampling, const ListOption& row, std::string_view text) {
  return std::visit(
      [&](auto member) -> Result<void> {
        auto& list = sampling.*member;
        if (list.size() >= kMaxTokenRules) {
          return fail(ErrorKind::kInvalidInput, fmt::format("{}: at most {} are taken", row.name, kMaxTokenRules),
                      std::string(row.name));
        }
        using Element = typename std::remove_reference_t<decltype(list)>::value_type;
        CANDOR_ASSIGN(Element element, parse<Element>(row.name, text));
        list.push_back(std::move(element));
        return {};
      },
      row.member);
}

Result<void> add_bias(SamplingParams& sampling, std::string_view name, std::string_view text) {
  if (sampling.logit_bias.size() >= kMaxTokenRules) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: at most {} are taken", name, kMaxTokenRules),
                std::string(name));
  }
  const size_t colon = name == "ban" ? text.size() : text.find(':');
  if (colon == std::string_view::npos) return refused(name, text, "a token's id, ':' and a number");
  LogitBias bias;
  CANDOR_ASSIGN(bias.token, parse<TokenId>(name, text.substr(0, colon)));
  bias.ban = name == "ban";
  if (!bias.ban) {
    CANDOR_ASSIGN(bias.bias, parse<double>(name, text.substr(colon + 1)));
  }
  sampling.logit_bias.push_back(std::move(bias));
  return {};
}

// "poet", or "poet:0.5"; names have no colon.
Result<void> add_adapter(std::vector<RequestAdapter>& adapters, std::string_view text) {
  if (adapters.size() >= kMaxRequestAdapters) {
    return fail(ErrorKind::kInvalidInput, fmt::format("adapter: at most {} are taken", kMaxRequestAdapters), "adapter");
  }
  const size_t colon = std::min(text.find(':'), text.size());
  RequestAdapter adapter{.name = std::string(text.substr(0, colon))};
  if (colon < text.size()) {
    CANDOR_ASSIGN(adapter.scale, parse<double>("adapter", text.substr(colon + 1)));
  }
  adapters.push_back(std::move(adapter));
  return {};
}

// "poet=adapters/poet"
Result<void> add_source(std::vector<AdapterSource>& adapters, std::string_view text) {
  const size_t mark = text.find('=');
  if (mark == std::string_view::npos || adapters.size() >= kMaxAdapters) {
    return refused("adapter", text, fmt::format("NAME=PATH, of at most {}", kMaxAdapters));
  }
  adapters.push_back({.name = std::string(text.substr(0, mark)), .path = text.substr(mark + 1)});
  return {};
}

Result<void> set_beams(Request& request, std::string_view name, std::string_view text) {
  BeamSearch beams = request.beams.value_or(BeamSearch{});
  if (name == "beams") {
    CANDOR_ASSIGN(beams.width, parse<int32_t>(name, text));
    if (beams.width == 0) {
      request.beams.reset();
      return {};
    }
  } else {
    if (!request.beams) return fail(ErrorKind::kInvalidInput, "length_penalty: set beams first", "length_penalty");
    CANDOR_ASSIGN(beams.length_penalty, parse<double>(name, text));
  }
  request.beams = beams;
  return {};
}

}  // namespace

Result<Request> RequestObject::build() const {
  Request whole = request;
  if (kind == Kind::kText) whole.prompt = text;
  if (kind == Kind::kTokens) whole.prompt = tokens;
  if (kind == Kind::kMessages) whole.prompt = chat;
  if (kind != Kind::kNone) return whole;
  return fail(ErrorKind::kInvalidInput, "the request has no prompt: give it a text, tokens or messages", "prompt");
}

Request RequestObject::build(std::vector<Message> messages) const {
  Request whole = request;
  ChatPrompt turn = chat;
  turn.messages = std::move(messages);
  whole.prompt = std::move(turn);
  return whole;
}

Result<void> set_engine_option(EngineOptions& options, std::string_view name, std::string_view value) {
  if (const auto done = assign(options, kEngineOptions, name, value)) return *done;
  if (name == "kv_type") {
    options.kv_type = find_kv_type(value);
    return options.kv_type ? Result<void>() : refused(name, value, "f32, bf16, q8_0 or q4");
  }
  if (name == "speculation") {
    constexpr std::string_view kNames[] = {"off", "ngram", "draft", "mtp", "auto", "eagle"};
    const auto it = std::ranges::find(kNames, value);
    if (it == std::end(kNames)) return refused(name, value, "off, ngram, draft, mtp, auto or eagle");
    options.speculation = static_cast<Speculation>(it - kNames);
    return {};
  }
  if (name == "adapter") return add_source(options.adapters, value);
  return refused("option", name, "one of an engine");
}

Result<void> set_request_option(RequestObject& draft, std::string_view name, std::string_view value) {
  SamplingParams& sampling = draft.request.sampling;
  if (const SamplingNumber* number = find_sampling_number(name)) return set_number(sampling, *number, value);
  if (const auto done = assign(sampling, kSamplingOptions, name, value)) return *done;
  if (const auto done = assign(draft.request, kRequestOptions, name, value)) return *done;
  if (const auto done = assign(draft.request.scheduling, kSchedulingOptions, name, value)) return *done;
  if (const auto done = assign(draft.text, kTextOptions, name, value)) return *done;
  if (const auto done = assign(draft.chat, kChatOptions, name, value)) return *done;
  const auto list = std::ranges::find(kLists, name, &ListOption::name);
  if (list != std::end(kLists)) return add_to_list(sampling, *list, value);
  if (name == "logit_bias" || name == "ban") return add_bias(sampling, name, value);
  if (name == "adapter") return add_adapter(draft.request.adapters, value);
  if (name == "beams" || name == "length_penalty") return set_beams(draft.request, name, value);
  if (name == "preset") return apply_preset(value, sampling);
  if (name == "on_context_full") {
    if (value != "stop" && value != "crop") return refused(name, value, "stop or crop");
    draft.request.on_context_full = value == "stop" ? OnContextFull::kStop : OnContextFull::kCrop;
    return {};
  }
  return refused("option", name, "one of a request");
}

Result<std::vector<Message>> parse_messages(std::string_view text) {
  CANDOR_ASSIGN(json list, formats::parse_json(text, "messages"));
  if (!list.is_array()) return fail(ErrorKind::kInvalidInput, "messages: expected a JSON array", "messages");
  std::vector<Message> messages;
  for (json& one : list) {
    const auto place = fmt::format("messages[{}]", messages.size());
    if (!one.is_object() || !one.contains("role") || !one["role"].is_string()) {
      return fail(ErrorKind::kInvalidInput, place + ": expected an object with a role, which is a string", place);
    }
    Message message{.role = one["role"].get<std::string>()};
    one.erase("role");
    if (const auto content = one.find("content"); content != one.end() && content->is_string()) {
      message.content = content->get<std::string>();
      one.erase("content");
    }
    if (!one.empty()) message.extra_json = one.dump(-1, ' ', false, json::error_handler_t::replace);
    messages.push_back(std::move(message));
  }
  return messages;
}

Result<std::optional<GrammarKind>> parse_grammar_kind(std::string_view name) {
  constexpr std::string_view kNames[] = {"json_schema", "json_object", "regex", "lark", "choice", "gbnf"};
  if (name.empty()) return std::optional<GrammarKind>();
  const auto it = std::ranges::find(kNames, name);
  if (it != std::end(kNames)) return std::optional(static_cast<GrammarKind>(it - kNames));
  return refused("kind", name, "json_schema, json_object, regex, lark, choice or gbnf");
}

}  // namespace candor::capi
